import { errorCode } from '#lib/files.ts'
import { LogError } from './log-error.ts'

export function isDiskFull(error: unknown): boolean {
  const code = errorCode(error)
  return code === 'ENOSPC' || code === 'EDQUOT'
}

export function toLogError(error: unknown): LogError {
  if (error instanceof LogError) return error
  // Clients may see the message, so paths stay in the cause.
  const detail = errorCode(error) ?? 'no error code'
  return isDiskFull(error)
    ? new LogError('disk_full', `the disk is full (${detail})`, { cause: error })
    : new LogError('io_error', `the disk failed (${detail})`, { cause: error })
}
