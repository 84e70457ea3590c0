import type { Transform } from 'node:stream'
import { AppError } from '#errors.ts'
import { KiB } from '#lib/bytes.ts'
import type { Layout } from '#log/frame.ts'
import { requestLimits } from '#model/limits.ts'
import type { Admitted } from '../../gate/admitted.ts'
import { Rejection } from '../../gate/rejection.ts'
import { type BodyFormat, createDecoder, recordsOf } from './body-format.ts'
import type { BodyRecords } from './body-records.ts'
import { bodyLimits } from './limits.ts'
import { Pieces } from './pieces.ts'

/** Below this size, detaching a chunk costs more than collecting it. */
const freedChunkBytesMin = 4 * KiB

export type IntakeOptions = {
  readonly format: BodyFormat
  /** Announced size of the body; undefined for a chunked body. */
  readonly declaredBytes: number | undefined
  /** Bound on the body as sent and, separately, as decoded. */
  readonly maxBytes: number
  /** Memory that the request needs beside its body and the usual overhead. */
  readonly moreBytes: number
  /** Releases what was reserved when the request is over. */
  readonly memory: Pick<Admitted, 'reserve'>
  /** Called once: without an error if the body is complete and can be stored. Never called after `close`. */
  readonly done: (error?: AppError | Rejection) => void
}

/**
 * The body of one request while it arrives.
 *
 * Owns: its bounds, its bytes in memory, decoding, counting records. Does not own: the socket, the response, the WAL, how bytes are held
 * (pieces.ts).
 * Law: memory is reserved for every byte that has arrived before it is held, not for announced ones. After `close` none is held.
 */
export class Intake {
  readonly #options: IntakeOptions
  readonly #records: BodyRecords
  readonly #arrived = new Pieces()
  /** Set once the body is complete. */
  #payload: readonly Buffer[] = []
  /** Lines that were made of the body. */
  #made: { readonly records: number } | undefined
  #payloadBytes = 0
  #receivedBytes = 0
  #chunks = 0
  #decoder: Transform | undefined
  /** Chunks that wait until the decoder has processed the previous ones: it would hold each chunk as it arrived. */
  #undecoded: Pieces | undefined
  #isDecoding = false
  #isComplete = false
  #open = true

  /** Throws AppError or Rejection if the head alone shows that the body cannot be accepted. */
  constructor(options: IntakeOptions) {
    const { declaredBytes = 0, maxBytes, format } = options
    if (declaredBytes > maxBytes) throw tooLarge(`the request has ${declaredBytes} bytes, more`, maxBytes)
    this.#options = options
    this.#records = recordsOf(format)
    options.memory.reserve(bodyLimits.requestOverheadBytes + options.moreBytes)
  }

  get layout(): Layout {
    return this.#made === undefined ? this.#records.layout : 'lines'
  }

  get payload(): readonly Buffer[] {
    return this.#payload
  }

  get payloadBytes(): number {
    return this.#payloadBytes
  }

