import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { must } from '#lib/assert.ts'
import { KiB, MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import { Sandbox } from '#lib/sandbox.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { SegmentError } from '#log/segment-error.ts'
import { printArtifactKind } from '#model/artifact.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import type { BoundView } from '#model/snapshot.ts'
import { aBoundView } from '../../../test/support/delivery-node.ts'
import { FaultyConversions } from '../../../test/support/faulty-conversions.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { queryRows } from '../../../test/support/parquet.ts'
import { until } from '../../../test/support/until.ts'
import { ConversionCrashed, RequiredViewFailed } from './build/failures.ts'
import { isTransient } from './build/transient-error.ts'
import { type ConversionPool, createConversionPool } from './conversion-pool.ts'
import { ConversionRunner } from './conversion-runner.ts'
import { ExpensiveViews } from './expensive-views.ts'
import { type BuildRequest, type BuiltArtifacts, SegmentBuild } from './segment-build.ts'
import { mergeFiles } from './unit-conversions.ts'

const clock = systemClock
const never = new AbortController().signal
const limitMs = 60_000
/** Stands still until a view is busy, so that no other step ends by its limit on a slow machine. */
const manual = new ManualClock()
/** The views that each step worked on. */
const steps: string[] = []
/** How long a step takes, if not no time. */
const tookMs = new Map<string, number>()
/** After which a process is killed, for each step. */
const limits: number[] = []
const faulty = new FaultyConversions(manual, (task, step) => {
  manual.advance(tookMs.get(steps.at(-1) ?? '') ?? 0)
  steps.push(step.views.map((position) => (task.kind === 'segment' ? task.views[position]?.name : '')).join())
})
const pool: ConversionPool = {
  pids: [],
  run: (task, { onReport, ...options }) =>
    faulty.run(task, {
      ...options,
      onReport: (step) => {
        const limit = onReport?.(step) ?? 0
        limits.push(limit)
        return limit
      },
    }),
  stop: async () => undefined,
}

let directory = ''
let scratch = ''
let wal = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-conversions-'))
  scratch = join(directory, 'scratch')
  wal = join(directory, 'wal')
})
afterEach(() => rm(directory, { recursive: true }))

/** Seals a segment of two lines. */
async function seal(records = '{"n":1}\n{"n":2}'): Promise<BuildRequest['segment'] & { readonly bytes: number }> {
  const log = new LocalLogWriter({ ...system, directory: wal, clock, logger: createLogger('wal', 'silent') })
  await log.start()
  log.configure('log', { segmentBytes: MiB, segmentMaxAgeMs: 3_600_000, seqAbove: -1 })
  await log.append('log', {
    ...{ layout: 'lines', receivedAtMicros: Date.now() * 1000, recordCount: 2 },
    ...{ envelope: encodeEnvelope({ protocol: 'http' }), payload: [Buffer.from(records)] },
  })
  await log.stop(AbortSignal.timeout(10_000))
  return must((await source().list())[0], 'a segment')
}

const source = () => new LocalSegmentSource({ ...system, directory: wal })
const runner = () =>
  new ConversionRunner({
    ...system,
    pool,
    segments: source(),
    scratch,
    viewTimeoutMs: () => limitMs,
    killAfterMs: 0,
    clock: manual,
  })

/** Attempts a build until it is finished. */
async function convert(
  views: readonly BoundView[],
  { signal = never, ...options }: Partial<BuildRequest> & { readonly signal?: AbortSignal } = {},
  expensive = new ExpensiveViews(),
  by = runner(),
): Promise<BuiltArtifacts> {
  steps.length = limits.length = 0
  const { bytes, ...segment } = options.segment === undefined ? await seal() : { bytes: 0, ...options.segment }
  const formats = ['parquet', 'parquet_views'] as const
  const request = { segment, bytes, outputFormats: formats, views, memoryBytes: 256 * MiB, ...options }
  const build = new SegmentBuild(by, expensive, request, 1)
  try {
    for (;;) {
      const built = await build.attempt({ count: 0, lend: async () => undefined }, signal)
      if (built !== undefined) return built
    }
  } catch (error) {
    await build.remove()
    throw error
  }
}

const named = (...names: readonly string[]) => names.map((name) => aBoundView({ name }))
const kinds = ({ files }: BuiltArtifacts) => files.map(({ kind, rows }) => `${printArtifactKind(kind)}: ${rows}`)
const errors = ({ views }: BuiltArtifacts) =>
  views.flatMap(({ view_name, failed, last_error }) => (failed === 0 ? [] : [{ view_name, failed, ...last_error }]))

async function viewIsBusy(step = 'busy'): Promise<void> {
  await until('the busy view', () => steps.at(-1) === step)
}

async function exceedLimit(): Promise<void> {
  await viewIsBusy()
  manual.advance(limitMs)
}

