import { describe, expect, test } from 'vitest'
import { isoTimestamp } from '#lib/clock.ts'
import { newId } from '#model/id.ts'
import type { DnsRecord, NamedEndpoint } from '#store/naming/dns-records.ts'
import type { NodeFacts } from '#store/nodes/nodes.ts'
import { nodeFacts, processFacts } from '../../../test/support/node-facts.ts'
import { dnsLimits } from './limits.ts'
import { batchesOf, planChanges } from './plan.ts'

const nowMs = Date.parse('2026-11-22T08:00:00.000Z')
const at = isoTimestamp(nowMs)
const endpoint: NamedEndpoint = { id: 'e1', region: 'fra', label: 'abc', since_epoch: 5 }

const aNode = (ipv4: readonly string[], ipv6: readonly string[] = [], applied_epoch = 9): NodeFacts =>
  nodeFacts({ region: 'fra', ipv4, ipv6, ingest: processFacts(at, { applied_epoch }) })
const aRecord = (values: readonly string[], more: Partial<DnsRecord> = {}): DnsRecord => ({
  ...{ name: 'abc.fra.inlet.test', type: 'A', endpoint_id: 'e1', region: 'fra', target: 'here', published: values, ttl: 30 },
  ...{ published_at: at, sent: null, retry_at: null, failures: 0, last_error: null },
  ...more,
})

type Given = {
  readonly nodes?: readonly NodeFacts[]
  readonly trusted?: readonly NodeFacts[]
  readonly records?: readonly DnsRecord[]
  readonly endpoints?: readonly NamedEndpoint[]
}

const planOf = ({ nodes = [], trusted = nodes, records = [], endpoints = [endpoint] }: Given) =>
  planChanges({ endpoints, nodes, trusted, records, baseDomain: 'inlet.test', ttl: 30, nowMs })
const dueOf = (given: Given) => planOf(given).due.map(({ type, name, values }) => [type, name, ...values])