  get records(): number {
    return (this.#made ?? this.#records).records
  }

  /** Size of the body so far, as sent. */
  get receivedBytes(): number {
    return this.#receivedBytes
  }

  push(chunk: Buffer): void {
    if (!this.#open) return
    const { maxBytes, format } = this.#options
    this.#chunks += 1
    this.#receivedBytes += chunk.length
    if (this.#receivedBytes > maxBytes) this.#fail(tooLarge('the request has more bytes', maxBytes))
    else if (this.#options.declaredBytes === undefined && hasTinyChunks(this.#chunks, this.#receivedBytes))
      this.#fail(tinyChunks())
    else if (!this.#tryReserve(chunk.length)) return
    else if (format.encoding === 'identity') this.#appendPayload(chunk)
    else this.#decode(format.encoding, chunk)
  }

  /** Called after the last chunk. */
  end(): void {
    if (!this.#open) return
    this.#isComplete = true
    if (this.#options.format.encoding === 'identity') this.#finish()
    else if (this.#decoder === undefined) this.#fail(noRecord())
    else if (!this.#isDecoding) this.#decoder.end()
  }

  /** Replaces the body by lines that were made of it. Throws Rejection. */
  replace(payload: readonly Buffer[], records: number): void {
    if (!this.#open) return
    const bytes = payload.reduce((sum, { byteLength }) => sum + byteLength, 0)
    this.#options.memory.reserve(bytes)
    this.#made = { records }
    this.#payload = payload
    this.#payloadBytes = bytes
  }

  /**
   * Returns the memory of the payload to the system at once. Call it only when the payload is no longer read.
   *
   * If this is left to the garbage collector, the bytes of thousands of requests pile up outside its heap and force full collections:
   * a quarter of all time at 25 KB per request (measured).
   */
  free(): void {
    for (const { buffer, byteLength } of this.#payload) {
      // A chunk that spans its buffer completely has no other owner: neither the pool nor a decoder that keeps writing to it.
      if (byteLength >= freedChunkBytesMin && byteLength === buffer.byteLength && buffer instanceof ArrayBuffer)
        buffer.transfer(0)
    }
  }

  /** Drops all bytes. */
  close(): void {
    this.#open = false
    this.#decoder?.destroy()
    this.#undecoded?.take()
    this.#arrived.take()
    this.#payload = []
  }

  #decode(encoding: Exclude<BodyFormat['encoding'], 'identity'>, chunk: Buffer): void {
    if (this.#decoder === undefined) {
      if (!this.#tryReserve(bodyLimits.decoderOverheadBytes)) return
      const decoder = createDecoder(encoding, chunk[0] ?? 0)
      this.#decoder = decoder
      this.#undecoded = new Pieces()
      decoder.on('data', (decoded: Buffer) => {
        if (this.#open && this.#tryReserve(decoded.length)) this.#appendPayload(decoded)
      })
      decoder.on('end', () => {
        if (this.#open) this.#finish()
      })
      decoder.on('error', (cause: Error) => {
        const detail = `the body is not valid ${encoding}: ${cause.message.toLowerCase()}`
        this.#fail(new AppError('validation_error', detail, { cause, errors: [{ path: '', message: detail }] }))
      })
    }
    this.#undecoded?.push(chunk)
    if (!this.#isDecoding) this.#feed(this.#decoder)
  }

  #feed(decoder: Transform): void {
    const pieces = this.#undecoded?.take() ?? []
    const last = pieces.pop()
    this.#isDecoding = last !== undefined
    for (const piece of pieces) decoder.write(piece)
    if (last !== undefined) decoder.write(last, () => this.#open && this.#feed(decoder))
    else if (this.#isComplete) decoder.end()
  }

  #appendPayload(chunk: Buffer): void {
    const { maxBytes } = this.#options
    this.#payloadBytes += chunk.length
    if (this.#payloadBytes > maxBytes) {
      this.#fail(tooLarge('the decompressed body has more bytes', maxBytes))
      return
    }
    const problem = this.#records.push(chunk)
    if (problem !== undefined) this.#fail(problem)
    else this.#arrived.push(chunk)
  }

  #finish(): void {
    this.#payload = this.#arrived.take()
    const problem = this.#records.end(this.#payload) ?? (this.#records.records === 0 ? noRecord() : undefined)
    if (problem !== undefined) this.#fail(problem)
    else this.#options.done()
  }

  #tryReserve(bytes: number): boolean {
    try {
      this.#options.memory.reserve(bytes)
      return true
    } catch (error) {
      if (!(error instanceof Rejection)) throw error
      this.#fail(error)
      return false
    }
  }

  #fail(error: AppError | Rejection): void {
    if (!this.#open) return
    this.close()
    this.#options.done(error)
  }
}

/** Whether a chunked body costs much more time than its bytes justify. */
export function hasTinyChunks(chunks: number, bytes: number): boolean {
  return chunks > requestLimits.smallChunksMax && bytes < chunks * requestLimits.chunkBytesMin
}

function tinyChunks(): AppError {
  const { smallChunksMax, chunkBytesMin } = requestLimits
  return new AppError(
    'bad_request',
    `the body has more than ${smallChunksMax} chunks with fewer than ${chunkBytesMin} bytes on average; send larger chunks, or a Content-Length; none of it was stored`,
  )
}

function tooLarge(what: string, maxBytes: number): AppError {
  return new AppError(
    'payload_too_large',
    `${what} than the limit for a request (${maxBytes}); send the records in several requests`,
  )
}

function noRecord(): AppError {
  const message = 'the body has no records; send at least one'
  return new AppError('validation_error', message, { errors: [{ path: '', message }] })
}
