import { describe, expect, test } from 'vitest'
import { isoTimestamp } from '#lib/clock.ts'
import { newId } from '#model/id.ts'
import type { EndpointLag } from '#model/node-protocol.ts'
import type { NamingFacts } from '#naming/checks/naming.ts'
import { discountControlOutages } from '#naming/outages.ts'
import { servingNodes } from '#naming/serving-nodes.ts'
import type { OpenLoss } from '#store/commits/losses.ts'
import type { Missing } from '#store/commits/missing-commits.ts'
import type { EndpointFacts as StoredFacts } from '#store/endpoints/endpoints.ts'
import type { NodeFacts, ProcessFacts } from '#store/nodes/nodes.ts'
import { aLag } from '../../../test/support/lags.ts'
import { nodeFacts, processFacts } from '../../../test/support/node-facts.ts'
import { computeStatus, presentNodes, type Reports } from './status.ts'

type EndpointFacts = Omit<StoredFacts, 'id'>

const now = Date.parse('2026-11-20T08:00:00.000Z')
const ago = (seconds: number) => isoTimestamp(now - seconds * 1000)

const anEndpoint = (more: Partial<EndpointFacts> = {}): EndpointFacts => ({
  ...{ region: 'loc', label: 'abc', account_suspended: false, desired_state: 'active', since_epoch: 5 },
  ...{ created_at: ago(600), provisioned_at: null, copies: null },
  destination_status: 'valid',
  ...more,
})

const aProcess = (more: Partial<ProcessFacts> = {}) => processFacts(ago(1), more)

const aNode = (ingest: Partial<ProcessFacts> | null = {}, delivery: Partial<ProcessFacts> | null = {}): NodeFacts =>
  nodeFacts({
    ingest: ingest === null ? null : aProcess(ingest),
    delivery: delivery === null ? null : aProcess(delivery),
  })

const naming: NamingFacts = { host: null, dns: null, certificateChecks: new Map(), failedOrder: null }
const none: Reports = { lags: [], blocked: [], diskCauses: new Map(), naming, otherRegions: [] }
const statusOf = (endpoint: EndpointFacts, nodes: readonly NodeFacts[]) => computeStatus(endpoint, nodes, none, now).status

