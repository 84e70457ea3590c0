import { readdirSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { queryParquet } from '#duckdb/query-parquet.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import { Sandbox } from '#lib/sandbox.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { DefinedPreview, PreviewResult } from '#model/preview.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { until } from '../../test/support/until.ts'
import { PreviewWorkers } from './preview-workers.ts'

const columns = [{ name: 'a', type: 'VARCHAR', path: '$.a' }]
const quick: DefinedPreview = { definition: { columns }, samples: ['{"a":"x"}'] }
const runaway: DefinedPreview = {
  definition: { columns, filters: [{ condition: "regexp_matches(a, '(x?){1000}y')" }] },
  samples: Array.from({ length: 100 }, () => JSON.stringify({ a: 'x'.repeat(64_000) })),
}
const never = new AbortController().signal

/** A clock whose timers run only when a test says so. */
class PausedClock extends ManualClock {
  limits = 0
  override setTimer(callback: () => void, delayMs: number): () => void {
    if (delayMs === 1_250) this.limits += 1
    return super.setTimer(callback, delayMs)
  }
  end(): void {
    this.advance(1_250)
  }
}

/** With a limit that a preview does not reach on a busy machine, where the start of a process alone may take seconds. */
const newWorkers = (timeoutMs = 60_000, clock: Clock = systemClock) =>
  new PreviewWorkers({ clock, logger: createLogger('test', 'silent'), timeoutMs })

/** The preview processes that this process started. */
function children(): readonly number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map(Number).filter((pid) => {
    try {
      const isChild = readFileSync(`/proc/${pid}/status`, 'utf8').includes(`\nPPid:\t${process.pid}\n`)
      return isChild && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('preview-worker')
    } catch {
      return false
    }
  })
}

let workers = newWorkers()
beforeEach(() => {
  workers = newWorkers()
})
afterEach(() => workers.stop())

const bytesOf = (body: unknown) => Buffer.from(JSON.stringify(body))

async function preview(body: DefinedPreview, account: string, signal: AbortSignal): Promise<PreviewResult> {
  return JSON.parse(
    Buffer.from(await workers.preview(bytesOf(body), { values: {}, areStandIns: false }, account, signal)).toString(),
  )
}

test('runs many previews at once', { timeout: 60_000 }, async () => {
  // On this clock no preview waits too long.
  workers = newWorkers(undefined, new ManualClock())
  const results = await Promise.all(Array.from({ length: 10 }, () => preview(quick, 'a', never)))
  expect(results.map(({ rows }) => rows)).toEqual(results.map(() => [{ a: 'x' }]))
})

test('no process runs before the first preview, nor a minute after the last one', { timeout: 60_000 }, async () => {
  const clock = new ManualClock()
  workers = newWorkers(undefined, clock)
  await workers.start()
  expect(workers.pids).toEqual([])
  await preview(quick, 'a', never)
  expect(workers.pids).toHaveLength(1)
  clock.advance(60_000)
  await until('the process to leave', () => workers.pids.length === 0)
})

test('kills a runaway preview at the limit and frees its slot', async () => {
  workers = newWorkers(300)
  const results = await Promise.all(Array.from({ length: 4 }, () => preview(runaway, 'a', never)))
  for (const { success, errors, executionTimeMs } of results) {
    expect({ success, errors }).toMatchObject({ success: false, errors: [{ code: 'timeout' }] })
    expect(executionTimeMs).toBeGreaterThanOrEqual(300)
  }
  await workers.stop()
  workers = newWorkers()
  expect(await preview(quick, 'a', never)).toMatchObject({ success: true })
})

test('knows how many samples a killed preview had', async () => {
  const clock = new PausedClock()
  workers = newWorkers(1_000, clock)
  const result = preview(runaway, 'a', never)
  // The time limit is set again when the process reports the number of samples.
  await until('the process to have read the samples', () => clock.limits === 2)
  clock.end()
  expect(await result).toMatchObject({ errors: [{ code: 'timeout' }], counts: { processed: 100, failed: 100 } })
})

test('ends a preview whose caller has gone', async () => {
  const reasons = Array.from({ length: 4 }, () => new Error('gone'))
  const ended = reasons.map(async (reason) => {
    const client = new AbortController()
    const run = preview(runaway, 'a', client.signal)
    client.abort(reason)
    await expect(run).rejects.toBe(reason)
  })
  await Promise.all(ended)
  expect(await preview(quick, 'a', never)).toMatchObject({ success: true })
})

test.skipIf(process.platform !== 'linux')('a process that dies costs its own preview and no other', async () => {
  await until('the processes of the test before to be gone', () => children().length === 0)
  const run = preview(runaway, 'a', never)
  await until('the process', () => children().length > 0)
  for (const pid of children()) process.kill(pid, 'SIGKILL')
  expect(await run).toMatchObject({
    success: false,
    errors: [{ code: 'view_failed' }],
    executionTimeMs: expect.toSatisfy((elapsed) => elapsed > 0),
  })
  expect(await preview(quick, 'a', never)).toMatchObject({ success: true })
})

