/**
 * Access tokens: JWTs signed with ES256, one scope each, for the endpoints of their key.
 *
 * Owns: the claims of a token and its validity. Does not own: storing keys, granting scopes.
 * Law: a token is valid until its `exp` and for seconds more, because the clocks of those who sign and verify it differ a little. It is valid
 * for 15 minutes after its key was revoked at most. From the update on that says that the access of the key ended, it is rejected.
 */
import {
  calculateJwkThumbprint,
  createLocalJWKSet,
  errors,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JSONWebKeySet,
  type JWK,
  type JWTPayload,
  jwtVerify,
  SignJWT,
} from 'jose'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import { AppError } from '#errors.ts'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { type RevokedKey, Scope } from '#model/api-key.ts'
import { Id } from '#model/id.ts'
import type { KeyPrincipal } from '#model/principal.ts'

const algorithm = 'ES256'
/** Inlet's tokens have about 500 characters, or 3 100 if their key is limited to 50 endpoints. Longer ones are rejected unread. */
const tokenCharsMax = 4096
/** How much later than `exp` by its own clock a verifier accepts a token. */
const toleranceSeconds = 5
/** Verified tokens to cache: about 10 MB. */
const verifiedMax = 10_000

const Claims = z.object({
  sub: z.string(),
  account: z.string(),
  scope: Scope,
  /** Endpoints that the key is limited to; missing for a key without such a limit. */
  endpoints: z.array(Id).optional(),
  iat: z.number(),
  exp: z.number(),
})

/** A key that signs tokens. Control stores it and sends its public half to every node. */
export type SigningKey = {
  /** The thumbprint of the public half, RFC 7638. */
  readonly kid: string
  readonly private_jwk: Readonly<Record<string, unknown>>
  readonly created_at: string
}

export type PublicKeys = { readonly keys: readonly Readonly<Record<string, unknown>>[] }

/** Generates a key pair. `now` is epoch ms. */
export async function newSigningKey(now: number): Promise<SigningKey> {
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true })
  const private_jwk = await exportJWK(privateKey)
  return { kid: await calculateJwkThumbprint(private_jwk), private_jwk: { ...private_jwk }, created_at: isoTimestamp(now) }
}

/** Returns the public halves of the keys as a JWK set, RFC 7517 §5. */
export function publicKeys(keys: readonly SigningKey[]): { keys: Record<string, unknown>[] } {
  return {
    keys: keys.map(({ kid, private_jwk: { kty, crv, x, y } }) => ({ kty, crv, x, y, kid, alg: algorithm, use: 'sig' })),
  }
}

export type TokenRequest = {
  readonly principal: KeyPrincipal
  /** A scope of the principal; the caller checks. */
  readonly scope: Scope
  /** `iss` and `aud`. */
  readonly issuer: string
  readonly ttlSeconds: number
  /** Epoch ms. */
  readonly now: number
}

export async function signAccessToken(key: SigningKey, request: TokenRequest): Promise<string> {
  const { principal, scope, issuer, ttlSeconds } = request
  const issuedAt = Math.floor(request.now / 1000)
  const { account_id, endpoint_ids } = principal
  return new SignJWT({ account: account_id, scope, ...(endpoint_ids === null ? {} : { endpoints: endpoint_ids }) })
    .setProtectedHeader({ alg: algorithm, typ: 'JWT', kid: key.kid })
    .setSubject(principal.key_id)
    .setIssuer(issuer)
    .setAudience(issuer)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + ttlSeconds)
    .sign(await importJWK({ ...key.private_jwk } as JWK, algorithm))
}

type VerifiedToken = { readonly principal: KeyPrincipal; readonly expiresAtMs: number }

/** The token is genuine, but its key was revoked. */
export class RevokedKeyError extends AppError {
  readonly principal: KeyPrincipal

  constructor(principal: KeyPrincipal) {
    super('unauthorized', 'the API key of this access token was revoked; exchange another key')
    this.principal = principal
  }
}

export class AccessTokenVerifier {
  readonly #clock: Clock
  readonly #refuseUnknown: (detail: string) => Error
  #issuer: string
  #findKey = createLocalJWKSet({ keys: [] })
  /** When the tokens of revoked keys end, in epoch ms, by key id. */
  #endOfTokens: ReadonlyMap<string, number> = new Map()
  readonly #verified = new LRUCache<string, VerifiedToken>({ max: verifiedMax })

  constructor(options: {
    readonly issuer: string
    readonly clock: Clock
    /** Makes the error for a token that no known key signed. */
    readonly refuseUnknown?: (detail: string) => Error
  }) {
    this.#issuer = options.issuer
    this.#clock = options.clock
    this.#refuseUnknown = options.refuseUnknown ?? (() => invalidToken())
  }

  /** Replaces the keys, the revoked API keys and the issuer, and drops every cached token. */
  update(jwks: PublicKeys, revokedKeys: readonly RevokedKey[], issuer = this.#issuer): void {
    this.#issuer = issuer
    this.#findKey = createLocalJWKSet(jwks as JSONWebKeySet)
    this.#endOfTokens = new Map(
      revokedKeys.map(({ id, tokens_until }) => [id, tokens_until === null ? 0 : Date.parse(tokens_until)]),
    )
    this.#verified.clear()
  }

  /** Throws unauthorized, or what `refuseUnknown` returns. Verifying a token again costs one cache lookup. */
  async verify(token: string): Promise<KeyPrincipal> {
    const verified = this.#verified.get(token)
    if (verified !== undefined && this.#clock.now() < verified.expiresAtMs) return verified.principal
    this.#verified.delete(token)
    return (await this.#check(token)).principal
  }

  async #check(token: string): Promise<VerifiedToken> {
    if (token.length > tokenCharsMax) throw invalidToken()
    const findKey = this.#findKey
    const { success, data } = Claims.safeParse(await this.#claims(token))
    if (!success) throw invalidToken()
    const { sub, account, scope, endpoints = null, exp } = data
    const principal = { account_id: account, key_id: sub, scopes: [scope], endpoint_ids: endpoints }
    // Read after the signature was verified: the key may have been revoked meanwhile.
    const endMs = this.#endOfTokens.get(sub) ?? Number.POSITIVE_INFINITY
    if (this.#clock.now() >= endMs) throw new RevokedKeyError(principal)
    const checked = { principal, expiresAtMs: Math.min((exp + toleranceSeconds) * 1000, endMs) }
    // The keys may have changed during the check.
    if (findKey === this.#findKey) this.#verified.set(token, checked)
    return checked
  }

  async #claims(token: string): Promise<JWTPayload> {
    try {
      const { payload } = await jwtVerify(token, this.#findKey, {
        issuer: this.#issuer,
        audience: this.#issuer,
        algorithms: [algorithm],
        clockTolerance: toleranceSeconds,
        currentDate: new Date(this.#clock.now()),
        requiredClaims: ['sub', 'iat', 'exp', 'account', 'scope'],
      })
      return payload
    } catch (error) {
      if (error instanceof errors.JWTExpired) throw new AppError('unauthorized', 'the access token has expired', { cause: error })
      if (error instanceof errors.JWKSNoMatchingKey) throw this.#refuseUnknown(invalidToken().message)
      if (error instanceof errors.JOSEError) throw invalidToken(error)
      throw error
    }
  }
}

function invalidToken(cause?: unknown): AppError {
  return new AppError('unauthorized', 'the access token is not valid', { cause })
}
