import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Column } from '#model/definition.ts'
import { qualityLimits } from '#model/limits.ts'
import type { SeenPath } from '#model/view-quality.ts'
import { compileView } from '#views/compile.ts'
import { decide } from '../../test/support/decide.ts'
import { SAMPLE_BYTES_MAX } from './record-sampler.ts'
import { profileKinds } from './sample-profile.ts'
import { unmappedPaths } from './unmapped-paths.ts'

const paths = (...named: readonly (readonly [path: string, type?: string])[]): Column[] =>
  named.map(([path, type = 'BIGINT'], index) => ({ name: `c${index}`, type, path }))

async function unmapped(columns: readonly Column[], ...records: readonly unknown[]): Promise<readonly SeenPath[]> {
  const compiled = await compileView({ columns: [...columns] })
  return unmappedPaths(profileKinds(records.map((record) => JSON.stringify(record))), compiled)
}

test.each<readonly [what: string, columns: Column[], record: unknown, expected: readonly string[]]>([
  ['no path that a column reads', paths(['$.a'], ['$.b.c']), { a: 1, b: { c: 2 } }, []],
  ['a new field', paths(['$.a']), { a: 1, b: 2 }, ['$.b integer']],
  ['the topmost path that no column reads', paths(['$.a']), { a: 1, b: { c: { d: 1 } } }, ['$.b object']],
  ['paths beside a column', paths(['$.a.b']), { a: { b: 1, c: [], d: 1.5 } }, ['$.a.c array', '$.a.d number']],
  ['nothing below JSON', paths(['$.a', 'JSON']), { a: { b: [{ c: 1 }] } }, []],
  ['nothing below text, which contains the JSON', paths(['$.a', 'VARCHAR']), { a: { b: 1 } }, []],
  ['nothing if a column reads the whole record', paths(['$', 'JSON']), { a: { b: 1 } }, []],
  ['paths below a number', paths(['$.a']), { a: { b: true } }, ['$.a.b boolean']],
  ['a list of scalars', paths(['$.a', 'BIGINT[]']), { a: [1, 2] }, []],
  ['objects in a list of scalars', paths(['$.a', 'BIGINT[]']), { a: [1, { b: 2 }] }, ['$.a[*].b integer']],
  ['nothing in a list of JSON', paths(['$.a', 'JSON[]']), { a: [1, { b: 2 }, [3]] }, []],
  ['lists in a list', paths(['$.a', 'BIGINT[]']), { a: [[1]] }, ['$.a[*][*] integer']],
  ['nothing in lists of lists', paths(['$.a', 'BIGINT[][]']), { a: [[1]] }, []],
  ['paths beside a wildcard', paths(['$.a[*].b', 'BIGINT[]']), { a: [{ b: 1, c: 2 }] }, ['$.a[*].c integer']],
  ['lists where a wildcard finds them', paths(['$.a[*].b', 'BIGINT[]']), { a: [{ b: [1] }] }, ['$.a[*].b[*] integer']],
  ['nothing for an index', paths(['$.a[0].b']), { a: [{ b: 1 }, { b: 2 }] }, []],
  ['an object that became text', paths(['$.a.b']), { a: 'gone' }, ['$.a string']],
  ['an object that became a list', paths(['$.a.b']), { a: [{ b: 1 }] }, ['$.a[*] object']],
  ['a list that became an object', paths(['$.a[*].b', 'BIGINT[]']), { a: { b: 1 } }, ['$.a.b integer']],
  ['all paths if columns read only the envelope', paths(['$$.topic', 'VARCHAR']), { a: 1, b: 2 }, ['$.a integer', '$.b integer']],
  ['a record that is a scalar', paths(['$.a']), 42, ['$ integer']],
  ['a record that is a list', paths(['$.a']), [42], ['$[*] integer']],
  ['no path that is always null', paths(['$.a']), { b: null, c: [null] }, ['$.c array']],
  ['nothing for an empty record', paths(['$.a']), {}, []],
  [
    'names that need quotes',
    paths(['$.a']),
    { 'a b': 1, "it's": 1, __proto__x: 1 },
    ['$.__proto__x integer', "$['a b'] integer", "$['it\\'s'] integer"],
  ],
])('reports %s', async (_, columns, record, expected) => {
  const found = await unmapped(columns, record)
  expect(found.map(({ path, types }) => `${path} ${types.join('|')}`).toSorted()).toEqual(expected)
})

