import { recordLimits } from '#model/limits.ts'
import type { Layout } from '#wal/frame.ts'
import { isBlank } from '#wal/records.ts'

/**
 * Counts the records of a body chunk by chunk, as it arrives.
 *
 * Owns: lines that span chunks, and the bound on the size of one record.
 * Does not own: what a record is (`wal/records.ts`). The test compares both on random bytes.
 */
const newline = 10
const carriageReturn = 13
const space = 32

export class RecordCounter {
  readonly #layout: Layout
  #records = 0
  #line = 1
  /** State of the line that the last chunk left unfinished. */
  #openBytes = 0
  #isOpenBlank = true
  #openLastByte = 0

  constructor(layout: Layout) {
    this.#layout = layout
  }

  /** Records in finished lines. */
  get records(): number {
    return this.#records
  }

  /** The current line, from 1. After `push` or `end` returned false, the line that is too long. */
  get line(): number {
    return this.#line
  }

  /** Returns false as soon as a line is too long. The rest of the body need not be pushed then. */
  push(chunk: Buffer): boolean {
    return this.#layout === 'lines' ? this.#pushLines(chunk) : this.#extendOpenLine(chunk, 0)
  }

  /** Call once, after the last chunk. Returns false if the last line is too long. */
  end(): boolean {
    if (!this.#isOpenBlank) this.#records += 1
    return this.#isOpenLineInBounds()
  }

  #pushLines(chunk: Buffer): boolean {
    let start = 0
    let end = chunk.indexOf(newline)
    if (end !== -1 && this.#openBytes > 0) {
      if (!this.#extendOpenLine(chunk.subarray(0, end), 0) || !this.end()) return false
      this.#openBytes = 0
      this.#isOpenBlank = true
      this.#line += 1
      start = end + 1
      end = findNewline(chunk, start)
    }
    let records = 0
    let lines = 0
    while (end !== -1) {
      const bytes = end - start
      if (bytes > recordLimits.bytesMax && bytes - (chunk[end - 1] === carriageReturn ? 1 : 0) > recordLimits.bytesMax) break
      // Nearly every line begins with `{`: one comparison shows that it is not blank.
      if ((chunk[start] ?? 0) > space || !isBlank(chunk, start, end)) records += 1
      lines += 1
      start = end + 1
      end = findNewline(chunk, start)
    }
    this.#records += records
    this.#line += lines
    return end === -1 && this.#extendOpenLine(chunk, start)
  }

  /** Adds the rest of a chunk to the unfinished line. */
  #extendOpenLine(chunk: Buffer, start: number): boolean {
    const bytes = chunk.length - start
    if (bytes === 0) return true
    this.#openBytes += bytes
    this.#openLastByte = chunk[chunk.length - 1] ?? 0
    if (this.#isOpenBlank) {
      this.#isOpenBlank = this.#layout === 'lines' ? isBlank(chunk, start, chunk.length) : isWhiteSpace(chunk)
    }
    return this.#isOpenLineInBounds()
  }

  #isOpenLineInBounds(): boolean {
    const lineEnd = this.#layout === 'lines' && this.#openLastByte === carriageReturn ? 1 : 0
    return this.#openBytes - lineEnd <= recordLimits.bytesMax
  }
}

/** White space as JSON defines it. A body with only white space has no record, whatever its content type. */
function isWhiteSpace(bytes: Uint8Array): boolean {
  for (let at = 0; at < bytes.length; at += 1) {
    if (bytes[at] !== newline && !isBlank(bytes, at, at + 1)) return false
  }
  return true
}

/**
 * Returns where the line ends that starts at `start`, or -1. Looks at two bytes itself: a call per line would take half a second for the ten
 * million blank lines that fit into ten kilobytes of gzip.
 */
function findNewline(bytes: Buffer, start: number): number {
  if (bytes[start] === newline) return start
  return bytes[start + 1] === newline ? start + 1 : bytes.indexOf(newline, start)
}
