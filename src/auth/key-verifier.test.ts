import { describe, expect, test } from 'vitest'
import type { SnapshotKey } from '#model/snapshot.ts'
import { KeyVerifier } from './key-verifier.ts'
import { newApiKey } from './secrets.ts'

const account_id = 'cb0d2b1e-7f3d-4a40-a0a5-3f1f4e6a9a10'

function aKey(id: string): { secret: string; key: SnapshotKey } {
  const { secret, hash } = newApiKey()
  return { secret, key: { id, account_id, hash, scopes: ['ingest'], endpoint_ids: null, origins: null } }
}

describe('KeyVerifier', () => {
  test('returns the principal of a known key, cached or not', () => {
    const verifier = new KeyVerifier()
    const { secret, key } = aKey('k1')
    verifier.update([key])
    const principal = verifier.verify(secret)
    expect(principal).toEqual({ account_id, key_id: 'k1', scopes: ['ingest'], endpoint_ids: null, origins: null })
    expect(verifier.verify(secret)).toBe(principal)
  })

  test('rejects everything before the first update', () => {
    expect(() => new KeyVerifier().verify(newApiKey().secret)).toThrow(
      'the API key is unknown or revoked, or its account has no endpoint in this region',
    )
  })

  test.each(['', 'ing_live_', 'ing_live_short', `${newApiKey().secret}x`, ` ${newApiKey().secret}`, 'x'.repeat(1_000_000)])(
    'rejects unknown and malformed keys (%#)',
    (secret) => {
      const verifier = new KeyVerifier()
      verifier.update([aKey('k1').key])
      expect(() => verifier.verify(secret)).toThrow(expect.objectContaining({ code: 'unauthorized' }))
    },
  )

  test('refuses a well-formed key that it does not know in a way of its own, if it has one', () => {
    const verifier = new KeyVerifier((detail) => new TypeError(detail))
    const { secret, key } = aKey('k1')
    verifier.update([key])
    expect(() => verifier.verify(newApiKey().secret)).toThrow(TypeError)
    expect(() => verifier.verify('ing_live_short')).toThrow(expect.objectContaining({ code: 'unauthorized' }))
    expect(verifier.verify(secret)).toMatchObject({ key_id: 'k1' })
  })

  test('rejects the hash in place of the secret', () => {
    const verifier = new KeyVerifier()
    const { key } = aKey('k1')
    verifier.update([key])
    expect(() => verifier.verify(key.hash)).toThrow('the API key is unknown or revoked')
  })

  test('rejects a removed key after the update, even if it was cached', () => {
    const verifier = new KeyVerifier()
    const [first, second] = [aKey('k1'), aKey('k2')]
    verifier.update([first.key, second.key])
    verifier.verify(first.secret)
    verifier.update([second.key])
    expect(() => verifier.verify(first.secret)).toThrow('the API key is unknown or revoked')
    expect(verifier.verify(second.secret).key_id).toBe('k2')
  })

  test('uses the scopes of the last update', () => {
    const verifier = new KeyVerifier()
    const { secret, key } = aKey('k1')
    verifier.update([key])
    verifier.verify(secret)
    verifier.update([{ ...key, scopes: ['metrics'] }])
    expect(verifier.verify(secret).scopes).toEqual(['metrics'])
  })
})
