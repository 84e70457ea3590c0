import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { must } from '#lib/assert.ts'
import { MiB } from '#lib/bytes.ts'
import { isoTimestamp } from '#lib/clock.ts'
import { FairSlots } from '#lib/fair-slots.ts'
import { systemFiles } from '#lib/files.ts'
import type { SlotPriority } from '#lib/slot-schedule.ts'
import { system } from '#lib/system.ts'
import { ThrottledWarnings } from '#lib/throttled-warnings.ts'
import type { SegmentReader, SegmentSource } from '#log/segment-source.ts'
import { newId } from '#model/id.ts'
import type { BoundView, SnapshotEndpoint } from '#model/snapshot.ts'
import { aBoundView, aDestination, anEndpointTo } from '../../../test/support/delivery-node.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { type RunningTask, ScriptedConversions } from '../../../test/support/scripted-conversions.ts'
import { until } from '../../../test/support/until.ts'
import type { DeliveryRun } from '../segments/delivery-run.ts'
import { Endpoints } from '../segments/endpoints.ts'
import { deliveryLimits } from '../segments/limits.ts'
import { ParkedSegments } from '../segments/parked-segments.ts'
import { ConfigurationCheck } from './configuration-check.ts'
import { ConversionRunner } from './conversion-runner.ts'
import { Converter } from './converter.ts'
import { conversionLimits } from './limits.ts'
import type { Failure } from './worker/protocol.ts'

/** Its segments are opened by nobody. */
const source = { location: '', filesOf: () => [] }

let scratch = ''
let stop = new AbortController()
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'inlet-converter-'))
  stop = new AbortController()
})
afterEach(() => rm(scratch, { recursive: true }))

const soon = async () => {
  for (let times = 0; times < 20; times += 1) await setImmediate()
}

/** Creates a converter whose processes end as the test says. Time stands still until the test lets it pass. */
function aConverter(listed: readonly SnapshotEndpoint[], slots = 4) {
  const clock = new ManualClock()
  const endpoints = new Endpoints()
  let epoch = 0
  const configure = (...endpoints_: readonly SnapshotEndpoint[]) => {
    epoch += 1
    endpoints.update({ epoch, endpoints: [...endpoints_] })
  }
  configure(...listed)
  const lines: { readonly msg: string }[] = []
  const logger = pino<'notice'>(
    { level: 'info', customLevels: { notice: 35 } },
    { write: (line: string) => void lines.push(JSON.parse(line)) },
  )
  const builds = new FairSlots({ capacity: slots, clock })
  const priorities: SlotPriority[] = []
  const acquire = builds.acquire.bind(builds)
  builds.acquire = (owner, use) => {
    priorities.push(use.priority ?? 'normal')
    return acquire(owner, use)
  }
  const segments = {
    has: async () => true,
    async open(header): Promise<SegmentReader> {
      return {
        ...{
          header,
          footer: { records: 1, firstReceivedAtMicros: 0, sealedAtMicros: clock.now() * 1000, damagedRecords: 0 },
          bytes: 100,
          framesEnd: 100,
        },
        async *frames() {},
        async *content() {},
        close: async () => undefined,
      }
    },
  } as Partial<SegmentSource> as SegmentSource
  const pool = new ScriptedConversions()
  const converter = new Converter({
    ...{ nodeId: newId(), memoryBytes: 64 * MiB, builds, endpoints, segments, clock, logger },
    runner: new ConversionRunner({ ...system, pool, segments: source, scratch, clock }),
    parked: new ParkedSegments({ directory: join(scratch, 'parked'), files: systemFiles, clock }),
    configuration: new ConfigurationCheck({ ...system, isCurrent: async () => true, endpoints, clock, logger }),
    warnings: new ThrottledWarnings({ clock, logger, intervalMs: 60_000 }),
    random: { fraction: () => 0.5 },
  })
  let seq = 0
  const convert = (logName: string, turn: Promise<unknown> = Promise.resolve()) => {
    const segment = { logName, incarnation: 'abcdefghij', seq: seq++ }
    const reports: (readonly [string | null, unknown?])[] = []
    const run: DeliveryRun = {
      ...{ segment, mayBeCommitted: false, turn, signal: stop.signal },
      report: (...report) => void reports.push(report),
    }
    const converted = converter.readFacts(run).then((facts) => converter.convert(facts, run))
    let hasEnded = false
    converted.then(
      () => (hasEnded = true),
      () => (hasEnded = true),
    )
    const task = (): RunningTask | undefined => pool.running.find(({ task }) => task.segment.seq === segment.seq)
    const running = async () => {
      await until('the attempt', () => task() !== undefined)
      return must(task(), 'a task')
    }
    /** Ends an attempt, and waits for what follows it. */
    const end = async (end: (attempt: RunningTask) => void) => {
      const attempt = await running()
      const before = reports.length
      end(attempt)
      await until('what follows', () => reports.length > before || hasEnded)
      await soon()
    }
    const fail = (failure: Failure = { kind: 'required view', view: 0, reason: 'too slow' }) =>
      end((attempt) => attempt.end({ reply: { failure } }))
    return { converted, reports, task, running, end, fail, succeed: async () => (await running()).succeed() }
  }
  const pass = async (ms: number = deliveryLimits.retryDelayMsMax) => {
    clock.advance(ms)
    await soon()
  }
  const parked = () => readdir(join(scratch, 'parked')).catch(() => [])
  return { builds, clock, configure, convert, pass, pool, parked, priorities, lines, messages: () => lines.map(({ msg }) => msg) }
}

