/** The problem with a bucket, its role or the connection. */
export type StoreErrorReason =
  | 'credentials_missing'
  | 'credentials_refused'
  | 'assume_role_denied'
  | 'role_missing'
  | 'not_allowed'
  | 'session_refused'
  | 'bucket_missing'
  | 'wrong_region'
  | 'put_denied'
  | 'get_denied'
  | 'list_denied'
  | 'delete_denied'
  | 'abort_denied'
  | 'kms_denied'
  | 'encryption_refused'
  | 'checksums_refused'
  | 'condition_refused'
  | 'clock_skew'
  | 'damaged'
  | 'throttled'
  | 'unreachable'
  | 'unavailable'
  | 'refused'

/** The operation that failed. */
export type StoreStep = 'assume_role' | 'put' | 'put_if_absent' | 'get' | 'list' | 'remove' | 'abort' | 'sign'

/** Whether the role may not read or list: then the content of the bucket is unknown. */
export function isReadDenied(error: unknown): boolean {
  if (!(error instanceof ObjectStoreError) || error.step.startsWith('put')) return false
  return error.reason === 'get_denied' || error.reason === 'list_denied' || error.reason === 'kms_denied'
}

/**
 * An operation on an object store failed.
 *
 * Law: the message is for the owner of the bucket: what failed, the error code of the store, what to check. It contains no secret, no signed
 * URL and no name of this machine, so it is safe to return to the caller. There is no `cause`.
 */
export class ObjectStoreError extends Error {
  override readonly name = 'ObjectStoreError'
  readonly reason: StoreErrorReason
  readonly step: StoreStep
  /** Error code of the store or the system, such as `AccessDenied` or `ECONNREFUSED`. */
  readonly code: string
  /** Region of the bucket, if the store named it. */
  readonly bucketRegion: string | undefined

  constructor(reason: StoreErrorReason, step: StoreStep, code: string, message: string, bucketRegion?: string) {
    super(message)
    this.reason = reason
    this.step = step
    this.code = code
    this.bucketRegion = bucketRegion
  }
}