test('a view that holds the process fails alone at its time limit, and the records and other views are built', async () => {
  const converting = convert(named('numbers', 'busy', 'others'))
  await exceedLimit()
  const built = await converting
  expect(kinds(built)).toEqual(['parquet: 2', 'views/numbers/v1: 2', 'views/others/v1: 2'])
  expect(errors(built)).toEqual([
    {
      ...{ view_name: 'busy', failed: 2, code: 'too_expensive', at: expect.any(String) },
      message: 'its extraction took longer than 60 s',
    },
  ])
  expect(built.failed.map(({ view }) => view.name)).toEqual(['busy'])
  await built.remove()
  expect(await readdir(scratch)).toEqual([])
})

test('a view that was detached has less time, apart from the others', async () => {
  const views = [aBoundView({ name: 'busy', deactivated_at: '2100-01-01T00:00:00.000Z' }), ...named('numbers', 'others')]
  const converting = convert(views)
  await viewIsBusy()
  manual.advance(limitMs / 4)
  const built = await converting
  expect(kinds(built)).toEqual(['parquet: 2', 'views/numbers/v1: 2', 'views/others/v1: 2'])
  expect(errors(built)).toMatchObject([
    { view_name: 'busy', code: 'too_expensive', message: 'its extraction took longer than 15 s' },
  ])
})

test('a view that was too expensive is built apart from then on, so that others do not wait for both', async () => {
  const expensive = new ExpensiveViews()
  const views = named('slow', 'numbers')
  const first = convert(views, {}, expensive)
  await viewIsBusy('slow,numbers')
  manual.advance(2 * limitMs)
  await until('its own step', () => steps.slice(-2).join(' ') === 'numbers slow')
  manual.advance(limitMs)
  expect(errors(await first)).toMatchObject([{ view_name: 'slow', code: 'too_expensive' }])
  const second = convert(views, {}, expensive)
  await until('its own step, after the others', () => steps.slice(-3).join(' ') === 'numbers  slow')
  expect(steps).not.toContain('slow,numbers')
  manual.advance(limitMs)
  expect(kinds(await second)).toEqual(['parquet: 2', 'views/numbers/v1: 2'])
})

test('once all views have used their time together, those that are left fail, and those that were built are kept', async () => {
  const converting = convert(named('numbers', 'slow1', 'slow2', 'slow3', 'others'))
  await viewIsBusy('numbers,slow1,slow2,slow3,others')
  manual.advance(3 * limitMs)
  // All views are compiled before the first one is built.
  for (const step of ['numbers  slow1', 'slow3 others slow2', 'slow3 others slow3']) {
    await until(step, () => steps.slice(-3).join(' ') === step)
    manual.advance(limitMs)
  }
  const built = await converting
  expect(kinds(built)).toEqual(['parquet: 2', 'views/numbers/v1: 2'])
  expect(errors(built).map(({ view_name, code, message }) => `${view_name} ${code} ${message}`)).toEqual([
    'slow1 too_expensive its extraction took longer than 60 s',
    'slow2 too_expensive its extraction took longer than 60 s',
    'slow3 too_expensive the views of the segment took longer than 120 s together, and this one was not built by then',
    'others too_expensive the views of the segment took longer than 120 s together, and this one was not built by then',
  ])
  expect(steps.filter((step) => step === 'numbers')).toHaveLength(3)
})

test('the time of views in a shared database, where another one fails then, is not taken from their time together', async () => {
  const needsSecret = { name: 'h', type: 'VARCHAR', value: "hmac_sha256('not_there', s)" }
  const columns = [{ name: 's', type: 'VARCHAR', path: '$.s' }, needsSecret]
  const failing = aBoundView({ name: 'fails', definition: { columns } })
  const { bytes, ...segment } = await seal()
  // Each in two steps: it is compiled, and built.
  tookMs.set('late1', limitMs / 2 - 1).set('late2', limitMs / 2 - 1)
  const built = await convert([...named('late1', 'late2'), failing, ...named('numbers')], { segment, bytes })
  tookMs.clear()
  expect(limits.filter((_, index) => steps[index] === 'late1')).toEqual(Array(4).fill(limitMs))
  expect(errors(built)).toMatchObject([{ view_name: 'fails', code: 'view_failed', message: expect.stringMatching(/not_there/) }])
  expect(kinds(built)).toEqual(['parquet: 2', 'views/late1/v1: 2', 'views/late2/v1: 2', 'views/numbers/v1: 2'])
})

test('views that end the process fail alone, with the reason', async () => {
  const built = await convert(named('crash', 'greedy', 'numbers'))
  expect(kinds(built)).toEqual(['parquet: 2', 'views/numbers/v1: 2'])
  expect(errors(built)).toEqual([
    expect.objectContaining({ view_name: 'crash', code: 'view_failed', message: 'its extraction crashed (killed by SIGSEGV)' }),
    expect.objectContaining({
      view_name: 'greedy',
      code: 'too_expensive',
      message: expect.stringMatching(/memory or file size/),
    }),
  ])
  await built.remove()
})

