/** Publishing in DNS: the order of an attempt, and what is left for the next leader. */
import { pino } from 'pino'
import { expect } from 'vitest'
import type { Logger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { nodeLimits } from '#model/limits.ts'
import type { Heartbeat } from '#model/node-protocol.ts'
import { LostRecords } from '#naming/checks/lost-records.ts'
import { RecordsRejected } from '#naming/dns/provider.ts'
import { publishedNodes } from '#naming/dns/published-nodes.ts'
import { DnsPublisher } from '#naming/dns/publisher.ts'
import { ControlOutages } from '#naming/outages.ts'
import { currentEpoch, inNewEpoch } from '#store/cluster/epoch.ts'
import { drainEndpoint, removeDrainingEndpoint } from '#store/endpoints/endpoints.ts'
import { findLastRemoval, listDnsRecords, recordPublished, removalsMax, sendAgain } from '#store/naming/dns-records.ts'
import { claimNodeId, deleteNode, releaseNodeCredential, revokeNodeCredential } from '#store/nodes/node-credentials.ts'
import { recordHeartbeat, registerNode } from '#store/nodes/nodes.ts'
import { type Store, type Tx, transact } from '#store/store.ts'
import { type DatabaseKind, newStore } from '../support/databases.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { ZoneInMemory } from '../support/zone-in-memory.ts'
import { anAccount, anEndpoint, aStoredEndpoint, describeStores } from './fixtures.ts'

const logger = pino({ level: 'silent' }) as unknown as Logger
const { signal: never } = new AbortController()

/** Returns the store with a pause after each of its transactions. */
function pausingAfterWrites(store: Store, pause: () => Promise<void>): Store {
  const execute = async <T>(work: (db: Tx) => Promise<T>): Promise<T> => {
    const result = await store.db.transaction().execute(work)
    await pause()
    return result
  }
  const db = new Proxy(store.db, {
    get: (target, name) => {
      if (name === 'transaction') return () => ({ execute })
      const value = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return { ...store, db }
}

async function newWorld(kind: DatabaseKind) {
  const store = await newStore(kind)
  const clock = new ManualClock()
  const zone = new ZoneInMemory()
  const account = await anAccount(store)
  const outages = new ControlOutages(clock, clock.now())
  const options = { store, provider: zone, outages, baseDomain: 'inlet.test', ttlSeconds: 30, clock, logger }
  const publisher = new DnsPublisher(options)
  const nodes = new Map<string, string>()

  async function beat(address: string, more: object = {}): Promise<void> {
    const node_id = nodes.get(address) ?? newId()
    if (!nodes.has(address))
      await registerNode(
        store.db,
        { node_id, region: 'fra', ipv4: [address.split('#')[0] ?? ''], ipv6: [], ingest_address: 'node:1' },
        clock.now(),
      )
    if (!nodes.has(address))
      await transact(store, (db) => claimNodeId(db, node_id, { hash: node_id, previousHash: null, joinTokenId: null }))
    nodes.set(address, node_id)
    const applied_epoch = await currentEpoch(store.db)
    const ingest = {
      process: 'ingest',
      node_id,
      applied_epoch,
      healthy: true,
      reasons: [],
      disk_full: false,
      blocked: [],
    } as Heartbeat
    await transact(store, (db) => recordHeartbeat(db, { ...ingest, ...more }, clock.now()))
  }

  return {
    ...{ store, clock, zone, outages, publisher, beat },
    nodeId: (address: string) => nodes.get(address) ?? '',
    /** A second after the last pass. */
    async pass(of = publisher, signal = never): Promise<void> {
      clock.advance(1_000)
      outages.noteContact()
      await of.pass(signal)
    },
    anotherProcess: () => new DnsPublisher(options),
    /** A process that stands still each time right after it has written to the database, for as long as `pause` takes. */
    slowProcess: (pause: () => Promise<void>) => new DnsPublisher({ ...options, store: pausingAfterWrites(store, pause) }),
    published: publishedNodes(options),
    async endpoint(label: string): Promise<string> {
      const since_epoch = (await currentEpoch(store.db)) + 1
      return (await aStoredEndpoint(store, account, anEndpoint({ label, region: 'fra', since_epoch }))).id
    },
    remove: (id: string) =>
      inNewEpoch(store, async (db, epoch) => {
        await drainEndpoint(db, account, id, { epoch, now: clock.now() })
        await removeDrainingEndpoint(db, id, clock.now())
      }),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

const abc = 'A abc.fra.inlet.test'

describeStores('publishing in DNS', (test, kind) => {
  test('follows the healthy nodes, and ends with the endpoint', async () => {
    await using world = await newWorld(kind)
    const id = await world.endpoint('abc')
    await world.pass()
    expect(world.zone.addresses).toEqual({})
    await world.beat('192.0.2.1')
    await world.beat('192.0.2.2')
    await world.pass()
    expect(world.zone.addresses).toEqual({ [abc]: ['192.0.2.1', '192.0.2.2'] })
    expect(await listDnsRecords(world.store.db)).toMatchObject([
      { published: ['192.0.2.1', '192.0.2.2'], ttl: 30, sent: null, retry_at: null },
    ])
    await world.beat('192.0.2.1', { healthy: false })
    await world.pass()
    expect(world.zone.addresses).toEqual({ [abc]: ['192.0.2.2'] })
    world.clock.advance(20_000)
    await world.pass()
    expect(world.zone.addresses).toEqual({ [abc]: ['192.0.2.2'] })
    await world.remove(id)
    await world.pass()
    expect(world.zone.addresses).toEqual({})
    expect(await listDnsRecords(world.store.db)).toEqual([])
  })

  test('removes a node at once that the operator shut out or removed, even if it was the only one', async () => {
    await using world = await newWorld(kind)
    const { store, clock, zone } = world
    await world.endpoint('abc')
    await world.beat('192.0.2.1')
    await world.beat('192.0.2.2')
    await world.beat('192.0.2.3')
    await world.pass()
    expect(zone.addresses).toEqual({ [abc]: ['192.0.2.1', '192.0.2.2', '192.0.2.3'] })
    await transact(store, (db) => revokeNodeCredential(db, world.nodeId('192.0.2.1'), clock.now()))
    await world.pass()
    expect(zone.addresses).toEqual({ [abc]: ['192.0.2.2', '192.0.2.3'] })
    clock.advance(20_000)
    await world.pass()
    expect(zone.addresses).toEqual({ [abc]: ['192.0.2.2', '192.0.2.3'] })
    await transact(store, (db) => releaseNodeCredential(db, world.nodeId('192.0.2.2'), clock.now()))
    await world.pass()
    expect(zone.addresses).toEqual({ [abc]: ['192.0.2.3'] })
    await transact(store, (db) => deleteNode(db, world.nodeId('192.0.2.3'), clock.now()))
    await world.pass()
    expect(zone.addresses).toEqual({})
    expect(await listDnsRecords(store.db)).toEqual([])
  })

  test('keeps nodes that have not spoken yet since control was away', async () => {
    await using world = await newWorld(kind)
    await world.endpoint('abc')
    await world.beat('192.0.2.1')
    await world.beat('192.0.2.2')
    await world.pass()
    world.clock.advance(60_000)
    await world.beat('192.0.2.1')
    await world.pass()
    expect(world.zone.addresses).toEqual({ [abc]: ['192.0.2.1', '192.0.2.2'] })
    for (let seconds = 0; seconds < 16; seconds += 1) {
      await world.beat('192.0.2.1')
      await world.pass()
    }
    expect(world.zone.addresses).toEqual({ [abc]: ['192.0.2.1'] })
  })

  test('sends nothing while nothing changes', async () => {
    await using world = await newWorld(kind)
    await world.endpoint('abc')
    for (let seconds = 0; seconds < 70; seconds += 1) {
      await world.beat('192.0.2.1')
      await world.pass()
    }
    expect(world.zone.calls).toHaveLength(1)
  })

  test('repeats what was not confirmed, and says why meanwhile', async () => {
    await using world = await newWorld(kind)
    await world.endpoint('abc')
    await world.beat('192.0.2.1')
    world.zone.after = () => {
      throw new Error('the connection was closed')
    }
    await expect(world.pass()).rejects.toThrow('the connection was closed')
    const record = { published: null, sent: ['192.0.2.1'], last_error: 'the connection was closed', failures: 0 }
    expect(await listDnsRecords(world.store.db)).toMatchObject([record])
    world.zone.after = () => undefined
    await world.pass()
    expect(await listDnsRecords(world.store.db)).toMatchObject([{ published: ['192.0.2.1'], sent: null, last_error: null }])
    expect(world.zone.calls).toHaveLength(2)
  })

  test('another process continues after a crash, once the attempt must have ended', async () => {
    await using world = await newWorld(kind)
    const id = await world.endpoint('abc')
    await world.beat('192.0.2.1')
    const crash = new AbortController()
    world.zone.after = () => {
      crash.abort(new Error('crashed'))
      crash.signal.throwIfAborted()
    }
    await expect(world.pass(world.anotherProcess(), crash.signal)).rejects.toThrow('crashed')
    world.zone.after = () => undefined
    await world.remove(id)
    const next = world.anotherProcess()
    await world.pass(next)
    expect(world.zone.calls).toHaveLength(1)
    world.clock.advance(world.zone.applyTimeoutMs)
    await world.pass(next)
    expect(world.zone.addresses).toEqual({})
    expect(await listDnsRecords(world.store.db)).toEqual([])
  })

  test('isolates what is rejected: the others are published, it is repeated later and later', async () => {
    await using world = await newWorld(kind)
    for (let index = 0; index < 30; index += 1) await world.endpoint(index === 7 ? 'bad' : `good${index}`)
    await world.beat('192.0.2.1')
    world.zone.before = (changes) => {
      if (changes.some(({ name }) => name.startsWith('bad.'))) throw new RecordsRejected('a CNAME is there')
    }
    for (let seconds = 0; seconds < 20; seconds += 1) {
      await world.beat('192.0.2.1')
      await world.pass()
    }
    expect(world.zone.sets.size).toBe(29)
    const calls = world.zone.calls.length
    for (let seconds = 0; seconds < 10; seconds += 1) {
      await world.beat('192.0.2.1')
      await world.pass()
    }
    expect(world.zone.calls.length - calls).toBeLessThanOrEqual(2)
    world.zone.before = () => undefined
    world.clock.advance(300_000)
    await world.beat('192.0.2.1')
    await world.pass()
    expect(world.zone.sets.size).toBe(30)
  })

  test('an attempt of a process that no longer leads confirms nothing', async () => {
    await using world = await newWorld(kind)
    await world.endpoint('abc')
    await world.beat('192.0.2.1')
    const next = world.anotherProcess()
    // While the first attempt waits, its time runs out, and another process publishes other addresses.
    world.zone.after = async () => {
      world.zone.after = () => undefined
      world.clock.advance(world.zone.applyTimeoutMs)
      await world.beat('192.0.2.2')
      await world.pass(next)
    }
    await world.pass()
    expect(await listDnsRecords(world.store.db)).toMatchObject([{ published: ['192.0.2.1', '192.0.2.2'], sent: null }])
  })

  test('an attempt whose time ran out before it was sent is not sent, and the next leader repeats it', async () => {
    await using world = await newWorld(kind)
    await world.endpoint('abc')
    await world.beat('192.0.2.1')
    const next = world.anotherProcess()
    let hasPaused = false
    // The first process stands still between its record of the attempt and its request. Meanwhile another one leads.
    const first = world.slowProcess(async () => {
      if (hasPaused) return
      hasPaused = true
      world.clock.advance(world.zone.applyTimeoutMs)
      await world.beat('192.0.2.2')
      await world.pass(next)
    })
    await world.pass(first)
    expect(world.zone.addresses).toEqual({ [abc]: ['192.0.2.1', '192.0.2.2'] })
    expect(await listDnsRecords(world.store.db)).toMatchObject([{ published: ['192.0.2.1', '192.0.2.2'], sent: null }])
  })

  test('publishes everything again with another provider, TTL, or where the zone was changed by somebody', async () => {
    await using world = await newWorld(kind)
    await world.endpoint('abc')
    await world.beat('192.0.2.1')
    await world.pass()
    world.zone.sets.clear()
    world.zone.target = 'elsewhere'
    await world.pass(world.anotherProcess())
    expect(world.zone.addresses).toEqual({ [abc]: ['192.0.2.1'] })
    world.zone.sets.clear()
    await sendAgain(world.store.db, ['abc.fra.inlet.test'])
    await world.pass(world.anotherProcess())
    expect(world.zone.addresses).toEqual({ [abc]: ['192.0.2.1'] })
  })

  test('sends many sets in batches, and looks again between them', async () => {
    await using world = await newWorld(kind)
    for (let index = 0; index < 120; index += 1) await world.endpoint(`e${index}`)
    await world.beat('192.0.2.1')
    await world.pass()
    expect(world.zone.calls.map((changes) => changes.length)).toEqual([100, 20])
    expect(world.zone.sets.size).toBe(120)
  })
})

describeStores('records that the zone loses', (test, kind) => {
  const name = 'abc.fra.inlet.test'

  async function newLossyWorld() {
    const world = await newWorld(kind)
    const { store, clock, zone, publisher } = world
    const warnings: object[] = []
    const lost = new LostRecords({ store, publisher, clock, logger: { warn: (fields: object) => void warnings.push(fields) } })
    const endpoint_id = await world.endpoint('abc')
    return {
      ...{ world, warnings },
      /** Lets time pass, and returns how often the records were published meanwhile. `change` happens to the zone every second. */
      async watch(seconds: number, change: (second: number) => void): Promise<number> {
        const calls = zone.calls.length
        for (let second = 0; second < seconds; second += 1) {
          await world.beat('192.0.2.1')
          await world.pass()
          change(second)
          const A = zone.addresses[abc] ?? []
          if (second % 5 === 0)
            await lost.republish([{ endpoint_id, name, answers: [{ server: '198.51.100.1', A, AAAA: [], error: null }] }])
        }
        return zone.calls.length - calls
      },
    }
  }

  test('are published again at once, also another time', async () => {
    const { world, warnings, watch } = await newLossyWorld()
    await using _world = world
    await watch(30, () => undefined)
    expect(await watch(30, (second) => second === 10 && world.zone.sets.clear())).toBe(1)
    expect(world.zone.addresses).toEqual({ [abc]: ['192.0.2.1'] })
    expect(await watch(30, (second) => second === 10 && world.zone.sets.clear())).toBe(1)
    expect(world.zone.addresses).toEqual({ [abc]: ['192.0.2.1'] })
    expect(warnings).toEqual([])
  })

  test('are published again if an older set arrives late in their place', async () => {
    const { world, watch } = await newLossyWorld()
    await using _world = world
    await watch(30, () => undefined)
    const older = { name, type: 'A' as const, values: ['192.0.2.9'], ttl: 30 }
    expect(await watch(30, (second) => second === 10 && world.zone.sets.set(abc, older))).toBe(1)
    expect(world.zone.addresses).toEqual({ [abc]: ['192.0.2.1'] })
  })

  test('are published later and later where they are lost each time, with a warning, until they stay', async () => {
    const { world, warnings, watch } = await newLossyWorld()
    await using _world = world
    // The server confirms changes and drops them.
    expect(await watch(300, () => world.zone.sets.clear())).toBeLessThanOrEqual(7)
    expect(warnings.at(-1)).toMatchObject({ names: [name], count: 1 })
    // Another program removes what appears.
    expect(await watch(350, (second) => second % 8 === 0 && world.zone.sets.clear())).toBeLessThanOrEqual(3)
    await watch(650, () => undefined)
    expect(world.zone.addresses).toEqual({ [abc]: ['192.0.2.1'] })
    expect(await watch(20, (second) => second === 0 && world.zone.sets.clear())).toBe(1)
  })
})

describeStores('addresses that were taken from names', (test) => {
  test('are remembered while clients may use them, and the newest of each region only', async ({ store }) => {
    const record = (region: string, first: number, count: number, now: number) => {
      const removals = Array.from({ length: count }, (_, index) => ({ region, address: `a${first + index}` }))
      return transact(store, (db) => recordPublished(db, newId(), { ttl: 30, removals, lingerMs: 60_000, now }))
    }
    await record('fra', 0, 5, 1_000)
    await record('nyc', 0, 5, 2_000)
    await record('fra', 5, removalsMax, 3_000)
    const found = (region: string, address: string) => findLastRemoval(store.db, region, [address])
    expect(await found('fra', 'a0')).toBe(null)
    expect([await found('fra', 'a5'), await found('fra', `a${removalsMax + 4}`)]).toEqual([3_000, 3_000])
    expect(await found('nyc', 'a0')).toBe(2_000)
    await record('nyc', 9, 1, 62_500)
    expect([await found('nyc', 'a0'), await found('nyc', 'a9')]).toEqual([null, 62_500])
  })
})

describeStores('a node that leaves', (test, kind) => {
  test('is found until no record names it, and the TTL has passed since', async () => {
    await using world = await newWorld(kind)
    await world.endpoint('abc')
    await world.beat('192.0.2.1')
    await world.beat('192.0.2.2')
    await world.pass()
    const remaining = () => world.published.secondsUntilForgotten(world.nodeId('192.0.2.1'))
    expect(await remaining()).toBe(null)
    await world.beat('192.0.2.1', { leaving: true })
    expect(await remaining()).toBe(null)
    world.zone.before = () => {
      throw new Error('connect ECONNREFUSED')
    }
    await expect(world.pass()).rejects.toThrow('ECONNREFUSED')
    expect(await remaining()).toBe(null)
    world.zone.before = () => undefined
    await world.pass()
    expect(world.zone.addresses).toEqual({ [abc]: ['192.0.2.2'] })
    expect(await remaining()).toBe(35)
    // A later change of the name is no reason to wait longer.
    await world.beat('192.0.2.3')
    await world.pass()
    expect(await remaining()).toBe(34)
    world.clock.advance(60_000)
    expect(await remaining()).toBe(0)
  })

  test('is told of a node with as many addresses as one may report', async () => {
    await using world = await newWorld(kind)
    const { store, clock } = world
    await world.endpoint('abc')
    await world.beat('192.0.2.1')
    await world.beat('192.0.2.2')
    await world.pass()
    const node_id = world.nodeId('192.0.2.1')
    const others = Array.from({ length: nodeLimits.addressesMax - 1 }, (_, index) => `10.0.${index >> 8}.${index & 255}`)
    const addresses = { ipv4: ['192.0.2.1', ...others], ipv6: [], ingest_address: 'node:1' }
    await registerNode(store.db, { node_id, region: 'fra', ...addresses }, clock.now())
    await world.beat('192.0.2.1', { leaving: true })
    expect(await world.published.secondsUntilForgotten(node_id)).toBe(null)
    await world.pass()
    expect(await world.published.secondsUntilForgotten(node_id)).toBe(35)
  })

  test('is not waited for if no other node serves in its place, or one at the same address does', async () => {
    await using world = await newWorld(kind)
    await world.endpoint('abc')
    await world.beat('192.0.2.1', { leaving: true })
    await world.pass()
    await world.beat('192.0.2.1')
    await world.pass()
    await world.beat('192.0.2.1', { leaving: true })
    await world.pass()
    expect(world.zone.addresses).toEqual({ [abc]: ['192.0.2.1'] })
    expect(await world.published.secondsUntilForgotten(world.nodeId('192.0.2.1'))).toBe(0)
    await world.beat('192.0.2.1#second')
    expect(await world.published.secondsUntilForgotten(world.nodeId('192.0.2.1'))).toBe(0)
    expect(await world.published.secondsUntilForgotten(newId())).toBe(0)
  })
})