describe('planChanges', () => {
  test('publishes the addresses of the nodes that serve, sorted and once each, in the form of DNS', () => {
    const nodes = [aNode(['192.0.2.2'], ['2001:DB8:0::2']), aNode(['192.0.2.1']), aNode(['192.0.2.2'])]
    expect(dueOf({ nodes })).toEqual([
      ['A', 'abc.fra.inlet.test', '192.0.2.1', '192.0.2.2'],
      ['AAAA', 'abc.fra.inlet.test', '2001:db8::2'],
    ])
  })

  test('leaves out nodes that do not know the endpoint yet, and nodes of other regions', () => {
    const elsewhere = { ...aNode(['192.0.2.3']), region: 'iad' }
    expect(dueOf({ nodes: [aNode(['192.0.2.1']), aNode(['192.0.2.2'], [], 4), elsewhere] })).toEqual([
      ['A', 'abc.fra.inlet.test', '192.0.2.1'],
    ])
  })

  test('leaves out loopback addresses, except of nodes that listen there', () => {
    const local = { ...aNode(['127.0.0.2'], ['0:0::1']), ingest_address: '127.0.0.2:8081' }
    const nodes = [aNode(['127.0.0.1'], ['::1']), aNode(['192.0.2.1', '127.0.0.1'])]
    expect(dueOf({ nodes })).toEqual([['A', 'abc.fra.inlet.test', '192.0.2.1']])
    expect(dueOf({ nodes: [local] })).toEqual([
      ['A', 'abc.fra.inlet.test', '127.0.0.2'],
      ['AAAA', 'abc.fra.inlet.test', '::1'],
    ])
  })

  test('sends what was changed longest ago first, whatever region changes all the time', () => {
    const endpoints = ['restless', 'calm', 'new'].map((label) => ({ ...endpoint, id: label, label }))
    const named = (label: string, more: Partial<DnsRecord>) =>
      aRecord(['192.0.2.9'], { name: `${label}.fra.inlet.test`, endpoint_id: label, ...more })
    const records = [named('restless', {}), named('calm', { published_at: isoTimestamp(nowMs - 60_000) })]
    expect(dueOf({ nodes: [aNode(['192.0.2.1'])], records, endpoints }).map(([, name]) => name)).toEqual([
      'new.fra.inlet.test',
      'calm.fra.inlet.test',
      'restless.fra.inlet.test',
    ])
  })

  test('changes nothing that is confirmed', () => {
    expect(planOf({ nodes: [aNode(['192.0.2.1'])], records: [aRecord(['192.0.2.1'])] })).toEqual({
      due: [],
      nextAt: Number.POSITIVE_INFINITY,
      pending: 0,
    })
  })

  test.each<[string, Partial<DnsRecord>]>([
    ['other values', { published: ['192.0.2.9'] }],
    ['another TTL', { ttl: 60 }],
    ['an attempt that was not confirmed', { sent: ['192.0.2.9'] }],
    ['nothing confirmed', { published: null }],
  ])('repeats a set with %s', (_, more) => {
    expect(dueOf({ nodes: [aNode(['192.0.2.1'])], records: [aRecord(['192.0.2.1'], more)] })).toHaveLength(1)
  })

  test('keeps the last addresses while no node serves the endpoint', () => {
    const records = [aRecord(['192.0.2.1']), aRecord(['2001:db8::1'], { type: 'AAAA' })]
    const silent = aNode(['192.0.2.1'], ['2001:DB8:0::1'])
    expect(dueOf({ records, trusted: [silent] })).toEqual([])
    expect(dueOf({ records, trusted: [silent], nodes: [aNode(['192.0.2.2'], [], 4)] })).toEqual([])
    expect(dueOf({ records, trusted: [silent], nodes: [aNode([])] })).toEqual([])
  })

  test('removes addresses that no trusted node of the region reports, even if none is left', () => {
    const records = [aRecord(['192.0.2.1', '192.0.2.2']), aRecord(['2001:db8::1'], { type: 'AAAA' })]
    const elsewhere = { ...aNode(['192.0.2.1'], ['2001:db8::1']), region: 'iad' }
    expect(dueOf({ records, trusted: [aNode(['192.0.2.2'], [], 4), elsewhere] })).toEqual([
      ['A', 'abc.fra.inlet.test', '192.0.2.2'],
      ['AAAA', 'abc.fra.inlet.test'],
    ])
    expect(dueOf({ records, trusted: [elsewhere] })).toEqual([
      ['A', 'abc.fra.inlet.test'],
      ['AAAA', 'abc.fra.inlet.test'],
    ])
    const unconfirmed = [aRecord(['192.0.2.2'], { sent: ['192.0.2.1'] })]
    expect(dueOf({ records: unconfirmed, trusted: [aNode(['192.0.2.2'])] })).toEqual([['A', 'abc.fra.inlet.test', '192.0.2.2']])
  })

  test('follows a node that has another address and is not healthy yet, but publishes no such node by itself', () => {
    const moved = aNode(['192.0.2.2'])
    expect(dueOf({ records: [aRecord(['192.0.2.1'])], trusted: [moved] })).toEqual([['A', 'abc.fra.inlet.test', '192.0.2.2']])
    expect(dueOf({ records: [aRecord(['192.0.2.1'])], trusted: [aNode(['192.0.2.2'], [], 4)] })).toEqual([
      ['A', 'abc.fra.inlet.test'],
    ])
    expect(dueOf({ trusted: [moved] })).toEqual([])
  })

  test('removes the last address of a type if nodes with the other type serve', () => {
    const records = [aRecord(['192.0.2.1']), aRecord(['2001:db8::1'], { type: 'AAAA' })]
    expect(dueOf({ records, nodes: [aNode(['192.0.2.1'])] })).toEqual([['AAAA', 'abc.fra.inlet.test']])
  })

  test('removes what belongs to no endpoint', () => {
    const records = [
      aRecord(['192.0.2.1'], { name: 'gone.fra.inlet.test' }),
      aRecord(['192.0.2.1'], { name: 'abc.fra.before.test' }),
    ]
    expect(dueOf({ records, nodes: [] })).toEqual([
      ['A', 'gone.fra.inlet.test'],
      ['A', 'abc.fra.before.test'],
    ])
  })

  test('waits for the time of a retry, but not for one that a wrong clock set', () => {
    const nodes = [aNode(['192.0.2.1'])]
    const record = (retry_at: number) => [aRecord([], { retry_at, published: null })]
    expect(planOf({ nodes, records: record(nowMs + 1) })).toEqual({ due: [], nextAt: nowMs + 1, pending: 1 })
    expect(dueOf({ nodes, records: record(nowMs) })).toHaveLength(1)
    expect(dueOf({ nodes, records: record(nowMs + 86_400_000) })).toHaveLength(1)
  })

  describe('with more addresses than a name may have', () => {
    const many = Array.from({ length: 3 * dnsLimits.addressesMax }, (_, index) => aNode([`10.0.0.${index}`]))
    const endpoints = Array.from({ length: 400 }, () => ({ ...endpoint, id: newId(), label: newId() }))
    const chosen = (nodes: readonly NodeFacts[]) =>
      new Map(planOf({ nodes, endpoints }).due.map(({ name, values }) => [name, values]))

    test('spreads endpoints over all nodes', () => {
      const before = chosen(many)
      expect([...before.values()].every((values) => values.length === dnsLimits.addressesMax)).toBe(true)
      expect(new Set([...before.values()].flat()).size).toBe(many.length)
    })

    test('changes few endpoints when a node leaves', () => {
      const [before, after] = [chosen(many), chosen(many.slice(1))]
      const changed = [...before].filter(([name, values]) => after.get(name)?.join() !== values.join())
      expect(changed.length).toBeGreaterThan(0)
      expect(changed.every(([, values]) => values.includes('10.0.0.0'))).toBe(true)
    })
  })
})

describe('batchesOf', () => {
  const change = (failures: number) => ({
    ...({ name: 'a', type: 'A', endpoint_id: 'e1', region: 'fra', published: null, sent: null, values: [], failures } as const),
  })
  test('puts what was rejected into smaller batches each time', () => {
    const sizes = [...batchesOf([0, 1, 2, 3, 4, 16].flatMap((failures) => Array.from({ length: 101 }, () => change(failures))))]
    const largest = Map.groupBy(sizes, ([first]) => first?.failures)
    expect([...largest].map(([failures, batches]) => [failures, batches[0]?.length])).toEqual([
      [0, 100],
      [1, 25],
      [2, 6],
      [3, 1],
      [4, 1],
      [16, 1],
    ])
  })
})
