import { Buffer } from 'node:buffer'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Database, OutOfMemory } from '#duckdb/database.ts'
import { GiB, MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import type { Definition } from '#model/definition.ts'
import { compileView } from '#views/compile.ts'
import { decide } from '../../test/support/decide.ts'
import { Observer } from './observer.ts'
import { RecordTable } from './record-table.ts'

describe('many records', () => {
  const definition: Definition = {
    columns: [
      { name: 'a', type: 'INTEGER', path: '$.a', cast_failures: 'dlq' },
      { name: 'b', type: 'INTEGER', path: '$.b' },
    ],
    filters: [{ condition: 'a > 0 OR a IS NULL' }],
  }
  /** Some records of every outcome, and whole vectors with the same one. */
  const record = (index: number): string => {
    if (index % 3_001 === 7) return `{"a":${index}`
    if (index % 10 === 3 || (index > 20_000 && index < 25_000)) return `{"a":"x${index}"}`
    if (index % 10 === 4 || (index > 30_000 && index < 35_000)) return '{"a":-1}'
    return `{"a":${index + 1},"b":${index % 7 === 0 ? '"x"' : index}}`
  }
  const records = Array.from({ length: 50_000 }, (_, index) => record(index))
  const fate = (text: string): string =>
    !text.endsWith('}') ? 'invalid_json' : text.includes('"a":"') ? 'cast_failed' : text.includes('-1') ? 'dropped' : 'accepted'
  const refused = records.flatMap((text, index) =>
    ['invalid_json', 'cast_failed'].includes(fate(text)) ? [{ record_index: index, error_code: fate(text), record: text }] : [],
  )
  const accepted = records.filter((text) => fate(text) === 'accepted')

  test.each([
    ['alone', []],
    ['beside another view', [{ columns: [{ name: 'b', type: 'VARCHAR', path: '$.b' }] }]],
  ])('are each observed once, in order, %s', async (_, beside) => {
    const { counts, rows, dlq } = await decide(definition, records, beside)
    expect(rows.map(([a]) => a)).toEqual(accepted.map((text) => JSON.parse(text).a))
    expect(dlq.map(({ record_index, error_code, record }) => ({ record_index, error_code, record }))).toEqual(refused)
    expect(counts).toMatchObject({
      processed: records.length,
      accepted: accepted.length,
      dropped: records.length - accepted.length - refused.length,
      castNulls: accepted.filter((text) => text.includes('"x"')).length,
    })
    expect(counts.lastError?.message).toBe(
      `the value ${JSON.stringify(JSON.parse(refused.at(-1)?.record ?? '').a)} of column "a" is not of type INTEGER`,
    )
  })

  test('a timeout ends a statement that observes every record, and the next one runs', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'inlet-views-'))
    const options = { directory, memoryBytes: 256 * MiB, spillBytesMax: GiB, segmentSeq: 7, signal: new AbortController().signal }
    const table = await RecordTable.open({ ...options, viewTimeoutMs: 100, clock: systemClock })
    const payload = Buffer.from('{"a":"x"}')
    const { add } = table.addFrame({ protocol: 'http', topic: '', clientId: '', attributes: '', receivedAtMicros: 0 }, payload)
    for (let index = 0; index < 300_000; index += 1) add(0, payload.length)
    table.finish()
    const extracted = await table.extract([{ name: 'seen', version: 3, compiled: await compileView(definition), secrets: {} }])
    for (const _ of [1, 2]) {
      await expect(table.writeAccepted(extracted, 0, join(directory, 'rows.parquet'))).rejects.toThrow('took longer than 0.1 s')
    }
    table.close()
    await rm(directory, { recursive: true })
  })
})

test('a view that is extracted in many small pieces has to end in time, too', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-views-'))
  // A second passes before each statement.
  let now = 0
  const clock = { ...systemClock, monotonic: () => (now += 1_000) }
  const options = { directory, memoryBytes: 16 * MiB, spillBytesMax: GiB, segmentSeq: 7, signal: new AbortController().signal }
  const table = await RecordTable.open({ ...options, viewTimeoutMs: 5_000, clock })
  const payload = Buffer.from(`{"v":[${'1,'.repeat(200_000)}1]}`)
  const { add } = table.addFrame({ protocol: 'http', topic: '', clientId: '', attributes: '', receivedAtMicros: 0 }, payload)
  for (let index = 0; index < 30; index += 1) add(0, payload.length)
  table.finish()
  const columns = ['a', 'b'].map((name) => ({ name, type: 'BIGINT[]', path: '$.v[*]' }))
  const extracted = await table.extract([{ name: 'dense', version: 3, compiled: await compileView({ columns }), secrets: {} }])
  await expect(table.writeAccepted(extracted, 0, join(directory, 'rows.parquet'))).rejects.toThrow('took longer than 5 s')
  table.close()
  await rm(directory, { recursive: true })
})

test('a statement that runs out of memory for refused rows leaves no trace', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-views-'))
  const database = await Database.open({ directories: [directory], memoryBytes: 8 * MiB })
  const connection = await database.connect()
  const observer = new Observer(await database.connect())
  const refuse = (rows: number) =>
    observer.observe('refused', async () => {
      const refused = `observed(CAST(1 AS SMALLINT), 0, 0, i, repeat('x', 200))`
      await connection.run(`CREATE OR REPLACE TABLE written AS SELECT i FROM range(${rows}) AS rows(i) WHERE ${refused}`)
      return 0
    })
  await observer.createRefused('refused')
  await expect(refuse(500_000)).rejects.toThrow(OutOfMemory)
  expect((await refuse(10)).tally).toMatchObject({ dlq: 10 })
  expect((await connection.query('SELECT count(*) FROM refused')).rows).toEqual([['10']])
  database.close()
  await rm(directory, { recursive: true })
})
