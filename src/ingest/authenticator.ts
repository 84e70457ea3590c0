import { AccessTokenVerifier } from '#auth/access-tokens.ts'
import { KeyVerifier } from '#auth/key-verifier.ts'
import type { Clock } from '#lib/clock.ts'
import type { Principal } from '#model/api-key.ts'
import type { Snapshot } from '#model/snapshot.ts'

/** Verifies API keys and access tokens against the newest snapshot. Where they stand on the wire is the protocol's concern. */
export class Authenticator {
  readonly #keys = new KeyVerifier()
  readonly #tokens: AccessTokenVerifier

  constructor({ clock }: { readonly clock: Clock }) {
    this.#tokens = new AccessTokenVerifier({ issuer: '', clock })
  }

  /** Forgets everything that was verified before: a revoked key stops here. */
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