test('a required view that holds the process fails the conversion, and no file is left', async () => {
  const views = [aBoundView({ name: 'numbers' }), aBoundView({ name: 'busy', is_required: true })]
  const converting = convert(views).catch((error: unknown) => error)
  await exceedLimit()
  const failure = await converting
  expect(failure).toBeInstanceOf(RequiredViewFailed)
  expect(failure).toMatchObject({ view: views[1], message: expect.stringContaining('its extraction took longer than 60 s') })
  expect(await readdir(scratch)).toEqual([])
})

test('an abort ends a process that is busy at once, and no file is left', async () => {
  const caller = new AbortController()
  const converting = convert(named('busy'), { signal: caller.signal })
  const refused = expect(converting).rejects.toThrow('shutting down')
  await viewIsBusy()
  caller.abort(new Error('shutting down'))
  await refused
  expect(await readdir(scratch)).toEqual([])
})

test('a process that dies over the records is no failure of a view', async () => {
  const failure = await convert(named('poison')).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(ConversionCrashed)
  expect(isTransient(failure)).toBe(false)
})

test.each(['outside', 'famine'])(
  'a process that is killed from outside is no failure of a view or of the records: %s',
  async (name) => {
    const failure = await convert(named(name, 'numbers')).catch((error: unknown) => error)
    expect(failure).toSatisfy(isTransient)
    expect(failure).toMatchObject({ message: expect.stringContaining('killed by SIGKILL') })
    expect(await readdir(scratch)).toEqual([])
  },
)

test('a merge fails if its process dies twice, not if it dies once or is killed from outside', async () => {
  await mkdir(scratch)
  const path = join(directory, 'source.parquet')
  await queryRows(`COPY (SELECT 1 AS n) TO '${path}' (FORMAT parquet)`)
  const merge = async (name: string) => {
    const made = await mkdtemp(join(directory, 'merged-'))
    const sources = [{ path, rows: 1 }]
    const kind = { type: 'view', name, version: 1 } as const
    return mergeFiles(runner(), { sources, kind, directory: made, memoryBytes: 256 * MiB, signal: never })
  }
  expect(await merge('fragile')).toMatchObject({ rows: 1 })
  await expect(merge('poison')).rejects.toThrow(ConversionCrashed)
  expect(await merge('famine').catch((error: unknown) => error)).toSatisfy(isTransient)
})

test('errors of a process keep their meaning', async () => {
  const { bytes, ...segment } = await seal()
  const failureOf = (options: Partial<BuildRequest> = {}) =>
    convert(named('numbers'), { segment, bytes, ...options }).catch((error: unknown) => error)
  expect(await failureOf({ segment: { ...segment, seq: 7 } })).toSatisfy(isTransient)
  const [log = ''] = await readdir(wal)
  const path = join(
    wal,
    log,
    must(
      (await readdir(join(wal, log))).find((name) => name.endsWith('.wal')),
      'the file',
    ),
  )
  await writeFile(path, 'not a segment')
  const damaged = await failureOf()
  expect(damaged).toBeInstanceOf(SegmentError)
  expect(damaged).toMatchObject({
    path,
    problem: 'foreign',
    message: expect.stringMatching(new RegExp(`^${path}: is not a segment`)),
  })
  await rm(path)
  await mkdir(path)
  expect(await failureOf()).toSatisfy(isTransient)
})

test('a node that cannot convert says so', async () => {
  const runner = new ConversionRunner({ ...system, pool, segments: source(), scratch })
  await runner.probe(new AbortController().signal)
  expect(await readdir(scratch)).toEqual([])
  await rm(scratch, { recursive: true })
  await writeFile(scratch, 'not a directory')
  const failure = await runner.probe(new AbortController().signal).catch((error: unknown) => error)
  expect(failure).toSatisfy(isTransient)
})

test('a process that cannot start is the fault of the node', async () => {
  const broken = createConversionPool({ clock, commandLine: () => ['/bin/sh', '-c', 'exit 126'] })
  const failure = await new ConversionRunner({ ...system, pool: broken, segments: source(), scratch })
    .probe(new AbortController().signal)
    .catch((error: unknown) => error)
  expect(failure).toMatchObject({ cause: { message: 'the conversion process ended with code 126' } })
  expect(failure).toSatisfy(isTransient)
})

test('a file that is larger than a process may write is the fault of the segment, not of the node', async () => {
  const sandbox = await Sandbox.probe()
  if (sandbox.missing.length > 0) return
  const commandLine = sandbox.confine({ memoryBytes: 512 * MiB, fileBytes: KiB })
  const confined = createConversionPool({ clock, commandLine })
  const { bytes, ...segment } = await seal()
  const by = new ConversionRunner({ ...system, pool: confined, segments: source(), scratch })
  const failure = await convert([], { segment, bytes, outputFormats: ['parquet'] }, new ExpensiveViews(), by).catch(
    (error: unknown) => error,
  )
  await confined.stop()
  expect(failure).toMatchObject({ message: 'a file is larger than a process may write' })
  expect(isTransient(failure)).toBe(false)
})