test('lists all kinds of values at a path, and counts each record once', async () => {
  const found = await unmapped(paths(['$.a.b']), { a: 'x', n: [1, 2] }, { a: { b: 1 }, n: 'x' }, { a: 1.5 }, { a: { b: 1 } })
  expect(found).toEqual([
    { path: '$.a', types: ['number', 'string'], records: 2 },
    { path: '$.n', types: ['string', 'array'], records: 2 },
  ])
})

test('the most frequent paths come first, and thousands of names that are data are bounded', async () => {
  const records = Array.from({ length: 100 }, (_, record) => ({
    always: 1,
    often: record % 2 === 0 ? 1 : null,
    ...Object.fromEntries(Array.from({ length: 300 }, (_, key) => [`key ${record * 300 + key}`, 1])),
  }))
  const found = await unmapped(paths(['$.a']), ...records)
  expect(found).toHaveLength(qualityLimits.pathsMax)
  expect(found.slice(0, 2)).toMatchObject([
    { path: '$.always', records: 100 },
    { path: '$.often', records: 50 },
  ])
})

test('names of any length and characters give bounded, well-formed paths', async () => {
  const names = ['x'.repeat(100_000), `${'x'.repeat(100_000)}y`, '\ud800', '\0', '"', '\\', "'", '\u202e', '', '😀'.repeat(200)]
  const found = await unmapped(paths(['$.a']), Object.fromEntries(names.map((name) => [name, 1])))
  for (const { path } of found) {
    expect(path.length).toBeLessThanOrEqual(qualityLimits.pathCharsMax)
    expect(path.isWellFormed()).toBe(true)
  }
  // Two of the shortened paths are equal.
  expect(found).toHaveLength(names.length - 1)
  expect(found.every(({ records }) => records === 1)).toBe(true)
})

test('delivery samples records of every outcome, except those that are not valid JSON', async () => {
  const definition = { columns: [{ name: 'a', type: 'BIGINT', path: '$.a', required: true }], filters: [{ condition: 'a > 0' }] }
  const { quality } = await decide(definition, [
    '{"a":1,"new":1}',
    '{"a":-1,"new":"dropped"}',
    '{"new":NaN,}',
    '{"new":',
    Buffer.from([0x7b, 0xff]),
    JSON.stringify({ a: 1, large: 'x'.repeat(SAMPLE_BYTES_MAX) }),
  ])
  expect(quality).toMatchObject({
    sampled_records: 3,
    unmapped: [{ path: '$.new', types: ['integer', 'number', 'string'], records: 3 }],
  })
})

test('in random records, a path is reported if and only if no column reads it', async () => {
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(1, 'x', true, 1.5),
      fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd e'), tie('tree'), { maxKeys: 3 }),
    ),
  }))
  const steps = fc.array(fc.constantFrom('a', 'b', 'c', 'd e'), { minLength: 1, maxLength: 3 })
  await fc.assert(
    fc.asyncProperty(
      fc.array(tree, { maxLength: 6 }),
      fc.array(steps, { minLength: 1, maxLength: 4 }),
      async (records, mapped) => {
        const objects = records.map((record) => ({ a: record }))
        const columns = paths(...mapped.map((names) => [`$${names.map((name) => `['${name}']`).join('')}`] as const))
        const found = (await unmapped(columns, ...objects)).map(({ path, records }) => [path, records])
        const expected = new Map<string, number>()
        for (const record of objects)
          for (const path of leftOver(record, mapped, [])) expected.set(path, (expected.get(path) ?? 0) + 1)
        expect(found.toSorted()).toEqual([...expected].toSorted())
      },
    ),
    { numRuns: 200 },
  )
})

/** The same law, expressed by prefixes of the columns' paths. */
function leftOver(value: unknown, mapped: readonly (readonly string[])[], at: readonly string[]): readonly string[] {
  const startsHere = mapped.filter((names) => at.every((name, index) => names[index] === name))
  const path = `$${at.map((name) => (name === 'd e' ? "['d e']" : `.${name}`)).join('')}`
  if (startsHere.length === 0) return [path]
  if (typeof value !== 'object' || value === null) return startsHere.some(({ length }) => length === at.length) ? [] : [path]
  return Object.entries(value).flatMap(([name, inner]) => leftOver(inner, mapped, [...at, name]))
}
