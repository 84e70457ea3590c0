import type { IncomingHttpHeaders } from 'node:http'
import { AppError } from '#errors.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import type { Authenticator } from '../authenticator.ts'

export type Verifier = Pick<Authenticator, 'verifyKey' | 'verifyUrlKey' | 'verifyToken' | 'revision'>

/**
 * Authenticates the sender by the key of the query, by `X-API-Key`, or by `Authorization: Bearer` with an access token. Clients that can set no other header
 * may send an API key as Bearer. `X-API-Key` wins if both are present.
 *
 * Throws, or rejects with, AppError unauthorized. Returns synchronously for an API key, because the hot path avoids promises.
 */
export function authenticate(
  headers: IncomingHttpHeaders,
  verifier: Verifier,
  urlKey?: string,
): KeyPrincipal | Promise<KeyPrincipal> {
  const { authorization, origin } = headers
  if (urlKey !== undefined) return verifier.verifyUrlKey(urlKey, origin)
  const key = headers['x-api-key']
  if (typeof key === 'string') return verifier.verifyKey(key, origin)
  if (authorization === undefined) {
    throw new AppError('unauthorized', 'send an API key in the header X-API-Key, or an access token as Authorization: Bearer')
  }
  const secret = /^Bearer +(\S+)\s*$/i.exec(authorization)?.[1]
  if (secret === undefined) throw new AppError('unauthorized', 'the Authorization header must read "Bearer <access token>"')
  return secret.startsWith('ing_live_') ? verifier.verifyKey(secret, origin) : verifier.verifyToken(secret)
}
