/** What may be wrong with a bucket, its role or the way there. */
export type StoreErrorReason =
  | 'credentials_missing'
  | 'credentials_refused'
  | 'assume_role_denied'
  | 'role_missing'
  | 'session_refused'
  | 'bucket_missing'
  | 'wrong_region'
  | 'put_denied'
  | 'get_denied'
  | 'list_denied'
  | 'delete_denied'
  | 'kms_denied'
  | 'clock_skew'
  | 'damaged'
  | 'throttled'
  | 'unreachable'
  | 'unavailable'
  | 'refused'

/** What was being done when it failed. */
export type StoreStep = 'assume_role' | 'put' | 'get' | 'list' | 'remove' | 'sign'

/** The role may write and not read or list: then what is in the bucket can't be known. */
export function isReadDenied(error: unknown): boolean {
  if (!(error instanceof ObjectStoreError) || error.step === 'put') return false
  return error.reason === 'get_denied' || error.reason === 'list_denied' || error.reason === 'kms_denied'
}

/**
 * A store did not do what was asked.
 *
 * Law: the message is a sentence for the owner of the bucket: what failed, how the store put it, what to check. It has no secret,
 * no signed address and no name of this machine, so it may be shown as it is. There is no cause to be shown beside it.
 */
export class ObjectStoreError extends Error {
  override readonly name = 'ObjectStoreError'
  readonly reason: StoreErrorReason
  readonly step: StoreStep
  /** As the store or the system named it, such as `AccessDenied` or `ECONNREFUSED`. */
  readonly code: string

  constructor(reason: StoreErrorReason, step: StoreStep, code: string, message: string) {
    super(message)
    this.reason = reason
    this.step = step
    this.code = code
  }
}
