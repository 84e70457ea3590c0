import type { AppError } from '#errors.ts'
import type { Layout } from '#log/frame.ts'
import { LINE_FEED, RECORD_SEPARATOR } from '#log/records.ts'
import { recordLimits } from '#model/limits.ts'
import { ambiguousJson, type BodyRecords, isWhiteSpace, recordTooLarge } from './body-records.ts'
import { JsonValue } from './json-value.ts'

const COMMA = 0x2c
const OPENING_BRACKET = 0x5b
const CLOSING_BRACKET = 0x5d
/** A number, a constant or garbage ends before them. */
export const scalarEnds = new Set(Buffer.from(' \t\r\n,"[]{}'))

/**
 * Finds the records of a body that is a JSON array: its elements.
 *
 * Law: an element keeps its bytes. What is between elements is overwritten in place, so that the payload splits like lines: without a copy,
 * and as fast in delivery. Once an element has a line feed of its own, the separator is a character that JSON allows nowhere.
 */
export class JsonArray implements BodyRecords {
  #records = 0
  #expected: 'bracket' | 'element-or-end' | 'element' | 'comma-or-end' | 'nothing' = 'bracket'
  /** Size of the body before the current chunk. */
  #bytes: number
  #isInElement = false
  /** Where the current element begins in the body. */
  #elementAt = 0
  /** The current element is a number, a constant or anything else that only ends where something else begins. */
  #isScalar = false
  readonly #value = new JsonValue()
  #separator = LINE_FEED
  /** Up to here separators are line feeds, whatever they are later. */
  #lineFeedsUntil = 0

  /** `bytes`: of white space, before the first chunk. */
  constructor(bytes = 0) {
    this.#bytes = bytes
  }

  get layout(): Layout {
    return this.#separator === LINE_FEED ? 'lines' : 'texts'
  }

  get records(): number {
    return this.#records
  }

  get isComplete(): boolean {
    return this.#expected === 'nothing'
  }

  /** `from`: where to begin, after white space. */
  push(chunk: Buffer, from = 0): AppError | undefined {
    const before = this.#bytes
    const end = this.read(chunk, from)
    if (typeof end !== 'number') return end
    for (let at = end; at < chunk.length; at += 1) {
      if (!isWhiteSpace(chunk[at])) return ambiguousJson('more follows after the array', before + at)
      chunk[at] = this.#separator
    }
    return undefined
  }

  /** Reads up to the end of the array, or of the chunk, and returns where that is. */
  read(chunk: Buffer, from: number): number | AppError {
    const forbidden = chunk.indexOf(RECORD_SEPARATOR, from)
    if (forbidden !== -1) return ambiguousJson('JSON does not allow the control character 1e', this.#bytes + forbidden)
    let at = from
    while (at < chunk.length && !this.isComplete) {
      const byte = chunk[at] ?? 0
      if (this.#isInElement) {
        const number = this.#records + 1
        at = this.#readElement(chunk, at)
        if (this.#bytes + at - this.#elementAt > recordLimits.bytesMax) return recordTooLarge(`element ${number} of the array`)
      } else if (isWhiteSpace(byte) || this.#isStructure(byte)) {
        chunk[at] = this.#separator
        at += 1
      } else if (this.#expected.startsWith('element') && (JsonValue.isStart(byte) || !scalarEnds.has(byte))) {
        this.#elementAt = this.#bytes + at
        this.#isInElement = true
        this.#isScalar = !JsonValue.isStart(byte)
      } else return ambiguousJson(this.#unexpected(), this.#bytes + at)
    }
    this.#bytes += chunk.length
    return at
  }

  end(payload: readonly Buffer[]): AppError | undefined {
    if (this.#expected !== 'nothing') return ambiguousJson('the array does not end', this.#bytes)
    let left = this.#lineFeedsUntil
    for (const piece of payload) {
      const until = Math.min(left, piece.length)
      for (let at = piece.indexOf(LINE_FEED); at !== -1 && at < until; at = piece.indexOf(LINE_FEED, at + 1)) {
        piece[at] = RECORD_SEPARATOR
      }
      left -= until
      if (left === 0) break
    }
    return undefined
  }

  #readElement(chunk: Buffer, from: number): number {
    let at = from
    if (!this.#isScalar) at = this.#value.read(chunk, from)
    else while (at < chunk.length && !scalarEnds.has(chunk[at] ?? 0)) at += 1
    if (this.#value.hasLineFeed && this.#separator === LINE_FEED) {
      this.#separator = RECORD_SEPARATOR
      this.#lineFeedsUntil = this.#elementAt
    }
    if (this.#isScalar ? at < chunk.length : !this.#value.isOpen) {
      this.#isInElement = false
      this.#expected = 'comma-or-end'
      this.#records += 1
    }
    return at
  }

  #isStructure(byte: number): boolean {
    const expected = this.#expected
    if (byte === OPENING_BRACKET && expected === 'bracket') this.#expected = 'element-or-end'
    else if (byte === COMMA && expected === 'comma-or-end') this.#expected = 'element'
    else if (byte === CLOSING_BRACKET && expected.endsWith('or-end')) this.#expected = 'nothing'
    else return false
    return true
  }

  #unexpected(): string {
    if (this.#expected === 'comma-or-end') return `after element ${this.#records} of the array a comma or ] is missing`
    return `element ${this.#records + 1} of the array is missing`
  }
}
