import { gateLimits } from './limits.ts'

/**
 * The closed set of reasons for which the gate rejects a sender or its records.
 *
 * Law: each protocol maps every outcome to a code of its own, in a `Record<Outcome, …>` that the compiler keeps complete.
 */
export type Outcome =
  /** The credentials are missing, wrong or revoked. */
  | 'unauthorized'
  /** The key or token lacks the scope. */
  | 'forbidden'
  /** The operator suspended the sender's account. */
  | 'account_suspended'
  /** There is no such endpoint, or it belongs to another account: the sender must not learn which. */
  | 'unknown_endpoint'
  /** The account has used up a quota. */
  | 'quota_exceeded'
  /** The sender did not name an endpoint although there are several, or named one incorrectly. */
  | 'invalid_route'
  | 'endpoint_paused'
  /** This node is cut off from control: the key or token is unknown and may be newer than the configuration, or the lease on all has ended. */
  | 'unverifiable'
  /** This node has lost its place in the installation. */
  | 'fenced'
  /** No configuration from control yet. */
  | 'not_configured'
  /** The idempotency key is none. */
  | 'invalid_idempotency_key'
  /** The sender asks for an acknowledgement that there is not, or that the endpoint does not give. */
  | 'invalid_ack_level'
  /** Other records were stored with this idempotency key. */
  | 'idempotency_key_reused'
  /** One record is longer than the limit. */
  | 'record_too_large'
  /** Memory or disk is full. */
  | 'no_room'
  /** The log could not store the records. */
  | 'not_stored'
  /** The records are not in the copy store, without which the endpoint acknowledges none. */
  | 'not_copied'
  /** A bug in this node. */
  | 'failed'

export type RejectionOptions = {
  readonly retryAfterSeconds?: number
  /** The parameter that is wrong. */
  readonly field?: string
  /** The quota that is used up. */
  readonly quota?: string
  /** The node has no place for the connection, which must close. */
  readonly endsConnection?: boolean
  readonly cause?: unknown
}

/** Clients see the message, but never the cause. */
export class Rejection extends Error {
  override readonly name = 'Rejection'
  readonly outcome: Outcome
  readonly retryAfterSeconds: number | undefined
  readonly field: string | undefined
  readonly quota: string | undefined
  readonly endsConnection: boolean

  constructor(
    outcome: Outcome,
    message: string,
    { retryAfterSeconds, field, quota, endsConnection = false, cause }: RejectionOptions = {},
  ) {
    super(message, { cause })
    this.outcome = outcome
    this.retryAfterSeconds = retryAfterSeconds
    this.field = field
    this.quota = quota
    this.endsConnection = endsConnection
  }
}

/** Creates a rejection that a later attempt may avoid. */
export function tryAgain(
  outcome: Outcome,
  reason: string,
  retryAfterSeconds: number,
  more: Pick<RejectionOptions, 'endsConnection' | 'cause'> = {},
): Rejection {
  return new Rejection(outcome, `${reason}; try again in ${retryAfterSeconds} s`, { ...more, retryAfterSeconds })
}

/** Throws Rejection if this node has lost its place in the installation: others have it, or nobody does. */
export function requirePlace({ reason }: { readonly reason: string | undefined }): void {
  if (reason !== undefined) throw tryAgain('fenced', `${reason}; send to another node`, gateLimits.retryFencedSeconds)
}

/** Throws Rejection while no credential is accepted, because control has not confirmed them for too long. */
export function requireLease({ refusal }: { readonly refusal: string | undefined }): void {
  if (refusal !== undefined)
    throw tryAgain('unverifiable', `${refusal}; send to another node`, gateLimits.retryUnverifiableSeconds)
}