describe('computeStatus', () => {
  test('names twenty nodes that do not serve the endpoint, and counts the others', () => {
    const nodes = Array.from({ length: 123 }, () => aNode({ healthy: false }))
    for (const all of [nodes, [aNode(), ...nodes]]) {
      const { reasons } = computeStatus(anEndpoint(), all, none, now)
      expect([reasons.length, reasons.at(-1)]).toEqual([21, '103 more nodes do not serve the endpoint'])
    }
    const { reasons } = computeStatus(anEndpoint(), nodes.slice(0, 21), none, now)
    expect(reasons.at(-1)).toBe('1 more node does not serve the endpoint')
  })

  test.each<[string, EndpointFacts, readonly NodeFacts[]]>([
    ['active', anEndpoint(), [aNode()]],
    ['active', anEndpoint(), [aNode({ last_seen_at: ago(7) })]],
    ['active', anEndpoint(), [aNode({ applied_epoch: 5 })]],
    ['deploying', anEndpoint({ created_at: ago(1) }), []],
    ['deploying', anEndpoint({ created_at: ago(60) }), [aNode(null)]],
    ['deploying', anEndpoint({ created_at: ago(300) }), [aNode({ applied_epoch: 4 })]],
    ['degraded', anEndpoint(), [aNode(), aNode({ applied_epoch: 4 })]],
    ['degraded', anEndpoint(), [aNode(), aNode({ last_seen_at: ago(8) })]],
    ['degraded', anEndpoint(), [aNode({ last_seen_at: ago(8), healthy_at: ago(8) })]],
    ['degraded', anEndpoint(), [aNode({ healthy: false })]],
    ['degraded', anEndpoint(), [aNode(), aNode({ leaving: true })]],
    ['degraded', anEndpoint(), [aNode({ leaving: true })]],
    ['failed', anEndpoint(), [aNode({ leaving: true, last_seen_at: ago(61), healthy_at: ago(61) })]],
    ['degraded', anEndpoint(), [aNode({}, null)]],
    ['degraded', anEndpoint(), [aNode({}, { healthy: false })]],
    ['degraded', anEndpoint({ destination_status: 'pending' }), [aNode()]],
    ['degraded', anEndpoint({ destination_status: null }), [aNode()]],
    ['failed', anEndpoint(), []],
    ['failed', anEndpoint(), [aNode({ last_seen_at: ago(10), healthy_at: ago(10) })]],
    ['failed', anEndpoint(), [aNode({ healthy: false, healthy_at: ago(10) })]],
    ['failed', anEndpoint(), [aNode({ healthy: false, healthy_at: null })]],
    ['degraded', anEndpoint(), [aNode({ healthy: false, healthy_at: ago(10) }), aNode({ healthy: false, healthy_at: ago(9) })]],
    ['failed', anEndpoint({ created_at: ago(301) }), [aNode(null)]],
    ['paused', anEndpoint({ desired_state: 'paused' }), [aNode()]],
    ['paused', anEndpoint({ desired_state: 'paused' }), []],
    ['draining', anEndpoint({ desired_state: 'draining' }), [aNode()]],
    ['paused', anEndpoint({ account_suspended: true }), [aNode()]],
    ['paused', anEndpoint({ account_suspended: true }), []],
    ['draining', anEndpoint({ account_suspended: true, desired_state: 'draining' }), [aNode()]],
  ])('%s, row %#', (status, endpoint, nodes) => {
    expect(statusOf(endpoint, nodes)).toBe(status)
  })

  test('gives a reason for everything but active', () => {
    expect(computeStatus(anEndpoint(), [aNode()], none, now).reasons).toEqual([])
    const endpoints = [
      anEndpoint({ desired_state: 'paused' }),
      anEndpoint({ destination_status: null }),
      anEndpoint({ since_epoch: 99 }),
    ]
    for (const endpoint of endpoints) expect(computeStatus(endpoint, [aNode()], none, now).reasons.length).toBeGreaterThan(0)
    expect(computeStatus(anEndpoint(), [], none, now).reasons).toEqual(['no node serves region loc'])
    const otherRegions = ['fra', 'nyc', ...Array<string>(10).fill('sfo')]
    const of = (regions: readonly string[]) => computeStatus(anEndpoint(), [], { ...none, otherRegions: regions }, now).reasons
    expect(of(['fra', 'nyc'])).toEqual(['no node serves region loc; regions with nodes: fra, nyc'])
    expect(of(otherRegions)).toEqual([expect.stringMatching(/regions with nodes: fra, nyc, (sfo, ){8}and 2 more$/)])
  })
})

test('says that a node is shutting down, and later when it was shut down', () => {
  const reasonsOf = (node: NodeFacts) => computeStatus(anEndpoint(), [node, aNode()], none, now).reasons
  const [leaving, gone] = [aNode({ leaving: true }), aNode({ leaving: true, last_seen_at: ago(16) })]
  expect(reasonsOf(leaving)).toEqual([`node ${leaving.id} is shutting down`])
  expect(reasonsOf(gone)).toEqual([`node ${gone.id} was shut down at ${ago(16)}`])
  // Control was away twice since, which differs from one of its processes to the next.
  for (const away of [3, 5]) {
    const outage = { fromMs: now - 15_000, toMs: now - 15_000 + away * 1_000 }
    expect(discountControlOutages([gone], [outage]).flatMap(reasonsOf)).toEqual([`node ${gone.id} was shut down at ${ago(16)}`])
  }
})

test('gives a node that has just registered seven seconds for its first heartbeat', () => {
  const waits = (node: NodeFacts) => computeStatus(anEndpoint(), [node], none, now).reasons
  const started = { ...aNode(null, null), registered_at: ago(7) }
  const silence = `node ${started.id} has not sent a heartbeat`
  expect(waits(started)).toEqual([`${silence} since the node registered at ${ago(7)}`])
  expect(waits({ ...started, registered_at: ago(8) })).toEqual([`${silence} for 7 s`])
  const again = { ...started, ingest: aProcess({ leaving: true, last_seen_at: ago(60) }) }
  expect(waits(again)).toEqual([`${silence} since the node registered at ${ago(7)}`])
  const ingesting = { ...started, ingest: aProcess() }
  expect(waits(ingesting)).toEqual([`delivery of ${silence} since the node registered at ${ago(7)}`])
  expect(waits({ ...ingesting, registered_at: ago(8) })).toEqual([`delivery of ${silence} for 7 s`])
})

