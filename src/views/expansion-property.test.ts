/** Compares views that expand an array with a model that knows nothing of DuckDB. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Column, Definition } from '#model/definition.ts'
import { decide } from '../../test/support/decide.ts'
import { runs } from '../../test/support/thorough.ts'

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }
type Place = { readonly record: Json; readonly parent: Json | undefined; readonly item: Json; readonly index: number }
type Outcome =
  | { readonly rows: readonly (readonly (string | null)[])[] }
  | 'dropped'
  | { readonly code: string; readonly item: string | null }

const small = fc.constantFrom<Json[]>(null, true, 1, 2, -3, 'x', '7', '')
const element: fc.Arbitrary<Json> = fc.oneof(
  small,
  fc.dictionary(fc.constantFrom('x', 'y', 'b'), small, { maxKeys: 2 }),
  fc.constant<Json>([1]),
)
const array: fc.Arbitrary<Json> = fc.oneof(
  { weight: 8, arbitrary: fc.array(element, { maxLength: 5 }) },
  { weight: 1, arbitrary: small },
  { weight: 1, arbitrary: fc.constant<Json>({ b: 1 }) },
)
const outerElement = fc.oneof(
  { weight: 4, arbitrary: fc.record({ k: small, b: array }, { requiredKeys: [] }) as fc.Arbitrary<Json> },
  { weight: 1, arbitrary: element },
)
const outer = fc.oneof(
  { weight: 8, arbitrary: fc.array(outerElement, { maxLength: 4 }) as fc.Arbitrary<Json> },
  { weight: 1, arbitrary: array },
)
const record = (isNested: boolean): fc.Arbitrary<Json> =>
  fc.oneof(
    { weight: 10, arbitrary: fc.record({ k: small, a: isNested ? outer : array }, { requiredKeys: [] }) as fc.Arbitrary<Json> },
    { weight: 1, arbitrary: element },
  )

const paths = ['$.k', '$item', '$item.x', '$item.y', '$parent.k', '$$.item_index'] as const
const column = (isNested: boolean) =>
  fc.record({
    path: fc.constantFrom(...paths.filter((path) => isNested || path !== '$parent.k')),
    type: fc.constantFrom('VARCHAR', 'BIGINT'),
    required: fc.integer({ max: 3 }).map((n) => n === 0),
    cast_failures: fc.constantFrom('null' as const, 'null' as const, 'dlq' as const),
  })
const filter = fc.constantFrom(undefined, 'c0 > 1', '$$.item_index % 2 = 0')

const viewed = fc.boolean().chain((isNested) =>
  fc.record({
    isNested: fc.constant(isNested),
    columns: fc.array(column(isNested), { minLength: 1, maxLength: 4 }),
    filter,
    records: fc.array(record(isNested), { minLength: 1, maxLength: 12 }),
  }),
)

function memberOf(value: Json | undefined, name: string): Json | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, Json>)[name] : undefined
}

function textAt(path: string, place: Place): string | null {
  const found =
    path === '$$.item_index'
      ? place.index
      : path === '$item'
        ? place.item
        : path === '$.k'
          ? memberOf(place.record, 'k')
          : path === '$parent.k'
            ? memberOf(place.parent, 'k')
            : memberOf(place.item, path.slice('$item.'.length))
  if (found === undefined || found === null) return null
  return typeof found === 'string' ? found : JSON.stringify(found)
}

/** Returns the elements, or the reason why there are none. */
function placesOf(record: Json, isNested: boolean): readonly (Place & { readonly path: string })[] | 'refused' {
  const array = memberOf(record, 'a')
  if (array === undefined || array === null) return []
  if (!Array.isArray(array)) return 'refused'
  if (!isNested) return array.map((item, index) => ({ record, parent: undefined, item, index, path: `$.a[${index}]` }))
  const places: (Place & { readonly path: string })[] = []
  for (const [at, parent] of array.entries()) {
    const inner = memberOf(parent, 'b')
    if (inner === undefined || inner === null) continue
    if (!Array.isArray(inner)) return 'refused'
    for (const [n, item] of inner.entries())
      places.push({ record, parent, item, index: places.length, path: `$.a[${at}].b[${n}]` })
  }
  return places
}

function outcomeOf(
  record: Json,
  { isNested, columns, filter }: { isNested: boolean; columns: readonly Column[]; filter: string | undefined },
): Outcome {
  const places = placesOf(record, isNested)
  if (places === 'refused') return { code: 'expand_failed', item: null }
  const rows: (string | null)[][] = []
  for (const place of places) {
    const values = columns.map(({ path = '', type }) => {
      const text = textAt(path, place)
      const value = type === 'VARCHAR' || text === null || /^-?\d+$/.test(text) ? text : null
      return { value, hasFailed: value === null && text !== null }
    })
    const [first] = values
    const passes =
      filter === undefined
        ? true
        : filter.startsWith('c0')
          ? first?.value === null || first === undefined
            ? null
            : Number(first.value) > 1
          : place.index % 2 === 0
    if (passes === false) continue
    for (const [at, { required, cast_failures }] of columns.entries()) {
      if (values[at]?.hasFailed && (required || cast_failures === 'dlq')) return { code: 'cast_failed', item: place.path }
      if (required && values[at]?.value === null) return { code: 'missing_required', item: place.path }
    }
    if (passes) rows.push(values.map(({ value }) => value))
  }
  return rows.length > 0 ? { rows } : 'dropped'
}

test('each record becomes what a model says', { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(viewed, async ({ isNested, columns: drawn, filter, records }) => {
      // The first column is compared with a number.
      const columns = drawn.map((each, index) => ({ ...each, name: `c${index}`, type: index === 0 ? 'BIGINT' : each.type }))
      const definition: Definition = {
        expand: isNested ? '$.a[*].b[*]' : '$.a[*]',
        columns,
        ...(filter && { filters: [{ condition: filter }] }),
      }
      const expected = records.map((each) => outcomeOf(each, { isNested, columns, filter }))
      const { rows, dlq, counts } = await decide(
        definition,
        records.map((each) => JSON.stringify(each)),
      )
      expect(rows.map((row) => row.map((value) => (value === null ? null : String(value))))).toEqual(
        expected.flatMap((each) => (typeof each === 'object' && 'rows' in each ? each.rows : [])),
      )
      expect(dlq.map(({ record_index, error_code, item }) => ({ record_index, code: error_code, item }))).toEqual(
        expected.flatMap((each, record_index) => (typeof each === 'object' && 'code' in each ? [{ record_index, ...each }] : [])),
      )
      const [dropped, refused] = [expected.filter((each) => each === 'dropped').length, dlq.length]
      expect(counts).toMatchObject({
        processed: records.length,
        accepted: records.length - dropped - refused,
        dropped,
        dlq: refused,
      })
    }),
    { numRuns: runs(60, 500) },
  )
})
