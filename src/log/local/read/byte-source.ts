/** Sequential bytes for a scan: a plain segment file, or a zstd-compressed one, decompressed. */
import { Buffer } from 'node:buffer'
import { Readable } from 'node:stream'
import { createZstdDecompress } from 'node:zlib'
import type { OpenFile } from '#lib/files.ts'

export interface ByteSource {
  /** Fills `into` and returns the number of bytes read, which is less than its size only at the end. */
  read(into: Uint8Array): Promise<number>
  close(): Promise<void>
}

const ZSTD_MAGIC = 0xfd2f_b528
const CHUNK_BYTES = 256 * 1024

export async function isZstd(file: OpenFile): Promise<boolean> {
  const magic = Buffer.alloc(4)
  return (await file.read(magic, 0)) === 4 && magic.readUInt32LE(0) === ZSTD_MAGIC
}

/** Reads the file from `position` up to `end`. Closing the source leaves the file open. */
export function plainSource(file: OpenFile, position: number, end = Number.POSITIVE_INFINITY): ByteSource {
  let at = position
  return {
    async read(into) {
      const got = await file.read(into.subarray(0, Math.min(into.byteLength, Math.max(end - at, 0))), at)
      at += got
      return got
    },
    close: () => Promise.resolve(),
  }
}

/** Decompresses a zstd file. */
export function zstdSource(file: OpenFile): ByteSource {
  const input = Readable.from(fileChunks(file), { objectMode: false })
  const decompressed = createZstdDecompress()
  input.on('error', (error) => decompressed.destroy(error))
  const chunks = input.pipe(decompressed)[Symbol.asyncIterator]()
  let rest: Uint8Array = Buffer.alloc(0)
  return {
    async read(into) {
      let filled = 0
      while (filled < into.byteLength) {
        if (rest.byteLength === 0) {
          const next = await chunks.next()
          if (next.done === true) break
          rest = next.value as Uint8Array
        }
        const part = rest.subarray(0, into.byteLength - filled)
        into.set(part, filled)
        filled += part.byteLength
        rest = rest.subarray(part.byteLength)
      }
      return filled
    },
    close() {
      input.destroy()
      decompressed.destroy()
      return Promise.resolve()
    },
  }
}

/** Yields all bytes of the file. Each chunk has its own memory. */
export async function* fileChunks(file: OpenFile): AsyncGenerator<Uint8Array> {
  for (let at = 0; ; ) {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
    const got = await file.read(chunk, at)
    if (got === 0) return
    at += got
    yield chunk.subarray(0, got)
  }
}