const viewOf = (change: Partial<BoundView> = {}) => aBoundView({ name: 'events', version: 3, is_required: true, ...change })
const endpointOf = (...views: readonly BoundView[]) =>
  anEndpointTo(aDestination(), { output_formats: ['parquet', 'parquet_views'], views: [...views] })

test('however long the conversions of one account take, another account gets a slot', async () => {
  const [hog, victim] = [newId(), newId()]
  const ofHog = Array.from({ length: 3 }, () => anEndpointTo(aDestination(), { account_id: hog }))
  const ofVictim = anEndpointTo(aDestination(), { account_id: victim })
  const { convert, pool } = aConverter([...ofHog, ofVictim], 2)
  for (const { id } of ofHog) convert(id)
  await until('conversions in all slots', () => pool.running.length === 2)
  const other = convert(ofVictim.id)
  await other.succeed()
  expect((await other.converted).files).toHaveLength(1)
  await until('a conversion in the slot that is free again', () => pool.running.length === 2)
  expect(pool.started).toBe(4)
  stop.abort(new Error('the process stops'))
})

test('detaching a view ends a conversion that contains it, and other changes do not', async () => {
  const view = aBoundView()
  const endpoint = endpointOf(view)
  const { clock, configure, convert, pool } = aConverter([endpoint])
  const { converted, running, succeed } = convert(endpoint.id)
  await running()
  configure(endpoint, anEndpointTo(aDestination()))
  configure({ ...endpoint, views: [view, aBoundView({ name: 'other' })] })
  await soon()
  expect(pool.started).toBe(1)
  configure({ ...endpoint, views: [{ ...view, deactivated_at: isoTimestamp(clock.now() + 1_000) }] })
  await until('the next attempt', () => pool.started === 2)
  await succeed()
  expect((await converted).files).toHaveLength(2)
})

test('a failure of a required view is reported and logged at once, once for a log, and its end once', async () => {
  const view = viewOf()
  const endpoint = endpointOf(view)
  const { clock, convert, pass, messages, lines } = aConverter([endpoint])
  const first = convert(endpoint.id)
  await first.running()
  const second = convert(endpoint.id, new Promise(() => undefined))
  await second.running()
  const since = isoTimestamp(clock.now())
  const report = [
    'the required view events v3 failed: too slow; delivery waits until it succeeds or is detached',
    { view_id: view.view_id, since },
  ]
  await first.fail()
  await second.fail()
  expect(lines).toMatchObject([
    { msg: 'required view failed; its log waits', endpoint: endpoint.id, view: 'events', version: 3, reason: report[0] },
  ])
  expect([first.reports.at(-1), second.reports.at(-1)]).toEqual([report, report])
  for (let times = 0; times < 3; times += 1) {
    await pass()
    await first.fail()
  }
  expect(first.reports.at(-1)).toEqual(report)
  expect(messages()).toHaveLength(1)
  stop.abort(new Error('the process stops'))
  await expect(first.converted).rejects.toThrow('the process stops')
  expect((await readdir(scratch)).filter((name) => name.startsWith('build-'))).toEqual([])
})

