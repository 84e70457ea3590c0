import type { IncomingHttpHeaders } from 'node:http'
import { AccessTokenVerifier } from '#auth/access-tokens.ts'
import { KeyVerifier } from '#auth/key-verifier.ts'
import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import type { Principal } from '#model/api-key.ts'
import type { Snapshot } from '#model/snapshot.ts'

/**
 * Says who sends: `X-API-Key`, or `Authorization: Bearer` with an access token or, for clients that can set nothing else, with
 * the API key itself. `X-API-Key` counts where both are there.
 */
export class Authenticator {
  readonly #keys = new KeyVerifier()
  readonly #tokens: AccessTokenVerifier

  constructor({ clock }: { readonly clock: Clock }) {
    this.#tokens = new AccessTokenVerifier({ issuer: '', clock })
  }

  /** What was verified before counts no more: a revoked key stops here. */
  update({ keys, jwks, revoked_keys, token_issuer }: Snapshot): void {
    this.#keys.update(keys)
    this.#tokens.update(jwks, revoked_keys, token_issuer)
  }

  /** Throws AppError unauthorized. */
  verifyKey(secret: string): Principal {
    return this.#keys.verify(secret)
  }

  /** Throws, or rejects with, AppError unauthorized. Answers at once for an API key: the hot path makes no promise. */
  authenticate(headers: IncomingHttpHeaders): Principal | Promise<Principal> {
    const key = headers['x-api-key']
    if (typeof key === 'string') return this.#keys.verify(key)
    const { authorization } = headers
    if (authorization === undefined) {
      throw new AppError('unauthorized', 'send an API key in the header X-API-Key, or an access token as Authorization: Bearer')
    }
    const secret = /^Bearer +(\S+)\s*$/i.exec(authorization)?.[1]
    if (secret === undefined) throw new AppError('unauthorized', 'the Authorization header must read "Bearer <access token>"')
    return secret.startsWith('ing_live_') ? this.#keys.verify(secret) : this.#tokens.verify(secret)
  }
}