test('stopping ends running and waiting previews', async () => {
  const runs = Array.from({ length: 3 }, () => preview(runaway, 'a', never))
  const refused = Promise.all(runs.map((run) => expect(run).rejects.toThrow(expect.objectContaining({ code: 'unavailable' }))))
  await workers.stop()
  await refused
})

// How long others wait is in slot-schedule.test.ts.
test('accounts that keep the workers busy do not delay another one', { timeout: 60_000 }, async () => {
  const clock = new ManualClock()
  workers = newWorkers(undefined, clock)
  const client = new AbortController()
  const runs = Array.from({ length: 8 }, (_, index) => preview(runaway, `hostile ${index % 2}`, client.signal))
  const settled = Promise.allSettled(runs)
  await until('a process for each', () => workers.pids.length >= 2)
  const view = workers.readView(bytesOf({ name: 'orders', definition: { columns } }), [], 'victim', never)
  clock.advance(600)
  expect((await view).name).toBe('orders')
  client.abort(new Error('gone'))
  expect((await settled).map(({ status }) => status)).toEqual(runs.map(() => 'rejected'))
})

test.skipIf(process.platform !== 'linux')(
  'what is ended for another account waits no longer than what has not started',
  async () => {
    const clock = new ManualClock()
    workers = newWorkers(60_000, clock)
    const client = new AbortController()
    await until('the processes of the test before to be gone', () => children().length === 0)
    const oldest = preview(runaway, 'a', client.signal)
    await until('a process', () => children().length === 1)
    const younger = preview(runaway, 'b', client.signal)
    await until('another process', () => children().length === 2)
    const before = children()
    const other = preview(runaway, 'c', client.signal)
    const all = Promise.allSettled([oldest, younger, other])
    clock.advance(600)
    await until('the process of the other one', () => !before.every((pid) => children().includes(pid)) && children().length > 1)
    clock.advance(14_399)
    const refused = expect(younger).rejects.toThrow(expect.objectContaining({ code: 'unavailable' }))
    clock.advance(1)
    await refused
    client.abort(new Error('gone'))
    expect((await all).map((end) => end.status === 'rejected' && end.reason.message)).toEqual([
      'gone',
      expect.any(String),
      'gone',
    ])
  },
)

test('reads a view and a change, whose definitions compile', async () => {
  const definition = JSON.stringify({ columns, filters: [{ condition: "a = 'x'" }] })
  const view = await workers.readView(bytesOf({ name: 'orders', definition }), [], 'a', never)
  const settings = { description: '', format: 'json', tags: [], secrets: [], warnings: [] }
  expect(view).toEqual({ name: 'orders', definition: JSON.parse(definition), ...settings })
  const yaml = 'columns: [{ name: a, type: VARCHAR, path: $.a }]'
  expect(await workers.readChange(bytesOf({ definition: yaml }), 'yaml', [], 'a', never)).toEqual({
    definition: { columns },
    secrets: [],
    warnings: [],
  })
  expect(await workers.readChange(bytesOf({ tags: ['x'] }), 'yaml', [], 'a', never)).toEqual({ tags: ['x'], warnings: [] })
  await workers.compile(view.definition, [], 'a', never)
  for (const refused of [
    () => workers.readView(bytesOf({ name: 'orders', definition: { columns, filters: [{ condition: 'b' }] } }), [], 'a', never),
    () => workers.readChange(bytesOf({ definition: { columns, filters: [{ condition: 'b' }] } }), 'json', [], 'a', never),
    () => workers.compile({ columns, filters: [{ condition: 'b' }] }, [], 'a', never),
  ]) {
    await expect(refused()).rejects.toThrow(
      expect.objectContaining({
        code: 'validation_error',
        errors: [expect.objectContaining({ path: 'definition.filters.0.condition' })],
      }),
    )
  }
})

test('ends the check of a definition at the limit', async () => {
  workers = newWorkers(1)
  const filters = Array.from({ length: 100 }, () => ({ condition: `a = 'x'${' OR a = a'.repeat(400)}` }))
  await expect(workers.readView(bytesOf({ name: 'orders', definition: { columns, filters } }), [], 'a', never)).rejects.toThrow(
    expect.objectContaining({ code: 'validation_error', errors: [expect.objectContaining({ path: 'definition' })] }),
  )
})

const sandbox = await Sandbox.probe()

test.skipIf(process.getuid?.() !== 0 || sandbox.missing.length > 0)(
  'another user reads the raw Parquet of a suggestion',
  async () => {
    const confined = new PreviewWorkers({
      ...{ clock: systemClock, logger: createLogger('test', 'silent'), timeoutMs: 60_000 },
      sandbox: await sandbox.as({ uid: 65_534, gid: 65_534 }),
    })
    const directory = await mkdtemp(join(tmpdir(), 'inlet-suggest-'))
    try {
      const parquet = join(directory, 'raw.parquet')
      await queryParquet({
        directories: [directory],
        sql: `COPY (SELECT '{"amount":5}' AS payload, 0 AS record_index) TO ${quoteLiteral(parquet)} (FORMAT parquet)`,
      })
      await chmod(parquet, 0o600)
      const body = await confined.suggestFrom(parquet, 'account', never)
      expect(Buffer.from(body).toString()).toContain('"amount"')
    } finally {
      await confined.stop()
      await rm(directory, { recursive: true })
    }
  },
)
