import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { must } from '#lib/assert.ts'
import { MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import { systemFiles } from '#lib/files.ts'
import { createLogger } from '#lib/telemetry.ts'
import { printArtifactKind } from '#model/artifact.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import type { BoundView } from '#model/snapshot.ts'
import { SegmentDirectory } from '#wal/segment-directory.ts'
import { SegmentError } from '#wal/segment-reader.ts'
import { Wal } from '#wal/wal.ts'
import { badConversionPool } from '../../../test/support/bad-conversions.ts'
import { aBoundView } from '../../../test/support/delivery-node.ts'
import { until } from '../../../test/support/until.ts'
import { isTransient } from '../transient-error.ts'
import type { BuiltArtifacts } from './build-directory.ts'
import { Conversions, createConversionPool, type SegmentConversion } from './conversions.ts'
import { ConversionCrashed, RequiredViewFailed } from './failures.ts'

const clock = systemClock
const pool = badConversionPool()
afterAll(() => pool.stop())

let directory = ''
let scratch = ''
let wal = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-conversions-'))
  scratch = join(directory, 'scratch')
  wal = join(directory, 'wal')
})
afterEach(() => rm(directory, { recursive: true }))

/** Seals a segment, of two small records if not said otherwise. */
async function seal(...records: readonly string[]): Promise<SegmentConversion['segment'] & { readonly bytes: number }> {
  const lines = records.length > 0 ? records : ['{"n":1}', '{"n":2}']
  const log = new Wal({ directory: wal, files: systemFiles, clock, logger: createLogger('wal', 'silent') })
  await log.start()
  log.configure('log', { segmentBytes: MiB, segmentMaxAgeMs: 3_600_000, seqAbove: -1 })
  await log.append('log', {
    ...{ layout: 'lines', receivedAtMicros: Date.now() * 1000, recordCount: lines.length },
    ...{ envelope: encodeEnvelope({ protocol: 'http' }), payload: [Buffer.from(lines.join('\n'))] },
  })
  await log.stop(AbortSignal.timeout(10_000))
  return must((await new SegmentDirectory({ directory: wal, files: systemFiles }).list())[0], 'a segment')
}

async function convert(
  views: readonly BoundView[],
  options: Partial<SegmentConversion> = {},
  limitMs = 60_000,
): Promise<BuiltArtifacts> {
  const { bytes, ...segment } = await seal()
  return await new Conversions({ pool, wal, scratch, viewTimeoutMs: () => limitMs, killAfterMs: 0 }).build({
    ...{ segment, bytes, outputFormats: ['parquet', 'parquet_views'], views, memoryBytes: 256 * MiB },
    ...{ signal: new AbortController().signal, ...options },
  })
}

const named = (...names: readonly string[]) => names.map((name) => aBoundView({ name }))
const kinds = ({ files }: BuiltArtifacts) => files.map(({ kind, rows }) => `${printArtifactKind(kind)}: ${rows}`)
const errors = ({ views }: BuiltArtifacts) =>
  views.flatMap(({ view_name, failed, last_error }) => (failed === 0 ? [] : [{ view_name, failed, ...last_error }]))

test('a view that holds the process fails alone at its time limit, and the records and other views are built', async () => {
  const built = await convert(named('numbers', 'busy', 'others'), {}, 100)
  expect(kinds(built)).toEqual(['parquet: 2', 'views/numbers/v1: 2', 'views/others/v1: 2'])
  expect(errors(built)).toEqual([
    {
      ...{ view_name: 'busy', failed: 2, code: 'too_expensive', at: expect.any(String) },
      message: 'its extraction took longer than 0.1 s',
    },
  ])
  expect(built.failed.map(({ view }) => view.name)).toEqual(['busy'])
  await built.remove()
  expect(await readdir(scratch)).toEqual([])
})

test('a pattern that DuckDB does not interrupt fails alone', async () => {
  const { bytes, ...segment } = await seal(...Array.from({ length: 3 }, () => JSON.stringify({ n: 'x'.repeat(1_000_000) })))
  const columns = [{ name: 'n', type: 'VARCHAR', path: '$.n' }]
  const pattern = aBoundView({
    ...{ name: 'pattern', definition: { columns, filters: [{ condition: "regexp_matches(n, '(x?){1000}y')" }] } },
  })
  const views = [pattern, aBoundView({ name: 'text', definition: { columns } })]
  const built = await convert(views, { segment, bytes }, 500)
  expect(kinds(built)).toEqual(['parquet: 3', 'views/text/v1: 3'])
  expect(errors(built)).toMatchObject([{ view_name: 'pattern', failed: 3, code: 'too_expensive' }])
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
  const failure = await convert(views, {}, 100).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(RequiredViewFailed)
  expect(failure).toMatchObject({ view: views[1], message: expect.stringContaining('its extraction took longer than 0.1 s') })
  expect(await readdir(scratch)).toEqual([])
})

test('an abort ends a process that is busy at once, and no file is left', async () => {
  const caller = new AbortController()
  const converting = convert(named('busy'), { signal: caller.signal })
  const refused = expect(converting).rejects.toThrow('shutting down')
  await until('the view', async () =>
    (await readdir(directory, { recursive: true })).some((name) => name.endsWith('records.parquet')),
  )
  caller.abort(new Error('shutting down'))
  await refused
  expect(await readdir(scratch)).toEqual([])
})

test('a process that dies over the records is no failure of a view', async () => {
  const failure = await convert(named('poison')).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(ConversionCrashed)
  expect(isTransient(failure)).toBe(false)
})

test('errors of a process keep their meaning', async () => {
  const { bytes, ...segment } = await seal()
  const failureOf = (options: Partial<SegmentConversion> = {}) =>
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
  const conversions = new Conversions({ pool, wal, scratch })
  await conversions.probe(new AbortController().signal)
  expect(await readdir(scratch)).toEqual([])
  await rm(scratch, { recursive: true })
  await writeFile(scratch, 'not a directory')
  const failure = await conversions.probe(new AbortController().signal).catch((error: unknown) => error)
  expect(failure).toSatisfy(isTransient)
})

test('a process that cannot start is the fault of the node', async () => {
  const broken = createConversionPool({ clock, commandLine: () => ['/bin/sh', '-c', 'exit 126'] })
  const failure = await new Conversions({ pool: broken, wal, scratch })
    .probe(new AbortController().signal)
    .catch((error: unknown) => error)
  expect(failure).toMatchObject({ cause: { message: 'the conversion process ended with code 126' } })
  expect(failure).toSatisfy(isTransient)
})
