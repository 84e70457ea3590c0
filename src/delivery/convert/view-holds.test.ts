import { setImmediate } from 'node:timers/promises'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { isoTimestamp } from '#lib/clock.ts'
import type { SlotPriority } from '#lib/slot-schedule.ts'
import type { BoundView, SnapshotEndpoint } from '#model/snapshot.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import type { DeliveryRun } from '../segments/delivery-run.ts'
import { Endpoints } from '../segments/endpoints.ts'
import { deliveryLimits } from '../segments/limits.ts'
import { RequiredViewFailed } from './build/failures.ts'
import { ViewHolds } from './view-holds.ts'

const view = { binding_id: 'b', view_id: 'v', name: 'events', version: 3, is_required: true } as BoundView

/** Creates the holds of one log. Each segment that is delivered lists its attempts, and ends them as the test says. */
function furnished() {
  const clock = new ManualClock()
  const endpoints = new Endpoints()
  const lines: { readonly msg: string }[] = []
  const logger = pino<'notice'>(
    { level: 'info', customLevels: { notice: 35 } },
    { write: (line: string) => void lines.push(JSON.parse(line)) },
  )
  let epoch = 0
  const configure = (...views: readonly BoundView[]) => {
    epoch += 1
    const [log, other] = ['log', `other ${epoch}`].map((id) => ({
      id,
      destination: null,
      output_formats: ['parquet_views'],
      views,
    }))
    endpoints.update({ epoch, endpoints: [log, { ...other, views: [] }] as unknown as SnapshotEndpoint[] })
  }
  configure(view)
  const holds = new ViewHolds({ endpoints, clock, logger })
  const stop = new AbortController()
  const deliver = (id: string, turn: Promise<unknown> = Promise.resolve()) => {
    const attempts: {
      readonly priority: SlotPriority
      readonly signal: AbortSignal
      readonly succeed: (value: string) => void
      readonly fail: (error: Error) => void
    }[] = []
    const reports: unknown[] = []
    const run: DeliveryRun = {
      ...{ segment: { logName: 'log', incarnation: 'abcdefghij', seq: 0 }, mayBeCommitted: false, turn, signal: stop.signal },
      report: (...report) => void reports.push(report),
    }
    const converted = holds.convert(id, run, (priority, signal) => {
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      attempts.push({ priority, signal, succeed: resolve, fail: reject })
      return promise
    })
    converted.catch(() => undefined)
    const fail = async (error: Error = new RequiredViewFailed(view, new Error('too slow'))) => {
      attempts.at(-1)?.fail(error)
      await setImmediate()
    }
    return { converted, attempts, reports, fail, priorities: () => attempts.map(({ priority }) => priority) }
  }
  const pass = async (ms: number = deliveryLimits.retryDelayMsMax) => {
    clock.advance(ms)
    await setImmediate()
  }
  return { clock, configure, deliver, pass, stop, messages: () => lines.map(({ msg }) => msg), lines }
}

test('a failure is reported and logged at once, once for a log, and its end once', async () => {
  const { clock, deliver, pass, messages, lines } = furnished()
  const first = deliver('one')
  const second = deliver('two', new Promise(() => undefined))
  const since = isoTimestamp(clock.now())
  await first.fail()
  await second.fail()
  expect(messages()).toEqual(['required view failed; its log waits'])
  expect(lines).toMatchObject([
    { segment: 'one', endpoint: 'log', view: 'events', version: 3, reason: expect.stringContaining('too slow') },
  ])
  const reason = 'the required view events v3 failed: too slow; delivery waits until it succeeds or is detached'
  expect([first.reports, second.reports]).toEqual([[[reason, { view_id: 'v', since }]], [[reason, { view_id: 'v', since }]]])
  for (let times = 0; times < 3; times += 1) {
    await pass()
    await first.fail()
  }
  expect(first.attempts).toHaveLength(4)
  expect(first.reports.at(-1)).toEqual([reason, { view_id: 'v', since }])
  expect(messages()).toHaveLength(1)
})

test('retries back off, with low priority until the views of the endpoint change', async () => {
  const { configure, deliver, pass, messages } = furnished()
  const { attempts, converted, fail, priorities } = deliver('one')
  await fail()
  await pass(deliveryLimits.retryDelayMsMin / 2 - 1)
  expect(attempts).toHaveLength(1)
  await pass(deliveryLimits.retryDelayMsMin)
  await fail()
  // Another endpoint changed.
  configure(view)
  await setImmediate()
  expect(priorities()).toEqual(['normal', 'low'])
  await pass()
  await fail()
  configure({ ...view, is_required: false })
  await setImmediate()
  expect(priorities()).toEqual(['normal', 'low', 'low', 'normal'])
  attempts.at(-1)?.succeed('built')
  expect(await converted).toBe('built')
  expect(messages()).toEqual(['required view failed; its log waits', 'required view no longer fails'])
})

test('a retry that waits for a slot ends when the views of the endpoint change, and the next one does not wait', async () => {
  const { configure, deliver, pass } = furnished()
  const { attempts, fail, priorities } = deliver('one')
  await fail()
  await pass()
  configure(view)
  await setImmediate()
  expect(attempts.at(-1)?.signal.aborted).toBe(false)
  configure({ ...view, deactivated_at: '2026-11-20T00:00:00.000Z' })
  await setImmediate()
  const { signal } = attempts.at(-1) ?? {}
  expect(signal?.aborted).toBe(true)
  await fail(signal?.reason)
  expect(priorities()).toEqual(['normal', 'low', 'normal'])
})

test('a long attempt is followed by a long rest', async () => {
  const { clock, deliver, pass } = furnished()
  const { attempts, fail } = deliver('one')
  await setImmediate()
  clock.advance(60_000)
  await fail()
  await pass(60_000 * deliveryLimits.heldRestFactor - 1)
  expect(attempts).toHaveLength(1)
  await pass(1)
  expect(attempts).toHaveLength(2)
})

test('only the first segment of a log is tried again', async () => {
  const { deliver, pass, messages } = furnished()
  const turns = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
  const first = deliver('one')
  const second = deliver('two', turns[0].promise)
  await second.fail()
  await first.fail()
  const third = deliver('three', turns[1].promise)
  await pass()
  await first.fail()
  expect([first, second, third].map(({ attempts }) => attempts.length)).toEqual([2, 1, 0])
  await pass()
  first.attempts.at(-1)?.succeed('built')
  await first.converted
  turns[0].resolve()
  await setImmediate()
  expect(second.priorities()).toEqual(['normal', 'normal'])
  second.attempts.at(-1)?.succeed('built')
  await second.converted
  turns[1].resolve()
  await setImmediate()
  expect(third.priorities()).toEqual(['normal'])
  expect(messages()).toEqual(['required view failed; its log waits', 'required view no longer fails'])
})

test('other failures, and the end of the process, are thrown', async () => {
  const { deliver, stop } = furnished()
  const first = deliver('one')
  await first.fail()
  const second = deliver('two')
  await setImmediate()
  await second.fail(new Error('damaged'))
  await expect(second.converted).rejects.toThrow('damaged')
  stop.abort(new Error('the process stops'))
  await expect(first.converted).rejects.toThrow('the process stops')
})
