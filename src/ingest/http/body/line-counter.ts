import type { AppError } from '#errors.ts'
import { isBlank } from '#log/records.ts'
import { recordLimits } from '#model/limits.ts'
import { type BodyRecords, recordTooLarge } from './body-records.ts'

/**
 * Counts the lines of a body.
 *
 * Owns: lines that span chunks, and the bound on the size of one record.
 * Does not own: what a record is (`log/records.ts`). The test compares both on random bytes.
 */
const newline = 10
const carriageReturn = 13
const space = 32

export class LineCounter implements BodyRecords {
  readonly layout = 'lines'
  #records: number
  #line: number
  /** State of the line that the last chunk left unfinished. */
  #openBytes = 0
  #isOpenBlank = true
  #openLastByte = 0

  /** Continues with records and lines that were found before. */
  constructor({ records, line }: { readonly records: number; readonly line: number } = { records: 0, line: 1 }) {
    this.#records = records
    this.#line = line
  }

  /** Records in finished lines. */
  get records(): number {
    return this.#records
  }

  /** The current line, from 1. */
  get line(): number {
    return this.#line
  }

  push(chunk: Buffer): AppError | undefined {
    let start = 0
    let end = chunk.indexOf(newline)
    if (end !== -1 && this.#openBytes > 0) {
      const problem = this.#extendOpenLine(chunk.subarray(0, end), 0) ?? this.end()
      if (problem !== undefined) return problem
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
    return end === -1 ? this.#extendOpenLine(chunk, start) : this.#tooLarge()
  }

  end(): AppError | undefined {
    if (!this.#isOpenBlank) this.#records += 1
    return this.#checkOpenLine()
  }

  /** Adds the rest of a chunk to the unfinished line. */
  #extendOpenLine(chunk: Buffer, start: number): AppError | undefined {
    const bytes = chunk.length - start
    if (bytes === 0) return
    this.#openBytes += bytes
    this.#openLastByte = chunk[chunk.length - 1] ?? 0
    if (this.#isOpenBlank) this.#isOpenBlank = isBlank(chunk, start, chunk.length)
    return this.#checkOpenLine()
  }

  #checkOpenLine(): AppError | undefined {
    const lineEnd = this.#openLastByte === carriageReturn ? 1 : 0
    return this.#openBytes - lineEnd > recordLimits.bytesMax ? this.#tooLarge() : undefined
  }

  #tooLarge(): AppError {
    return recordTooLarge(`line ${this.#line}`)
  }
}

/**
 * Returns where the line ends that starts at `start`, or -1. Looks at two bytes itself: a call per line would take half a second for the ten
 * million blank lines that fit into ten kilobytes of gzip.
 */
function findNewline(bytes: Buffer, start: number): number {
  if (bytes[start] === newline) return start
  return bytes[start + 1] === newline ? start + 1 : bytes.indexOf(newline, start)
}
