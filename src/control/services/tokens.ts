/**
 * Access tokens: who gets one, and who holds a good one.
 *
 * Owns: the signing keys and their rotation, the exchange, what this process needs to verify. Does not own: the form of a token.
 * Law: a new key signs only when everyone has had time to learn it, and an old one is published until no token of it can live.
 */
import { AccessTokenVerifier, newSigningKey, publicKeys, type SigningKey, signAccessToken } from '#auth/access-tokens.ts'
import { hashApiKey } from '#auth/secrets.ts'
import { AppError } from '#errors.ts'
import { must } from '#lib/assert.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Principal } from '#model/api-key.ts'
import { revokedKeyTokenSeconds, tokenLimits } from '#model/limits.ts'
import { type AccessToken, type ExchangeToken, parseDurationSeconds } from '#model/token.ts'
import { findApiKeyByHash, listApiKeysRevokedSince } from '#store/api-keys.ts'
import { insertSigningKey, listSigningKeys, removeSigningKeysBefore } from '#store/signing-keys.ts'
import type { Db, Store } from '#store/store.ts'
import { controlLimits, signingKeyLimits } from '../limits.ts'
import type { ApplyChange } from './changes.ts'
import type { EpochFeed } from './epoch-feed.ts'

export type TokensOptions = {
  readonly store: Store
  readonly applyChange: ApplyChange
  readonly feed: EpochFeed
  readonly clock: Clock
  readonly logger: Logger
  /** `iss` and `aud` of every token. */
  readonly issuer: string
}

export class Tokens implements Service {
  readonly name = 'tokens'
  readonly #options: TokensOptions
  readonly #verifier: AccessTokenVerifier
  #keys: readonly SigningKey[] = []
  readonly #rotation: Periodic

  constructor(options: TokensOptions) {
    const { issuer, clock, logger } = options
    this.#options = options
    this.#verifier = new AccessTokenVerifier({ issuer, clock })
    this.#rotation = new Periodic({
      name: 'signing key rotation',
      intervalMs: controlLimits.rotationCheckMs,
      run: () => this.#rotate(),
      failure: 'signing key rotation failed',
      clock,
      logger,
    })
  }

  /** To be started before the feed, so that the feed's first epoch loads the keys. */
  async start(): Promise<void> {
    this.#options.feed.subscribe(() => this.#load())
    await this.#rotate()
    await this.#load()
    await this.#rotation.start()
  }

  stop(): Promise<void> {
    return this.#rotation.stop()
  }

  async exchange({ api_key, scope, ttl }: ExchangeToken): Promise<AccessToken> {
    const { store, clock, issuer } = this.#options
    const startedAt = clock.monotonic()
    const key = await findApiKeyByHash(store.db, hashApiKey(api_key))
    if (key === undefined || key.revoked_at !== null) {
      // Guessing is slow, and how long it takes says nothing.
      await sleep(clock, controlLimits.exchangeRefusalMs - (clock.monotonic() - startedAt))
      throw new AppError('unauthorized', 'the API key is not known, or revoked')
    }
    if (!key.scopes.includes(scope)) throw new AppError('forbidden', `the API key does not hold the scope ${scope}`)
    const ttlSeconds = parseDurationSeconds(ttl) ?? tokenLimits.ttlSecondsDefault
    const principal = { account_id: key.account_id, key_id: key.id, scopes: [scope] }
    const access_token = await signAccessToken(this.#signingKey(), { principal, scope, issuer, ttlSeconds, now: clock.now() })
    return { access_token, token_type: 'Bearer', expires_in: ttlSeconds }
  }

  verify(token: string): Promise<Principal> {
    return this.#verifier.verify(token)
  }

  jwks(): ReturnType<typeof publicKeys> {
    return publicKeys(this.#keys)
  }

  /** The public keys as the database has them in a transaction of the caller's. */
  async publicKeys(db: Db): Promise<ReturnType<typeof publicKeys>> {
    return publicKeys(await listSigningKeys(db))
  }

  /** The newest key that everyone has had time to learn; at the very first start, the only one. */
  #signingKey(): SigningKey {
    const learntBefore = this.#options.clock.now() - signingKeyLimits.activationSeconds * 1000
    return must(this.#keys.find(({ created_at }) => Date.parse(created_at) <= learntBefore) ?? this.#keys.at(-1), 'a signing key')
  }

  async #load(): Promise<void> {
    const { store, clock } = this.#options
    this.#keys = await listSigningKeys(store.db)
    const revoked = await listApiKeysRevokedSince(store.db, clock.now() - revokedKeysKeptMs)
    this.#verifier.update(this.jwks(), revoked)
  }

  async #rotate(): Promise<void> {
    const { store, applyChange, clock, logger } = this.#options
    const [newest, ...older] = await listSigningKeys(store.db)
    const now = clock.now()
    if (newest === undefined || now - Date.parse(newest.created_at) > signingKeyLimits.rotationSeconds * 1000) {
      const key = await newSigningKey(now)
      await applyChange((db) => insertSigningKey(db, key))
      logger.info({ kid: key.kid }, 'a new key signs access tokens from now on')
      return
    }
    // The newest has long been the one that signs, and the last token of those before it is dead.
    const retiredBefore = Date.parse(newest.created_at)
    const everyTokenDeadAt = retiredBefore + (signingKeyLimits.activationSeconds + tokenLimits.ttlSecondsMax) * 1000
    if (older.length > 0 && now > everyTokenDeadAt) await applyChange((db) => removeSigningKeysBefore(db, retiredBefore))
  }
}

/** A revoked key matters for as long as a token of it could still live. */
export const revokedKeysKeptMs = (revokedKeyTokenSeconds + tokenLimits.ttlSecondsMax) * 1000
