import { Buffer } from 'node:buffer'
import { createHash, createHmac } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import type { Frame } from '#log/frame.ts'
import { countRecords } from '#log/records.ts'
import { printArtifactKind } from '#model/artifact.ts'
import type { Column } from '#model/definition.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import type { BoundView } from '#model/snapshot.ts'
import { type BuildOptions, buildFiles, type SegmentFiles } from './build.ts'
import { RequiredViewFailed } from './failures.ts'
import { isTransient } from './transient-error.ts'

const stored = Buffer.alloc(300_000, 'segment ')
const content = async function* () {
  yield stored
}
let scratch: string
beforeAll(async () => {
  const root = await mkdtemp(join(tmpdir(), 'inlet-build-'))
  scratch = join(root, 'the scratch')
  await mkdir(scratch)
})
afterEach(async () => {
  for (const name of await readdir(scratch)) await rm(join(scratch, name), { recursive: true })
})
afterAll(() => rm(join(scratch, '..'), { recursive: true }))

const frame = (payload: string | Buffer, more: Partial<Frame> = {}): Frame => ({
  layout: 'lines',
  receivedAtMicros: 1_700_000_000_123_456,
  recordCount: 0,
  envelope: encodeEnvelope({ protocol: 'http' }),
  payload: Buffer.from(payload),
  ...more,
})

const view = (name: string, columns: readonly Column[], more: Partial<BoundView> = {}): BoundView => ({
  binding_id: `binding of ${name}`,
  view_id: `id of ${name}`,
  name,
  version: 2,
  definition: { columns: [...columns] },
  is_required: false,
  activated_at: '2000-01-01T00:00:00.000Z',
  deactivated_at: null,
  canary_start_ts: null,
  ...more,
})

const ids = view('ids', [{ name: 'id', type: 'BIGINT', path: '$.id', required: true }])
/** Takes longer than a millisecond on a few thousand records. */
const slow = (name: string, more: Partial<BoundView> = {}) =>
  view(
    name,
    Array.from({ length: 100 }, (_, index) => ({ name: `c${index}`, type: 'JSON[]', path: `$.l[*].k${index}` })),
    more,
  )

async function build(frames: readonly Frame[], options: Partial<BuildOptions> = {}): Promise<SegmentFiles> {
  const records = frames.reduce((sum, each) => sum + countRecords(each), 0)
  return await buildFiles({
    directory: await mkdtemp(join(scratch, 'build-')),
    segment: {
      header: { logName: 'log', incarnation: 'abcdefghij', seq: 42 },
      footer: { records, firstReceivedAtMicros: 0, sealedAtMicros: 0, damagedRecords: 0 },
      bytes: 0,
      frames: async function* () {
        for (const each of frames) yield [each]
      },
      content,
    },
    outputFormats: ['parquet', 'parquet_views'],
    views: [],
    memoryBytes: 256 * MiB,
    viewTimeoutMs: 60_000,
    signal: new AbortController().signal,
    clock: systemClock,
    ...options,
  })
}

const kinds = ({ files }: SegmentFiles) => files.map(({ kind, rows }) => `${printArtifactKind(kind)}: ${rows}`)

async function rowsOf(built: SegmentFiles, kind: string): Promise<readonly Record<string, unknown>[]> {
  const bytes = await readFile(built.files.find((file) => printArtifactKind(file.kind) === kind)?.path ?? '')
  if (kind.startsWith('dlq/')) {
    return gunzipSync(bytes)
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  }
  return parquetReadObjects({
    file: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer,
    compressors,
    utf8: false,
  })
}

describe('secrets of a view', () => {
  const hashed = (name: string, secret: string, secrets: BoundView['secrets']) => {
    const columns = [
      { name: 'id', type: 'VARCHAR', path: '$.id' },
      { name: 'h', type: 'VARCHAR', value: `hmac_sha256('${secret}', id)` },
    ]
    return view(name, columns, { secrets })
  }
  const hmac = (key: string, text: string) => createHmac('sha256', key).update(text).digest('hex')

  test('are those of the moment, and a view without its secret fails alone, with the reason', async () => {
    const base64 = (key: string) => Buffer.from(key).toString('base64')
    const [one, other] = [base64('one secret'), base64('another secret')]
    const views = [
      hashed('a', 'one', { one }),
      hashed('b', 'other', { other, one }),
      hashed('lacking', 'missing', { one }),
      hashed('c', 'one', { one }),
    ]
    const built = await build([frame('{"id":"x"}\n{"id":"y"}\n')], { views })
    expect(await rowsOf(built, 'views/a/v2')).toMatchObject([{ h: hmac('one secret', 'x') }, { h: hmac('one secret', 'y') }])
    expect(await rowsOf(built, 'views/b/v2')).toMatchObject([{ h: hmac('another secret', 'x') }, {}])
    expect(await rowsOf(built, 'views/c/v2')).toEqual(await rowsOf(built, 'views/a/v2'))
    const lacking = built.views.find(({ view_name }) => view_name === 'lacking')
    expect(lacking).toMatchObject({ processed: 2, accepted: 0, failed: 2, errors: { view_failed: 2 } })
    expect(lacking?.last_error?.message).toBe(
      'the secret "missing" is missing here, so nothing is hashed: create it again, or publish a version without it',
    )
    const after = await build([frame('{"id":"x"}\n')], { views: [hashed('a', 'one', { one: base64('rotated') })] })
    expect(await rowsOf(after, 'views/a/v2')).toMatchObject([{ h: hmac('rotated', 'x') }])
    expect(JSON.stringify([built, after])).not.toMatch(/one secret|another secret|rotated/)
  })
})

