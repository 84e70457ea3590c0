/** Finds the records of a body chunk by chunk, as it arrives. What a record is in the end, `log/records.ts` says. */
import { AppError } from '#errors.ts'
import type { Layout } from '#log/frame.ts'
import { recordLimits } from '#model/limits.ts'

export type BodyRecords = {
  /** How the payload splits into its records. Final after `end`. */
  readonly layout: Layout
  readonly records: number
  /** Returns why the body cannot be stored, as soon as that is known. The rest need not be pushed then. May overwrite what is between records. */
  push(chunk: Buffer): AppError | undefined
  /** Called once, after the last chunk, with the bytes of all. */
  end(payload: readonly Buffer[]): AppError | undefined
}

/** `record` names it for the sender: `line 3`. */
export function recordTooLarge(record: string): AppError {
  return new AppError(
    'payload_too_large',
    `${record} is longer than the limit for a record (${recordLimits.bytesMax} bytes); none of the request was stored`,
  )
}

/** The body was sent as JSON, but what its records are is unclear. `byte` counts from 0. */
export function ambiguousJson(why: string, byte: number): AppError {
  const message = `${why} (byte ${byte} of the body); send one JSON document, an array of records, or one document per line with Content-Type: application/x-ndjson; none of the request was stored`
  return new AppError('validation_error', message, { errors: [{ path: '', message }] })
}

/** White space as JSON defines it. */
export function isWhiteSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}