test('says that a node is shut out, however healthy it was a moment ago', () => {
  const [revoked, released] = [aNode(), aNode()]
  const nodes = [
    { ...revoked, credential: 'revoked' as const },
    { ...released, credential: 'none' as const },
  ]
  expect(computeStatus(anEndpoint(), nodes, none, now)).toEqual({
    status: 'degraded',
    reasons: [
      `the credential of node ${revoked.id} is revoked`,
      `the id of node ${released.id} was released, and no node has joined with it since`,
    ],
  })
})

test('names a node that has a name beside its id', () => {
  const node = { ...aNode({ healthy: false }, { healthy: false }), name: 'fra-1' }
  const who = `node fra-1 (${node.id})`
  const [endpoint_id, at] = [newId(), { node_id: node.id, node_name: node.name, reported_at: ago(1) }]
  const reports: Reports = {
    ...none,
    lags: [{ ...aLag(endpoint_id, { parked_segments: 1, undelivered_segments: 0 }), ...at }],
    blocked: [{ ...at, endpoint_id, reason: 'EIO' }],
    losses: [
      {
        ...at,
        id: 'l',
        cause: 'node_removed',
        endpoint_id,
        records: 2,
        bytes: 9,
        first_seq: null,
        recorded_at: ago(8),
        is_node_back: true,
        is_searched: true,
        search_problem: null,
      },
    ],
  }
  const { reasons } = computeStatus(anEndpoint(), [node, aNode()], reports, now)
  expect(reasons.map((reason) => reason.slice(0, reason.indexOf(who) + who.length))).toEqual([
    who,
    who,
    who,
    `up to 2 acknowledged records of ${who}`,
  ])
})

describe('a loss', () => {
  const loss: OpenLoss = {
    ...{ id: 'l', endpoint_id: newId(), node_id: 'n', node_name: null, records: 2, bytes: 9, first_seq: 3 },
    ...{
      cause: 'left_on_disk',
      recorded_at: ago(8),
      reported_at: ago(9),
      is_node_back: false,
      is_searched: true,
      search_problem: null,
    },
  }
  const reasonsOf = (losses: readonly OpenLoss[], missingCommits?: Missing) =>
    computeStatus(anEndpoint(), [aNode()], { ...none, losses, missingCommits }, now).reasons.filter((reason) =>
      /loss/.test(reason),
    )
  const machine = 'of a machine that lost its place to another one'

  test('that a machine has on its disk may be in the bucket while commits may be missing, or until control has looked there', () => {
    const what = `up to 2 acknowledged records of node n, from segment 3 on, as of ${ago(9)}, are`
    expect(reasonsOf([loss])).toEqual([
      `${what} only on the disk ${machine}: bring in what is there (docs/fencing.md), or confirm the loss (inlet losses confirm l)`,
    ])
    const doubtful = (next: string) =>
      `${what} on the disk ${machine}, and may be in the bucket already: ${next}; confirm the loss only after that (inlet losses confirm l)`
    expect(reasonsOf([loss], { since: now, isAutomatic: true })).toEqual([doubtful('control is reading the markers')])
    expect(reasonsOf([{ ...loss, is_searched: false }])).toEqual([doubtful('control is reading the markers')])
    expect(reasonsOf([{ ...loss, is_searched: false, search_problem: 'bucket lake cannot be read' }])).toEqual([
      doubtful('bucket lake cannot be read; control tries again'),
    ])
    expect(reasonsOf([{ ...loss, search_problem: 'bucket lake is gone' }])).toEqual([doubtful('bucket lake is gone')])
    expect(reasonsOf([loss], { since: now, isAutomatic: false })).toEqual([
      doubtful('the operator has to run inlet commits rebuild'),
    ])
  })

  test('of one record, of one byte, and one more', () => {
    const one = { ...loss, records: 1 }
    expect(reasonsOf([one])).toEqual([
      expect.stringContaining(
        `up to 1 acknowledged record of node n, from segment 3 on, as of ${ago(9)}, is only on the disk ${machine}`,
      ),
    ])
    expect(reasonsOf([{ ...one, cause: 'node_removed' }], { since: now, isAutomatic: true })).toEqual([
      expect.stringContaining(
        ', and may be in the bucket already: control is reading the markers; bring its disk back (inlet node --adopt DIR --join-token TOKEN); confirm the loss only after that (inlet losses confirm l)',
      ),
    ])
    expect(reasonsOf([{ ...one, cause: 'node_removed' }])).toEqual([
      expect.stringContaining(
        `up to 1 acknowledged record of node n, from segment 3 on, as of ${ago(9)}, and what was acknowledged later, were not delivered when it was removed at ${ago(8)}: bring`,
      ),
    ])
    const uncounted = { ...loss, records: null, bytes: 1, first_seq: null }
    expect(reasonsOf([uncounted])).toEqual([
      expect.stringContaining(`1 byte of acknowledged records of node n, as of ${ago(9)}, is only on`),
    ])
    expect(reasonsOf(Array(6).fill(loss)).at(-1)).toBe('1 more loss is not confirmed')
    expect(reasonsOf(Array(7).fill(loss)).at(-1)).toBe('2 more losses are not confirmed')
  })
})

