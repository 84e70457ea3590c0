/** `unavailable`: the store did not take it in time, and it may be copied later. `fenced`: another machine has taken over. */
export class CopyError extends Error {
  override readonly name = 'CopyError'
  readonly reason: 'unavailable' | 'fenced'

  constructor(reason: 'unavailable' | 'fenced', message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options)
    this.reason = reason
  }
}
