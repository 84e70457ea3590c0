/**
 * The records of a segment, as DuckDB reads them: in runs of at most a few thousand, each one text that a statement splits (runs-in-sql.ts).
 * So a record costs no call of its own, and only one run at a time is in DuckDB's memory.
 *
 * A run has the first of these forms that carries all of its records:
 *   lines       joined by line feeds, as a client sent them
 *   separated   joined by the record separator (1e), for records that contain line feeds
 *   encoded     in base64, with a letter before that tells text (t) from bytes that are not UTF-8 (b)
 *
 * Runs are kept in memory, and above a bound in a file. The lines of large frames stay where they are, and are read again.
 *
 * Owns: the forms, and where runs are kept. Does not own: the origin of records, their table in DuckDB.
 * Law: each record is read back once, in order and byte for byte, or a StorageFailure says that a disk has changed it. A run keeps its form until
 * it is full, so hostile records cannot make many short runs.
 */
import { Buffer } from 'node:buffer'
import { closeSync, openSync, readSync, rmSync, writeSync, writevSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { assert } from '#lib/assert.ts'
import { KiB, MiB } from '#lib/bytes.ts'
import { StorageFailure } from '#lib/storage-failure.ts'
import type { Piece } from './pieces.ts'

/** DuckDB processes the records of a run at once. */
export const runLimits = { records: 2_048, bytes: MiB / 2 } as const

/** Runs of so many bytes together stay in memory. */
const MEMORY_BYTES_MAX = MiB

/** Fewer bytes are copied: to read them again one by one would take longer. */
const REREAD_BYTES_MIN = 8 * KiB

/** Read buffers grow by so many bytes. */
const READ_BYTES = 256 * KiB

const LINE_FEED = 0x0a
const RECORD_SEPARATOR = 0x1e
const RECEIVED_AT_BYTES = BigInt64Array.BYTES_PER_ELEMENT
const SOURCE_BYTES = Int32Array.BYTES_PER_ELEMENT

type Form = 'lines' | 'separated' | 'encoded'
const separators = { lines: LINE_FEED, separated: RECORD_SEPARATOR, encoded: LINE_FEED } as const

/** When and from where a record came. */
export type RecordOrigin = {
  /** Microseconds since 1970 UTC. */
  readonly receivedAt: bigint
  /** A row id of the table `sources`. */
  readonly source: number
}

/** A range of records that are joined by line feeds, and nothing else: none is blank or ends with a carriage return. At most a run. */
export type Lines = { readonly start: number; readonly end: number; readonly records: number }

/** Fills the array with what is at the position of what the frames were read from. Returns the number of bytes. */
export type Reread = (into: Uint8Array, position: number) => number

/** Lines of one frame, which were not copied. */
type Part = RecordOrigin & { readonly at: number; readonly bytes: number; readonly records: number; readonly checksum: number }

/** A place in the file, and the checksum of what is there. */
type Stored = { readonly at: number; readonly checksum: number }

type StoredRun = {
  readonly form: Form
  /** The index of its first record in the segment. */
  readonly first: number
  readonly records: number
  /** Size of the text. The times and sources of the records are stored before it. */
  readonly bytes: number
  /** Where it is in the file, its bytes, or the parts that are read again. */
  readonly at: Stored | Buffer | readonly Part[]
}

/** A run or a part of it. The bytes are valid until the next one is read. */
export type Run = {
  readonly form: Form
  readonly first: number
  /** Packed integers, in the order of the machine. */
  readonly receivedAt: Uint8Array
  readonly source: Uint8Array
  readonly text: Uint8Array
  readonly separator: Uint8Array
}

export class RecordRuns {
  readonly #path: string | undefined
  readonly #runs: StoredRun[] = []
  #file: number | undefined
  #fileBytes = 0
  #memoryBytes = 0
  #recordCount = 0
  #form: Form | undefined
  #text = Buffer.alloc(64 * 1024)
  #bytes = 0
  #records = 0
  readonly #receivedAt = new BigInt64Array(runLimits.records)
  readonly #source = new Int32Array(runLimits.records)
  #read = Buffer.alloc(0)
  #parts: Part[] = []
  readonly #reread: Reread | undefined

  /** Without a path, all records stay in memory. */
  constructor(path?: string, reread?: Reread) {
    this.#path = path
    this.#reread = reread
  }

  /** Number of records that were added. */
  get recordCount(): number {
    return this.#recordCount
  }

  /** Adds a range of the payload as a record. `isText`: the range is valid UTF-8. The bytes are copied. */
  add(origin: RecordOrigin, payload: Buffer, start: number, end: number, isText: boolean): void {
    const isWhole = start === 0 && end === payload.length
    const record = isWhole ? payload : payload.subarray(start, end)
    const form = this.#formFor(record, isText)
    if (form !== 'encoded') this.#append(form, origin, record, 1)
    else this.#append(form, origin, Buffer.from(`${isText ? 't' : 'b'}${record.toString('base64')}`, 'latin1'), 1)
  }

  /** Adds lines of a payload that is valid UTF-8, and that is at `at` of what is read again, if it can be. */
  addLines(origin: RecordOrigin, payload: Buffer, { start, end, records }: Lines, at?: number): void {
    const bytes = end - start
    if (at !== undefined && this.#reread !== undefined && bytes >= REREAD_BYTES_MIN)
      this.#refer({ ...origin, at: at + start, bytes, records, checksum: crc32(payload.subarray(start, end)) })
    else if (this.#form !== undefined && this.#form !== 'lines') {
      for (let at = start; at <= end; ) {
        const feed = payload.indexOf(LINE_FEED, at)
        const stop = feed === -1 || feed > end ? end : feed
        this.add(origin, payload, at, stop, true)
        at = stop + 1
      }
    } else this.#append('lines', origin, payload.subarray(start, end), records)
  }

  /** Call it after the last record. */
  finish(): void {
    this.#close()
    this.#text = Buffer.alloc(0)
  }

  /**
   * Cuts the segment where tables of its records' values should end: DuckDB holds `bytes` of them at most about twice when it reads the rows
   * that it processes at once.
   */
  slices(bytes: number): readonly Piece[] {
    const slices: Piece[] = []
    let [from, windowRecords, windowBytes] = [0, 0, 0]
    for (const run of this.#runs) {
      windowRecords += run.records
      windowBytes += run.bytes
      const to = run.first + run.records
      if (windowBytes >= bytes) {
        slices.push({ from, to })
        from = to
      }
      if (windowBytes >= bytes || windowRecords >= runLimits.records) [windowRecords, windowBytes] = [0, 0]
    }
    if (from < this.#recordCount || slices.length === 0) slices.push({ from, to: this.#recordCount })
    return slices
  }

  /** Returns a function that returns the runs of the records from `from` to before `to`, one at each call, and then undefined. */
  open(from: number, to: number): () => Run | undefined {
    let next = this.#indexOf(from)
    return () => {
      const run = this.#runs[next]
      if (run === undefined || run.first >= to || from >= to) return undefined
      next += 1
      return this.#cut(run, Math.max(from - run.first, 0), Math.min(to - run.first, run.records))
    }
  }

  /** Removes the file. */
  close(): void {
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
  }

  #formFor(record: Buffer, isText: boolean): Form {
    const isAtLeast = this.#form ?? 'lines'
    if (!isText || isAtLeast === 'encoded') return 'encoded'
    if (isAtLeast === 'lines' && !record.includes(LINE_FEED)) return 'lines'
    return record.includes(RECORD_SEPARATOR) ? 'encoded' : 'separated'
  }

  #append(form: Form, { receivedAt, source }: RecordOrigin, bytes: Buffer, records: number): void {
    const isTooMuch = this.#records + records > runLimits.records || this.#bytes + 1 + bytes.length > runLimits.bytes
    if (form !== this.#form || isTooMuch) this.#close()
    this.#form = form
    this.#makeRoom(this.#bytes + 1 + bytes.length)
    if (this.#records > 0) {
      this.#text[this.#bytes] = separators[form]
      this.#bytes += 1
    }
    this.#text.set(bytes, this.#bytes)
    this.#bytes += bytes.length
    const end = this.#records + records
    if (records === 1) {
      this.#receivedAt[this.#records] = receivedAt
      this.#source[this.#records] = source
    } else {
      this.#receivedAt.fill(receivedAt, this.#records, end)
      this.#source.fill(source, this.#records, end)
    }
    this.#records = end
    this.#recordCount += records
    if (end === runLimits.records || this.#bytes >= runLimits.bytes) this.#close()
  }

  /** Adds lines that stay where they are. They are in runs of their own. */
  #refer(part: Part): void {
    const isTooMuch = this.#records + part.records > runLimits.records || this.#bytes + 1 + part.bytes > runLimits.bytes
    if (this.#parts.length === 0 || isTooMuch) this.#close()
    this.#bytes += part.bytes + (this.#parts.length === 0 ? 0 : 1)
    this.#parts.push(part)
    this.#records += part.records
    this.#recordCount += part.records
  }

  #makeRoom(bytes: number): void {
    if (bytes <= this.#text.length) return
    const larger = Buffer.alloc(Math.max(bytes, 2 * this.#text.length))
    larger.set(this.#text.subarray(0, this.#bytes))
    this.#text = larger
  }

  /** Stores the run. The next record begins another one, of the first form that fits. */
  #close(): void {
    const records = this.#records
    if (records === 0) return
    if (this.#parts.length > 0) {
      this.#runs.push({ form: 'lines', first: this.#recordCount - records, records, bytes: this.#bytes, at: this.#parts })
      this.#parts = []
      this.#records = 0
      this.#bytes = 0
      return
    }
    assert(this.#form !== undefined, 'records have a form')
    const parts = [
      new Uint8Array(this.#receivedAt.buffer, 0, records * RECEIVED_AT_BYTES),
      new Uint8Array(this.#source.buffer, 0, records * SOURCE_BYTES),
      this.#text.subarray(0, this.#bytes),
    ]
    const run = { form: this.#form, first: this.#recordCount - records, records, bytes: this.#bytes }
    this.#runs.push({ ...run, at: this.#store(parts) })
    this.#form = undefined
    this.#records = 0
    this.#bytes = 0
  }

  #store(parts: readonly Uint8Array[]): Stored | Buffer {
    if (this.#file === undefined) {
      this.#memoryBytes += parts.reduce((sum, { length }) => sum + length, 0)
      if (this.#path === undefined || this.#memoryBytes <= MEMORY_BYTES_MAX) return Buffer.concat(parts)
      this.#file = openSync(this.#path, 'wx+', 0o600)
      // Nobody else needs the name, and without it nothing is left behind.
      rmSync(this.#path)
      for (const [index, run] of this.#runs.entries()) {
        if (Buffer.isBuffer(run.at)) this.#runs[index] = { ...run, at: this.#write(this.#file, [run.at]) }
      }
    }
    return this.#write(this.#file, parts)
  }

  #write(file: number, parts: readonly Uint8Array[]): Stored {
    const stored = { at: this.#fileBytes, checksum: parts.reduce((checksum, part) => crc32(part, checksum), 0) }
    let left = writevSync(file, parts, stored.at)
    for (const part of parts) {
      let done = Math.min(left, part.length)
      left -= done
      while (done < part.length) done += writeSync(file, part, done, part.length - done, this.#fileBytes + done)
      this.#fileBytes += part.length
    }
    return stored
  }

  /** Returns the index of the run that has the record, or the number of runs. */
  #indexOf(record: number): number {
    let [low, high] = [0, this.#runs.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      const { first, records } = this.#runs[middle] ?? { first: 0, records: 0 }
      if (first + records <= record) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Reads parts as a run that was stored. */
  #readParts(parts: readonly Part[], records: number, length: number): Buffer {
    const { buffer, byteOffset } = this.#read
    const receivedAt = new BigInt64Array(buffer, byteOffset, records)
    const source = new Int32Array(buffer, byteOffset + records * RECEIVED_AT_BYTES, records)
    let record = 0
    let textAt = records * (RECEIVED_AT_BYTES + SOURCE_BYTES)
    for (const part of parts) {
      receivedAt.fill(part.receivedAt, record, record + part.records)
      source.fill(part.source, record, record + part.records)
      if (record > 0) this.#read[textAt++] = LINE_FEED
      const end = textAt + part.bytes
      const text = this.#read.subarray(textAt, end)
      const read = this.#reread?.(text, part.at)
      if (read !== part.bytes || crc32(text) !== part.checksum)
        throw new StorageFailure('the segment reads differently than before')
      record += part.records
      textAt = end
    }
    return this.#read.subarray(0, length)
  }

  #readStored({ at, checksum }: Stored, length: number): Buffer {
    assert(this.#file !== undefined, 'the file of the records is closed')
    const run = this.#read.subarray(0, length)
    for (let done = 0; done < length; ) {
      const read = readSync(this.#file, run, done, length - done, at + done)
      if (read === 0) break
      done += read
    }
    if (crc32(run) !== checksum) throw new StorageFailure('the scratch space reads differently than it was written')
    return run
  }

  #cut(run: StoredRun, from: number, to: number): Run {
    const bytes = this.#bytesOf(run)
    const sourcesAt = run.records * RECEIVED_AT_BYTES
    const textAt = sourcesAt + run.records * SOURCE_BYTES
    const separator = separators[run.form]
    const isWhole = from === 0 && to === run.records
    const [start, end] = isWhole ? [textAt, bytes.length] : range(bytes, { start: textAt, separator, from, to })
    return {
      form: run.form,
      first: run.first + from,
      receivedAt: bytes.subarray(from * RECEIVED_AT_BYTES, to * RECEIVED_AT_BYTES),
      source: bytes.subarray(sourcesAt + from * SOURCE_BYTES, sourcesAt + to * SOURCE_BYTES),
      text: bytes.subarray(start, end),
      separator: Buffer.of(separator),
    }
  }

  #bytesOf({ at, records, bytes }: StoredRun): Buffer {
    if (Buffer.isBuffer(at)) return at
    const length = records * (RECEIVED_AT_BYTES + SOURCE_BYTES) + bytes
    // Memory of its own: a part of a shared one might not be aligned.
    if (this.#read.length < length) this.#read = Buffer.allocUnsafeSlow(Math.ceil(length / READ_BYTES) * READ_BYTES)
    return 'checksum' in at ? this.#readStored(at, length) : this.#readParts(at, records, length)
  }
}

/** Returns where the records `from` to before `to` of a text are, which goes from `start` to the end of the bytes. */
function range(
  bytes: Buffer,
  {
    start,
    separator,
    from,
    to,
  }: { readonly start: number; readonly separator: number; readonly from: number; readonly to: number },
): readonly [number, number] {
  let at = start
  let first = start
  for (let record = 0; record < to; record += 1) {
    if (record === from) first = at
    const found = bytes.indexOf(separator, at)
    at = found === -1 ? bytes.length + 1 : found + 1
  }
  return [first, at - 1]
}
