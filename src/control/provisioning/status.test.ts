import { describe, expect, test } from 'vitest'
import { isoTimestamp } from '#lib/clock.ts'
import { newId } from '#model/id.ts'
import type { EndpointFacts as StoredFacts } from '#store/endpoints.ts'
import type { NodeFacts, ProcessFacts } from '#store/nodes.ts'
import { computeStatus, presentNodes, servingNodes } from './status.ts'

type EndpointFacts = Omit<StoredFacts, 'id'>

const now = Date.parse('2026-11-20T08:00:00.000Z')
const ago = (seconds: number) => isoTimestamp(now - seconds * 1000)

const anEndpoint = (more: Partial<EndpointFacts> = {}): EndpointFacts => ({
  ...{ region: 'loc', desired_state: 'active', created_at: ago(600), since_epoch: 5, destination_status: 'valid' },
  ...more,
})

const aProcess = (more: Partial<ProcessFacts> = {}): ProcessFacts => ({
  ...{ applied_epoch: 9, healthy: true, reasons: [], last_seen_at: ago(1), healthy_at: ago(1) },
  ...more,
})

const aNode = (ingest: Partial<ProcessFacts> | null = {}, delivery: Partial<ProcessFacts> | null = {}): NodeFacts => ({
  ...{ id: newId(), region: 'loc', ipv4: [], ipv6: [], ingest_address: 'node:1', registered_at: ago(7200) },
  ingest: ingest === null ? null : aProcess(ingest),
  delivery: delivery === null ? null : aProcess(delivery),
})

const statusOf = (endpoint: EndpointFacts, nodes: readonly NodeFacts[]) => computeStatus(endpoint, nodes, [], now).status

describe('computeStatus', () => {
  test.each<[string, EndpointFacts, readonly NodeFacts[]]>([
    ['active', anEndpoint(), [aNode()]],
    ['active', anEndpoint(), [aNode({ last_seen_at: ago(15) })]],
    ['active', anEndpoint(), [aNode({ applied_epoch: 5 })]],
    ['deploying', anEndpoint({ created_at: ago(1) }), []],
    ['deploying', anEndpoint({ created_at: ago(60) }), [aNode(null)]],
    ['deploying', anEndpoint(), [aNode({ applied_epoch: 4 })]],
    ['degraded', anEndpoint(), [aNode(), aNode({ applied_epoch: 4 })]],
    ['degraded', anEndpoint(), [aNode(), aNode({ last_seen_at: ago(16) })]],
    ['degraded', anEndpoint(), [aNode({ last_seen_at: ago(16) })]],
    ['degraded', anEndpoint(), [aNode({ healthy: false })]],
    ['degraded', anEndpoint(), [aNode({}, null)]],
    ['degraded', anEndpoint(), [aNode({}, { healthy: false })]],
    ['degraded', anEndpoint({ destination_status: 'pending' }), [aNode()]],
    ['degraded', anEndpoint({ destination_status: null }), [aNode()]],
    ['failed', anEndpoint(), []],
    ['failed', anEndpoint(), [aNode({ last_seen_at: ago(61), healthy_at: ago(61) })]],
    ['failed', anEndpoint(), [aNode({ healthy: false, healthy_at: ago(61) })]],
    ['failed', anEndpoint(), [aNode({ healthy: false, healthy_at: null })]],
    ['degraded', anEndpoint(), [aNode({ healthy: false, healthy_at: ago(61) }), aNode({ healthy: false, healthy_at: ago(60) })]],
    ['failed', anEndpoint({ created_at: ago(61) }), [aNode(null)]],
    ['paused', anEndpoint({ desired_state: 'paused' }), [aNode()]],
    ['paused', anEndpoint({ desired_state: 'paused' }), []],
    ['draining', anEndpoint({ desired_state: 'draining' }), [aNode()]],
  ])('%s, row %#', (status, endpoint, nodes) => {
    expect(statusOf(endpoint, nodes)).toBe(status)
  })

  test('gives a reason for everything but active', () => {
    expect(computeStatus(anEndpoint(), [aNode()], [], now).reasons).toEqual([])
    const endpoints = [
      anEndpoint({ desired_state: 'paused' }),
      anEndpoint({ destination_status: null }),
      anEndpoint({ since_epoch: 99 }),
    ]
    for (const endpoint of endpoints) expect(computeStatus(endpoint, [aNode()], [], now).reasons.length).toBeGreaterThan(0)
    expect(computeStatus(anEndpoint(), [], [], now).reasons).toEqual(['no node serves region loc'])
  })
})

describe('presentNodes and servingNodes', () => {
  test('keep nodes with a heartbeat within the hour; only healthy ones that know the endpoint serve it', () => {
    const [serving, silent, gone, unhealthy] = [
      aNode(),
      aNode({ last_seen_at: ago(16) }),
      aNode({ last_seen_at: ago(3601) }),
      aNode({ healthy: false }),
    ]
    const present = presentNodes([serving, silent, gone, unhealthy], now)
    expect(present).toEqual([serving, silent, unhealthy])
    expect(servingNodes(anEndpoint(), present, now)).toEqual([serving])
  })
})
