import type { AppError } from '#errors.ts'
import type { Layout } from '#log/frame.ts'
import { LINE_FEED } from '#log/records.ts'
import { recordLimits } from '#model/limits.ts'
import { ambiguousJson, type BodyRecords, isWhiteSpace, recordTooLarge } from './body-records.ts'
import { JsonArray } from './json-array.ts'
import { JsonValue } from './json-value.ts'
import { LineCounter } from './line-counter.ts'

const OPENING_BRACKET = 0x5b
const CARRIAGE_RETURN = 0x0d
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * Finds the records of an `application/json` body: the elements of an array, the lines of NDJSON, or else the body as a whole.
 *
 * Owns: which of them it is. Does not own: whether a record is JSON: its views say that.
 * Law: a body that could mean several records is never stored as a single one that no view can read. It is refused.
 */
export class JsonBody implements BodyRecords {
  /** A `line` begins like no object, array or text: it is one record, whatever it says. */
  #state: 'start' | 'document' | 'line' | 'after' = 'start'
  /** Once it is known that the body is an array, or lines. */
  #records: BodyRecords | undefined
  #bytes = 0
  /** Bytes of a byte order mark that the body begins with. */
  #markBytes = 0
  readonly #document = new JsonValue()
  /** The current line, and the one in which the document begins; from 1. */
  #line = 1
  #documentLine = 1
  /** Where the line of the document begins in the body. */
  #documentLineAt = 0
  /** Size of that line, without its end; undefined until its end is found. */
  #documentLineBytes: number | undefined
  /** The last byte of the last chunk. */
  #lastByte = 0

  get layout(): Layout {
    return this.#records?.layout ?? 'single'
  }

  get records(): number {
    return this.#records?.records ?? (this.#state === 'start' ? 0 : 1)
  }

  push(chunk: Buffer): AppError | undefined {
    const problem = this.#records === undefined ? this.#read(chunk) : this.#records.push(chunk)
    if (problem !== undefined) return problem
    this.#bytes += chunk.length
    this.#lastByte = chunk.at(-1) ?? this.#lastByte
    if (this.#records === undefined && this.#bytes > recordLimits.bytesMax) return recordTooLarge('the record')
    return undefined
  }

  end(payload: readonly Buffer[]): AppError | undefined {
    if (this.#records !== undefined) {
      this.#blankByteOrderMark(payload)
      return this.#records.end(payload)
    }
    if (this.#document.isOpen && this.#document.hasLineFeed) return ambiguousJson('the JSON document does not end', this.#bytes)
    return undefined
  }

  #read(chunk: Buffer): AppError | undefined {
    let at = 0
    if (this.#state === 'start') {
      at = this.#skipByteOrderMark(chunk)
      const isWholeOrNone = this.#markBytes === 0 || this.#markBytes === byteOrderMark.length
      if (isWholeOrNone) {
        this.#documentLineAt = Math.max(this.#documentLineAt, this.#markBytes)
        at = this.#skipWhiteSpace(chunk, at)
      }
      if (at === chunk.length) return undefined
      if (chunk[at] === OPENING_BRACKET && isWholeOrNone) {
        const array = new JsonArray(this.#bytes)
        this.#records = array
        return array.push(chunk, at)
      }
      this.#documentLine = this.#line
      this.#state = JsonValue.isStart(chunk[at] ?? 0) ? 'document' : 'line'
    }
    if (this.#state === 'document') {
      at = this.#document.read(chunk, at)
      if (!this.#document.isOpen) this.#state = 'after'
    } else if (this.#state === 'line') {
      const end = chunk.indexOf(LINE_FEED, at)
      at = end === -1 ? chunk.length : end
      if (end !== -1) this.#state = 'after'
    }
    return this.#state === 'after' ? this.#readEnd(chunk, at) : undefined
  }

  /** Reads what follows the first document: white space, or lines with further ones. */
  #readEnd(chunk: Buffer, from: number): AppError | undefined {
    const at = this.#skipWhiteSpace(chunk, from)
    if (at === chunk.length) return undefined
    if (this.#document.hasLineFeed || this.#line === this.#documentLine) {
      return ambiguousJson('a second JSON document follows the first', this.#bytes + at)
    }
    if ((this.#documentLineBytes ?? 0) > recordLimits.bytesMax) return recordTooLarge(`line ${this.#documentLine}`)
    this.#records = new LineCounter({ records: 1, line: this.#line })
    return this.#records.push(chunk.subarray(at))
  }

  #skipByteOrderMark(chunk: Buffer): number {
    let at = 0
    while (at < chunk.length && this.#markBytes === this.#bytes + at && chunk[at] === byteOrderMark[this.#markBytes]) {
      at += 1
      this.#markBytes += 1
    }
    return at
  }

  /** Before an array or lines the mark belongs to no record. Its bytes become empty lines. */
  #blankByteOrderMark(payload: readonly Buffer[]): void {
    if (this.#markBytes < byteOrderMark.length) return
    for (let at = 0, index = 0; at < this.#markBytes; index += 1) {
      const piece = payload[index]?.subarray(0, this.#markBytes - at)
      piece?.fill(LINE_FEED)
      at += piece?.length ?? this.#markBytes
    }
  }

  #skipWhiteSpace(chunk: Buffer, from: number): number {
    let at = from
    for (; isWhiteSpace(chunk[at]); at += 1) if (chunk[at] === LINE_FEED) this.#endLine(chunk, at)
    return at
  }

  #endLine(chunk: Buffer, at: number): void {
    this.#line += 1
    if (this.#state === 'start') this.#documentLineAt = this.#bytes + at + 1
    const isCrlf = (at > 0 ? chunk[at - 1] : this.#lastByte) === CARRIAGE_RETURN
    if (this.#state === 'after') this.#documentLineBytes ??= this.#bytes + at - (isCrlf ? 1 : 0) - this.#documentLineAt
  }
}
