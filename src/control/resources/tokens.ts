/**
 * Issues and verifies access tokens.
 *
 * Owns: the signing keys and their rotation, the exchange, the verifier of this process. Does not own: the format of a token.
 * Law: a new key signs only after every process has had time to load it, and an old one is published until its last token expires.
 */
import { AccessTokenVerifier, newSigningKey, publicKeys, type SigningKey, signAccessToken } from '#auth/access-tokens.ts'
import type { KeyUse } from '#auth/key-use.ts'
import { hashApiKey } from '#auth/secrets.ts'
import { AppError } from '#errors.ts'
import { must } from '#lib/assert.ts'
import { sleep } from '#lib/clock.ts'
import type { Keyring } from '#lib/keyring.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Service } from '#lib/service.ts'
import { parseDurationSeconds } from '#model/duration.ts'
import { tokenLimits } from '#model/limits.ts'
import { isPerson, type KeyPrincipal, type Principal } from '#model/principal.ts'
import type { AccessToken, ExchangeToken } from '#model/token.ts'
import { findApiKeyByHash, listApiKeysRevokedSince } from '#store/accounts/api-keys.ts'
import { insertSigningKey, listSigningKeys, removeSigningKeysBefore } from '#store/accounts/signing-keys.ts'
import type { EpochFeed } from '#store/cluster/epoch-feed.ts'
import type { Db } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import { controlLimits, signingKeyLimits } from '../limits.ts'

export type TokensOptions = Pick<ControlContext, 'store' | 'applyChange' | 'clock' | 'logger'> & {
  /** Encrypts the signing keys. */
  readonly keyring: Keyring
  readonly feed: EpochFeed
  readonly keyUse: Pick<KeyUse, 'add'>
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

  /** Must start before the feed, so that the feed's first epoch loads the keys. */
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
    const { store, keyUse, clock, issuer } = this.#options
    const startedAt = clock.monotonic()
    const key = await findApiKeyByHash(store.db, hashApiKey(api_key))
    if (key === undefined || key.revoked_at !== null) {
      // Slows down guessing, and a constant time reveals nothing about the key.
      await sleep(clock, controlLimits.exchangeRejectionMs - (clock.monotonic() - startedAt))
      throw new AppError('unauthorized', 'the API key is unknown or revoked')
    }
    if (key.public) {
      throw new AppError('forbidden', 'a public key has no tokens: it sends from its web pages only; use another key')
    }
    if (!key.scopes.includes(scope)) throw new AppError('forbidden', `the API key does not hold the scope ${scope}`)
    keyUse.add(key.id)
    const ttlSeconds = parseDurationSeconds(ttl) ?? tokenLimits.ttlSecondsDefault
    const principal = { account_id: key.account_id, key_id: key.id, scopes: [scope], endpoint_ids: key.endpoint_ids }
    const access_token = await signAccessToken(this.#signingKey(), { principal, scope, issuer, ttlSeconds, now: clock.now() })
    return { access_token, token_type: 'Bearer', expires_in: ttlSeconds }
  }

  /** Returns a token with which control sends data to an endpoint in the name of a caller, for a minute. */
  issueForIngest(caller: Principal, endpointId: string): Promise<string> {
    const { clock, issuer } = this.#options
    const key_id = isPerson(caller) ? caller.person_id : caller.key_id
    const principal: KeyPrincipal = { account_id: caller.account_id, key_id, scopes: ['ingest'], endpoint_ids: [endpointId] }
    return signAccessToken(this.#signingKey(), { principal, scope: 'ingest', issuer, ttlSeconds: 60, now: clock.now() })
  }

  async verify(token: string): Promise<KeyPrincipal> {
    const principal = await this.#verifier.verify(token)
    this.#options.keyUse.add(principal.key_id)
    return principal
  }

  jwks(): ReturnType<typeof publicKeys> {
    return publicKeys(this.#keys)
  }

  /** Reads the public keys in the caller's transaction. */
  async publicKeys(db: Db): Promise<ReturnType<typeof publicKeys>> {
    return publicKeys(await listSigningKeys(db, this.#options.keyring))
  }

  /** The newest key that every process has had time to load; at the first start, the only one. */
  #signingKey(): SigningKey {
    const loadedBefore = this.#options.clock.now() - signingKeyLimits.activationSeconds * 1000
    return must(this.#keys.find(({ created_at }) => Date.parse(created_at) <= loadedBefore) ?? this.#keys.at(-1), 'a signing key')
  }

  async #load(): Promise<void> {
    const { store, keyring, clock } = this.#options
    this.#keys = await listSigningKeys(store.db, keyring)
    const revoked = await listApiKeysRevokedSince(store.db, clock.now() - tokenLimits.revokedKeysKeptSeconds * 1000)
    this.#verifier.update(this.jwks(), revoked)
  }

  async #rotate(): Promise<void> {
    const { store, keyring, applyChange, clock, logger } = this.#options
    const [newest, ...older] = await listSigningKeys(store.db, keyring)
    const now = clock.now()
    if (newest === undefined || now - Date.parse(newest.created_at) > signingKeyLimits.rotationSeconds * 1000) {
      const key = await newSigningKey(now)
      const isInserted = await applyChange(async (db) => {
        // Another process may have rotated it meanwhile. Changes run one after another.
        const [current] = await listSigningKeys(db, keyring)
        if (current?.kid !== newest?.kid) return false
        await insertSigningKey(db, keyring, key)
        return true
      })
      if (isInserted) logger.info({ kid: key.kid }, 'signing key rotated')
      return
    }
    // The newest key has been signing long enough for the last token of the older ones to have expired.
    const retiredBefore = Date.parse(newest.created_at)
    const lastTokenExpiresAt = retiredBefore + (signingKeyLimits.activationSeconds + tokenLimits.ttlSecondsMax) * 1000
    if (older.length > 0 && now > lastTokenExpiresAt) await applyChange((db) => removeSigningKeysBefore(db, retiredBefore))
  }
}
