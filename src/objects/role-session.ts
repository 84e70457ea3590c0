/**
 * The credentials of one assumed role under one session name.
 *
 * Owns: getting them, keeping them, renewing them. Does not own: what is done with them.
 * Law: one request to STS at a time, shared by all who wait; credentials are renewed well before their end.
 * Time left is counted on the monotonic clock, from the distance between STS's own clock and the end that it tells.
 */
import type { Clock } from '#lib/clock.ts'
import { s3Limits } from './limits.ts'
import { ObjectStoreError } from './store-error.ts'

export type Granted = {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string
  /** From the answer on. */
  readonly lifetimeMs: number
}

/** Asks STS. Throws an ObjectStoreError. */
export type AssumeRole = (durationSeconds: number) => Promise<Granted>

export type RoleCredentials = Pick<Granted, 'accessKeyId' | 'secretAccessKey' | 'sessionToken'>

export type RoleSessionOptions = {
  readonly assume: AssumeRole
  readonly clock: Clock
  /** `link`: good for addresses that last an hour. */
  readonly purpose: 'request' | 'link'
}

type Held = { readonly credentials: RoleCredentials; readonly gotAt: number; readonly endsAt: number }

export class RoleSession {
  readonly #options: RoleSessionOptions
  #held: Held | undefined
  #flight: Promise<Held> | undefined
  #refused: { readonly error: unknown; readonly at: number } | undefined
  /** The role does not allow more than an hour. */
  #onlyAnHour = false

  constructor(options: RoleSessionOptions) {
    this.#options = options
  }

  /** Throws an ObjectStoreError, or the signal's reason if it aborts first. */
  async get(signal?: AbortSignal): Promise<RoleCredentials> {
    signal?.throwIfAborted()
    const held = this.#held
    if (held !== undefined && this.#isGoodEnough(held)) return held.credentials
    const refused = this.#refused
    if (refused !== undefined && this.#options.clock.monotonic() - refused.at < s3Limits.stsResultSharedMs) throw refused.error
    this.#flight ??= this.#renew(held).finally(() => {
      this.#flight = undefined
    })
    return (await orAborted(this.#flight, signal)).credentials
  }

  /** Something was denied with them: unless they are quite new they are not used again. */
  distrust(): void {
    const held = this.#held
    if (held !== undefined && this.#options.clock.monotonic() - held.gotAt >= s3Limits.deniedSessionAgeMsMin)
      this.#held = undefined
  }

  /** The store says that they are no good. */
  forget(): void {
    this.#held = undefined
  }

  #isGoodEnough({ gotAt, endsAt }: Held): boolean {
    const { clock, purpose } = this.#options
    const [age, left] = [clock.monotonic() - gotAt, endsAt - clock.monotonic()]
    if (purpose === 'link') return left >= s3Limits.sessionSeconds * 1000 || age < s3Limits.linkSessionAgeMsMax
    // Of one that is short from the beginning, three quarters are used; and none is asked for with each request.
    return left > Math.min(s3Limits.renewBeforeMs, (endsAt - gotAt) / 4) || age < s3Limits.stsResultSharedMs
  }

  async #renew(old: Held | undefined): Promise<Held> {
    const { clock } = this.#options
    try {
      const { lifetimeMs, ...credentials } = await this.#assume()
      const now = clock.monotonic()
      this.#held = { credentials, gotAt: now, endsAt: now + lifetimeMs }
      this.#refused = undefined
      return this.#held
    } catch (error) {
      const now = clock.monotonic()
      // STS is away, which says nothing about the role: what is still good is used to its end.
      const mayUseOld = this.#options.purpose === 'request' && old !== undefined && old === this.#held && old.endsAt > now
      if (mayUseOld && isPassing(error)) return old
      this.#refused = { error, at: now }
      throw error
    }
  }

  async #assume(): Promise<Granted> {
    const { assume, purpose } = this.#options
    if (purpose === 'link' && !this.#onlyAnHour) {
      try {
        return await assume(s3Limits.linkSessionSeconds)
      } catch (error) {
        if (isPassing(error)) throw error
        // Beyond the role's maximum, or a caller that is a role itself: AWS has no code of its own for either.
        const granted = await assume(s3Limits.sessionSeconds)
        this.#onlyAnHour = true
        return granted
      }
    }
    return assume(s3Limits.sessionSeconds)
  }
}

function isPassing(error: unknown): boolean {
  return error instanceof ObjectStoreError && ['unreachable', 'unavailable', 'throttled', 'clock_skew'].includes(error.reason)
}

async function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
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
