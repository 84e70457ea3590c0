/**
 * Responses to OTLP exporters, in the encoding of the request.
 *
 * Owns: which errors an exporter sees as worth a retry. Exporters retry 429, 502, 503 and 504, and drop the data after any other error.
 * Law: what Inlet says to send again is 429 or 503 here, with Retry-After.
 */
import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { AppError, errorTable, toProblem } from '#errors.ts'
import { recordLimits } from '#model/limits.ts'
import type { OtlpEncoding } from './encoding.ts'

/** Values of `google.rpc.Code` by HTTP status. */
const statusCodes: Readonly<Record<number, number>> = {
  400: 3,
  401: 16,
  403: 7,
  404: 5,
  413: 3,
  415: 3,
  422: 3,
  429: 8,
  431: 3,
  503: 14,
}
const UNKNOWN = 2
const RETRY_SECONDS = 1

const contentTypes: Readonly<Record<OtlpEncoding, string>> = {
  protobuf: 'application/x-protobuf',
  json: 'application/json',
}

type End = { readonly close: boolean; readonly more?: readonly string[] }

/** `tooLarge`: how many records were left out. */
export function sendExported(
  response: ServerResponse,
  encoding: OtlpEncoding,
  tooLarge: number,
  { close, more = [] }: End,
): void {
  const body = encoding === 'json' ? exportedJson(tooLarge) : exportedProtobuf(tooLarge)
  const headers = ['Content-Type', contentTypes[encoding], 'Content-Length', String(body.byteLength), ...more]
  if (close) headers.push('Connection', 'close')
  response.writeHead(200, headers)
  response.end(body)
}

/** Sends `google.rpc.Status`, in JSON together with the problem that other clients get. */
export function sendExportProblem(
  response: ServerResponse,
  error: AppError,
  { encoding, baseUrl, close, more = [] }: End & { readonly encoding: OtlpEncoding; readonly baseUrl: string },
): void {
  const problem = toProblem(error, baseUrl)
  const code = statusCodes[problem.status] ?? UNKNOWN
  const body =
    encoding === 'json'
      ? Buffer.from(JSON.stringify({ ...problem, code, message: problem.detail }))
      : new BinaryWriter().tag(1, WireType.Varint).int32(code).tag(2, WireType.LengthDelimited).string(problem.detail).finish()
  const headers = ['Content-Type', contentTypes[encoding], 'Content-Length', String(body.byteLength), ...more]
  if (close) headers.push('Connection', 'close')
  response.writeHead(problem.status, headers)
  response.end(body)
}

/** Returns the error with a code that exporters retry, if a retry can help. */
export function toExportError(error: AppError): AppError {
  const { retry, status } = errorTable[error.code]
  if (!retry || status === 429 || status === 503) return error
  return new AppError('unavailable', error.message, { cause: error, retryAfterSeconds: error.retryAfterSeconds ?? RETRY_SECONDS })
}

function exportedJson(tooLarge: number): Buffer {
  if (tooLarge === 0) return Buffer.from('{}')
  return Buffer.from(
    JSON.stringify({ partialSuccess: { rejectedLogRecords: String(tooLarge), errorMessage: tooLargeMessage(tooLarge) } }),
  )
}

function exportedProtobuf(tooLarge: number): Uint8Array {
  const writer = new BinaryWriter()
  if (tooLarge > 0) {
    writer.tag(1, WireType.LengthDelimited).fork()
    writer.tag(1, WireType.Varint).int64(tooLarge)
    writer.tag(2, WireType.LengthDelimited).string(tooLargeMessage(tooLarge))
    writer.join()
  }
  return writer.finish()
}

function tooLargeMessage(count: number): string {
  return `${count} log records are longer than the limit for a record (${recordLimits.bytesMax} bytes, with resource and scope) and were not stored; all others were`
}
