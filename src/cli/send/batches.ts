/** Cuts a stream of NDJSON into batches of whole lines. */
import { MiB } from '#lib/bytes.ts'
import { UserError } from '#lib/user-error.ts'

export type LineBatch = {
  /** Each with a line feed. */
  readonly lines: readonly Uint8Array<ArrayBuffer>[]
  /** Number of the first line in the stream, from 1. */
  readonly firstLine: number
  /** Bytes of the stream up to the end of the batch. */
  readonly end: number
}

type Options = {
  /** A batch has more only if its only line has. */
  readonly bytesMax: number
  /** Lines that wait that long are a batch. Without it, the same stream always gives the same batches. */
  readonly lingerMs?: number
}

const lineBytesMax = MiB

/** How files begin that have no lines of text. */
const otherFormats = [
  {
    begin: [0x1f, 0x8b],
    problem: 'the input is compressed with gzip: decompress it, as in gunzip -c FILE | inlet send ENDPOINT',
  },
  {
    begin: [0x28, 0xb5, 0x2f, 0xfd],
    problem: 'the input is compressed with zstd: decompress it, as in zstd -dc FILE | inlet send ENDPOINT',
  },
  { begin: [0xff, 0xfe], problem: 'the input is UTF-16: convert it to UTF-8' },
  { begin: [0xfe, 0xff], problem: 'the input is UTF-16: convert it to UTF-8' },
]
const [tab, lineFeed, carriageReturn, space] = [9, 10, 13, 32]

/** Blank lines are skipped. Throws a UserError for input that is no text, and for a line that is too long, after the lines before it. */
export async function* readBatches(
  chunks: AsyncIterable<Uint8Array>,
  { bytesMax, lingerMs }: Options,
): AsyncGenerator<LineBatch> {
  let lines: Uint8Array<ArrayBuffer>[] = []
  let bytes = 0
  let firstLine = 1
  let line = 0
  let end = 0
  const take = (): LineBatch => {
    const batch = { lines, firstLine, end }
    lines = []
    bytes = 0
    return batch
  }
  for await (const next of wholeLines(withPauses(chunks, lingerMs))) {
    if (next === 'pause') {
      if (lines.length > 0) yield take()
      continue
    }
    line += 1
    if (line === 1 && next !== 'too long') assertIsText(next)
    const isTooLong = next === 'too long' || contentBytes(next) > lineBytesMax
    if (isTooLong || (lines.length > 0 && bytes + next.length > bytesMax)) {
      if (lines.length > 0) yield take()
      if (isTooLong) throw new UserError(`line ${line} is longer than 1 MiB, which no record may be`)
    }
    end += next.length
    const content = line === 1 ? withoutMark(next) : next
    if (isBlank(content)) continue
    if (lines.length === 0) firstLine = line
    lines.push(content)
    bytes += next.length
  }
  if (lines.length > 0) yield take()
}

/** Passes chunks on, with 'pause' whenever nothing came for a while. */
async function* withPauses(
  chunks: AsyncIterable<Uint8Array>,
  lingerMs: number | undefined,
): AsyncGenerator<Uint8Array | 'pause'> {
  if (lingerMs === undefined) return yield* chunks
  const source = chunks[Symbol.asyncIterator]()
  for (let next = source.next(); ; ) {
    const { promise, resolve } = Promise.withResolvers<'pause'>()
    const timer = setTimeout(() => resolve('pause'), lingerMs)
    const first = await Promise.race([next, promise]).finally(() => clearTimeout(timer))
    if (first !== 'pause' && first.done === true) return
    yield first === 'pause' ? first : first.value
    if (first === 'pause') await next.catch(() => undefined)
    else next = source.next()
  }
}

/** Keeps at most a little more than the longest line in memory. */
async function* wholeLines(
  chunks: AsyncIterable<Uint8Array | 'pause'>,
): AsyncGenerator<Uint8Array<ArrayBuffer> | 'pause' | 'too long'> {
  let rest: Uint8Array[] = []
  let restBytes = 0
  for await (const chunk of chunks) {
    if (chunk === 'pause') {
      yield chunk
      continue
    }
    let start = 0
    for (let at = chunk.indexOf(lineFeed); at !== -1; at = chunk.indexOf(lineFeed, start)) {
      // Most lines are in one chunk: a copy of each would be most of the memory.
      const line = chunk.subarray(start, at + 1) as Uint8Array<ArrayBuffer>
      yield restBytes === 0 ? line : joined([...rest, line])
      rest = []
      restBytes = 0
      start = at + 1
    }
    if (start === chunk.length) continue
    rest.push(chunk.subarray(start))
    restBytes += chunk.length - start
    if (restBytes > lineBytesMax + 2) return yield 'too long'
  }
  if (restBytes > 0) yield joined([...rest, Uint8Array.of(lineFeed)])
}

/** Some programs begin UTF-8 with a byte order mark. It is not part of the first record, which would not be valid JSON with it. */
function withoutMark(line: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf ? line.subarray(3) : line
}

function assertIsText(beginning: Uint8Array): void {
  const format = otherFormats.find(({ begin }) => begin.every((byte, index) => byte === beginning[index]))
  if (format !== undefined) throw new UserError(format.problem)
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const line = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let offset = 0
  for (const part of parts) {
    line.set(part, offset)
    offset += part.length
  }
  return line
}

function contentBytes(line: Uint8Array): number {
  return line.length - (line.at(-2) === carriageReturn ? 2 : 1)
}

function isBlank(line: Uint8Array): boolean {
  return line.every((byte) => byte === space || byte === tab || byte === carriageReturn || byte === lineFeed)
}
