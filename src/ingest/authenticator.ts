import { AccessTokenVerifier } from '#auth/access-tokens.ts'
import { KeyVerifier } from '#auth/key-verifier.ts'
import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import type { Principal } from '#model/api-key.ts'
import type { Snapshot } from '#model/snapshot.ts'
import type { ControlContact } from '#node/control-contact.ts'
import { ingestLimits } from './limits.ts'
import { tryAgain } from './rejection.ts'

export type AuthenticatorOptions = {
  readonly contact: Pick<ControlContact, 'mayLackChanges' | 'ageMs'>
  readonly clock: Clock
}

/** Verifies API keys and access tokens against the newest snapshot. Each protocol reads them from its own wire format. */
export class Authenticator {
  readonly #contact: AuthenticatorOptions['contact']
  readonly #keys: KeyVerifier
  readonly #tokens: AccessTokenVerifier
  #revision = 0

  constructor({ contact, clock }: AuthenticatorOptions) {
    const refuseUnknown = (detail: string) => this.#refuseUnknown(detail)
    this.#contact = contact
    this.#keys = new KeyVerifier(refuseUnknown)
    this.#tokens = new AccessTokenVerifier({ issuer: '', clock, refuseUnknown })
  }

  /** Clears all cached verifications, so that revoked keys are rejected from now on. */
  update({ keys, jwks, revoked_keys, token_issuer }: Snapshot): void {
    this.#keys.update(keys)
    this.#tokens.update(jwks, revoked_keys, token_issuer)
    this.#revision += 1
  }

  /** Changes with each update: what was verified at another revision must be verified again. */
  get revision(): number {
    return this.#revision
  }

  /** Whether the key of an open connection is still accepted. */
  isActive(keyId: string): boolean {
    return this.#keys.isActive(keyId)
  }

  /** Throws AppError unauthorized, or Rejection. */
  verifyKey(secret: string): Principal {
    return this.#keys.verify(secret)
  }

  /** Rejects with AppError unauthorized, or Rejection. */
  verifyToken(token: string): Promise<Principal> {
    return this.#tokens.verify(token)
  }

  /** A credential may be newer than the configuration of this node. The sender has to repeat the request until that is ruled out. */
  #refuseUnknown(detail: string): Error {
    const { mayLackChanges, ageMs } = this.#contact
    if (!mayLackChanges || ageMs > ingestLimits.unknownCredentialMs) return new AppError('unauthorized', detail)
    return tryAgain(
      'unverifiable',
      'this node does not know the key or token, and cannot ask control whether it is new',
      ingestLimits.retryUnverifiableSeconds,
    )
  }
}
