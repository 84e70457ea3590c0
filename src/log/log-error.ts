/**
 * Why a frame was rejected. `disk_full` and `io_error`: the storage failed. `stopping`: the log takes no more frames. `overloaded`: too many
 * bytes wait to be stored. After `disk_full` and `io_error` the frame may still end up in a sealed segment: it was sent, so it may be delivered.
 * `unacknowledged`: the frame is durable here, but another writer has taken over the log. So it may be delivered, or not.
 */
export type LogErrorReason = 'disk_full' | 'io_error' | 'stopping' | 'overloaded' | 'unacknowledged'

export class LogError extends Error {
  override readonly name = 'LogError'
  readonly reason: LogErrorReason

  constructor(reason: LogErrorReason, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options)
    this.reason = reason
  }
}
