import { AccessTokenVerifier } from '#auth/access-tokens.ts'
import { KeyVerifier } from '#auth/key-verifier.ts'
import type { Clock } from '#lib/clock.ts'
import type { Principal } from '#model/api-key.ts'
import type { Snapshot } from '#model/snapshot.ts'

/** Verifies API keys and access tokens against the newest snapshot. Each protocol reads them from its own wire format. */
export class Authenticator {
  readonly #keys = new KeyVerifier()
  readonly #tokens: AccessTokenVerifier

  constructor({ clock }: { readonly clock: Clock }) {
    this.#tokens = new AccessTokenVerifier({ issuer: '', clock })
  }

  /** Clears all cached verifications, so that revoked keys are rejected from now on. */
  update({ keys, jwks, revoked_keys, token_issuer }: Snapshot): void {
    this.#keys.update(keys)
    this.#tokens.update(jwks, revoked_keys, token_issuer)
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
