import { errorCode } from '#lib/files.ts'
import { StorageFailure } from '#lib/storage-failure.ts'

/** A failure that the segment did not cause: a later attempt may succeed, however many have failed. */
export class TransientError extends Error {
  override readonly name: string = 'TransientError'
}

/** Something is missing that the next snapshot may contain. */
export class NotConfiguredError extends TransientError {
  override readonly name = 'NotConfiguredError'
}

/**
 * Whether the failure comes from this machine or its configuration, so that the same work may succeed later: every error that the
 * operating system reports (a broken, full, read-only or missing disk, too many open files), and DuckDB's about files.
 */
export function isTransient(error: unknown): boolean {
  if (error instanceof TransientError || error instanceof StorageFailure || isSystemError(error)) return true
  return error instanceof Error && error.cause !== undefined && isTransient(error.cause)
}

/** Codes of Node itself have an underscore, such as ERR_INVALID_ARG_TYPE. A file that exceeds the limit of its process would do so again. */
function isSystemError(error: unknown): boolean {
  const code = errorCode(error) ?? ''
  return /^E[A-Z0-9]+$/.test(code) && code !== 'EFBIG'
}