test('a loss of which no record was known says that later ones are lost', () => {
  const loss: OpenLoss = {
    ...{ id: 'l', endpoint_id: newId(), node_id: 'n', node_name: null, records: 0, bytes: 9, first_seq: 3 },
    ...{ cause: 'node_removed', recorded_at: ago(8), reported_at: ago(9), is_node_back: false, is_searched: true },
    search_problem: null,
  }
  const { reasons } = computeStatus(anEndpoint(), [aNode()], { ...none, losses: [loss] }, now)
  expect(reasons).toEqual([
    `any record of node n, from segment 3 on, acknowledged after ${ago(9)} (none was known to wait then), was not delivered when it was removed at ${ago(8)}: bring its disk back (inlet node --adopt DIR --join-token TOKEN), or confirm the loss (inlet losses confirm l)`,
  ])
})

describe('an endpoint with a name that the name servers do not know', () => {
  const addresses = { A: ['192.0.2.1'], AAAA: [] }
  const dns = { expected: { wanted: addresses, allowed: addresses }, check: undefined }
  const named: Reports = { ...none, naming: { ...naming, host: 'abc.loc.inlet.test', dns } }
  const statusFor = (endpoint: Partial<EndpointFacts>, nodes: readonly NodeFacts[]) =>
    computeStatus(anEndpoint(endpoint), nodes, named, now)

  test('is deploying until it was served under its name, for five minutes at most', () => {
    expect(statusFor({ created_at: ago(300) }, [aNode()])).toEqual({
      status: 'deploying',
      reasons: ['DNS of abc.loc.inlet.test was not looked up yet'],
    })
    expect(statusFor({ created_at: ago(301) }, [aNode()]).status).toBe('failed')
    expect(statusFor({ created_at: ago(300) }, [aNode({ healthy: false })]).status).toBe('deploying')
  })

  test('is deploying, too, if its node knows it but was never healthy since it exists', () => {
    const sick = (healthy_at: string | null) => [aNode({ healthy: false, reasons: ['the disk is full'], healthy_at })]
    const statusAt = (seconds: number, nodes: readonly NodeFacts[]) => statusOf(anEndpoint({ created_at: ago(seconds) }), nodes)
    expect(statusAt(11, sick(null))).toBe('deploying')
    expect(statusAt(1, sick(ago(5)))).toBe('deploying')
    expect(statusAt(300, sick(ago(302)))).toBe('deploying')
    expect(statusAt(301, sick(ago(302)))).toBe('failed')
    // It was healthy, and knows the endpoint: it has served it.
    expect(statusAt(11, sick(ago(10)))).toBe('failed')
  })

  test('is degraded once it was, and failed when no node has been healthy for nine seconds', () => {
    const provisioned_at = ago(500)
    expect(statusFor({ provisioned_at }, [aNode()]).status).toBe('degraded')
    expect(statusFor({ provisioned_at }, [aNode({ last_seen_at: ago(9), healthy_at: ago(9) })]).status).toBe('degraded')
    expect(statusFor({ provisioned_at }, [aNode({ last_seen_at: ago(10), healthy_at: ago(10) })]).status).toBe('failed')
  })
})

