import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import type { Definition } from '#model/definition.ts'
import { comparisonLimits } from '#model/limits.ts'
import { compileView } from '#views/compile.ts'
import { aValue, column, compare, receivedAtMs, textOf, useStoredFiles, withTable } from '../../test/support/stored-comparison.ts'
import { runs } from '../../test/support/thorough.ts'
import { decideSamples } from './decide-samples.ts'
import { tryView } from './preview.ts'

const files = useStoredFiles()
const { written } = files

const toBuffers = (records: readonly string[]) => records.map((text) => Buffer.from(text))

/** Counts of the view that delivery writes. */
async function delivered(definition: Definition, segments: readonly (readonly Buffer[])[]) {
  const sum = { rows: 0, duplicates: 0, accepted: 0, dropped: 0, dlq: 0, castNulls: 0 }
  const named = { name: 'orders', version: 1, compiled: await compileView(definition), secrets: {} }
  for (const [segmentSeq, payloads] of segments.entries()) {
    const directory = await mkdtemp(files.pathOf('segment-'))
    const { counts } = await withTable(directory, segmentSeq, payloads, async (table) =>
      table.writeAccepted(await table.extract([named]), 0, join(directory, 'view.parquet')),
    )
    for (const name of ['rows', 'duplicates', 'accepted', 'dropped', 'dlq', 'castNulls'] as const) sum[name] += counts[name]
  }
  return sum
}

/** A row that a preview shows, with the value of its first column. */
type Item = { readonly record: number; readonly item: number; readonly value: unknown }

async function itemsOf(definition: Definition, segments: readonly (readonly Buffer[])[]): Promise<readonly Item[]> {
  if (definition.expand === undefined) return []
  const position = { name: 'position', type: 'BIGINT', path: '$$.item_index' }
  const view = await compileView({ ...definition, columns: [...definition.columns, position] })
  const originOf = () => ({ envelope: { protocol: 'mqtt', topic: 'a/b', client_id: 'c' } as const, receivedAtMs })
  const { decided } = await decideSamples(view, segments.flat().map(String), { statement: () => ({}), originOf })
  return decided
    .filter(({ isWritten }) => isWritten)
    .map(({ index, values }) => ({ record: index, item: Number(values[definition.columns.length]), value: values[0] ?? null }))
}

const anItem = fc.oneof(fc.dictionary(fc.constantFrom('a', 'b'), aValue), aValue)
const aRecordWithItems = fc
  .record({
    a: aValue,
    items: fc.oneof({ weight: 5, arbitrary: fc.array(anItem, { maxLength: 4 }) }, aValue),
    others: fc.array(anItem, { maxLength: 2 }),
  })
  .map((value) => JSON.stringify(value))
/** Definitions that expand an array, leave out duplicates, or both. Their first column is `a`. */
const aDefinitionWithRows = fc
  .record({
    type: fc.constantFrom('BIGINT', 'VARCHAR', 'DOUBLE'),
    expand: fc.constantFrom(undefined, '$.items[*]', '$.items[*]', '$.others[*]'),
    key: fc.constantFrom(undefined, 'a', 'b'),
    rejects: fc.boolean(),
    isFiltered: fc.boolean(),
    isHidden: fc.boolean(),
  })
  .map(({ type, expand, key, rejects, isFiltered, isHidden }): Definition => {
    const scope = expand === undefined ? '$' : '$item'
    const a = column('a', type, { path: `${scope}.a`, cast_failures: rejects ? 'dlq' : 'null' })
    const b = column('b', 'VARCHAR', { path: expand === undefined ? '$.a' : '$item.b', hidden: isHidden })
    const filters = isFiltered ? [{ condition: "CAST(a AS VARCHAR) <> '1'" }] : []
    return { columns: [a, b], filters, ...(expand && { expand }), ...(key && { dedupe_by: [key] }) }
  })

test('a preview counts what delivery counts, with elements and duplicates', { timeout: 120_000 }, async () => {
  const options = { clock: systemClock, timeoutMs: 30_000 }
  await fc.assert(
    fc.asyncProperty(
      aDefinitionWithRows,
      fc.array(aRecordWithItems, { minLength: 1, maxLength: 30 }),
      async (definition, records) => {
        const { counts, rowCount, rows, items = [] } = await tryView(await compileView(definition), records, options, 30_000)
        const { castNulls: _, ...all } = await delivered(definition, [toBuffers(records)])
        const { processed, failed, ...decided } = counts
        expect({ ...decided, rows: rowCount }).toEqual(all)
        expect([processed, failed, rows.length]).toEqual([records.length, 0, rowCount])
        expect(items.flatMap(({ row }) => (row === null ? [] : [row]))).toEqual(items.length === 0 ? [] : [...rows.keys()])
      },
    ),
    { numRuns: runs(25, 300) },
  )
})

