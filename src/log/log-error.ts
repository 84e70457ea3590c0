import { errorCode } from '#lib/files.ts'

/**
 * Why a frame was rejected. `disk_full` and `io_error`: the disk failed. `stopping`: the log is being closed. `overloaded`: too many bytes
 * wait for the disk. After `disk_full` and `io_error` the frame may still end up in a sealed segment: it was sent, so it may be delivered.
 */
export type WalErrorReason = 'disk_full' | 'io_error' | 'stopping' | 'overloaded'

export class WalError extends Error {
  override readonly name = 'WalError'
  readonly reason: WalErrorReason

  constructor(reason: WalErrorReason, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options)
    this.reason = reason
  }
}

export function isDiskFull(error: unknown): boolean {
  const code = errorCode(error)
  return code === 'ENOSPC' || code === 'EDQUOT'
}

export function toWalError(error: unknown): WalError {
  if (error instanceof WalError) return error
  // Clients may see the message, so paths stay in the cause.
  const detail = errorCode(error) ?? 'no error code'
  return isDiskFull(error)
    ? new WalError('disk_full', `the disk is full (${detail})`, { cause: error })
    : new WalError('io_error', `the disk failed (${detail})`, { cause: error })
}
