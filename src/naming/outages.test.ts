import { expect, test } from 'vitest'
import { isoTimestamp } from '#lib/clock.ts'
import type { NodeFacts } from '#store/nodes/nodes.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { nodeFacts, processFacts } from '../../test/support/node-facts.ts'
import { ControlOutages, discountControlOutages } from './outages.ts'
import { hasRecentHeartbeat } from './serving-nodes.ts'

const clock = new ManualClock()
const start = clock.now()
const at = (seconds: number) => isoTimestamp(start + seconds * 1000)

const aNode = (last_seen_at: string) => nodeFacts({ ingest: processFacts(last_seen_at) })
const lastSeen = (node: NodeFacts, outages: ControlOutages) =>
  discountControlOutages([node], outages.recent)[0]?.ingest?.last_seen_at

test('a node is not silent for as long as control was down, but one that was silent before stays so', () => {
  const outages = new ControlOutages(clock, start - 60_000)
  expect(lastSeen(aNode(at(-61)), outages)).toBe(at(-1))
  expect(lastSeen(aNode(at(-3_600)), outages)).toBe(at(-3_540))
  expect(lastSeen(aNode(at(1)), outages)).toBe(at(1))
  expect(discountControlOutages([aNode(at(-61))], outages.recent)[0]).toMatchObject({
    ingest: { healthy_at: at(-1) },
    delivery: null,
  })
})

test('before the first heartbeat there is no outage', () => {
  expect(new ControlOutages(clock, null).recent).toEqual([{ fromMs: start, toMs: start }])
})

test('the time without the database counts, while it lasts and after it', () => {
  const moving = new ManualClock(start)
  const outages = new ControlOutages(moving, null)
  moving.advance(1_000)
  outages.noteContact()
  expect(lastSeen(aNode(at(0)), outages)).toBe(at(0))
  moving.advance(30_000)
  expect(lastSeen(aNode(at(0)), outages)).toBe(at(30))
  outages.noteContact()
  moving.advance(1_000)
  outages.noteContact()
  expect(lastSeen(aNode(at(0)), outages)).toBe(at(30))
  expect(lastSeen(aNode(at(31)), outages)).toBe(at(31))
})

test('an outage of three seconds makes no node silent, and of several each counts', () => {
  const moving = new ManualClock(start)
  const outages = new ControlOutages(moving, null)
  const node = aNode(at(0))
  const isSilent = () =>
    discountControlOutages([node], outages.recent).every(({ ingest }) => !hasRecentHeartbeat(ingest, moving.now()))
  // Half a second passes between two of them; a heartbeat that was under way when the database came back arrives only later.
  for (const awayMs of [3_000, 1_500, 3_900]) {
    moving.advance(500)
    outages.noteContact()
    moving.advance(awayMs)
    expect(isSilent()).toBe(false)
    outages.noteContact()
  }
  moving.advance(500)
  outages.noteContact()
  expect(lastSeen(node, outages)).toBe(isoTimestamp(start + 8_400))
  expect(isSilent()).toBe(false)
  // A node that stays away is silent seven seconds later, of which two had passed.
  for (let half = 0; half < 11; half += 1) {
    moving.advance(500)
    outages.noteContact()
  }
  expect(isSilent()).toBe(true)
})