describe('a comparison of rows', () => {
  test('counts what delivery counts, with elements and duplicates', { timeout: 120_000 }, async () => {
    const aCase = fc.tuple(aDefinitionWithRows, aDefinitionWithRows, fc.array(aRecordWithItems, { minLength: 1, maxLength: 30 }))
    await fc.assert(
      fc.asyncProperty(aCase, async ([before, after, records]) => {
        const half = Math.ceil(records.length / 2)
        const parts = [records.slice(0, half), records.slice(half)].filter(({ length }) => length > 0).map(toBuffers)
        const stored = await Promise.all(parts.map((part, seq) => written(seq, part)))
        const compared = await compare(before, after, stored)
        for (const [side, definition] of [[compared.before, before] as const, [compared.after, after] as const]) {
          const { rows, duplicates, accepted, dropped, dlq, dead_letters, cast_nulls: castNulls } = side
          expect({ rows, duplicates, accepted, dropped, dlq, castNulls }).toEqual(await delivered(definition, parts))
          expect(dead_letters.reduce((sum, letter) => sum + letter.records, 0)).toBe(dlq)
        }
        const [one, other] = [await itemsOf(before, parts), await itemsOf(after, parts)]
        const isSameArray = before.expand === after.expand
        expect(compared.matched_by).toBe(isSameArray ? (before.expand === undefined ? 'record' : 'item') : null)
        if (!isSameArray || before.expand === undefined || before.dedupe_by || after.dedupe_by) return
        const both = one.filter(({ record }) => other.some((each) => each.record === record))
        const bothOther = other.filter(({ record }) => one.some((each) => each.record === record))
        const isIn = (row: Item, rows: readonly Item[]) =>
          rows.some(({ record, item }) => record === row.record && item === row.item)
        const lost = both.filter((row) => !isIn(row, bothOther))
        const fresh = bothOther.filter((row) => !isIn(row, both))
        const counts = Object.fromEntries(compared.row_changes.map(({ change, rows }) => [change, rows]))
        expect(counts).toEqual({
          ...(lost.length > 0 && { lost: lost.length }),
          ...(fresh.length > 0 && { new: fresh.length }),
        })
        for (const { change, rows, samples } of compared.row_changes) {
          expect(samples).toHaveLength(Math.min(rows, comparisonLimits.samplesMax))
          for (const { segment_seq, record_index, item_index } of samples)
            expect(change === 'lost' ? lost : fresh).toContainEqual(
              expect.objectContaining({ record: segment_seq * half + record_index, item: item_index }),
            )
        }
        const rowLike = (row: Item, rows: readonly Item[]) =>
          rows.find((each) => each.record === row.record && each.item === row.item)
        const differing = both.filter((row) => {
          const then = rowLike(row, bothOther)
          return then !== undefined && JSON.stringify(then.value) !== JSON.stringify(row.value)
        })
        const [first] = compared.columns
        expect(first?.values_differ).toBe(differing.length)
        for (const { segment_seq, record_index, item_index, value_before } of first?.samples ?? [])
          expect(differing).toContainEqual({ record: segment_seq * half + record_index, item: item_index, value: value_before })
      }),
      { numRuns: runs(25, 300) },
    )
  })

  test('finds the duplicates of a segment that is larger than a batch, and of no other', async () => {
    const key = { columns: [column('id', 'BIGINT'), column('n', 'BIGINT')] }
    const deduped = { ...key, dedupe_by: ['id'] }
    const records = Array.from({ length: 1_500 }, (_, n) => ({ id: n % 1_000 || null, n }))
    const stored = [await written(1, textOf(records)), await written(2, textOf(records.slice(0, 10)))]
    const { before, after, outcome_changes, records_read } = await compare(key, deduped, stored)
    expect(records_read).toBe(1_510)
    expect(before).toMatchObject({ rows: 1_510, duplicates: 0, accepted: 1_510, dropped: 0 })
    // Records without an id are like no other.
    expect(after).toMatchObject({ rows: 1_011, duplicates: 499, accepted: 1_011, dropped: 499 })
    expect(outcome_changes).toMatchObject([{ before: 'accepted', after: 'dropped', records: 499 }])
    const [change] = outcome_changes
    expect(change?.samples.map(({ record_index, dropped_by }) => [record_index, dropped_by])).toEqual(
      [1_001, 1_002, 1_003, 1_004, 1_005].map((index) => [index, 'duplicate']),
    )
  })

  test('matches elements by their place, and shows rows that are lost', async () => {
    const before = { expand: '$.items[*]', columns: [column('sku', 'VARCHAR', { path: '$item.sku' })] }
    const after = {
      expand: "$['items'][*]",
      columns: [
        column('sku', 'VARCHAR', { value: 'lower(raw)' }),
        column('raw', 'VARCHAR', { path: '$item.sku', hidden: true }),
        column('n', 'INTEGER', { path: '$item.n', cast_failures: 'dlq' }),
      ],
      filters: [{ condition: 'n > 0' }],
      dedupe_by: ['sku'],
    }
    const stored = await written(
      3,
      textOf([
        {
          items: [
            { sku: 'a', n: 1 },
            { sku: 'B', n: 1 },
            { sku: 'c', n: 0 },
            { sku: 'A', n: 2 },
          ],
        },
        { items: [{ sku: 'd', n: 'x' }] },
        { items: [] },
      ]),
    )
    const compared = await compare(before, after, [stored])
    expect(compared).toMatchObject({ is_same: false, matched_by: 'item' })
    expect(compared.before).toMatchObject({ expand: '$.items[*]', rows: 5, accepted: 2, dropped: 1, dlq: 0, duplicates: 0 })
    expect(compared.after).toMatchObject({ rows: 2, accepted: 1, dropped: 1, dlq: 1, duplicates: 1 })
    expect(compared.outcome_changes).toMatchObject([
      {
        ...{ before: 'accepted', after: 'dlq', records: 1 },
        samples: [{ record_index: 1, reason_after: { column: 'n', message: expect.stringContaining('$.items[0]') } }],
      },
    ])
    expect(compared.row_changes).toMatchObject([
      {
        ...{ change: 'lost', rows: 2 },
        samples: [
          { record_index: 0, item_index: 2, dropped_by: 'filter' },
          { record_index: 0, item_index: 3, dropped_by: 'duplicate' },
        ],
      },
    ])
    expect(compared.columns).toMatchObject([
      { name: 'sku', values_differ: 1, samples: [{ item_index: 1, value_before: 'B', value_after: 'b' }] },
      { name: 'n', before: null, after: { nulls: 0 } },
    ])
    expect(await compare(before, before, [stored])).toMatchObject({ is_same: true, row_changes: [] })
  })

  test('compares counts and records if only one expands, or another array', async () => {
    const plain = { columns: [column('n', 'BIGINT')] }
    const expanded = { ...plain, expand: '$.items[*]' }
    const stored = await written(1, textOf([{ n: 1, items: [1, 2, 3] }, { n: 2 }, { n: 3, items: 'none', others: [1] }]))
    const compared = await compare(plain, expanded, [stored])
    expect(compared).toMatchObject({
      ...{ is_same: false, matched_by: null, row_changes: [] },
      before: { expand: null, rows: 3, accepted: 3 },
      after: { expand: '$.items[*]', rows: 3, accepted: 1, dropped: 1, dlq: 1 },
      columns: [{ name: 'n', values_differ: null, samples: [] }],
    })
    expect(compared.after.dead_letters).toEqual([{ error_code: 'expand_failed', column: null, records: 1 }])
    expect(compared.outcome_changes.map(({ after, samples }) => [after, samples[0]?.dropped_by]).toSorted()).toEqual([
      ['dlq', null],
      ['dropped', 'no_element'],
    ])
    const other = await compare(expanded, { ...plain, expand: '$.others[*]' }, [stored])
    expect(other).toMatchObject({ matched_by: null, before: { rows: 3 }, after: { rows: 1, expand: '$.others[*]' } })
  })

  test('ends at a bound of rows', async () => {
    const definition = { columns: [column('n', 'BIGINT', { path: '$item' })], expand: '$.items[*]' }
    const stored = await written(1, textOf(Array(600).fill({ items: [1, 2, 3, 4, 5] })))
    const compared = await compare(definition, definition, [stored], { rowsMax: 2_000 })
    expect(compared).toMatchObject({ is_complete: false, bounded_by: ['rows'], records_read: 256, before: { rows: 1_280 } })
  })
})