describe('the files of a segment', () => {
  test('raw Parquet has every record as it was sent, in order, with its envelope; a dead letter has that, too', async () => {
    const single = Buffer.concat([Buffer.from('{"id":'), Buffer.from([0xff, 0]), Buffer.from('\n}')])
    const frames = [
      frame('{"id":1}\r\n\n  \r\n{"id":2}\n\0 nul \x01\n'),
      frame(single, {
        layout: 'single',
        envelope: encodeEnvelope({ protocol: 'mqtt', topic: 'a/b', client_id: 'c', content_type: 'x', headers: { 'x-a': 'b' } }),
        receivedAtMicros: 1_700_000_001_000_001,
      }),
      frame('\u001e{\n"id":4}\u001e \u001e{"id":5}\u001e', { layout: 'texts' }),
      frame(Buffer.concat([Buffer.from('{"id":"ü€😀"}\n'), Buffer.from([0xc3, 0x28]), Buffer.from('\n{"id":3}')])),
    ]
    const built = await build(frames, { views: [ids] })
    expect(kinds(built)).toContain('parquet: 9')
    const rows = await rowsOf(built, 'parquet')
    expect(rows.map(({ payload }) => payload)).toEqual([
      '{"id":1}',
      '{"id":2}',
      '\0 nul \x01',
      null,
      '{\n"id":4}',
      '{"id":5}',
      '{"id":"ü€😀"}',
      null,
      '{"id":3}',
    ])
    expect(rows.map(({ record_index }) => record_index)).toEqual([0n, 1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n])
    expect(Object.keys(rows[0] ?? {})).toEqual([
      'ingested_at',
      'protocol',
      'topic',
      'client_id',
      'segment_seq',
      'record_index',
      'payload',
      'payload_bytes',
      'attributes',
    ])
    expect(rows[0]).toMatchObject({
      protocol: 'http',
      topic: null,
      client_id: null,
      segment_seq: 42n,
      payload_bytes: null,
      attributes: null,
    })
    expect(rows[3]).toMatchObject({
      protocol: 'mqtt',
      topic: 'a/b',
      client_id: 'c',
      attributes: '{"content_type":"x","headers":{"x-a":"b"}}',
      ingested_at: new Date(1_700_000_001_000),
    })
    expect(Buffer.from(rows[3]?.['payload_bytes'] as Uint8Array).equals(single)).toBe(true)
    expect(Buffer.from(rows[7]?.['payload_bytes'] as Uint8Array)).toEqual(Buffer.from([0xc3, 0x28]))
    const letter = (await rowsOf(built, 'dlq/ids/v2')).find(({ record_index }) => record_index === 3)
    expect(letter).toMatchObject({ topic: 'a/b', attributes: { content_type: 'x', headers: { 'x-a': 'b' } } })
  })

  test('a view has Parquet, DLQ and an outcome, and each file has its size and checksum', async () => {
    const built = await build([frame('{"id":1}\n{"id":null}\n{\n{"id":3}')], {
      outputFormats: ['segments', 'parquet', 'parquet_views'],
      views: [ids, view('all', [{ name: 'text', type: 'VARCHAR', path: '$' }])],
    })
    expect(kinds(built)).toEqual([
      'segment: 4',
      'parquet: 4',
      'views/ids/v2: 2',
      'dlq/ids/v2: 2',
      'views/all/v2: 3',
      'dlq/all/v2: 1',
    ])
    for (const { path, bytes, sha256 } of built.files) {
      expect((await stat(path)).size).toBe(bytes)
      expect(
        createHash('sha256')
          .update(await readFile(path))
          .digest('hex'),
      ).toBe(sha256)
    }
    expect(zstdDecompressSync(await readFile(built.files[0]?.path ?? ''))).toEqual(stored)
    expect(await rowsOf(built, 'views/ids/v2')).toEqual([{ id: 1n }, { id: 3n }])
    expect((await rowsOf(built, 'dlq/ids/v2')).map(({ record_index, error_code }) => [record_index, error_code])).toEqual([
      [1, 'missing_required'],
      [2, 'invalid_json'],
    ])
    expect(built.views[0]).toEqual({
      view_id: 'id of ids',
      view_name: 'ids',
      view_version: 2,
      processed: 4,
      accepted: 2,
      dropped: 0,
      dlq: 2,
      failed: 0,
      cast_nulls: 0,
      errors: { invalid_json: 1, missing_required: 1 },
      last_error: { code: 'invalid_json', message: 'the record is not valid JSON', at: expect.any(String) },
      quality: {
        columns: [
          { name: 'id', type: 'BIGINT', values: 2, nulls: 0, cast_nulls: 0, cast_dlq: 0, missing: 1, min: '1', max: '3' },
        ],
        sampled_records: 3,
        unmapped: [],
      },
    })
  })

  test('a file without rows is not written', async () => {
    const good = await build([frame('{"id":1}')], { views: [ids], outputFormats: ['parquet_views'] })
    expect(kinds(good)).toEqual(['views/ids/v2: 1'])
    const bad = await build([frame('{"id":"x"}')], { views: [ids], outputFormats: ['parquet_views'] })
    expect(kinds(bad)).toEqual(['dlq/ids/v2: 1'])
  })

  test('keeps order and rows across many slices, single-record frames and bad records', { timeout: 30_000 }, async () => {
    const record = (index: number): string =>
      index % 997 === 0 ? `{bad ${index}` : `{"id":${index},"pad":"${'x'.repeat(index % 5000 === 0 ? 900_000 : 200)}"}`
    const frames = Array.from({ length: 100_000 }, (_, index) => index)
    const lone = frames
      .slice(0, 2_000)
      .map((index) =>
        frame(record(index), { layout: 'single', envelope: encodeEnvelope({ protocol: 'mqtt', topic: `t/${index}` }) }),
      )
    const batches = Array.from({ length: 98 }, (_, batch) =>
      frame(
        frames
          .slice(2_000 + batch * 1_000, 3_000 + batch * 1_000)
          .map(record)
          .join('\n'),
      ),
    )
    const built = await build([...lone, ...batches], { views: [ids], memoryBytes: 192 * MiB })
    const raw = await rowsOf(built, 'parquet')
    expect(raw.every(({ record_index, payload }, at) => Number(record_index) === at && payload === record(at))).toBe(true)
    expect(raw).toHaveLength(frames.length)
    const accepted = (await rowsOf(built, 'views/ids/v2')).map(({ id }) => Number(id))
    expect(accepted.join()).toBe(frames.filter((index) => index % 997 !== 0).join())
    const dlq = await rowsOf(built, 'dlq/ids/v2')
    expect(dlq.map(({ record_index }) => record_index)).toEqual(frames.filter((index) => index % 997 === 0))
    expect(dlq.every(({ record_index, record: text }) => text === record(Number(record_index)))).toBe(true)
  })

  test('converts records of a megabyte in little memory', async () => {
    const lines = (from: number) =>
      frame(Array.from({ length: 10 }, (_, index) => `{"id":${from + index},"v":"${'y'.repeat(1_000_000)}"}`).join('\n'))
    const both = view('both', [...ids.definition.columns, { name: 'v', type: 'VARCHAR', path: '$.v' }])
    const built = await build([0, 10, 20, 30, 40, 50, 60, 70].map(lines), { views: [both, ids], memoryBytes: 192 * MiB })
    expect(built.failed).toEqual([])
    expect(kinds(built)).toEqual(['parquet: 80', 'views/both/v2: 80', 'views/ids/v2: 80'])
  })
})

