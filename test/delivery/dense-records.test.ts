/** Records that need far more memory than their size. A failure prints its seed. */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { KiB, MiB } from '#lib/bytes.ts'
import type { Column } from '#model/definition.ts'
import { descriptors } from '#model/types/descriptors.ts'
import { decide } from '../support/decide.ts'
import { queryRows } from '../support/parquet.ts'
import { runs } from '../support/thorough.ts'

const defaultMemory = 128 * MiB
const littleMemory = 64 * MiB
const column = (name: string, type: string, path = `$.${name}`): Column => ({ name, type, path })
const list = (item: string, bytes: number): string =>
  `[${Array(Math.floor(bytes / (item.length + 1)))
    .fill(item)
    .join(',')}]`
const records = (count: number, bytes: number, item: string): string[] =>
  Array.from({ length: count }, (_, id) => `{"id":${id},"v":${list(item, bytes - 30)}}`)
const inLittle = (columns: Column[], from: readonly (string | Buffer)[], memoryBytes: number, beside: Column[][] = []) =>
  decide(
    { columns },
    from,
    beside.map((each) => ({ columns: each })),
    undefined,
    memoryBytes,
  )

const jsons = [
  column('a', 'JSON', '$.v'),
  column('b', 'JSON', '$'),
  column('c', 'JSON[]', '$.v[*]'),
  column('d', 'VARCHAR[]', '$.v'),
]

describe('dense records fit in the memory of a conversion', () => {
  test.each<[string, string[], Column[]]>([
    ['megabytes of numbers beside an id', records(runs(3, 8), MiB, '1'), [column('id', 'BIGINT')]],
    ['hundreds of fractions', records(runs(1_000, 3_000), 3_000, '12.5'), [column('v', 'DOUBLE[]')]],
    ['lists of texts, as JSON and lists', records(runs(500, 3_000), 3_000, '"ab"'), jsons],
    ['small records, as JSON and lists', records(runs(4_000, 20_000), 300, '1'), jsons],
  ])(
    '%s',
    async (_, from, columns) => {
      const { counts, rows } = await inLittle(columns, from, defaultMemory)
      expect(counts).toMatchObject({ processed: from.length, accepted: from.length, dlq: 0 })
      if (columns[0]?.name === 'id') expect(rows).toEqual(from.map((_, id) => [id]).map(([id]) => [String(id)]))
    },
    60_000,
  )

  test('with several views at once', async () => {
    const from = records(runs(400, 2_000), 3_000, '"ab"')
    const { counts } = await inLittle(jsons, from, defaultMemory, [[column('id', 'BIGINT'), ...jsons]])
    expect(counts).toMatchObject({ processed: from.length, accepted: from.length })
  }, 60_000)
})

test('only a record that does not fit by itself goes to the DLQ', async () => {
  const each = Array.from({ length: 19 }, (_, index) => column(`e${index}`, `DECIMAL(18,${Math.min(index, 18)})[]`, '$.v[*]'))
  const count = runs(1_000, 5_000)
  const small = records(count, 200, '1')
  const from = [...small.slice(0, count / 2), ...records(2, MiB, '1'), ...small.slice(count / 2), '{', '{"id":"x"}']
  const { counts, rows, dlq } = await inLittle([{ ...column('id', 'BIGINT'), required: true }, ...each], from, defaultMemory)
  expect(counts).toMatchObject({ processed: count + 4, accepted: count, dropped: 0, dlq: 4 })
  expect(counts.errors).toEqual({ too_complex: 2, invalid_json: 1, cast_failed: 1 })
  expect(dlq.map(({ record_index, error_code }) => [record_index, error_code])).toEqual([
    [count / 2, 'too_complex'],
    [count / 2 + 1, 'too_complex'],
    [count + 2, 'invalid_json'],
    [count + 3, 'cast_failed'],
  ])
  expect(dlq[0]).toMatchObject({
    column: null,
    message: 'the columns of the record need more memory than one record may use',
    record: from[count / 2],
  })
  expect(rows.map(([id]) => Number(id))).toEqual(small.map((_, id) => id))
}, 60_000)

test.each([
  ['that are not UTF-8', Buffer.alloc(MiB, 0xff), 'invalid_utf8'],
  ['that are six times as long as JSON texts', Buffer.alloc(MiB), 'invalid_json'],
  ['that are nested half a million deep', Buffer.from('['.repeat(MiB / 2)), 'invalid_json'],
])(
  'dead letters %s fit in the memory',
  async (_, record, code) => {
    const { counts, dlq } = await inLittle(
      [column('id', 'BIGINT'), column('all', 'JSON', '$')],
      Array(16).fill(record),
      littleMemory,
    )
    expect(counts).toMatchObject({ processed: 16, dlq: 16, errors: { [code]: 16 } })
    expect(dlq[15]?.['record'] ?? Buffer.from(String(dlq[15]?.['record_base64']), 'base64')).toEqual(
      code === 'invalid_utf8' ? record : record.toString(),
    )
  },
  60_000,
)

