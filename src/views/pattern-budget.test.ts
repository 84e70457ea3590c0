import { expect, test } from 'vitest'
import { AppError } from '#errors.ts'
import { MiB } from '#lib/bytes.ts'
import { compileView } from './compile.ts'
import { countGroups, patternSize } from './pattern-size.ts'

const columns = [
  { name: 's', type: 'VARCHAR', path: '$.s' },
  { name: 'other', type: 'VARCHAR', path: '$.other' },
]

async function problemWith(recordBytes: number, ...conditions: readonly string[]): Promise<string | undefined> {
  const compiled = await compileView({ columns, filters: conditions.map((condition) => ({ condition })) })
  return compiled.patterns.problemWith(recordBytes)
}

async function refusal(...conditions: readonly string[]): Promise<string | undefined> {
  try {
    await compileView({ columns, filters: conditions.map((condition) => ({ condition })) })
    return undefined
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return error.errors?.[0]?.message
  }
}

test.each([
  ['abc', 3],
  ['a{3}', 3],
  ['(ab){2,5}', 10],
  ['((a{10}){10}){10}', 1000],
  ['[a-z]{4}', 4],
  ['\\({2}', 2],
  ['(', 0],
  ['[]a]{2}', 2],
  ['a{,5}', 5],
  ['.{10}', 20],
  ['\\pL{10}', 160],
  ['\\p{Greek}{10}', 160],
  ['[^x]{10}', 50],
  ['[aé漢]{10}', 90],
  ['é{10}', 40],
  ['\\x{6f22}{10}', 40],
  // The bracket is quoted, so it begins no class.
  ['\\Q[\\E(.?){100}]', 306],
])('the size of %s counts its repetitions written out, and what characters cost', (pattern, size) => {
  expect(patternSize(pattern)).toBe(size)
})

test.each([
  ['(a)(?:b)(?P<c>c)(?<d>d)[(]\\(', 3],
  ['\\Q(\\E(a)', 1],
])('the groups of %s are counted', (pattern, groups) => {
  expect(countGroups(pattern)).toBe(groups)
})

test('a pattern is refused on records that are too large for it, by name and with a way out', async () => {
  const hostile = `${'[ab]*a[ab]{40}'.repeat(9)}c`
  const condition = `regexp_matches(s, '${hostile.replaceAll('{40}', '{400}')}')`
  expect(await problemWith(100_000, condition)).toBeUndefined()
  const problem = await problemWith(MiB, condition)
  expect(problem).toContain('its patterns take too long on a record of 1048576 bytes, above all the pattern "[ab]*a[ab]{400}')
  expect(problem).toContain('repeat less in it, match a shorter text, or send smaller records')
})

test.each([
  ["s LIKE '%error%'"],
  ["s ILIKE '%error%' AND other LIKE 'a_b%'"],
  ["regexp_full_match(s, '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}')"],
  ["regexp_extract(s, '^(GET|POST) ([^ ?]+)', 2) = '/'"],
  ["contains(s, other) AND replace(s, '-', '') <> ''"],
])('%s is fast enough for the largest record', async (condition) => {
  expect(await problemWith(MiB, condition)).toBeUndefined()
})

test.each([
  ['the texts that calls return', [`regexp_matches(${'concat(s, s, s, s, s)'}, '.{400}x')`]],
  ['many patterns together', Array.from({ length: 10 }, (_, index) => `regexp_matches(s, '[ab]{100}${index}')`)],
  ['LIKE that is matched as a regular expression', [`s ILIKE '${'%a'.repeat(400)}'`]],
  ['searches for texts of the record', Array.from({ length: 5 }, (_, index) => `strpos(s, concat(other, '${index}')) > 0`)],
])('%s count', async (_, conditions) => {
  expect(await problemWith(10_000, ...conditions)).toBeUndefined()
  expect(await problemWith(MiB, ...conditions)).toContain('its patterns take too long')
})

test('patterns that are too slow for small records are refused when the view is compiled', async () => {
  const large = "regexp_matches(s, '[ab]{1000}[ab]{1000}[ab]{1000}[ab]{1000}[ab]{900}')"
  expect(await refusal(large, large, large)).toBeUndefined()
  expect(await refusal(large, large, large, large)).toContain(
    'must be fast enough for records of 65536 bytes; repeat less in the pattern "[ab]{1000}',
  )
  expect(await refusal(`s ILIKE '${'%_'.repeat(1_500)}'`)).toContain('too large')
})
