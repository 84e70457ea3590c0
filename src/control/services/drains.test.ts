import { describe, expect, test } from 'vitest'
import { isoTimestamp } from '#lib/clock.ts'
import { newId } from '#model/id.ts'
import type { NodeLag } from '#store/node-reports.ts'
import type { NodeFacts, ProcessFacts } from '#store/nodes.ts'
import { aLag as aLagOf } from '../../../test/support/lags.ts'
import { isDrained } from './drains.ts'

const now = Date.parse('2026-11-20T08:00:00.000Z')
const ago = (seconds: number) => isoTimestamp(now - seconds * 1000)

/** Its segments were sealed 20 seconds ago. */
const endpoint = { id: newId(), region: 'loc', segment_max_age_seconds: 5, draining_at: ago(35), draining_epoch: 7 }

const aProcess = (more: Partial<ProcessFacts> = {}): ProcessFacts => ({
  ...{ applied_epoch: 7, healthy: true, reasons: [], last_seen_at: ago(1), healthy_at: ago(1) },
  ...more,
})
const aNode = (ingest: ProcessFacts | null = aProcess(), delivery: ProcessFacts | null = aProcess()): NodeFacts => ({
  ...{ id: newId(), region: 'loc', ipv4: [], ipv6: [], ingest_address: 'node:1', registered_at: ago(7200) },
  ingest,
  delivery,
})
const aLag = ({ id }: NodeFacts, undelivered_segments = 1): NodeLag => ({
  ...aLagOf(endpoint.id, { undelivered_segments }),
  node_id: id,
})

describe('isDrained', () => {
  test('is true once every node applied the drain, had time to seal, and then reported no undelivered segments', () => {
    expect(isDrained(endpoint, [aNode(), aNode()], [], now)).toBe(true)
    expect(isDrained(endpoint, [], [], now)).toBe(true)
    const idle = aNode()
    expect(isDrained(endpoint, [idle], [aLag(idle, 0)], now)).toBe(true)
  })

  test('ignores a node that registered but never sent a heartbeat', () => {
    expect(isDrained(endpoint, [aNode(null, null)], [], now)).toBe(true)
  })

  test('is false until open segments are sealed, at the age of the endpoint or the default', () => {
    expect(isDrained({ ...endpoint, segment_max_age_seconds: 26 }, [aNode()], [], now)).toBe(false)
    expect(isDrained({ ...endpoint, segment_max_age_seconds: null }, [aNode()], [], now)).toBe(false)
    expect(isDrained({ ...endpoint, segment_max_age_seconds: 26 }, [], [], now)).toBe(false)
  })

  test.each<[string, NodeFacts]>([
    ['ingest has an older configuration', aNode(aProcess({ applied_epoch: 6 }))],
    ['delivery has an older configuration', aNode(aProcess(), aProcess({ applied_epoch: 6 }))],
    ['the last heartbeat of delivery is older than the time to seal', aNode(aProcess(), aProcess({ last_seen_at: ago(21) }))],
    ['ingest died before it sealed its segment', aNode(aProcess({ last_seen_at: ago(21) }))],
    ['delivery may not have seen what a new ingest process sealed', { ...aNode(), registered_at: ago(10) }],
    ['delivery never sent a heartbeat', aNode(aProcess(), null)],
    ['ingest never sent a heartbeat', aNode(null)],
  ])('is false while %s', (_, node) => {
    expect(isDrained(endpoint, [aNode(), node], [], now)).toBe(false)
  })

  test('is false while a node has undelivered segments', () => {
    const node = aNode()
    expect(isDrained(endpoint, [aNode(), node], [aLag(node)], now)).toBe(false)
  })

  test('ignores reports of nodes that are gone', () => {
    expect(isDrained(endpoint, [aNode()], [aLag(aNode())], now)).toBe(true)
  })
})
