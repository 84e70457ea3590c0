import { Buffer } from 'node:buffer'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { MiB } from '#lib/bytes.ts'
import { forEachRecord } from '#log/records.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import { RecordDatabase } from '#records/record-database.ts'
import { aBoundView } from '../../../../test/support/delivery-node.ts'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
import { runs } from '../../../../test/support/thorough.ts'
import { buildFiles } from '../build/build.ts'
import { SharedDatabase } from './shared-database.ts'

const memoryBytes = 256 * MiB
const views = [
  aBoundView({
    name: 'numbers',
    definition: {
      columns: [
        { name: 'n', type: 'INTEGER', path: '$.n', cast_failures: 'dlq' },
        { name: 'topic', type: 'VARCHAR', path: '$$.topic' },
      ],
      filters: [{ condition: 'n <> 3' }],
    },
  }),
  aBoundView({ name: 'texts', definition: { columns: [{ name: 't', type: 'VARCHAR', path: '$.t', required: true }] } }),
]

let scratch = ''
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'inlet-shared-'))
})
afterAll(() => rm(scratch, { recursive: true }))

let builds = 0
/** Returns everything that a build makes, each file with its checksum. */
async function build(payload: Buffer, of: typeof views, database?: RecordDatabase) {
  const directory = join(scratch, `build-${builds++}`)
  await mkdir(directory)
  const layout = 'lines'
  const records = forEachRecord({ layout, payload }, () => undefined)
  const envelope = encodeEnvelope({ protocol: 'mqtt', topic: `t${payload.length}` })
  const segment = {
    header: { logName: 'log', incarnation: 'log', seq: 7 },
    footer: { records, firstReceivedAtMicros: 0, sealedAtMicros: 0, damagedRecords: 0 },
    bytes: payload.length,
    async *frames() {
      yield [{ layout, receivedAtMicros: 0, recordCount: records, envelope, payload } as const]
    },
    async *content() {},
  }
  const { files, ...built } = await buildFiles({
    ...{ segment, views: of, directory, memoryBytes, viewTimeoutMs: 60_000, outputFormats: ['parquet', 'parquet_views'] },
    ...{ signal: new AbortController().signal, clock: new ManualClock() },
    ...(database === undefined ? {} : { database }),
  })
  return { ...built, files: files.map(({ path, ...file }) => ({ ...file, name: basename(path) })) }
}

const line = fc.constantFrom('{"n":1}', '{"n":3,"t":"x"}', '{"n":"x"}', '{"t":"ü"}', '{', '', '\0', '{"n":4}\r')
/** A view with a secret, which may have another value in the next segment. */
const hashing = fc.constantFrom('a secret', 'another').map((key) =>
  aBoundView({
    name: 'hashes',
    definition: { columns: [{ name: 'h', type: 'VARCHAR', value: "hmac_sha256('key', 'x')" }] },
    secrets: { key: Buffer.from(key).toString('base64') },
  }),
)
const segment = fc.record({
  payload: fc.array(line, { minLength: 1, maxLength: 20 }).map((lines) => Buffer.from(lines.join('\n'))),
  of: fc.tuple(fc.subarray(views), fc.array(hashing, { maxLength: 1 })).map((lists) => lists.flat()),
})

test('segments that use one database after the other get the same files as in databases of their own', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(segment, { minLength: 2, maxLength: 4 }), async (segments) => {
      const shared = new SharedDatabase()
      const used = new Set<RecordDatabase>()
      for (const { payload, of } of segments) {
        const inShared = await shared.use({ directory: scratch, memoryBytes }, async (database) => {
          used.add(database)
          return build(payload, of, database)
        })
        expect(inShared).toEqual(await build(payload, of))
      }
      expect(used.size).toBe(1)
    }),
    { numRuns: runs(10, 40) },
  )
}, 120_000)

test('work that throws or has no result is not repeated in its database, nor is anything else', async () => {
  const shared = new SharedDatabase()
  const options = { directory: scratch, memoryBytes }
  const use = (result: () => unknown) =>
    shared.use(options, async (database) => {
      seen.push(database)
      return result()
    })
  const seen: RecordDatabase[] = []
  expect(await use(() => 1)).toBe(1)
  expect(await use(() => undefined)).toBe(undefined)
  const failed = () => {
    throw new Error('out of memory')
  }
  expect(await use(failed)).toBe(undefined)
  expect(await use(() => 2)).toBe(2)
  expect(seen.map((database) => seen.indexOf(database))).toEqual([0, 0, 2, 3])
})

test('a cleared database has nothing of a segment', async () => {
  const database = await RecordDatabase.open({ directories: [scratch], memoryBytes })
  try {
    await build(Buffer.from('{"n":1,"t":"x"}\n{"n":"x"}'), views, database)
    const tables = async () => (await database.connection.query('SELECT table_name FROM duckdb_tables()')).rows
    expect((await tables()).length).toBeGreaterThan(0)
    await database.clear()
    expect(await tables()).toEqual([])
    await expect(database.connection.query('FROM record_runs(0, 1)')).rejects.toThrow('the database has records')
  } finally {
    database.close()
  }
})