test('a record that fits by itself is written, also if nothing more would fit', async () => {
  const columns = [
    column('id', 'BIGINT'),
    column('a', 'JSON', '$.v'),
    column('b', 'BIGINT[]', '$'),
    column('c', 'BIGINT[]', '$.v'),
    column('d', 'VARCHAR[]', '$.v[*]'),
  ]
  // The first ones easily fit in memory, the last ones never. Those between use all of it.
  const from = Array.from({ length: 30 }, (_, id) => `{"id":${id},"v":${list('"a"', (360 + 10 * id) * KiB)}}`)
  const { counts, rows, dlq } = await inLittle(columns, from, littleMemory)
  expect(counts).toMatchObject({ processed: from.length, accepted: rows.length, castNulls: 2 * rows.length })
  expect(counts.errors).toEqual({ too_complex: dlq.length })
  expect(rows.map(([id]) => Number(id))).toEqual(from.slice(0, rows.length).map((_, id) => id))
  expect(dlq.map(({ record_index }) => record_index)).toEqual(dlq.map((_, index) => rows.length + index))
  expect([rows.length, dlq.length].every((each) => each > 3)).toBe(true)
}, 60_000)

test('a file that was written in pieces has the columns of one that was not', async () => {
  const types = Object.keys(descriptors).flatMap((type) => {
    const printed = type === 'DECIMAL' ? 'DECIMAL(20,3)' : type
    return [printed, `${printed}[]`]
  })
  const columns = [column('id', 'BIGINT'), column('c', 'JSON', '$'), column('d', 'JSON[]', '$.v[*]')].concat(
    types.map((type, index) => column(`t${index}`, type, type.endsWith('[]') ? '$.w' : '$.w[0]')),
  )
  const from = ['1', '"2024-01-01T00:00:00Z"', '"00:00:01"', '"a"', 'true', '"6f9619ff-8b86-4d11-b42d-00c04fc964ff"', 'x'].map(
    (item, id) => `{"id":${id},"w":[${item}],"v":${list('1', 200 * KiB)}}`,
  )
  const written = async (memoryBytes: number) => {
    let schema: unknown
    const look = async (parquet: string) => {
      const sql = `SELECT * EXCLUDE (file_name) FROM parquet_schema('${parquet}')`
      schema = (await queryRows(sql)).rows
    }
    const { rows, types: readAs, quality } = await decide({ columns }, from, [], look, memoryBytes)
    return { rows, readAs, schema, columns: quality.columns }
  }
  expect(await written(littleMemory)).toEqual(await written(2_048 * MiB))
}, 60_000)

/** Sorts rows by id, because rows of very different sizes may be reordered. Prints them, so that failures are readable. */
const short = (rows: readonly (readonly unknown[])[]): readonly string[] =>
  rows.map((row) => `${row[0]} ${createHash('sha256').update(JSON.stringify(row)).digest('hex').slice(0, 8)}`).sort()

test('rows are decided the same with little memory as with much, except records that are too complex', async () => {
  const leaf = fc.constantFrom(
    '1',
    '-12.5',
    '"a"',
    'null',
    'true',
    '[]',
    '{}',
    '"2024-01-01T00:00:00Z"',
    '{"a":1}',
    '[[1],[2]]',
    'x',
  )
  // Texts are made of it in the property, so that a counterexample is short.
  const some = fc.record({
    leaf,
    bytes: fc.constantFrom(1, 10, KiB, 32 * KiB, 500 * KiB),
    depth: fc.oneof(fc.constant(0), fc.nat(200)),
    times: fc.constantFrom(1, 1, 2, 50),
  })
  const textsOf = ({ leaf, bytes, depth, times }: typeof some extends fc.Arbitrary<infer T> ? T : never) =>
    Array<string>(bytes > 10 * KiB ? 1 : times).fill(`"v":${'{"a":'.repeat(depth)}${list(leaf, bytes)}${'}'.repeat(depth)}}`)
  const type = fc.constantFrom('JSON', 'VARCHAR', 'BIGINT[]', 'DOUBLE[]', 'VARCHAR[]', 'JSON[]', 'TIMESTAMP[]')
  const path = fc.constantFrom('$.v', '$', '$.v[*]', '$.v.a', '$.v[0]', '$.v.a.a[*]')
  const columns = fc
    .array(fc.tuple(type, path), { minLength: 1, maxLength: 8 })
    .map((all) =>
      all.map(([of, at], index) => column(`c${index}`, at.includes('[*]') && !of.endsWith('[]') ? `${of}[]` : of, at)),
    )
  await fc.assert(
    fc.asyncProperty(columns, fc.array(some, { minLength: 1, maxLength: 12 }), async (drawn, several) => {
      const from = several.flatMap(textsOf).map((text, id) => `{"id":${id},${text}`)
      const all = [column('id', 'BIGINT'), ...drawn]
      const little = await inLittle(all, from, littleMemory)
      const large = await inLittle(all, from, 2_048 * MiB)
      const tooComplex = new Set(
        little.dlq.flatMap((row) => (row['error_code'] === 'too_complex' ? [Number(row['record_index'])] : [])),
      )
      const decided = from.filter((_, index) => !tooComplex.has(index))
      const expected = tooComplex.size === 0 ? large : await inLittle(all, decided, 2_048 * MiB)
      expect(short(little.rows)).toEqual(short(expected.rows))
      expect(little.counts.castNulls).toBe(expected.counts.castNulls)
      expect(little.counts.processed).toBe(from.length)
      expect(little.counts.dlq - tooComplex.size).toBe(expected.counts.dlq)
    }),
    // Shrinking takes long: a failure reports the smallest one that was found in time.
    { numRuns: runs(3, 12), interruptAfterTimeLimit: 90_000 },
  )
}, 120_000)
