import { createHmac } from 'node:crypto'
import { importJWK, type JWTPayload, SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { minuteMs } from '#lib/time-units.ts'
import { newId } from '#model/id.ts'
import { keyLimits } from '#model/limits.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import {
  AccessTokenVerifier,
  newSigningKey,
  publicKeys,
  type SigningKey,
  signAccessToken,
  type TokenRequest,
} from './access-tokens.ts'

const start = Date.parse('2026-11-20T08:00:00.000Z')
const issuer = 'https://inlet.example'
const principal: KeyPrincipal = { account_id: 'acc', key_id: 'key', scopes: ['ingest', 'admin'], endpoint_ids: null }

function aClock() {
  const clock = { ...systemClock, nowMs: start, now: () => clock.nowMs, monotonic: () => clock.nowMs }
  return clock
}

async function setUp() {
  const clock = aClock()
  const key = await newSigningKey(start)
  const verifier = new AccessTokenVerifier({ issuer, clock })
  verifier.update(publicKeys([key]), [])
  const sign = (change: Partial<TokenRequest> = {}, by: SigningKey = key) =>
    signAccessToken(by, { principal, scope: 'ingest', issuer, ttlSeconds: 900, now: clock.nowMs, ...change })
  return { clock, key, verifier, sign }
}

const unauthorized = (message: string) => expect.objectContaining({ code: 'unauthorized', message })
const invalid = unauthorized('the access token is not valid')
const toleranceMs = 5_000
const expired = unauthorized('the access token has expired')
const ended = (id: string) => ({ id, tokens_until: null })
const revoked = unauthorized('the API key of this access token was revoked; exchange another key')

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const decode = (part = '') => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>

describe('signAccessToken', () => {
  test('writes the key, account, scope and lifetime into the claims', async () => {
    const { sign, key } = await setUp()
    const [header, claims] = (await sign({ ttlSeconds: 60 })).split('.')
    expect(decode(header)).toEqual({ alg: 'ES256', typ: 'JWT', kid: key.kid })
    expect(decode(claims)).toEqual({
      sub: 'key',
      account: 'acc',
      scope: 'ingest',
      iat: start / 1000,
      exp: start / 1000 + 60,
      iss: issuer,
      aud: issuer,
    })
  })
})

describe('publicKeys', () => {
  test('never contains the private key', async () => {
    const { key } = await setUp()
    expect(key.private_jwk).toHaveProperty('d')
    expect(publicKeys([key]).keys).toEqual([expect.not.objectContaining({ d: expect.anything() })])
    expect(publicKeys([key]).keys[0]).toMatchObject({ kid: key.kid, alg: 'ES256', use: 'sig', kty: 'EC', crv: 'P-256' })
  })

  test('a key survives serialization as JSON', async () => {
    const { key, sign, verifier } = await setUp()
    const restored = JSON.parse(JSON.stringify(key)) as SigningKey
    expect(await verifier.verify(await sign({}, restored))).toMatchObject({ key_id: 'key' })
  })
})

