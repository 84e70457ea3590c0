/**
 * A preview agrees with what delivery makes of the same records: random definitions over random records, through HTTP and files alone.
 * INLET_TEST_SEED replays a failure.
 */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { describeWith, useDeployment } from '../support/deployment.ts'
import { queryRows } from '../support/parquet.ts'
import { runs } from '../support/thorough.ts'

const seed = Number(process.env['INLET_TEST_SEED'] ?? Date.now() % 2 ** 31)
const viewCount = runs(8, 20)
const recordCount = 100

const keys = ['a', 'b', 'c d', "e'f", 'order']
const numbers = [
  '0',
  '-0',
  '7',
  '1.5',
  '1e3',
  '-1e-3',
  '9007199254740993',
  '9223372036854775807',
  '9223372036854775808',
  '18446744073709551616',
]
const odd = [
  '1e400',
  'NaN',
  '-Infinity',
  '1.005',
  `${'9'.repeat(38)}`,
  `1${'0'.repeat(38)}`,
  'true',
  'false',
  'null',
  '""',
  '[]',
  '{}',
]
const texts = [
  '7',
  ' 7 ',
  'x',
  'true',
  'nan',
  '12.345',
  'null',
  '[1,2]',
  '\\u0000',
  'ü😀',
  '\\\\xFF',
  '1969-12-31',
  '2024-02-30',
  '08:30:00.5',
]
const moments = [
  '2024-01-01T00:00:00+05:30',
  '1969-12-31T23:59:59.999999Z',
  '2024-01-01 10:00',
  '2024-01-01T00:00:00 Europe/Berlin',
  '2024-01-01T14:00:00+14:00',
  '2024-01-01T14:00:00+14:01',
]
const others = ['f81d4fae-7dec-11d0-a765-00a0c91e6bf6', '{F81D4FAE7DEC11D0A76500A0C91E6BF6}']
const scalar = fc.oneof(
  fc.constantFrom(...numbers, ...odd),
  fc.constantFrom(...texts, ...moments, ...others).map((text) => `"${text}"`),
)
const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    { weight: 6, arbitrary: scalar },
    { weight: 1, arbitrary: fc.array(tie('value'), { maxLength: 3 }).map((list) => `[${list.join(',')}]`) },
    {
      weight: 1,
      arbitrary: fc.tuple(fc.constantFrom(...keys), tie('value')).map(([key, inner]) => `{${JSON.stringify(key)}: ${inner}}`),
    },
  ),
}))
const document = fc
  .array(fc.tuple(fc.constantFrom(...keys), value), { maxLength: 6 })
  .map((fields) => `{${fields.map(([key, inner]) => `${JSON.stringify(key)}:${inner}`).join(', ')}}`)
// Ingest does not count white space alone as a record.
const record = fc.oneof(
  { weight: 12, arbitrary: document },
  { weight: 1, arbitrary: fc.constantFrom('{', '[1', 'nope', '42', '"x"', '{"a":1}}', '\ufeff{}') },
  { weight: 1, arbitrary: value },
)

const scalars = [
  'BOOLEAN',
  'TINYINT',
  'BIGINT',
  'UBIGINT',
  'HUGEINT',
  'FLOAT',
  'DOUBLE',
  'DECIMAL(18,2)',
  'DECIMAL(38,10)',
  'VARCHAR',
  'DATE',
  'TIME',
  'TIMESTAMP',
  'TIMESTAMPTZ',
  'UUID',
  'JSON',
  'BLOB',
]
const step = fc.oneof(
  fc.constantFrom(...keys).map((key) => `[${key.includes("'") ? JSON.stringify(key) : `'${key}'`}]`),
  fc.constantFrom('[0]', '[1]'),
)
const column = fc
  .record({
    steps: fc.array(step, { minLength: 1, maxLength: 2 }),
    each: fc.boolean(),
    type: fc.constantFrom(...scalars),
    depth: fc.constantFrom(0, 0, 0, 1, 2),
    required: fc.option(fc.boolean(), { nil: undefined }),
    cast_failures: fc.option(fc.constantFrom('null', 'dlq'), { nil: undefined }),
  })
  .map(({ steps, each, type, depth, ...rest }) => {
    const isEach = each && depth > 0
    return { path: `$${steps.join('')}${isEach ? '[*]' : ''}`, type: `${type}${'[]'.repeat(depth)}`, ...rest }
  })
const names = ['__proto__', 'constructor', 'c 2', 'toString', 'é"']
const first = '"__proto__"'
const text = `CAST(${first} AS VARCHAR)`
const condition = fc.constantFrom(
  `${first} IS NOT NULL`,
  `${text} <> '7'`,
  `NOT (${first} IS NULL AND 1 = 1)`,
  `length(${text}) < 12`,
  `${text} || '!' <> '7!'`,
  `concat(${first}::VARCHAR, '-', ${text}) <> '7-7'`,
  `replace(${text}, '0', '') <> '7'`,
  `regexp_extract(${text}, '([0-9]+)[.-]', 1) = ''`,
  `${text}::TIMESTAMP IS NULL OR ${text}::TIMESTAMP >= '2024-01-01T00:00:00+05:30'`,
)
const definition = fc
  .record({
    columns: fc.array(column, { minLength: 1, maxLength: names.length }),
    conditions: fc.array(condition, { maxLength: 1 }),
  })
  .map(({ columns, conditions }) => ({
    columns: columns.map((each, index) => ({ name: names[index] ?? '', ...each })),
    filters: conditions.map((each) => ({ condition: each })),
  }))