describe('views that fail', () => {
  const many = [
    frame(Array.from({ length: 30_000 }, (_, id) => `{"id":${id},"l":[${'{"k1":1},'.repeat(9)}{"k2":2}]}`).join('\n')),
  ]

  test('an optional view is left out with an outcome, and the others are built', async () => {
    const broken = view('broken', [{ name: 'a', type: 'NO SUCH TYPE', path: '$' }])
    const built = await build([frame('{"id":1}\n{"id":2}')], { views: [broken, ids] })
    expect(kinds(built)).toEqual(['parquet: 2', 'views/ids/v2: 2'])
    expect(built.failed.map(({ view: { name } }) => name)).toEqual(['broken'])
    expect(built.views.find(({ view_name }) => view_name === 'broken')).toMatchObject({
      ...{ processed: 2, accepted: 0, dropped: 0, dlq: 0, failed: 2 },
      errors: { view_failed: 2 },
      last_error: { code: 'view_failed', message: 'the view definition cannot be compiled' },
    })
  })

  test('a record for which patterns are too slow is a dead letter that names the pattern, and holds no required view', async () => {
    const columns = [{ name: 's', type: 'VARCHAR', path: '$.s' }]
    const filters = [{ condition: "NOT regexp_matches(s, '[ab]*a[ab]{900}[ab]{900}')" }]
    const greedy = view('greedy', columns, { definition: { columns, filters }, is_required: true })
    const records = ['{"s":"x"}', `{"s":"${'ab'.repeat(500_000)}"}`, '{"id":3,"s":"y"}'].join('\n')
    const built = await build([frame(records)], { views: [greedy] })
    expect(kinds(built)).toEqual(['parquet: 3', 'views/greedy/v2: 2', 'dlq/greedy/v2: 1'])
    expect(built.views).toMatchObject([
      {
        ...{ view_name: 'greedy', accepted: 2, dlq: 1, failed: 0, errors: { too_complex: 1 } },
        last_error: {
          code: 'too_complex',
          message: expect.stringContaining('the pattern "[ab]*a[ab]{900}[ab]{900}": repeat less'),
        },
      },
    ])
  })

  test('an optional view whose file cannot be written fails the whole build: the node is at fault, not the view', async () => {
    const segment = {
      header: { logName: 'log', incarnation: 'abcdefghij', seq: 42 },
      footer: { records: 1, firstReceivedAtMicros: 0, sealedAtMicros: 0, damagedRecords: 0 },
      bytes: 0,
      frames: async function* () {
        const [directory = ''] = await readdir(scratch)
        await mkdir(join(scratch, directory, 'ids-v2.parquet'))
        yield [frame('{"id":1}')]
      },
      content,
    }
    const failure = await build([], { segment, views: [ids] }).catch((error: unknown) => error)
    expect(isTransient(failure)).toBe(true)
  })

  test('a view that takes too long fails alone', async () => {
    const startedAt = performance.now()
    await build(many, { views: [ids] })
    // A busy machine slows both views. The slow one takes a hundred times as long.
    const viewTimeoutMs = Math.ceil(4 * (performance.now() - startedAt))
    const built = await build(many, { views: [slow('slow'), ids], viewTimeoutMs, memoryBytes: 2048 * MiB })
    expect(kinds(built)).toEqual(['parquet: 30000', 'views/ids/v2: 30000'])
    expect(built.failed.map(({ error }) => String(error))).toEqual([
      expect.stringMatching(/^StatementTimeout: its extraction took longer than [\d.]+ s$/),
    ])
  })

  test('a required view fails the build', async () => {
    const building = build(many, {
      views: [ids, slow('slow', { is_required: true })],
      viewTimeoutMs: 300,
      memoryBytes: 2048 * MiB,
    })
    await expect(building).rejects.toThrow(RequiredViewFailed)
    await expect(building).rejects.toMatchObject({
      view: { name: 'slow' },
      message: expect.stringContaining('the required view slow v2 failed: its extraction took longer than 0.3 s;'),
    })
  })

  test('an abort ends the build at once', async () => {
    const controller = new AbortController()
    const building = build(many, { views: [slow('slow', { is_required: true })], signal: controller.signal })
    const until = async (condition: () => Promise<boolean>) => {
      while (!(await condition())) await new Promise((resolve) => setImmediate(resolve))
    }
    await until(async () => {
      const [directory] = await readdir(scratch)
      return directory !== undefined && (await readdir(join(scratch, directory))).includes('records.parquet')
    })
    const start = performance.now()
    controller.abort(new Error('shutting down'))
    await expect(building).rejects.toThrow('shutting down')
    expect(performance.now() - start).toBeLessThan(2_000)
  })

  test('a damaged segment fails the build with its error', async () => {
    const damaged = {
      header: { logName: 'log', incarnation: 'abcdefghij', seq: 1 },
      footer: { records: 1, firstReceivedAtMicros: 0, sealedAtMicros: 0, damagedRecords: 0 },
      bytes: 0,
      content,
      frames: async function* () {
        yield [frame('{"id":1}')]
        throw new Error('damaged at byte 7')
      },
    }
    await expect(build([], { segment: damaged, views: [ids] })).rejects.toThrow('damaged at byte 7')
  })
})
