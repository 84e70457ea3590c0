import { AccessTokenVerifier } from '#auth/access-tokens.ts'
import { KeyVerifier } from '#auth/key-verifier.ts'
import type { Clock } from '#lib/clock.ts'
import type { Principal } from '#model/api-key.ts'
import type { Snapshot } from '#model/snapshot.ts'

/** Verifies API keys and access tokens against the newest snapshot. Each protocol reads them from its own wire format. */
export class Authenticator {
  readonly #keys = new KeyVerifier()
  readonly #tokens: AccessTokenVerifier
  #revision = 0

  constructor({ clock }: { readonly clock: Clock }) {
    this.#tokens = new AccessTokenVerifier({ issuer: '', clock })
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

  /** Throws AppError unauthorized. */
  verifyKey(secret: string): Principal {
    return this.#keys.verify(secret)
  }

  /** Rejects with AppError unauthorized. */
  verifyToken(token: string): Promise<Principal> {
    return this.#tokens.verify(token)
  }
}
