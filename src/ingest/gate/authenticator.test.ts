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
