import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Database } from '#duckdb/database.ts'
import { quoteLiteral } from '#duckdb/quote.ts'
import { MiB } from '#lib/bytes.ts'
import { type Column, type Definition, withListForm } from '#model/definition.ts'
import { comparisonLimits } from '#model/limits.ts'
import type { RowOutcome, ViewComparison } from '#model/view-comparison.ts'
import { compileView } from '#views/compile.ts'
import { verdicts } from '#views/extraction.ts'
import { aValue, column, compare, receivedAtMs, textOf, useStoredFiles } from '../../test/support/stored-comparison.ts'
import { runs } from '../../test/support/thorough.ts'
import { decideSamples } from './decide-samples.ts'

const files = useStoredFiles()
const { written } = files

test('compares hashes with a secret', async () => {
  const columns = [{ name: 'id', type: 'VARCHAR', path: '$.id' }]
  const hash = (value: string) => ({ columns: [...columns, { name: 'h', type: 'VARCHAR', value }] })
  const stored = await written(
    1,
    ['{"id":"a"}', '{"id":"B"}'].map((text) => Buffer.from(text)),
  )
  const [before, after] = [hash("hmac_sha256('key', id)"), hash("hmac_sha256('key', lower(id))")]
  const { columns: compared } = await compare(before, after, [stored])
  expect(compared.map(({ name, values_differ }) => [name, values_differ])).toEqual([
    ['id', 0],
    ['h', 1],
  ])
})

/** The outcome of one record in a preview. */
type Decided = {
  readonly outcome: RowOutcome
  readonly reason: string | undefined
  readonly values: ReadonlyMap<string, unknown>
}

/** Decides the records by one definition alone, as a preview does. */
async function decide(definition: Definition, records: readonly string[]): Promise<readonly Decided[]> {
  const view = await compileView(definition)
  const envelope = { protocol: 'mqtt', topic: 'a/b', client_id: 'c' } as const
  const originOf = () => ({ envelope, receivedAtMs })
  const { decided, errors } = await decideSamples(view, records, { statement: () => ({}), originOf })
  const reasons = new Map(errors.map(({ sample_index, code, column: of }) => [sample_index, `${code} ${of}`]))
  return decided.map(({ index, verdict, values }) => ({
    outcome: reasons.has(index) ? 'dlq' : verdict === verdicts.accepted ? 'accepted' : 'dropped',
    reason: reasons.get(index),
    values: new Map(view.columns.flatMap(({ name, hidden }, at) => (hidden ? [] : [[name, values[at] ?? null] as const]))),
  }))
}

/** Counts by key. */
function count(keys: readonly (string | undefined)[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const key of keys) if (key !== undefined) counts[key] = (counts[key] ?? 0) + 1
  return counts
}

const types = ['BIGINT', 'VARCHAR', 'DOUBLE', 'TIMESTAMP', 'BOOLEAN', 'JSON', 'DECIMAL(9,2)', 'VARCHAR[]']
const names = ['a', 'b', 'c', 'd']
const aColumn = (name: string) =>
  fc
    .record({
      type: fc.constantFrom(...types),
      path: fc.constantFrom('$.a', '$.b', '$.c', '$.list', '$$.topic'),
      required: fc.boolean(),
      cast_failures: fc.constantFrom('null' as const, 'dlq' as const),
    })
    .map(({ path, type, ...rest }): Column => ({ name, type: path === '$$.topic' ? 'VARCHAR' : type, path, ...rest }))
const aDefinition = fc
  .tuple(
    fc.subarray(names, { minLength: 1 }).chain((chosen) => fc.tuple(...chosen.map(aColumn))),
    fc.boolean(),
    fc.boolean(),
  )
  .map(([columns, isFiltered, isComputed]): Definition => {
    const [first] = columns
    const computed: Column[] =
      isComputed && first ? [column('e', 'VARCHAR', { value: `lower(CAST(${first.name} AS VARCHAR))` })] : []
    const filters = isFiltered && first ? [{ condition: `CAST(${first.name} AS VARCHAR) <> '1'` }] : []
    return withListForm({ columns: [...columns, ...computed], filters })
  })
