import { AppError } from '#errors.ts'
import type { Layout } from '#log/frame.ts'
import { LINE_FEED } from '#log/records.ts'
import { type BodyRecords, isWhiteSpace } from './body-records.ts'
import { JsonArray, scalarEnds } from './json-array.ts'
import { JsonValue } from './json-value.ts'

const OPENING_BRACE = 0x7b
const CLOSING_BRACE = 0x7d
const OPENING_BRACKET = 0x5b
const QUOTE = 0x22
const COLON = 0x3a
const COMMA = 0x2c
const batchName = '"batch"'

type Expected = 'object' | 'name-or-end' | 'name' | 'colon' | 'value' | 'comma-or-end' | 'nothing'

/**
 * Finds the records of an object whose member `batch` is an array of events: the events.
 *
 * Law: an event keeps its bytes. Everything else of the object becomes empty lines, in place, so that the payload splits like that of an array.
 */
export class JsonBatch implements BodyRecords {
  #expected: Expected = 'object'
  /** Element that is being read, if it began in an earlier chunk. */
  #open: 'name' | 'value' | 'scalar' | 'batch' | undefined
  /** Size of the body before the current chunk. */
  #bytes = 0
  /** The beginning of the current name, with its quote. */
  #name = ''
  readonly #value = new JsonValue()
  #batch: JsonArray | undefined

  get layout(): Layout {
    return this.#batch?.layout ?? 'lines'
  }

  get records(): number {
    return this.#batch?.records ?? 0
  }

  push(chunk: Buffer): AppError | undefined {
    for (let at = 0; at < chunk.length; ) {
      const next = this.#open === undefined ? this.#readStructure(chunk, at) : this.#readOpen(chunk, at)
      if (next instanceof AppError) return next
      at = next
    }
    this.#bytes += chunk.length
    return undefined
  }

  end(payload: readonly Buffer[]): AppError | undefined {
    if (this.#expected !== 'nothing') return notBatch('the JSON document does not end', this.#bytes)
    if (this.#batch === undefined) return notBatch('the object has no batch', this.#bytes)
    return this.#batch.end(payload)
  }

  /** Reads one character between names and values, or begins one of those. Returns where to go on. */
  #readStructure(chunk: Buffer, at: number): number | AppError {
    const byte = chunk[at] ?? 0
    if (!isWhiteSpace(byte) && !this.#isStructure(byte)) {
      if (this.#expected === 'value') return this.#beginValue(chunk, at)
      if (!this.#expected.startsWith('name') || byte !== QUOTE) return notBatch(this.#unexpected(), this.#bytes + at)
      this.#open = 'name'
      this.#name = ''
      return at
    }
    chunk[at] = LINE_FEED
    return at + 1
  }

  #beginValue(chunk: Buffer, at: number): number | AppError {
    const byte = chunk[at] ?? 0
    if (this.#name !== batchName) this.#open = JsonValue.isStart(byte) ? 'value' : 'scalar'
    else if (byte !== OPENING_BRACKET) return notBatch('batch is not an array', this.#bytes + at)
    else if (this.#batch !== undefined) return notBatch('the object has a second batch', this.#bytes + at)
    else {
      this.#open = 'batch'
      this.#batch = new JsonArray(this.#bytes)
    }
    return this.#open === 'scalar' && scalarEnds.has(byte) ? notBatch(this.#unexpected(), this.#bytes + at) : at
  }

  #readOpen(chunk: Buffer, from: number): number | AppError {
    if (this.#open === 'batch' && this.#batch !== undefined) {
      const end = this.#batch.read(chunk, from)
      if (typeof end === 'number' && this.#batch.isComplete) this.#close('comma-or-end')
      return end
    }
    let end = from
    if (this.#open === 'scalar') while (end < chunk.length && !scalarEnds.has(chunk[end] ?? 0)) end += 1
    else end = this.#value.read(chunk, from)
    if (this.#open === 'name')
      this.#name += chunk.toString('latin1', from, Math.min(end, from + batchName.length + 1 - this.#name.length))
    chunk.fill(LINE_FEED, from, end)
    if (this.#open === 'scalar' ? end < chunk.length : !this.#value.isOpen) {
      this.#close(this.#open === 'name' ? 'colon' : 'comma-or-end')
    }
    return end
  }

  #close(expected: Expected): void {
    this.#open = undefined
    this.#expected = expected
  }

  #isStructure(byte: number): boolean {
    const expected = this.#expected
    if (byte === OPENING_BRACE && expected === 'object') this.#expected = 'name-or-end'
    else if (byte === COLON && expected === 'colon') this.#expected = 'value'
    else if (byte === COMMA && expected === 'comma-or-end') this.#expected = 'name'
    else if (byte === CLOSING_BRACE && expected.endsWith('or-end')) this.#expected = 'nothing'
    else return false
    return true
  }

  #unexpected(): string {
    if (this.#expected === 'object') return 'the body is not a JSON object'
    if (this.#expected === 'nothing') return 'more follows after the object'
    return `expected ${this.#expected.replaceAll('-', ' ')}`
  }
}

/** `byte` counts from 0. */
function notBatch(why: string, byte: number): AppError {
  const message = `${why} (byte ${byte} of the body); send {"batch":[…]} with an array of events; none of the request was stored`
  return new AppError('validation_error', message, { errors: [{ path: '', message }] })
}
