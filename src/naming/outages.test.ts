import { expect, test } from 'vitest'
import { isoTimestamp } from '#lib/clock.ts'
import type { NodeFacts } from '#store/nodes/nodes.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { nodeFacts, processFacts } from '../../test/support/node-facts.ts'
import { ControlOutages, discountControlOutage } from './outages.ts'

const clock = new ManualClock()
const start = clock.now()
const at = (seconds: number) => isoTimestamp(start + seconds * 1000)

const aNode = (last_seen_at: string) => nodeFacts({ ingest: processFacts(last_seen_at) })
const lastSeen = (node: NodeFacts, outages: ControlOutages) =>
  discountControlOutage([node], outages.last)[0]?.ingest?.last_seen_at

test('a node is not silent for as long as control was down, but one that was silent before stays so', () => {
  const outages = new ControlOutages(clock, start - 60_000)
  expect(lastSeen(aNode(at(-61)), outages)).toBe(at(-1))
  expect(lastSeen(aNode(at(-3_600)), outages)).toBe(at(-3_540))
  expect(lastSeen(aNode(at(1)), outages)).toBe(at(1))
  expect(discountControlOutage([aNode(at(-61))], outages.last)[0]).toMatchObject({
    ingest: { healthy_at: at(-1) },
    delivery: null,
  })
})

test('before the first heartbeat there is no outage', () => {
  expect(new ControlOutages(clock, null).last).toEqual({ fromMs: start, toMs: start })
})

test('the time without the database counts, while it lasts and after it', () => {
  const moving = new ManualClock(start)
  const outages = new ControlOutages(moving, null)
  moving.advance(4_000)
  outages.noteContact()
  expect(lastSeen(aNode(at(0)), outages)).toBe(at(0))
  moving.advance(30_000)
  expect(lastSeen(aNode(at(3)), outages)).toBe(at(33))
  outages.noteContact()
  moving.advance(1_000)
  outages.noteContact()
  expect(lastSeen(aNode(at(3)), outages)).toBe(at(33))
  expect(lastSeen(aNode(at(34)), outages)).toBe(at(34))
})
