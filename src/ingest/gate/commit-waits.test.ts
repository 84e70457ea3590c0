import { afterEach, expect, test } from 'vitest'
import { createLogger } from '#lib/telemetry.ts'
import { deliveredLookupMax } from '#model/limits.ts'
import type { DeliveredFound, DeliveredLookup } from '#model/node-protocol.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { CommitWaits } from './commit-waits.ts'
import { gateLimits } from './limits.ts'

const logger = createLogger('test', 'silent')
const settle = () => new Promise((resolve) => setImmediate(resolve))
const running: CommitWaits[] = []
afterEach(() => Promise.all(running.splice(0).map((waits) => waits.stop())))

function opened(answer: (segments: DeliveredLookup['segments']) => DeliveredFound['delivered'] = () => []) {
  const clock = new ManualClock()
  const asked: DeliveredLookup['segments'][] = []
  const control = {
    async findDelivered(segments: DeliveredLookup['segments']) {
      asked.push(segments)
      return { delivered: answer(segments) }
    },
  }
  const waits = new CommitWaits({ nodeId: 'node', control, clock, logger })
  running.push(waits)
  const poll = async () => {
    clock.advance(gateLimits.commitPollMs)
    await settle()
  }
  return { waits, clock, asked, poll }
}

const segment = { accountId: 'account', endpointId: 'endpoint', seq: 3 }
const found = { endpoint_id: 'endpoint', node_id: 'node', seq: 3, commit_id: 'c', keys: ['k'] }

test('all who wait for a segment learn of its commit, and control is asked once', async () => {
  let delivered: DeliveredFound['delivered'] = []
  const { waits, asked, poll } = opened(() => delivered)
  const both = [waits.wait(segment, 60_000), waits.wait(segment, 60_000)]
  await poll()
  delivered = [found]
  await poll()
  for (const wait of both) expect(await wait.delivered).toEqual({ commitId: 'c', keys: ['k'] })
  await poll()
  expect(asked).toEqual([[expect.anything()], [expect.anything()]])
})

test('a wait ends at its time, and control is not asked any more', async () => {
  const { waits, clock, asked, poll } = opened()
  const wait = waits.wait(segment, 10)
  clock.advance(10)
  expect(await wait.delivered).toBe(undefined)
  await poll()
  expect(asked).toEqual([])
})

test('a wait that has ended, and ends again with its connection, ends no later one of its account', async () => {
  const { waits, clock, poll } = opened(() => [found])
  const earlier = waits.wait(segment, 10)
  clock.advance(10)
  const later = waits.wait(segment, 60_000)
  earlier.end()
  await poll()
  expect(await Promise.race([later.delivered, settle()])).toMatchObject({ commitId: 'c' })
})

test('an account that waits for many segments leaves room for others in each question', async () => {
  const { waits, asked, poll } = opened()
  for (let seq = 0; seq < 3 * deliveredLookupMax; seq += 1) waits.wait({ ...segment, seq }, 60_000)
  waits.wait({ ...segment, accountId: 'other', endpointId: 'theirs' }, 60_000)
  await poll()
  await poll()
  for (const segments of asked) {
    expect(segments).toHaveLength(deliveredLookupMax)
    expect(segments.filter(({ endpoint_id }) => endpoint_id === 'theirs')).toHaveLength(1)
  }
  await poll()
  await poll()
  expect(new Set(asked.flat().map(({ endpoint_id, seq }) => `${endpoint_id} ${seq}`)).size).toBe(3 * deliveredLookupMax + 1)
})

test('control that does not answer is asked again', async () => {
  let isAway = true
  const { waits, poll } = opened(() => {
    if (isAway) throw new Error('away')
    return [found]
  })
  const wait = waits.wait(segment, 60_000)
  await poll()
  isAway = false
  await poll()
  expect(await wait.delivered).toMatchObject({ commitId: 'c' })
})

test('a node that stops makes nobody wait, also those that come later', async () => {
  const { waits } = opened()
  const wait = waits.wait(segment, 60_000)
  await waits.stop()
  expect([await wait.delivered, await waits.wait(segment, 60_000).delivered]).toEqual([undefined, undefined])
})
