import { expect, test } from 'vitest'
import { isoTimestamp } from '#lib/clock.ts'
import { newId } from '#model/id.ts'
import type { EndpointLag } from '#model/node-protocol.ts'
import type { ProcessFacts } from '#store/nodes/nodes.ts'
import { aLag } from '../../../test/support/lags.ts'
import { nodeFacts, processFacts } from '../../../test/support/node-facts.ts'
import { settlementLimits } from '../limits.ts'
import type { NodeHistory } from './drain.ts'
import { isSettled } from './settlement.ts'

const now = Date.parse('2026-11-20T08:00:00.000Z')
const ago = (ms: number) => isoTimestamp(now - ms)
const detachedMs = 3_600_000
const binding = {
  endpoint_id: newId(),
  region: 'loc',
  since_epoch: 5,
  deactivated_at: now - detachedMs,
  unsettled_epoch: 7,
}
const aProcess = (more: Partial<ProcessFacts> = {}) => processFacts(ago(1_000), { applied_epoch: 7, ...more })
const aNode = (more: Partial<NodeHistory> = {}): NodeHistory => ({
  ...nodeFacts({ ingest: aProcess(), delivery: aProcess() }),
  received: new Map([['loc', 6]]),
  ...more,
})

/** Whether the binding is settled, with this node and its report beside a node that holds nothing. */
function settles(node: NodeHistory, report?: Partial<EndpointLag>, of = binding): boolean {
  const lags =
    report === undefined ? [] : [{ ...aLag(of.endpoint_id, report), node_id: node.id, node_name: null, reported_at: ago(1_000) }]
  return isSettled(of, [aNode(), node], lags, now)
}
const held = { undelivered_segments: 1, oldest_sealed_at: ago(detachedMs + 1) }
const empty = { undelivered_segments: 0, oldest_sealed_at: null }

test.each<[string, boolean]>([
  ['there is no node', isSettled(binding, [], [], now)],
  ['every node holds nothing', settles(aNode())],
  [
    'a node only has an open segment, or quarantined ones',
    settles(aNode(), { ...empty, open_segments: 1, quarantined_segments: 2 }),
  ],
  ['a node only holds segments that were sealed later', settles(aNode(), { ...held, oldest_sealed_at: ago(detachedMs) })],
  ['a node never received the endpoint', settles(aNode({ received: new Map([['loc', 4]]), delivery: null }))],
  [
    'a node that moved to another region reports nothing',
    settles(aNode({ region: 'fra', delivery: aProcess({ applied_epoch: 3 }) })),
  ],
  [
    'a node has been silent for long',
    settles(aNode({ delivery: aProcess({ last_seen_at: ago(settlementLimits.silentMs + 1) }) }), held),
  ],
])('a binding is settled once %s', (_, settled) => expect(settled).toBe(true))

test.each<[string, boolean]>([
  ['it was detached just now', settles(aNode(), empty, { ...binding, deactivated_at: now - settlementLimits.graceMs + 1 })],
  ['a node holds a segment that was sealed before', settles(aNode(), held)],
  ['a node holds a parked one', settles(aNode(), { ...held, undelivered_segments: 0, parked_segments: 1 })],
  ['a node holds one of an unknown time', settles(aNode(), { ...held, oldest_sealed_at: null })],
  ['a node has not applied the detachment', settles(aNode({ delivery: aProcess({ applied_epoch: 6 }) }))],
  ['a node has never reported', settles(aNode({ delivery: null }))],
  ['a node that moved has not reported since', settles(aNode({ region: 'fra', registered_at: ago(0) }))],
])('a binding is not settled while %s', (_, settled) => expect(settled).toBe(false))
