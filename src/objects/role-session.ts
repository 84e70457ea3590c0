/**
 * The credentials of one assumed role under one session name.
 *
 * Owns: requesting, caching and renewing them. Does not own: their use.
 * Law: only one request to STS is in flight, shared by all callers. Credentials are renewed well before they expire.
 * The remaining time is measured with the monotonic clock, starting from the difference between the clock of STS and the expiry.
 */
import type { Clock } from '#lib/clock.ts'
import { s3Limits } from './limits.ts'
import { ObjectStoreError } from './store-error.ts'

export type GrantedCredentials = {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string
  /** Counted from the response. */
  readonly lifetimeMs: number
}

/** Calls AssumeRole. Throws ObjectStoreError. */
export type AssumeRole = (durationSeconds: number) => Promise<GrantedCredentials>

export type RoleCredentials = Pick<GrantedCredentials, 'accessKeyId' | 'secretAccessKey' | 'sessionToken'>

export type RoleSessionOptions = {
  readonly assume: AssumeRole
  readonly clock: Clock
  /** `link`: for signing URLs that are valid for an hour. */
  readonly purpose: 'request' | 'link'
}

type HeldCredentials = { readonly credentials: RoleCredentials; readonly grantedAt: number; readonly endsAt: number }

export class RoleSession {
  readonly #options: RoleSessionOptions
  #held: HeldCredentials | undefined
  #flight: Promise<HeldCredentials> | undefined
  #failure: { readonly error: unknown; readonly at: number } | undefined
  /** The role does not allow sessions longer than an hour. */
  #isLimitedToAnHour = false

  constructor(options: RoleSessionOptions) {
    this.#options = options
  }

  /** Returns valid credentials. Throws ObjectStoreError, or the signal's reason if it aborts first. */
  async get(signal?: AbortSignal): Promise<RoleCredentials> {
    signal?.throwIfAborted()
    const held = this.#held
    if (held !== undefined && this.#isUsable(held)) return held.credentials
    const failure = this.#failure
    if (failure !== undefined && this.#options.clock.monotonic() - failure.at < s3Limits.stsResultSharedMs) throw failure.error
    this.#flight ??= this.#renew(held).finally(() => {
      this.#flight = undefined
    })
    return (await waitUnlessAborted(this.#flight, signal)).credentials
  }

  /** Access was denied with these credentials. Discards them unless they are new. */
  discardIfOld(): void {
    const held = this.#held
    if (held !== undefined && this.#options.clock.monotonic() - held.grantedAt >= s3Limits.deniedSessionAgeMsMin)
      this.#held = undefined
  }

  /** The store rejected the credentials. Discards them. */
  discard(): void {
    this.#held = undefined
  }

  #isUsable({ grantedAt, endsAt }: HeldCredentials): boolean {
    const { clock, purpose } = this.#options
    const [age, left] = [clock.monotonic() - grantedAt, endsAt - clock.monotonic()]
    if (purpose === 'link') return left >= s3Limits.sessionSeconds * 1000 || age < s3Limits.linkSessionAgeMsMax
    // A short session is used for three quarters of its time. A new one serves all callers for a moment, however short it is.
    return left > Math.min(s3Limits.renewBeforeMs, (endsAt - grantedAt) / 4) || age < s3Limits.stsResultSharedMs
  }

  async #renew(old: HeldCredentials | undefined): Promise<HeldCredentials> {
    const { clock } = this.#options
    try {
      const { lifetimeMs, ...credentials } = await this.#assume()
      const now = clock.monotonic()
      this.#held = { credentials, grantedAt: now, endsAt: now + lifetimeMs }
      this.#failure = undefined
      return this.#held
    } catch (error) {
      const now = clock.monotonic()
      // An unreachable STS says nothing about the role, so valid credentials are used until they expire.
      const canUseOld = this.#options.purpose === 'request' && old !== undefined && old === this.#held && old.endsAt > now
      if (canUseOld && isTransient(error)) return old
      this.#failure = { error, at: now }
      throw error
    }
  }

  async #assume(): Promise<GrantedCredentials> {
    const { assume, purpose } = this.#options
    if (purpose === 'link' && !this.#isLimitedToAnHour) {
      try {
        return await assume(s3Limits.linkSessionSeconds)
      } catch (error) {
        if (isTransient(error)) throw error
        // The duration exceeds the role's maximum, or the caller is a role itself. AWS has no error code for either.
        const granted = await assume(s3Limits.sessionSeconds)
        this.#isLimitedToAnHour = true
        return granted
      }
    }
    return assume(s3Limits.sessionSeconds)
  }
}

function isTransient(error: unknown): boolean {
  return error instanceof ObjectStoreError && ['unreachable', 'unavailable', 'throttled', 'clock_skew'].includes(error.reason)
}

async function waitUnlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  const aborted = Promise.withResolvers<never>()
  const onAbort = () => aborted.reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