test('retries of a required view back off, with low priority until the views of the endpoint change', async () => {
  const view = viewOf()
  const endpoint = endpointOf(view)
  const { configure, convert, pass, pool, priorities, messages } = aConverter([endpoint])
  const { converted, fail, succeed } = convert(endpoint.id)
  await fail()
  await pass((deliveryLimits.retryDelayMsMin * 3) / 4 - 1)
  expect(pool.started).toBe(1)
  await pass(1)
  await fail()
  // Another endpoint changed.
  configure(endpoint, anEndpointTo(aDestination()))
  await soon()
  expect(priorities).toEqual(['normal', 'low'])
  await pass()
  await fail()
  configure({ ...endpoint, views: [{ ...view, is_required: false }] })
  await succeed()
  await converted
  expect(priorities).toEqual(['normal', 'low', 'low', 'normal'])
  expect(messages()).toEqual(['required view failed; its log waits', 'required view no longer fails'])
})

test('a retry that waits for a slot ends when the views of the endpoint change, and the next one does not wait', async () => {
  const view = viewOf()
  const endpoint = endpointOf(view)
  const { builds, configure, convert, pass, priorities } = aConverter([endpoint], 1)
  const { fail, running } = convert(endpoint.id)
  await fail()
  const other = { tenant: 'other', member: 'other', weight: 1 }
  const taken = await builds.acquire(other, { signal: stop.signal })
  await pass()
  configure(endpoint, anEndpointTo(aDestination()))
  await soon()
  expect(priorities).toEqual(['normal', 'normal', 'low'])
  configure({ ...endpoint, views: [{ ...view, deactivated_at: '2100-01-01T00:00:00.000Z' }] })
  await until('the next attempt', () => priorities.length === 4)
  expect(priorities.at(-1)).toBe('normal')
  taken[Symbol.dispose]()
  await running()
  stop.abort(new Error('the process stops'))
})

test('a retry of a required view gives its slot to a segment that wants it', async () => {
  const endpoint = endpointOf(viewOf())
  const { builds, convert, pass, pool } = aConverter([endpoint], 1)
  const { fail, running, task } = convert(endpoint.id)
  await fail()
  await pass()
  await running()
  const taken = await builds.acquire({ tenant: 'other', member: 'other', weight: 1 }, { signal: stop.signal })
  await soon()
  expect([task(), pool.started]).toEqual([undefined, 2])
  taken[Symbol.dispose]()
  await running()
  stop.abort(new Error('the process stops'))
})

test('a long attempt at a required view is followed by a long rest', async () => {
  const endpoint = endpointOf(viewOf())
  const { clock, convert, pass, pool } = aConverter([endpoint])
  const { fail, running } = convert(endpoint.id)
  await running()
  clock.advance(60_000)
  await fail()
  await pass(60_000 * conversionLimits.heldRestFactor - 1)
  expect(pool.started).toBe(1)
  await pass(1)
  await until('the next attempt', () => pool.started === 2)
  stop.abort(new Error('the process stops'))
})

test('while a required view fails, only the first segment of its log is tried again', async () => {
  const endpoint = endpointOf(viewOf())
  const { convert, pass, pool, messages, priorities } = aConverter([endpoint])
  const turns = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
  const first = convert(endpoint.id)
  await first.running()
  const second = convert(endpoint.id, turns[0].promise)
  await second.fail()
  await first.fail()
  const third = convert(endpoint.id, turns[1].promise)
  await pass()
  await first.fail()
  expect(pool.started).toBe(3)
  await pass()
  await first.succeed()
  await first.converted
  expect(pool.started).toBe(4)
  turns[0].resolve()
  await second.succeed()
  await second.converted
  turns[1].resolve()
  await third.succeed()
  await third.converted
  expect(priorities).toEqual(['normal', 'normal', 'low', 'low', 'normal', 'normal'])
  expect(messages()).toEqual(['required view failed; its log waits', 'required view no longer fails'])
})
