import { recordLimits } from '#model/limits.ts'
import type { Layout } from '#wal/frame.ts'
import { isBlank } from '#wal/records.ts'

/**
 * Counts the records of a body while it arrives, chunk by chunk.
 *
 * Owns: lines that go over the borders of chunks, and the bound on one record.
 * Does not own: what a record is. That is `wal/records.ts`; the test holds both to the same answer on random bytes.
 */
const newline = 10
const carriageReturn = 13
const space = 32

export class RecordCounter {
  readonly #layout: Layout
  #records = 0
  #line = 1
  /** The line that the last chunk left open. */
  #openBytes = 0
  #openBlank = true
  #openLastByte = 0

  constructor(layout: Layout) {
    this.#layout = layout
  }

  /** Records in the lines that have ended. */
  get records(): number {
    return this.#records
  }

  /** The line now being read, from 1; after `push` or `end` answered false, the line that is too long. */
  get line(): number {
    return this.#line
  }

  /** False as soon as a line is over the bound: the rest of the body needn't be pushed. */
  push(chunk: Buffer): boolean {
    return this.#layout === 'lines' ? this.#pushLines(chunk) : this.#leaveOpen(chunk, 0)
  }

  /** Call once, after the last chunk. False when the last line is over the bound. */
  end(): boolean {
    if (!this.#openBlank) this.#records += 1
    return this.#openIsInBounds()
  }

  #pushLines(chunk: Buffer): boolean {
    let start = 0
    let end = chunk.indexOf(newline)
    if (end !== -1 && this.#openBytes > 0) {
      if (!this.#leaveOpen(chunk.subarray(0, end), 0) || !this.end()) return false
      this.#openBytes = 0
      this.#openBlank = true
      this.#line += 1
      start = end + 1
      end = chunk.indexOf(newline, start)
    }
    let records = 0
    let lines = 0
    while (end !== -1) {
      const bytes = end - start
      if (bytes > recordLimits.bytesMax && bytes - (chunk[end - 1] === carriageReturn ? 1 : 0) > recordLimits.bytesMax) break
      // Nearly every line begins with `{`: one comparison tells that it isn't blank.
      if ((chunk[start] ?? 0) > space || !isBlank(chunk, start, end)) records += 1
      lines += 1
      start = end + 1
      end = chunk.indexOf(newline, start)
    }
    this.#records += records
    this.#line += lines
    return end === -1 && this.#leaveOpen(chunk, start)
  }

  /** Takes the rest of a chunk into the open line. */
  #leaveOpen(chunk: Buffer, start: number): boolean {
    const bytes = chunk.length - start
    if (bytes === 0) return true
    this.#openBytes += bytes
    this.#openLastByte = chunk[chunk.length - 1] ?? 0
    if (this.#openBlank) {
      this.#openBlank = this.#layout === 'lines' ? isBlank(chunk, start, chunk.length) : isWhiteSpace(chunk)
    }
    return this.#openIsInBounds()
  }

  #openIsInBounds(): boolean {
    const lineEnd = this.#layout === 'lines' && this.#openLastByte === carriageReturn ? 1 : 0
    return this.#openBytes - lineEnd <= recordLimits.bytesMax
  }
}

/** What JSON calls white space: a body of nothing else is no record, whatever its content type. */
function isWhiteSpace(bytes: Uint8Array): boolean {
  for (let at = 0; at < bytes.length; at += 1) {
    if (bytes[at] !== newline && !isBlank(bytes, at, at + 1)) return false
  }
  return true
}
