/**
 * Makes records of export requests.
 *
 * Owns: bounds on what a request may become, and when it is converted. Does not own: the encodings, the response.
 * Law: one request is converted at a time, and in slices between which other requests are served. So what parsing takes beside the bytes of
 * a body, it takes once.
 */
import { Buffer } from 'node:buffer'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { AppError } from '#errors.ts'
import { KiB } from '#lib/bytes.ts'
import { otlpLimits, recordLimits } from '#model/limits.ts'
import type { OtlpEncoding } from './encoding.ts'
import { recordsInJson } from './json-logs.ts'
import { OtlpError } from './otlp-error.ts'
import { recordsInProtobuf } from './protobuf-logs.ts'

/** Records are collected to pieces of about this size. After each, other work gets its turn. */
const PIECE_BYTES = 64 * KiB

export type Converted = {
  /** Each record on a line. */
  readonly payload: readonly Buffer[]
  readonly records: number
  /** Records that are larger than a record may be. They are not in the payload. */
  readonly tooLarge: number
}

export type ConversionInput = {
  readonly encoding: OtlpEncoding
  /** Bound on all records together. */
  readonly maxBytes: number
  /** Returns undefined once nobody waits for the result any more. */
  readonly body: () => readonly Buffer[] | undefined
  /** Called before bytes are held. Throws if there is no room for them. */
  readonly reserve: (bytes: number) => void
}

export class Conversions {
  #last: Promise<unknown> = Promise.resolve()

  /** Resolves with undefined if nobody waits any more. Rejects with AppError, or with what `reserve` throws. */
  run(input: ConversionInput): Promise<Converted | undefined> {
    const conversion = this.#last.then(() => convert(input))
    this.#last = conversion.catch(() => undefined)
    return conversion
  }
}

async function convert({ encoding, maxBytes, body, reserve }: ConversionInput): Promise<Converted | undefined> {
  const pieces = body()
  if (pieces === undefined) return undefined
  const payload: Buffer[] = []
  let lines: string[] = []
  let records = 0
  let tooLarge = 0
  let bytes = 0
  let lineBytes = 0
  const flush = () => {
    reserve(lineBytes)
    payload.push(Buffer.from(lines.join('')))
    bytes += lineBytes
    lines = []
    lineBytes = 0
  }
  try {
    for (const record of recordsIn(encoding, pieces)) {
      if (records + tooLarge >= otlpLimits.recordsMax) throw tooMany()
      const size = Buffer.byteLength(record)
      if (size > recordLimits.bytesMax) {
        tooLarge += 1
        continue
      }
      records += 1
      lines.push(record, '\n')
      lineBytes += size + 1
      if (bytes + lineBytes > maxBytes) throw tooMuch(maxBytes)
      if (lineBytes < PIECE_BYTES) continue
      flush()
      await nextTurn()
      if (body() === undefined) return undefined
    }
  } catch (error) {
    if (!(error instanceof OtlpError)) throw error
    throw new AppError('bad_request', `${error.message}; none of the request was stored`, { cause: error })
  }
  if (lineBytes > 0) flush()
  return { payload, records, tooLarge }
}

function recordsIn(encoding: OtlpEncoding, pieces: readonly Buffer[]): Generator<string> {
  const body = pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces)
  return encoding === 'protobuf' ? recordsInProtobuf(body) : recordsInJson(body.toString('utf8').replace(/^\uFEFF/, ''))
}

function tooMany(): AppError {
  return new AppError(
    'payload_too_large',
    `the request has more than ${otlpLimits.recordsMax} log records; send them in several requests; none of it was stored`,
  )
}

function tooMuch(maxBytes: number): AppError {
  return new AppError(
    'payload_too_large',
    `the log records, each with its resource and scope, have more bytes than the limit (${maxBytes}); send smaller batches; none of the request was stored`,
  )
}
