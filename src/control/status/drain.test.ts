import { describe, expect, test } from 'vitest'
import { isoTimestamp } from '#lib/clock.ts'
import { newId } from '#model/id.ts'
import type { EndpointLag } from '#model/node-protocol.ts'
import type { ProcessFacts } from '#store/nodes/nodes.ts'
import { aLag, closedLag } from '../../../test/support/lags.ts'
import { nodeFacts, processFacts } from '../../../test/support/node-facts.ts'
import { listDrainHolds, listHoldReasons, type NodeHistory } from './drain.ts'

const now = Date.parse('2026-11-20T08:00:00.000Z')
const ago = (seconds: number) => isoTimestamp(now - seconds * 1000)

const endpoint = { id: newId(), region: 'loc', since_epoch: 5, draining_epoch: 7 }

const aProcess = (more: Partial<ProcessFacts> = {}) => processFacts(ago(1), { applied_epoch: 7, ...more })
const aNode = (more: Partial<NodeHistory> = {}): NodeHistory => ({
  ...nodeFacts({ ingest: aProcess(), delivery: aProcess() }),
  received: new Map([['loc', 6]]),
  ...more,
})
const nothing = { undelivered_segments: 0, undelivered_bytes: 0 }

/** Returns why a drain is held by one node that reported this, beside a node that is done. */
function holdsOf(node: NodeHistory, report: Partial<EndpointLag> | undefined, of = endpoint): readonly string[] {
  const done = aNode()
  const reported = { reported_at: ago(1) }
  const lags = [{ ...closedLag(of.id), ...reported, node_id: done.id, node_name: null }]
  if (report !== undefined) lags.push({ ...aLag(of.id, report), ...reported, node_id: node.id, node_name: null })
  return listDrainHolds(of, [done, node], lags, now).map(({ reason }) => reason)
}

describe('a drain ends', () => {
  test('without nodes, and once every node reports that its log is closed and empty', () => {
    expect(listDrainHolds(endpoint, [], [], now)).toEqual([])
    expect(holdsOf(aNode(), { ...nothing, closed: true })).toEqual([])
  })

  test('after a node was away for days and reports the same', () => {
    const longAgo = aProcess({ last_seen_at: ago(400_000) })
    expect(holdsOf(aNode({ ingest: longAgo, delivery: longAgo }), { ...nothing, closed: true })).toEqual([])
  })

  test('whatever nodes report that never received the endpoint', () => {
    const never = { received: new Map([['loc', 4]]), ingest: aProcess({ applied_epoch: 4 }) }
    expect(holdsOf(aNode(never), undefined)).toEqual([])
    expect(holdsOf(aNode(never), nothing)).toEqual([])
    expect(holdsOf(aNode({ received: new Map(), ingest: null, delivery: null }), undefined)).toEqual([])
  })

  test('with a node that moved to another region and reports no segment from there', () => {
    const moved = aNode({ region: 'fra', registered_at: ago(60), credential: 'active', delivery: aProcess({ applied_epoch: 3 }) })
    expect(holdsOf(moved, undefined)).toEqual([])
    expect(holdsOf(moved, {})).toEqual([expect.stringContaining('1 segment (1 to deliver; 9 bytes)')])
    expect(holdsOf({ ...moved, registered_at: ago(0) }, undefined)).toHaveLength(1)
  })
})

describe('a drain is held', () => {
  test.each<[string, Partial<EndpointLag>, string]>([
    ['an open segment', { ...nothing, open_segments: 1 }, '1 segment (1 open; 0 bytes)'],
    ['sealed segments', { undelivered_segments: 2, blocked_by: 'no bucket' }, '2 segments (2 to deliver; 9 bytes): no bucket'],
    [
      'a parked segment',
      { ...nothing, parked_segments: 1, closed: true },
      '1 parked; 0 bytes): on the node, `inlet segments list`',
    ],
    ['a quarantined one', { ...nothing, quarantined_segments: 1, closed: true }, '1 quarantined; 0 bytes): on the node'],
    ['a log that is not closed', { ...nothing, closed: false }, 'has not closed the log yet'],
  ])('by %s', (_, report, reason) => {
    expect(holdsOf(aNode(), report)).toEqual([expect.stringContaining(reason)])
  })

  test('by a log that no report mentions', () => {
    expect(holdsOf(aNode(), undefined)).toEqual([expect.stringContaining('has not closed the log yet')])
  })

  test('by a node with an older configuration, even if its log is closed from an earlier drain', () => {
    const behind = aNode({ delivery: aProcess({ applied_epoch: 6 }) })
    expect(holdsOf(behind, { ...nothing, closed: true })).toEqual([expect.stringContaining('has not applied the deletion yet')])
  })

  test('by a node that is away, with the time of its last heartbeat and what it last reported', () => {
    const gone = aProcess({ applied_epoch: 6, last_seen_at: ago(90_000) })
    const [reason] = holdsOf(aNode({ ingest: gone, delivery: gone }), { ...nothing, open_segments: 1 })
    expect(reason).toContain(`delivery of node`)
    expect(reason).toContain(`since ${ago(90_000)}, and last reported 1 segment (1 open; 0 bytes): start it again`)
    expect(reason).toContain('?force=true')
    expect(holdsOf(aNode({ registered_at: ago(7200), ingest: null, delivery: null }), undefined)).toEqual([
      expect.stringContaining(`it registered at ${ago(7200)}`),
    ])
  })

  test('by a node whose ingest hangs with an open segment', () => {
    const hung = aNode({ ingest: aProcess({ applied_epoch: 6, last_seen_at: ago(20) }) })
    expect(holdsOf(hung, { ...nothing, open_segments: 1 })).toEqual([expect.stringContaining('ingest of node')])
  })

  test('by segments of a node that never received the endpoint, such as a disk moved there', () => {
    expect(holdsOf(aNode({ received: new Map() }), { ...nothing, quarantined_segments: 1 })).toHaveLength(1)
  })

  test('by more nodes than a status lists', () => {
    const reasonsOf = (length: number) =>
      listHoldReasons(
        listDrainHolds(
          endpoint,
          Array.from({ length }, () => aNode()),
          [],
          now,
        ),
      )
    expect(reasonsOf(25)).toHaveLength(21)
    expect(reasonsOf(25).at(-1)).toBe('5 more nodes hold the deletion')
    expect(reasonsOf(21).at(-1)).toBe('1 more node holds the deletion')
  })

  test('by every node that had it while nobody has told them to drain', () => {
    const active = { ...endpoint, draining_epoch: Number.POSITIVE_INFINITY }
    expect(holdsOf(aNode(), { ...nothing, closed: true }, active)).toHaveLength(2)
  })
})
