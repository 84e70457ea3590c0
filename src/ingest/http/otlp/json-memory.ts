import { AppError } from '#errors.ts'
import { MiB } from '#lib/bytes.ts'

/** JSON becomes at most this many times its size: objects with a single key each, all of them different. */
const growthMax = 32
/** Bytes of memory that follow a character at most: an object, an array with an element, a field with a key of its own, an element. */
const bytesAfter = { object: 64, array: 64, field: 120, element: 32 } as const
/** Characters, and each of them twice if one of them needs two bytes. */
const bytesOfCharacter = 2
/** The rest is for the records that are made of it, and for the garbage collector. */
const share = 0.9

const [brace, bracket, colon, comma] = [...Buffer.from('{[:,')]

/**
 * Throws payload_too_large for JSON that may not fit into the heap of the thread that parses it. V8 can end the whole process if the heap of a
 * thread overflows, and every connection with it: so this is decided before, by an upper bound.
 */
export function requireFits(json: Uint8Array, heapBytes: number): void {
  if (json.byteLength * growthMax <= heapBytes) return
  if (memoryOf(json) > heapBytes * share)
    throw new AppError(
      'payload_too_large',
      `the request may need more than ${heapBytes / MiB} MiB of memory to be read; send smaller batches, or Protobuf; none of it was stored`,
    )
}

/** Returns an upper bound of what the JSON takes once it is parsed. */
export function memoryOf(json: Uint8Array): number {
  let bytes = json.byteLength * bytesOfCharacter
  for (const code of json) {
    if (code === brace) bytes += bytesAfter.object
    else if (code === bracket) bytes += bytesAfter.array
    else if (code === colon) bytes += bytesAfter.field
    else if (code === comma) bytes += bytesAfter.element
  }
  return bytes
}
