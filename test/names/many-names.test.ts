/** Many endpoints in a real BIND: how long a change of the nodes takes is the time of the second test. */
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { address } from '#lib/option-types.ts'
import type { Logger } from '#lib/telemetry.ts'
import { newId, newLabel } from '#model/id.ts'
import { DnsPublisher } from '#naming/dns/publisher.ts'
import { Rfc2136Provider } from '#naming/dns/rfc2136.ts'
import { ControlOutages } from '#naming/outages.ts'
import { inChunks } from '#store/chunks.ts'
import { claimNodeId } from '#store/nodes/node-credentials.ts'
import { recordHeartbeat, registerNode } from '#store/nodes/nodes.ts'
import { transact } from '#store/store.ts'
import { resolverOf } from '../../tools/services/bind.ts'
import { anAccount } from '../store/fixtures.ts'
import { newStore, type TestStore } from '../support/databases.ts'
import { describeNameServer, freshDomain } from '../support/name-server.ts'
import { runs } from '../support/thorough.ts'

const endpoints = runs(200, 10_000)

describeNameServer('the names of many endpoints', (nameServer) => {
  const clock = systemClock
  const domain = freshDomain(nameServer)
  const resolver = resolverOf(nameServer)
  const labels = Array.from({ length: endpoints }, () => newLabel(12))
  const nodes = [1, 2, 3].map((number) => ({ id: newId(), ipv4: `192.0.2.${number}`, ipv6: `2001:db8::${number}` }))
  let store: TestStore
  let publisher: DnsPublisher

  beforeAll(async () => {
    store = await newStore('sqlite')
    const provider = new Rfc2136Provider({ server: address(nameServer.server), key: nameServer.tsig, clock })
    const logger = pino({ level: 'silent' }) as unknown as Logger
    const outages = new ControlOutages(clock, clock.now())
    publisher = new DnsPublisher({ store, provider, outages, baseDomain: domain, ttlSeconds: 30, clock, logger })
    const account_id = await anAccount(store)
    const row = { account_id, region: 'fra', since_epoch: 0, desired_state: 'active', created_at: clock.now() }
    for (const some of inChunks(labels))
      await store.db
        .insertInto('endpoints')
        .values(some.map((label) => ({ ...row, id: newId(), label, name: label })))
        .execute()
    for (const { id, ipv4, ipv6 } of nodes) {
      const node = { node_id: id, region: 'fra', ipv4: [ipv4], ipv6: [ipv6], ingest_address: 'node:1' }
      await registerNode(store.db, node, clock.now())
      await transact(store, (db) => claimNodeId(db, id, { hash: id, previousHash: null, joinTokenId: null }))
    }
  })
  afterAll(() => store[Symbol.asyncDispose]())

  /** Publishes while all nodes but `without` are healthy. Returns the addresses of some of the names. */
  async function publish(without?: string): Promise<ReadonlySet<string>> {
    const beat = async () => {
      for (const { id, ipv4 } of nodes) {
        const state = { applied_epoch: 9, healthy: ipv4 !== without, reasons: [], disk_full: false, blocked: [] }
        await transact(store, (db) => recordHeartbeat(db, { process: 'ingest', node_id: id, ...state }, clock.now()))
      }
    }
    await beat()
    const beats = setInterval(() => void beat().catch(() => undefined), 2_000)
    await publisher.pass(AbortSignal.timeout(120_000))
    clearInterval(beats)
    const names = [0, 1, endpoints >> 1, endpoints - 1].map((index) => `${labels[index]}.fra.${domain}`)
    const found = names.flatMap((name) => [resolver.resolve4(name), resolver.resolve6(name)])
    return new Set((await Promise.all(found)).map((addresses) => addresses.toSorted().join(' ')))
  }

  test(`${endpoints} endpoints get the addresses of three nodes`, { timeout: 150_000 }, async () => {
    expect(await publish()).toEqual(new Set(['192.0.2.1 192.0.2.2 192.0.2.3', '2001:db8::1 2001:db8::2 2001:db8::3']))
  })

  test(`${endpoints} endpoints lose the addresses of one of them`, { timeout: 150_000 }, async () => {
    expect(await publish('192.0.2.2')).toEqual(new Set(['192.0.2.1 192.0.2.3', '2001:db8::1 2001:db8::3']))
  })
})
