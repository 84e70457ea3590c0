import { describe, expect, test } from 'vitest'
import { InvariantError } from '#lib/assert.ts'
import { LogError } from '#log/log-error.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import { oneRecord } from '../../../test/support/frames.ts'
import { aGate } from '../../../test/support/gate.ts'
import { anEndpoint } from '../../../test/support/ingest-node.ts'
import { Rejection } from './rejection.ts'

const endpoint = anEndpoint({ account_id: 'account' })
const principal: KeyPrincipal = { account_id: 'account', key_id: 'key', scopes: ['ingest'], endpoint_ids: null }
const route = { host: undefined, query: '' }
const gate = aGate({ endpoints: [endpoint] })

function outcomeOf(work: () => unknown): unknown {
  try {
    work()
  } catch (error) {
    if (error instanceof Rejection) return error.outcome
    throw error
  }
  return 'accepted'
}

describe('open', () => {
  test('returns the endpoint that the principal may send to', () => {
    expect(gate.open(principal, route)).toBe(endpoint)
  })

  test.each([
    ['forbidden', 'without the scope ingest', { ...principal, scopes: ['metrics'] as const }, route],
    [
      'unknown_endpoint',
      'for the endpoint of another account',
      { ...principal, account_id: 'other' },
      { ...route, query: `endpoint=${endpoint.id}` },
    ],
    ['unknown_endpoint', 'for an endpoint that does not exist', principal, { ...route, query: 'endpoint=none' }],
    ['invalid_route', 'for an unknown parameter', principal, { ...route, query: 'endpont=none' }],
  ])('rejects as %s %s', (outcome, _, sender, to) => {
    expect(outcomeOf(() => gate.open(sender, to))).toBe(outcome)
  })

  describe('for a key that is limited to endpoints', () => {
    const other = anEndpoint({ account_id: 'account' })
    const both = aGate({ endpoints: [endpoint, other] })
    const limited = { ...principal, endpoint_ids: [endpoint.id] }
    const to = (id: string) => ({ ...route, query: `endpoint=${id}` })

    test('returns its only endpoint, which the sender need not name', () => {
      expect(both.open(limited, route)).toBe(endpoint)
      expect(both.open(limited, to(endpoint.id))).toBe(endpoint)
      expect(outcomeOf(() => both.open(principal, route))).toBe('invalid_route')
    })

    test('rejects every other endpoint of the account', () => {
      expect(outcomeOf(() => both.open(limited, to(other.id)))).toBe('forbidden')
      expect(outcomeOf(() => both.open({ ...limited, endpoint_ids: ['deleted'] }, route))).toBe('invalid_route')
    })
  })

  test('rejects paused and draining endpoints', () => {
    const open = (desired_state: 'paused' | 'draining') => {
      const other = { ...endpoint, desired_state }
      return outcomeOf(() => aGate({ endpoints: [other] }).open(principal, { ...route, query: `endpoint=${other.id}` }))
    }
    expect([open('paused'), open('draining')]).toEqual(['endpoint_paused', 'unknown_endpoint'])
  })

  test('rejects every sender of a suspended account before it looks for the endpoint', () => {
    const suspended = aGate({ endpoints: [{ ...endpoint, account_suspended: true }] })
    for (const query of ['', `endpoint=${endpoint.id}`, 'endpoint=none'])
      expect(outcomeOf(() => suspended.open(principal, { ...route, query }))).toBe('account_suspended')
    expect(outcomeOf(() => suspended.open({ ...principal, account_id: 'other' }, route))).toBe('invalid_route')
  })

  test('rejects every sender until the first configuration', () => {
    expect(outcomeOf(() => aGate().open(principal, route))).toBe('not_configured')
    expect(aGate().notReadyReasons()).toEqual(['no configuration yet'])
  })

  test('reads the route only after the scope was checked', () => {
    const unreadable = {
      query: '',
      get host(): string {
        throw new Error('read too early')
      },
    }
    expect(outcomeOf(() => gate.open({ ...principal, scopes: [] }, unreadable))).toBe('forbidden')
    expect(() => gate.open(principal, unreadable)).toThrow('read too early')
  })
})

test('a request with a key waits until the keys that a crash left in the log are known', async () => {
  const recovered = Promise.withResolvers<void>()
  const asked: string[] = []
  const stored = { seq: 0, records: 1, bytes: 2, isRepeated: true }
  const gate = aGate({
    endpoints: [endpoint],
    whenRecovered: (logName) => (logName === endpoint.id ? recovered.promise : undefined),
    once: async (_endpointId, key) => {
      asked.push(key)
      return stored
    },
  })
  const receipt = gate.appendOnce(endpoint.id, 'key', oneRecord())
  await new Promise((resolve) => setImmediate(resolve))
  expect(asked).toEqual([])
  recovered.resolve()
  expect(await receipt).toBe(stored)
})

describe('the outcome of a failed append', () => {
  test('is not_stored for an error of the log; the message hides the cause', () => {
    const rejection = gate.rejectionOf(new LogError('disk_full', '/var/lib is full'))
    expect(rejection).toMatchObject({ outcome: 'not_stored', retryAfterSeconds: 2 })
    expect(rejection.message).not.toContain('/var/lib')
  })

  test('is failed for an unexpected error', () => {
    expect(gate.rejectionOf(new TypeError('a bug'))).toMatchObject({ outcome: 'failed' })
  })

  test('ends the process for a broken invariant', async () => {
    const thrown = Promise.withResolvers<unknown>()
    const listeners = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException').once('uncaughtException', thrown.resolve)
    const broken = new InvariantError('broken')
    gate.rejectionOf(broken)
    expect(await thrown.promise).toBe(broken)
    for (const listener of listeners) process.on('uncaughtException', listener)
  })
})
