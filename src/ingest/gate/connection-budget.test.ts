import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { accountId, anEndpoint } from '../../../test/support/ingest-node.ts'
import { ConnectionBudget, type ConnectionSlot, networkOf } from './connection-budget.ts'
import { gateLimits } from './limits.ts'

/** A budget, and sockets that only have an address and an end. */
function setUp(limits: { max?: number; maxUnauthenticated?: number; maxPerAddress?: number } = {}) {
  let now = 0
  const budget = new ConnectionBudget({
    max: 12,
    maxUnauthenticated: 4,
    maxPerAddress: 2,
    ...limits,
    clock: { ...systemClock, now: () => now, monotonic: () => now, setTimer: () => () => undefined },
  })
  const accounts = ['a', 'b'].map(accountId)
  budget.configure(accounts.map((account_id) => anEndpoint({ account_id })))
  let port = 0
  const connect = (remoteAddress = `10.0.0.${port}`) => {
    port += 1
    const socket = Object.assign(new EventEmitter(), {
      remoteAddress,
      remotePort: port,
      destroy: () => {
        socket.emit('close')
      },
    })
    return socket as unknown as Socket
  }
  const pass = (ms: number) => {
    now += ms
  }
  return { budget, connect, pass, account: accounts[0] ?? '', other: accounts[1] ?? '' }
}

const isOpen = (slot: ConnectionSlot | undefined) => slot !== undefined

describe('before the first authenticated request', () => {
  test('an address has a bound of its own, and a place is free again when a connection closes', () => {
    const { budget, connect } = setUp()
    const sockets = [connect('1.1.1.1'), connect('1.1.1.1'), connect('1.1.1.1'), connect('2.2.2.2')]
    expect(sockets.map((socket) => isOpen(budget.accept(socket)))).toEqual([true, true, false, true])
    expect([budget.open, budget.dropped, budget.refusals]).toEqual([3, 1, new Map([['connections_address', 1]])])
    sockets[0]?.destroy()
    expect(isOpen(budget.accept(connect('1.1.1.1')))).toBe(true)
    budget.countDropped()
    expect([budget.open, budget.dropped]).toEqual([3, 2])
  })

  test('an address with too many closes its own oldest after a second, so that others behind it get through', () => {
    const { budget, connect, pass } = setUp()
    const closed: number[] = []
    for (const [index, address] of ['2.2.2.2', '1.1.1.1', '1.1.1.1'].entries()) {
      const socket = connect(address)
      socket.once('close', () => closed.push(index))
      budget.accept(socket)
    }
    expect(isOpen(budget.accept(connect('1.1.1.1')))).toBe(false)
    pass(gateLimits.evictableAfterMs)
    expect(isOpen(budget.accept(connect('1.1.1.1')))).toBe(true)
    expect([closed, budget.open, budget.unauthenticated]).toEqual([[1], 3, 3])
  })

  test('a full pool drops newcomers, and after a second its oldest', () => {
    const { budget, connect, pass } = setUp()
    const closed: number[] = []
    for (let index = 0; index < 4; index += 1) {
      const socket = connect()
      socket.once('close', () => closed.push(index))
      budget.accept(socket)
    }
    expect(isOpen(budget.accept(connect()))).toBe(false)
    pass(gateLimits.evictableAfterMs)
    expect(isOpen(budget.accept(connect()))).toBe(true)
    expect([closed, budget.unauthenticated, budget.open]).toEqual([[0], 4, 4])
  })

  test('a full pool takes no place of authenticated connections', () => {
    const { budget, connect, account } = setUp()
    const first = budget.accept(connect())
    for (let index = 0; index < 3; index += 1) budget.accept(connect())
    expect(first?.claim(account)).toBeUndefined()
    expect([budget.unauthenticated, budget.shares.used]).toEqual([3, 1])
  })
})

describe('after it', () => {
  test('an account has a share; it is refused above it, and others are not', () => {
    const { budget, connect, account, other } = setUp()
    const claimAll = (of: string) => {
      for (let count = 0; ; count += 1) {
        const refusal = budget.accept(connect())?.claim(of)
        if (refusal !== undefined) return { count, refusal }
      }
    }
    const { count, refusal } = claimAll(account)
    expect([count, refusal.outcome, refusal.message]).toEqual([
      6,
      'no_room',
      expect.stringContaining('the account uses up its share'),
    ])
    expect(claimAll(other).count).toBe(4)
    expect(budget.refusals).toEqual(new Map([['connections_account', 2]]))
  })

  test('a connection counts for the account that used it last, once, until it closes', () => {
    const { budget, connect, account, other } = setUp()
    const socket = connect()
    const slot = budget.accept(socket)
    for (const name of [account, account, other, account]) expect(slot?.claim(name)).toBeUndefined()
    expect([budget.shares.share(account).used, budget.shares.share(other).used]).toEqual([1, 0])
    slot?.force(other)
    expect([budget.shares.share(account).used, budget.shares.share(other).used]).toEqual([0, 1])
    slot?.leave()
    expect([budget.shares.used, budget.open]).toEqual([0, 1])
    // A token may be verified too late.
    slot?.claim(account)
    slot?.force(account)
    expect(budget.shares.used).toBe(0)
    socket.destroy()
    expect([budget.shares.used, budget.open, budget.unauthenticated]).toEqual([0, 0, 0])
  })
})

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['::1', '0:0:0:0'],
  ['2001:db8:1::', '2001:db8:1:0'],
])('%s counts as %s', (address, network) => {
  expect(networkOf(address)).toBe(network)
})