describe('AccessTokenVerifier', () => {
  test('limits the principal to the one scope of the token', async () => {
    const { verifier, sign } = await setUp()
    expect(await verifier.verify(await sign())).toEqual({
      account_id: 'acc',
      key_id: 'key',
      scopes: ['ingest'],
      endpoint_ids: null,
    })
  })

  test('limits the principal to the endpoints of the key, as many as a key may have', async () => {
    const { verifier, sign } = await setUp()
    const endpoint_ids = Array.from({ length: keyLimits.endpointsMax }, newId)
    const limited = await sign({ principal: { ...principal, endpoint_ids } })
    expect(await verifier.verify(limited)).toMatchObject({ endpoint_ids })
  })

  test('accepts a token for five seconds more than it is valid by this clock, cached or not', async () => {
    const { clock, verifier, sign } = await setUp()
    const [seen, unseen] = [await sign(), await sign({ scope: 'admin' })]
    await verifier.verify(seen)
    clock.nowMs = start + 15 * minuteMs + toleranceMs - 1
    await verifier.verify(seen)
    clock.nowMs += 1
    await expect(verifier.verify(seen)).rejects.toThrow(expired)
    await expect(verifier.verify(unseen)).rejects.toThrow(expired)
  })

  test.each([
    ['another issuer', { iss: 'https://other.example' }],
    ['another audience', { aud: 'https://other.example' }],
    ['no issuer', { iss: undefined }],
    ['no audience', { aud: undefined }],
    ['no expiry', { exp: undefined }],
    ['no time of issue', { iat: undefined }],
    ['no subject', { sub: undefined }],
    ['no account', { account: undefined }],
    ['an account that is not a string', { account: ['acc'] }],
    ['an unknown scope', { scope: 'root' }],
    ['endpoints that are not ids', { endpoints: 'all' }],
    ['two scopes', { scope: 'ingest admin' }],
  ])('rejects %s although the signature is valid', async (_, change) => {
    const { verifier, sign, key } = await setUp()
    const [, claims] = (await sign()).split('.')
    const changed = JSON.parse(JSON.stringify({ ...decode(claims), ...change })) as JWTPayload
    const token = await new SignJWT(changed)
      .setProtectedHeader({ alg: 'ES256', kid: key.kid })
      .sign(await importJWK({ ...key.private_jwk }, 'ES256'))
    await expect(verifier.verify(token)).rejects.toThrow(invalid)
  })

  test('rejects claims that were changed after signing', async () => {
    const { verifier, sign } = await setUp()
    const [header = '', claims, signature = ''] = (await sign()).split('.')
    for (const change of [{ exp: start / 1000 + 86_400 }, { scope: 'admin' }, { account: 'other' }]) {
      const forged = [header, encode({ ...decode(claims), ...change }), signature].join('.')
      await expect(verifier.verify(forged)).rejects.toThrow(invalid)
    }
  })

  test('rejects another issuer and audience with a valid signature', async () => {
    const { verifier, sign } = await setUp()
    await expect(verifier.verify(await sign({ issuer: 'https://other.example' }))).rejects.toThrow(invalid)
  })

  test('rejects an unknown key, even with a known kid', async () => {
    const { verifier, sign, key } = await setUp()
    const unknownKey = await newSigningKey(start)
    await expect(verifier.verify(await sign({}, unknownKey))).rejects.toThrow(invalid)
    await expect(verifier.verify(await sign({}, { ...unknownKey, kid: key.kid }))).rejects.toThrow(invalid)
  })

  test('rejects alg none', async () => {
    const { verifier, sign, key } = await setUp()
    const [, claims = ''] = (await sign()).split('.')
    for (const alg of ['none', 'None', 'NONE', '']) {
      await expect(verifier.verify(`${encode({ alg, kid: key.kid })}.${claims}.`)).rejects.toThrow(invalid)
    }
  })

  test('rejects a symmetric signature made with the public key', async () => {
    const { verifier, sign, key } = await setUp()
    const [, claims = ''] = (await sign()).split('.')
    const body = `${encode({ alg: 'HS256', kid: key.kid })}.${claims}`
    const mac = createHmac('sha256', JSON.stringify(publicKeys([key]).keys[0]))
      .update(body)
      .digest('base64url')
    await expect(verifier.verify(`${body}.${mac}`)).rejects.toThrow(invalid)
  })

  test('rejects a key embedded in the token', async () => {
    const { verifier, sign, key } = await setUp()
    const unknownKey = await newSigningKey(start)
    const [, claims = '', signature = ''] = (await sign({}, unknownKey)).split('.')
    const header = encode({ alg: 'ES256', kid: key.kid, jwk: publicKeys([unknownKey]).keys[0] })
    await expect(verifier.verify(`${header}.${claims}.${signature}`)).rejects.toThrow(invalid)
  })

  test('rejects a token with one changed character', async () => {
    const { verifier, sign } = await setUp()
    const token = await sign()
    // The last character of each part has unused bits, so changing it may decode to the same bytes.
    const positions = [...token].flatMap((character, index) => (character === '.' || token[index + 1] === '.' ? [] : [index]))
    for (const position of positions.slice(0, -1).filter((index) => index % 7 === 0)) {
      const other = token[position] === 'A' ? 'B' : 'A'
      await expect(verifier.verify(token.slice(0, position) + other + token.slice(position + 1))).rejects.toThrow(invalid)
    }
  })

  test.each(['', '.', '..', 'a.b.c', 'ing_live_x', `${'a'.repeat(5000)}.b.c`])(
    'rejects text that is not a token (%#)',
    async (text) => {
      const { verifier } = await setUp()
      await expect(verifier.verify(text)).rejects.toThrow(invalid)
    },
  )

  test('rejects everything before the first update', async () => {
    const { sign, clock } = await setUp()
    await expect(new AccessTokenVerifier({ issuer, clock }).verify(await sign())).rejects.toThrow(invalid)
  })

  test('accepts a token of a revoked key until it expires, and 15 minutes after the revocation at most, cached or not', async () => {
    const { clock, verifier, sign, key } = await setUp()
    const [short, long, unseen] = [
      await sign(),
      await sign({ ttlSeconds: 3600 }),
      await sign({ ttlSeconds: 3600, scope: 'admin' }),
    ]
    clock.nowMs += 5 * minuteMs
    verifier.update(publicKeys([key]), [{ id: 'key', tokens_until: new Date(start + 20 * minuteMs).toISOString() }])
    clock.nowMs = start + 15 * minuteMs + toleranceMs - 1
    await verifier.verify(short)
    clock.nowMs = start + 20 * minuteMs - 1
    await verifier.verify(long)
    await expect(verifier.verify(short)).rejects.toThrow(expired)
    clock.nowMs += 1
    await expect(verifier.verify(long)).rejects.toThrow(revoked)
    await expect(verifier.verify(unseen)).rejects.toThrow(revoked)
  })

  test('rejects a token from the update on that ends the access of its key, cached or not', async () => {
    const { verifier, sign, key } = await setUp()
    const [seen, unseen] = [await sign({ ttlSeconds: 3600 }), await sign()]
    await verifier.verify(seen)
    verifier.update(publicKeys([key]), [ended('another')])
    await verifier.verify(seen)
    verifier.update(publicKeys([key]), [ended('key')])
    await expect(verifier.verify(seen)).rejects.toThrow(revoked)
    await expect(verifier.verify(unseen)).rejects.toThrow(revoked)
  })

  test('rejects a token whose key is revoked while its signature is being verified', async () => {
    const { verifier, sign, key } = await setUp()
    const verifying = verifier.verify(await sign())
    verifier.update(publicKeys([key]), [ended('key')])
    await expect(verifying).rejects.toThrow(revoked)
  })

  test('tokens of a rotated key are valid only while it is published', async () => {
    const { clock, verifier, sign, key } = await setUp()
    const [old, next] = [await sign(), await newSigningKey(clock.nowMs)]
    verifier.update(publicKeys([next, key]), [])
    await verifier.verify(old)
    await verifier.verify(await sign({}, next))
    verifier.update(publicKeys([next]), [])
    await expect(verifier.verify(old)).rejects.toThrow(invalid)
  })

  test('uses the issuer of the last update', async () => {
    const { verifier, sign, key } = await setUp()
    const old = await sign()
    verifier.update(publicKeys([key]), [], 'https://new.example')
    await verifier.verify(await sign({ issuer: 'https://new.example' }))
    await expect(verifier.verify(old)).rejects.toThrow(invalid)
  })
})
