import { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import { AppError } from '#errors.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import type { Verifier } from '../gate/sender.ts'

/**
 * Authenticates the sender by the key of the query, by `X-API-Key`, or by `Authorization: Bearer` with an access token. Clients that can set no other header
 * may send an API key as Bearer, or by Basic authentication, as senders do that know only a URL or a write key. `X-API-Key` wins if both are
 * present.
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
  if (secret === undefined) return verifier.verifyKey(keyOfBasic(authorization), origin)
  return isKey(secret) ? verifier.verifyKey(secret, origin) : verifier.verifyToken(secret)
}

/** The key is the user name or the password: senders that have only one of them leave the other one empty. */
function keyOfBasic(authorization: string): string {
  const encoded = /^Basic +([A-Za-z0-9+/]+=*)\s*$/i.exec(authorization)?.[1]
  if (encoded === undefined) {
    throw new AppError(
      'unauthorized',
      'the Authorization header must read "Bearer <API key or access token>", or be Basic with an API key',
    )
  }
  const [user = '', ...rest] = Buffer.from(encoded, 'base64').toString('utf8').split(':')
  const key = [user, rest.join(':')].find(isKey)
  if (key !== undefined) return key
  throw new AppError('unauthorized', 'neither the user name nor the password of the Authorization header is an API key')
}

function isKey(secret: string): boolean {
  return secret.startsWith('ing_live_')
}