describe('what nodes hold', () => {
  const node = aNode()
  const endpoint_id = newId()
  const reasonsOf = (lag: Partial<EndpointLag>, more: Partial<Reports> = {}, reported_at = ago(1)) => {
    const lags = [{ ...aLag(endpoint_id, lag), node_id: node.id, node_name: node.name, reported_at }]
    const { status, reasons } = computeStatus(anEndpoint(), [node], { ...none, lags, ...more }, now)
    expect(status).toBe(reasons.length === 0 ? 'active' : 'degraded')
    return reasons
  }

  test('degrades the endpoint if it waits for a person, or for too long', () => {
    expect(reasonsOf({ open_segments: 1, oldest_sealed_at: ago(300) })).toEqual([])
    expect(reasonsOf({ oldest_sealed_at: ago(301) })).toEqual([`delivery of node ${node.id} is 301 s behind`])
    expect(reasonsOf({ parked_segments: 1, blocked_by: '1 segments are parked: no such type' })).toEqual([
      '1 segments are parked: no such type',
    ])
    expect(reasonsOf({ undelivered_segments: 0, quarantined_segments: 2 })).toEqual([
      `node ${node.id} holds 2 segments (2 quarantined; 9 bytes)`,
    ])
  })

  test('degrades the endpoint on a node that is gone for good, unless it last reported nothing', () => {
    expect(reasonsOf({ open_segments: 1 }, {}, ago(3_601))).toEqual([
      `node ${node.id} last reported 2 segments (1 open, 1 to deliver; 9 bytes) at ${ago(3_601)}: start it again`,
    ])
    expect(reasonsOf({ undelivered_segments: 0 }, {}, ago(3_601))).toEqual([])
  })

  test('degrades the endpoint if ingest cannot append to its log; the node stays healthy', () => {
    const blocked = [{ node_id: node.id, node_name: node.name, endpoint_id, reason: '7-abc.open: EIO' }]
    expect(reasonsOf({}, { blocked })).toEqual([`node ${node.id}: 7-abc.open: EIO`])
    expect(reasonsOf({}, { blocked: [{ ...blocked[0], node_id: newId() } as (typeof blocked)[0]] })).toEqual([])
    const paused = computeStatus(anEndpoint({ desired_state: 'paused' }), [node], { ...none, blocked }, now)
    expect(paused).toMatchObject({ status: 'paused', reasons: ['the endpoint is paused', expect.stringContaining('EIO')] })
  })

  test('is named with the cause of a full disk', () => {
    const full = aNode({ healthy: false, reasons: ['99 bytes wait on disk'], healthy_at: ago(30) })
    const lags = [
      {
        ...aLag(endpoint_id, { blocked_by: 'access denied to bucket lake' }),
        node_id: full.id,
        node_name: null,
        reported_at: ago(1),
      },
    ]
    const diskCauses = new Map([[full.id, 'most of it is data of endpoint e']])
    expect(computeStatus(anEndpoint(), [full], { ...none, lags, diskCauses }, now).reasons).toEqual([
      `node ${full.id} is not healthy: 99 bytes wait on disk; most of it is data of endpoint e`,
      'access denied to bucket lake',
    ])
  })
})

describe('presentNodes and servingNodes', () => {
  test('keep nodes with a heartbeat within the hour; only healthy ones that know the endpoint serve it', () => {
    const [serving, silent, gone, unhealthy, leaving] = [
      aNode(),
      aNode({ last_seen_at: ago(8) }),
      aNode({ last_seen_at: ago(3601) }),
      aNode({ healthy: false }),
      aNode({ leaving: true }),
    ]
    const present = presentNodes([serving, silent, gone, unhealthy, leaving], now)
    expect(present).toEqual([serving, silent, unhealthy, leaving])
    expect(servingNodes(anEndpoint(), present, now)).toEqual([serving])
  })
})
