/** Makes records of the body of an export request, within bounds. */
import { Buffer } from 'node:buffer'
import { AppError } from '#errors.ts'
import { KiB } from '#lib/bytes.ts'
import { otlpLimits, recordLimits } from '#model/limits.ts'
import type { OtlpEncoding } from './encoding.ts'
import { recordsInJson } from './json-logs.ts'
import { requireFits } from './json-memory.ts'
import { OtlpError } from './otlp-error.ts'
import { recordsInProtobuf } from './protobuf-logs.ts'

/** Records are collected to pieces of about this size. */
const PIECE_BYTES = 64 * KiB

export type ConversionTask = {
  readonly encoding: OtlpEncoding
  readonly body: Uint8Array
  /** Bound on all records together. */
  readonly maxBytes: number
  /** Memory of the thread. */
  readonly heapBytes: number
}

export type Converted = {
  /** Each record on a line. No piece shares its memory. */
  readonly payload: readonly Uint8Array<ArrayBuffer>[]
  readonly records: number
  /** Records that are larger than a record may be. They are not in the payload. */
  readonly tooLarge: number
}

/** Throws AppError. */
export function convert({ encoding, body, maxBytes, heapBytes }: ConversionTask): Converted {
  if (encoding === 'json') requireFits(body, heapBytes)
  const payload: Uint8Array<ArrayBuffer>[] = []
  let lines: string[] = []
  let records = 0
  let tooLarge = 0
  let bytes = 0
  let lineBytes = 0
  const flush = () => {
    const piece = Buffer.allocUnsafeSlow(lineBytes)
    piece.write(lines.join(''))
    payload.push(piece)
    bytes += lineBytes
    lines = []
    lineBytes = 0
  }
  try {
    for (const record of recordsIn(encoding, body)) {
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
      if (lineBytes >= PIECE_BYTES) flush()
    }
  } catch (error) {
    if (!(error instanceof OtlpError)) throw error
    throw new AppError('bad_request', `${error.message}; none of the request was stored`, { cause: error })
  }
  if (lineBytes > 0) flush()
  return { payload, records, tooLarge }
}

function recordsIn(encoding: OtlpEncoding, body: Uint8Array): Generator<string> {
  return encoding === 'protobuf'
    ? recordsInProtobuf(body)
    : recordsInJson(
        Buffer.from(body.buffer, body.byteOffset, body.byteLength)
          .toString('utf8')
          .replace(/^\uFEFF/, ''),
      )
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
