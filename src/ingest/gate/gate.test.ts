import { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { AppError } from '#errors.ts'
import { assert, InvariantError } from '#lib/assert.ts'
import { systemClock } from '#lib/clock.ts'
import { LogError } from '#log/log-error.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { aGate, aSender } from '../../../test/support/gate.ts'
import { anEndpoint } from '../../../test/support/ingest-node.ts'
import { ConnectionBudget } from './connection-budget.ts'
import type { Route } from './endpoint-table.ts'
import type { Gate } from './gate.ts'
import { Rejection } from './rejection.ts'

const endpoint = anEndpoint({ account_id: 'account' })
const principal: KeyPrincipal = { account_id: 'account', key_id: 'key', scopes: ['ingest'], endpoint_ids: null }
const route = { host: undefined, query: '' }
const gate = aGate({ endpoints: [endpoint] })

/** Returns the endpoint that the principal is admitted to. */
function open(to: Gate, sender: KeyPrincipal, route: Route): SnapshotEndpoint {
  return to.admit(aSender(sender, route)).endpoint
}

function outcomeOf(work: () => unknown): unknown {
  try {
    work()
  } catch (error) {
    if (error instanceof Rejection) return error.outcome
    throw error
  }
  return 'accepted'
}

describe('the endpoint that a sender is admitted to', () => {
  test('is the one that the principal may send to', () => {
    expect(open(gate, principal, route)).toBe(endpoint)
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
    expect(outcomeOf(() => open(gate, sender, to))).toBe(outcome)
  })

  describe('for a key that is limited to endpoints', () => {
    const other = anEndpoint({ account_id: 'account' })
    const both = aGate({ endpoints: [endpoint, other] })
    const limited = { ...principal, endpoint_ids: [endpoint.id] }
    const to = (id: string) => ({ ...route, query: `endpoint=${id}` })

    test('returns its only endpoint, which the sender need not name', () => {
      expect(open(both, limited, route)).toBe(endpoint)
      expect(open(both, limited, to(endpoint.id))).toBe(endpoint)
      expect(outcomeOf(() => open(both, principal, route))).toBe('invalid_route')
    })

    test('rejects every other endpoint of the account', () => {
      expect(outcomeOf(() => open(both, limited, to(other.id)))).toBe('forbidden')
      expect(outcomeOf(() => open(both, { ...limited, endpoint_ids: ['deleted'] }, route))).toBe('invalid_route')
    })
  })

  test('rejects paused and draining endpoints', () => {
    const outcome = (desired_state: 'paused' | 'draining') => {
      const other = { ...endpoint, desired_state }
      return outcomeOf(() => open(aGate({ endpoints: [other] }), principal, { ...route, query: `endpoint=${other.id}` }))
    }
    expect([outcome('paused'), outcome('draining')]).toEqual(['endpoint_paused', 'unknown_endpoint'])
  })

  test('rejects every sender of a suspended account before it looks for the endpoint', () => {
    const suspended = aGate({ endpoints: [{ ...endpoint, account_suspended: true }] })
    for (const query of ['', `endpoint=${endpoint.id}`, 'endpoint=none'])
      expect(outcomeOf(() => open(suspended, principal, { ...route, query }))).toBe('account_suspended')
    expect(outcomeOf(() => open(suspended, { ...principal, account_id: 'other' }, route))).toBe('invalid_route')
  })

  test('rejects every sender until the first configuration', () => {
    expect(outcomeOf(() => open(aGate(), principal, route))).toBe('not_configured')
    expect(aGate().notReadyReasons()).toEqual(['no configuration yet'])
  })

  test('reads the route only after the scope was checked', () => {
    const unreadable = {
      query: '',
      get host(): string {
        throw new Error('read too early')
      },
    }
    expect(outcomeOf(() => open(gate, { ...principal, scopes: [] }, unreadable))).toBe('forbidden')
    expect(() => open(gate, principal, unreadable)).toThrow('read too early')
  })
})

describe('admit', () => {
  test('rejects credentials that are not valid with an outcome, from a token too', async () => {
    const wrong = () => {
      throw new AppError('unauthorized', 'the key is unknown')
    }
    expect(outcomeOf(() => gate.admit({ ...aSender(principal), authenticate: wrong }))).toBe('unauthorized')
    const late = async () => wrong()
    await expect(gate.admit({ ...aSender(principal), authenticate: late })).rejects.toMatchObject({ outcome: 'unauthorized' })
  })

  test('claims the connection for the account; one that has no place must close, unless it replaces another', () => {
    const full = new ConnectionBudget({ max: 0, maxUnauthenticated: 1, maxPerAddress: 1, clock: systemClock })
    const slot = full.accept(new Socket())
    assert(slot !== undefined, 'the pool has a place')
    const sender = { ...aSender(principal), slot }
    expect(() => gate.admit(sender)).toThrow(expect.objectContaining({ outcome: 'no_room', endsConnection: true }))
    gate.admit({ ...sender, replaces: (id) => id === endpoint.id })
    expect(slot.isAuthenticated).toBe(true)
  })
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
