import { AccessTokenVerifier } from '#auth/access-tokens.ts'
import { KeyVerifier } from '#auth/key-verifier.ts'
import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import type { Snapshot } from '#model/snapshot.ts'
import type { ControlContact } from '#node/control-contact.ts'
import { gateLimits } from './limits.ts'
import { Rejection, tryAgain } from './rejection.ts'

export type AuthenticatorOptions = {
  readonly contact: Pick<ControlContact, 'mayLackChanges' | 'ageMs'>
  /** Whether the operator allows public keys. */
  readonly publicKeys: boolean
  readonly clock: Clock
}

/**
 * - `expiring`: revoked; open connections stay until they next authenticate
 * - `ended`: its connections must end
 * - `unknown`: not in the snapshot, or revoked some time ago; nothing new is known about it
 */
export type KeyStatus = 'active' | 'expiring' | 'ended' | 'unknown'

/** Verifies API keys and access tokens against the newest snapshot. Each protocol reads them from its own wire format. */
export class Authenticator {
  readonly #contact: AuthenticatorOptions['contact']
  readonly #keys: KeyVerifier
  readonly #tokens: AccessTokenVerifier
  readonly #publicKeys: boolean
  /** Keys revoked lately: whether their connections stay open. */
  #revoked: ReadonlyMap<string, 'expiring' | 'ended'> = new Map()
  /** Names of keys whose tokens may outlive them, by id. */
  #expiringNames: ReadonlyMap<string, string | undefined> = new Map()
  #missedRevocations = false
  #revision = 0

  constructor({ contact, publicKeys, clock }: AuthenticatorOptions) {
    const refuseUnknown = (detail: string) => this.#refuseUnknown(detail)
    this.#contact = contact
    this.#publicKeys = publicKeys
    this.#keys = new KeyVerifier(refuseUnknown)
    this.#tokens = new AccessTokenVerifier({ issuer: '', clock, refuseUnknown })
  }

  /** Clears all cached verifications, so that revoked keys are rejected from now on. */
  update({ keys, jwks, revoked_keys, token_issuer }: Snapshot): void {
    this.#revoked = new Map(revoked_keys.map(({ id, tokens_until }) => [id, tokens_until === null ? 'ended' : 'expiring']))
    this.#expiringNames = new Map(revoked_keys.map(({ id, name }) => [id, name]))
    this.#missedRevocations = this.#contact.ageMs > gateLimits.revocationsMissedAfterMs
    this.#keys.update(keys)
    this.#tokens.update(jwks, revoked_keys, token_issuer)
    this.#revision += 1
  }

  /** Changes with each update: what was verified at another revision must be verified again. */
  get revision(): number {
    return this.#revision
  }

  /** Returns the status of the key of an open connection. */
  keyStatus(keyId: string): KeyStatus {
    if (this.#keys.isActive(keyId)) return 'active'
    return this.#revoked.get(keyId) ?? (this.#missedRevocations ? 'ended' : 'unknown')
  }

  /** Returns the name of a key that was verified; undefined if it is no longer known. */
  keyName(keyId: string): string | undefined {
    return this.#keys.nameOf(keyId) ?? this.#expiringNames.get(keyId)
  }

  /** `origin` names the web page that sends, if one does. Throws AppError unauthorized, or Rejection. */
  verifyKey(secret: string, origin: string | undefined): KeyPrincipal {
    const principal = this.#keys.verify(secret)
    const { origins } = principal
    if (origins !== null && origins !== undefined) this.#requireOrigin(origins, origin)
    return principal
  }

  /** Verifies a key that was part of a URL, which others than its owner may have read. Throws like `verifyKey`. */
  verifyUrlKey(secret: string, origin: string | undefined): KeyPrincipal {
    if (!this.#publicKeys) throw noPublicKeys()
    const principal = this.verifyKey(secret, origin)
    if (principal.origins !== null && principal.origins !== undefined) return principal
    throw new Rejection('forbidden', 'only a public key may be in the query: URLs end up in logs; send this one in X-API-Key')
  }

  /** Rejects with AppError unauthorized, or Rejection. */
  verifyToken(token: string): Promise<KeyPrincipal> {
    return this.#tokens.verify(token)
  }

  #requireOrigin(origins: readonly string[], origin: string | undefined): void {
    if (!this.#publicKeys) throw noPublicKeys()
    if (origin !== undefined && origins.includes(origin)) return
    const from = origin === undefined ? 'this request has no Origin header' : `this request comes from ${origin}`
    throw new Rejection('forbidden', `a public key sends only from web pages of its origins, and ${from}`)
  }

  /** A credential may be newer than the configuration of this node. The sender has to repeat the request until that is ruled out. */
  #refuseUnknown(detail: string): Error {
    const { mayLackChanges, ageMs } = this.#contact
    if (!mayLackChanges || ageMs > gateLimits.unknownCredentialMs) return new AppError('unauthorized', detail)
    return tryAgain(
      'unverifiable',
      'this node does not know the key or token, and cannot ask control whether it is new',
      gateLimits.retryUnverifiableSeconds,
    )
  }
}

function noPublicKeys(): Rejection {
  const message = 'public keys, and keys in the query, are not allowed here'
  return new Rejection(
    'forbidden',
    `${message}; send another key in X-API-Key, or ask the operator to set INLET_PUBLIC_KEYS=true`,
  )
}
