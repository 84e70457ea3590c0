import { expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { aKey, aSnapshot } from '../../../test/support/ingest-node.ts'
import { Authenticator } from './authenticator.ts'

test('an open connection is told what became of its key, and its end if a revocation may have been missed', () => {
  const contact = { mayLackChanges: false, ageMs: 0 }
  const authenticator = new Authenticator({ contact, publicKeys: false, clock: systemClock })
  const [active, expiring, ended, unknown] = ['active', 'expiring', 'ended', 'unknown']
  const snapshot = aSnapshot({
    keys: [{ ...aKey(), id: active }],
    revoked_keys: [
      { id: expiring, tokens_until: '2026-11-20T08:15:00.000Z' },
      { id: ended, tokens_until: null },
    ],
  })
  const statuses = () => [active, expiring, ended, unknown].map((id) => authenticator.keyStatus(id))
  authenticator.update(snapshot)
  expect(statuses()).toEqual([active, expiring, ended, unknown])
  contact.ageMs = 3_600_001
  authenticator.update(snapshot)
  expect(statuses()).toEqual([active, expiring, ended, ended])
  contact.ageMs = 0
  authenticator.update(snapshot)
  expect(statuses()).toEqual([active, expiring, ended, unknown])
})

test('a key has its name as long as it, or a token of it, is accepted', () => {
  const contact = { mayLackChanges: false, ageMs: 0 }
  const authenticator = new Authenticator({ contact, publicKeys: false, clock: systemClock })
  const [active, older] = [aKey({ name: 'plant' }), { ...aKey(), id: 'stored by an earlier release', name: undefined }]
  const names = () => [active.id, older.id, 'unknown'].map((id) => authenticator.keyName(id))
  authenticator.update(aSnapshot({ keys: [active, older] }))
  expect(names()).toEqual(['plant', undefined, undefined])
  const expiring = { id: active.id, tokens_until: '2026-11-20T08:15:00.000Z', name: 'plant' }
  authenticator.update(aSnapshot({ keys: [], revoked_keys: [expiring] }))
  expect(names()).toEqual(['plant', undefined, undefined])
  authenticator.update(aSnapshot({ keys: [], revoked_keys: [{ id: active.id, tokens_until: null }] }))
  expect(names()).toEqual([undefined, undefined, undefined])
})