type Definition = ReturnType<typeof definition.generate>['value']

/** A view that accepts every record that is JSON, and one that accepts none. */
const plain: readonly Definition[] = [
  { columns: [{ name: '__proto__', path: '$', type: 'VARCHAR', required: undefined, cast_failures: undefined }], filters: [] },
  { columns: [{ name: '__proto__', path: '$.absent', type: 'VARCHAR', required: true, cast_failures: undefined }], filters: [] },
]

describeWith('objects', 'random records', () => {
  const deployment = useDeployment()

  test(`preview and delivery agree (seed ${seed})`, async () => {
    const definitions = [...plain, ...fc.sample(definition, { seed, numRuns: viewCount })]
    const records = fc.sample(record, { seed, numRuns: recordCount })
    const { id } = await deployment().endpoint({ bucket: 'agrees' })
    const views: string[] = []
    let view_id = ''
    for (const each of definitions) {
      const name = deployment().unique('view')
      views.push(name)
      view_id = await deployment().publishedView({ name, definition: each })
      await deployment().ok('POST', `/v1/endpoints/${id}/views`, { view_id })
    }
    await deployment().untilConfigured(id, view_id)
    const receipt = await deployment().ingest(id, `${records.join('\n')}\n`)
    expect(receipt).toMatchObject({ status: 202, body: { accepted_records: recordCount } })
    await deployment().committed(id, [receipt.body.segment_seq])

    const outcomes = (await deployment().markers(id)).flatMap(({ views }) => views)
    for (const fate of ['accepted', 'dlq'] as const)
      expect(
        outcomes.some((outcome) => outcome[fate] > 0),
        fate,
      ).toBe(true)
    for (const [index, each] of definitions.entries()) {
      const name = views[index] ?? ''
      const previewed = await deployment().ok('POST', '/v1/views/preview', { definition: each, samples: records })
      const where = `seed ${seed}, view ${index} ${JSON.stringify(each)}`
      const rows = await readAsJson(await deployment().artifacts(id, `views/${name}/v1`), each.columns)
      expect(previewed.rows.map(Object.values), where).toEqual(rows)
      for (const row of previewed.rows) expect(Object.keys(row), where).toEqual(names.slice(0, each.columns.length))
      const dead = (await deployment().artifacts(id, `dlq/${name}/v1`))
        .flatMap((path) => gunzipSync(readFileSync(path)).toString().trimEnd().split('\n'))
        .map((line) => JSON.parse(line))
      const fates = dead.map(({ error_code, column, message, record_index }) => [
        Number(record_index),
        error_code,
        column,
        message,
      ])
      expect(
        previewed.errors.map((error: Issue) => [error.sample_index, error.code, error.column, error.message]),
        where,
      ).toEqual(fates)
      const outcome = outcomes.find(({ view_name }) => view_name === name)
      expect(outcome, where).toMatchObject({ processed: recordCount, accepted: previewed.rowCount, dlq: previewed.errors.length })
    }
  })
})

type Issue = { readonly sample_index: number; readonly code: string; readonly column: string | null; readonly message: string }

/** Reads rows as lists of values, in the JSON form that previews use. */
async function readAsJson(paths: readonly string[], columns: Definition['columns']): Promise<readonly unknown[]> {
  const selected = columns.map(({ name, type }) => inForm(`"${name.replaceAll('"', '""')}"`, type))
  const rows: unknown[] = []
  for (const path of paths) {
    const select = `SELECT ${selected.join(', ')} FROM read_parquet('${path}', hive_partitioning = false)`
    const read = await queryRows(select)
    rows.push(
      ...read.rows.map((row) => row.map((value, index) => (columns[index]?.type.startsWith('FLOAT') ? toNumbers(value) : value))),
    )
  }
  return rows
}

/** SQL for timestamps in ISO 8601, and floating point numbers of 32 bits as DuckDB prints them. */
function inForm(sql: string, type: string, level = 0): string {
  const item = `x${level}`
  if (type.endsWith('[]')) return `list_transform(${sql}, lambda ${item}: ${inForm(item, type.slice(0, -2), level + 1)})`
  if (type.startsWith('TIMESTAMP')) return `strftime(${sql}, '%Y-%m-%dT%H:%M:%S.%fZ')`
  return type === 'FLOAT' ? `CAST(${sql} AS VARCHAR)` : sql
}

function toNumbers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toNumbers)
  const others: Readonly<Record<string, string>> = { nan: 'NaN', inf: 'Infinity', '-inf': '-Infinity' }
  return value === null ? null : (others[String(value)] ?? Number(value) + 0)
}
