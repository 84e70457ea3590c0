import { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { AppError } from '#errors.ts'
import { assert, InvariantError } from '#lib/assert.ts'
import { systemClock } from '#lib/clock.ts'
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
  test('is none for a key whose endpoints are all gone', () => {
    expect(outcomeOf(() => open(gate, { ...principal, endpoint_ids: ['deleted'] }, route))).toBe('invalid_route')
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
