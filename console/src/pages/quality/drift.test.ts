import { expect, test } from 'vitest'
import { findDrift } from './drift.ts'

type Counts = { values?: number; nulls?: number; cast_nulls?: number; cast_dlq?: number; missing?: number }

function windowOf({ values = 0, nulls = 0, cast_nulls = 0, cast_dlq = 0, missing = 0 }: Counts) {
  const rate = { null_rate_pct: 0, min: null, max: null }
  return { values, nulls, cast_nulls, cast_dlq, missing, cast_failures: cast_nulls + cast_dlq, ...rate }
}

/** A column with these counts before the last 24 hours, and in them. */
function column(before: Counts, now: Counts) {
  const sum = (name: keyof Counts) => (before[name] ?? 0) + (now[name] ?? 0)
  const names = ['values', 'nulls', 'cast_nulls', 'cast_dlq', 'missing'] as const
  const all_time = windowOf(Object.fromEntries(names.map((name) => [name, sum(name)])))
  return { name: 'amount', type: 'BIGINT', hidden: false, last_24h: windowOf(now), all_time }
}

const steady = { values: 1_000, nulls: 10 }

test.each([
  ['nothing changed', steady, steady, []],
  ['NULL much more often', steady, { values: 50, nulls: 50 }, ['nulls']],
  ['NULL a little more often', steady, { values: 960, nulls: 40 }, []],
  ['NULL less often', { values: 50, nulls: 50 }, steady, []],
  ['casts fail and become NULL', steady, { values: 940, nulls: 40, cast_nulls: 20 }, ['cast_failures']],
  ['casts fail and reject the row', steady, { values: 900, cast_dlq: 20 }, ['cast_failures']],
  ['casts fail as often as before', { values: 900, cast_dlq: 20 }, { values: 900, cast_dlq: 21 }, []],
  ['required and missing', steady, { values: 900, missing: 30 }, ['missing']],
  ['all values are gone', steady, { nulls: 0, missing: 30 }, ['missing']],
  ['too few rows now', steady, { nulls: 19 }, []],
  ['nothing before', {}, { nulls: 900 }, []],
  ['nothing accepted before', { cast_dlq: 900 }, { nulls: 900 }, []],
  ['hardly anything accepted now', { values: 900 }, { nulls: 1, missing: 0, cast_dlq: 900 }, ['cast_failures']],
] as const)('%s', (_, before, now, kinds) => {
  expect(findDrift([column(before, now)]).map(({ kind }) => kind)).toEqual(kinds)
})

test('the last 24 hours are compared with what was before them', () => {
  const [drift] = findDrift([column({ values: 100 }, { values: 50, nulls: 50 })])
  expect(drift).toEqual({ column: 'amount', kind: 'nulls', before: 0, now: 0.5 })
})

test('a hidden column is compared by the rows of the others', () => {
  const hidden = { ...column({ cast_nulls: 2, missing: 1 }, { cast_nulls: 30, missing: 1 }), name: 'raw', hidden: true }
  expect(findDrift([column(steady, steady), hidden])).toEqual([
    { column: 'raw', kind: 'cast_failures', before: 2 / 1_011, now: 30 / 1_011 },
  ])
  const lost = { ...column({}, { cast_dlq: 30 }), name: 'raw', hidden: true }
  expect(findDrift([column(steady, { values: 970 }), lost]).map(({ kind }) => kind)).toEqual(['cast_failures'])
})