const aRecord = fc.oneof(
  { weight: 9, arbitrary: fc.dictionary(fc.constantFrom('a', 'b', 'c', 'list'), aValue).map((value) => JSON.stringify(value)) },
  { weight: 1, arbitrary: fc.constantFrom('{', '[]', 'null', '{"a":') },
)

function expectSide(side: ViewComparison['before'], decided: readonly Decided[], castNulls = side.cast_nulls) {
  const outcomes = count(decided.map(({ outcome }) => outcome))
  const letters = side.dead_letters.map(({ error_code, column: of, records }) => [`${error_code} ${of}`, records])
  expect(side).toMatchObject({
    accepted: outcomes['accepted'] ?? 0,
    dropped: outcomes['dropped'] ?? 0,
    dlq: outcomes['dlq'] ?? 0,
    rows: outcomes['accepted'] ?? 0,
    cast_nulls: castNulls,
  })
  expect(Object.fromEntries(letters)).toEqual(count(decided.map(({ reason }) => reason)))
}

describe('a comparison', () => {
  test('says the same as two previews', { timeout: 120_000 }, async () => {
    const aCase = fc.tuple(aDefinition, aDefinition, fc.array(aRecord, { minLength: 1, maxLength: 40 }))
    await fc.assert(
      fc.asyncProperty(aCase, async ([before, after, records]) => {
        const half = Math.ceil(records.length / 2)
        const parts = [records.slice(0, half), records.slice(half)].filter(({ length }) => length > 0)
        const stored = await Promise.all(
          parts.map((part, seq) =>
            written(
              seq,
              part.map((text) => Buffer.from(text)),
            ),
          ),
        )
        const compared = await compare(before, after, stored)
        const [one, other] = [await decide(before, records), await decide(after, records)]
        expect(compared.records_read).toBe(records.length)
        expectSide(compared.before, one)
        expectSide(compared.after, other)
        const pairs = one.map(({ outcome }, index) => `${outcome} ${other[index]?.outcome}`)
        const changed = count(pairs.filter((pair) => new Set(pair.split(' ')).size === 2))
        expect(
          Object.fromEntries(compared.outcome_changes.map((each) => [`${each.before} ${each.after}`, each.records])),
        ).toEqual(changed)
        for (const { before: from, after: to, samples, records: all } of compared.outcome_changes) {
          expect(samples).toHaveLength(Math.min(all, comparisonLimits.samplesMax))
          for (const { segment_seq, record_index, record, reason_after } of samples) {
            const index = segment_seq * half + record_index
            expect([record, pairs[index]]).toEqual([records[index], `${from} ${to}`])
            expect(reason_after && `${reason_after.error_code} ${reason_after.column}`).toBe(other[index]?.reason ?? null)
          }
        }
        for (const { name, before: old, after: now, values_differ, samples } of compared.columns) {
          const nulls = (decided: readonly Decided[]) =>
            decided.filter(({ outcome, values }) => outcome === 'accepted' && values.get(name) === null).length
          expect([old?.nulls, now?.nulls]).toEqual([old && nulls(one), now && nulls(other)].map((each) => each ?? undefined))
          if (old?.type !== now?.type) continue
          const both = one.flatMap(({ outcome, values }, index) => {
            const then = other[index]
            return outcome === 'accepted' && then?.outcome === 'accepted'
              ? [[values.get(name), then.values.get(name), index]]
              : []
          })
          const differing = both.filter(([value, then]) => JSON.stringify(value) !== JSON.stringify(then))
          expect(values_differ).toBe(differing.length)
          const shown = samples.map((each) => [each.value_before, each.value_after, each.segment_seq * half + each.record_index])
          expect(shown).toEqual(differing.slice(0, comparisonLimits.samplesMax))
        }
      }),
      { numRuns: runs(15, 300) },
    )
  })

  test('names new, lost and changed columns, and NULLs of casts on both sides', async () => {
    const before = { columns: [column('id', 'BIGINT'), column('n', 'BIGINT'), column('gone', 'VARCHAR')] }
    const after = {
      columns: [
        column('id', 'BIGINT'),
        column('n', 'DOUBLE'),
        column('fresh', 'VARCHAR'),
        column('hid', 'VARCHAR', { hidden: true }),
      ],
    }
    const stored = await written(
      4,
      textOf([
        { id: 1, n: 7 },
        { id: 'x', n: 1.5 },
        { id: 3, n: 'y', fresh: 'z' },
      ]),
    )
    const { columns, is_same, before: one, after: other } = await compare(before, after, [stored])
    expect(is_same).toBe(false)
    expect([one.cast_nulls, other.cast_nulls]).toEqual([2, 2])
    expect(columns.map(({ name, before: old, after: now, values_differ }) => [name, old, now, values_differ])).toEqual([
      ['id', ...Array(2).fill({ type: 'BIGINT', nulls: 1, null_rate_pct: 33.33, cast_nulls: 1 }), 0],
      // 7 and 7.0 are the same number, 1.5 was rounded.
      [
        'n',
        { type: 'BIGINT', nulls: 1, null_rate_pct: 33.33, cast_nulls: 1 },
        { type: 'DOUBLE', nulls: 1, null_rate_pct: 33.33, cast_nulls: 1 },
        1,
      ],
      ['fresh', null, { type: 'VARCHAR', nulls: 2, null_rate_pct: 66.67, cast_nulls: 0 }, 0],
      ['gone', { type: 'VARCHAR', nulls: 3, null_rate_pct: 100, cast_nulls: 0 }, null, 0],
    ])
    expect(columns[1]?.samples).toMatchObject([{ value_before: '2', value_after: 1.5, segment_seq: 4, record_index: 1 }])
  })

  test('bounds records and values in samples, and shows bytes that are no text', async () => {
    const [before, after] = [{ columns: [column('a', 'VARCHAR')] }, { columns: [column('a', 'VARCHAR', { path: '$.b' })] }]
    const long = 'ü'.repeat(5_000)
    const stored = await written(1, [...textOf(Array(9).fill({ a: long, b: `${long}!` })), Buffer.from([0xff, 0x00])])
    const { columns, before: side } = await compare(before, after, [stored])
    expect(side.dead_letters).toEqual([{ error_code: 'invalid_utf8', column: null, records: 1 }])
    const [{ samples, values_differ } = { samples: [], values_differ: 0 }] = columns
    expect([samples.length, values_differ]).toEqual([5, 9])
    for (const { record, is_cut, value_before, is_value_cut } of samples) {
      expect([record?.length, is_cut, is_value_cut]).toEqual([comparisonLimits.recordCharsMax, true, true])
      expect(value_before).toBe('ü'.repeat(comparisonLimits.valueCharsMax))
    }
    const required = { columns: [column('a', 'VARCHAR', { required: true })] }
    const same = await compare(required, required, [stored])
    expect(same).toMatchObject({ is_same: true, outcome_changes: [] })
  })

  test('reads the rows of one segment from a merged file', async () => {
    const definition = { columns: [column('n', 'BIGINT')] }
    const [one, other] = [
      await written(1, textOf([{ n: 1 }, { n: 2 }])),
      await written(2, textOf([{ n: 3 }, { n: 4 }, { n: 5 }])),
    ]
    const path = files.pathOf('merged.parquet')
    const database = await Database.open({ directories: [files.pathOf('')], memoryBytes: 64 * MiB })
    const connection = await database.connect()
    await connection.run(
      `COPY (SELECT * FROM read_parquet([${quoteLiteral(one.path)}, ${quoteLiteral(other.path)}])) TO ${quoteLiteral(path)} (FORMAT parquet)`,
    )
    database.close()
    const changed = { columns: [column('n', 'BIGINT', { value: 'm + 1' }), column('m', 'BIGINT', { path: '$.n' })] }
    const { columns, records_read } = await compare(definition, changed, [{ ...other, path, part: { first_row: 2, rows: 3 } }])
    expect(records_read).toBe(3)
    expect(
      columns[0]?.samples.map(({ segment_seq, value_before, value_after }) => [segment_seq, value_before, value_after]),
    ).toEqual([
      [2, '3', '4'],
      [2, '4', '5'],
      [2, '5', '6'],
    ])
  })

  test('ends at a bound, and says at which', async () => {
    const definition = { columns: [column('n', 'BIGINT')] }
    const stored = await written(1, textOf(Array.from({ length: 3_000 }, (_, n) => ({ n }))))
    const thrice = [stored, stored, stored]
    const records = await compare(definition, definition, thrice, { recordsMax: 4_000 })
    expect(records).toMatchObject({ records_read: 4_000, is_complete: false, bounded_by: ['records'] })
    expect(records.endpoints).toMatchObject([{ records_read: 4_000 }])
    const time = await compare(definition, definition, thrice, { readingMs: 0 })
    expect(time).toMatchObject({ is_complete: false, bounded_by: ['time'] })
    expect(time.records_read).toBeGreaterThan(0)
    expect(time.records_read).toBeLessThan(9_000)
    expect(await compare(definition, definition, thrice, { recordsMax: 9_000 })).toMatchObject({
      is_complete: true,
      bounded_by: [],
    })
  })

  test('leaves out a file that is no raw Parquet, unless there is no other', async () => {
    const definition = { columns: [column('n', 'BIGINT')] }
    const stored = await written(1, textOf([{ n: 1 }]))
    const path = files.pathOf('other.parquet')
    const database = await Database.open({ directories: [files.pathOf('')], memoryBytes: 64 * MiB })
    const connection = await database.connect()
    await connection.run(`COPY (SELECT 1 AS n) TO ${quoteLiteral(path)} (FORMAT parquet)`)
    database.close()
    const damaged = { ...stored, path, part: { first_row: 0, rows: 1 } }
    const compared = await compare(definition, definition, [damaged, stored, damaged])
    expect(compared).toMatchObject({
      ...{ records_read: 1, is_complete: false, bounded_by: ['unread_files'] },
      unread_files: [{ reason: 'damaged', files: 1 }],
    })
    await expect(compare(definition, definition, [damaged])).rejects.toThrow(expect.objectContaining({ name: 'UnreadableFile' }))
  })

  test('takes a record that is too complex for one definition alone', { timeout: 60_000 }, async () => {
    const wide = Array.from({ length: 40 }, (_, index) => column(`c${index}`, 'VARCHAR[]', { path: `$.items[*].k${index}` }))
    const items = Array.from({ length: 60_000 }, (_, k) => ({ k0: k }))
    const stored = await written(1, textOf([{ a: 1 }, { a: 2, items }, { a: 3 }]))
    const [before, after] = [{ columns: [column('a', 'BIGINT')] }, withListForm({ columns: [column('a', 'BIGINT'), ...wide] })]
    const { before: one, after: other } = await compare(before, after, [stored])
    expect(one).toMatchObject({ accepted: 3, dlq: 0 })
    expect(other).toMatchObject({ accepted: 2, dlq: 1, dead_letters: [{ error_code: 'too_complex', column: null, records: 1 }] })
  })

  test('rejects a record that is too large for the patterns, as a preview does', async () => {
    // Takes minutes on a megabyte of these letters.
    const slow = "regexp_matches(x, '[ab]*a[ab]{900}[ab]{900}')"
    const letters = 'ab'.repeat(450_000)
    const columns = [{ name: 'x', type: 'VARCHAR', path: '$.x' }]
    const definition = { columns, filters: [{ condition: `NOT ${slow}` }] }
    const records = ['{"x":"abc"}', JSON.stringify({ x: letters }), JSON.stringify({ x: 'b', pad: letters })]
    const { decided, errors } = await decideSamples(await compileView(definition), records, {
      statement: () => ({}),
      originOf: () => ({ envelope: { protocol: 'http' }, receivedAtMs }),
    })
    expect(decided.map(({ isWritten }) => isWritten)).toEqual([true, false, true])
    expect(errors).toMatchObject([{ sample_index: 1, column: null, code: 'too_complex' }])
    const stored = await written(
      1,
      records.map((record) => Buffer.from(record)),
    )
    const { before, after } = await compare({ columns }, definition, [stored])
    expect(before).toMatchObject({ accepted: 3, dlq: 0 })
    expect(after).toMatchObject({ accepted: 2, dlq: 1, dead_letters: [{ error_code: 'too_complex', column: null, records: 1 }] })
  })
})
