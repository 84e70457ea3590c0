/** Compares what became of the records of a case with what the case expects. */

import type { ExpectedDeadLetter, ViewCase } from '#model/view-test.ts'
import type { ReadValue, RecordOutcome } from '#preview/decide-records.ts'

/** An entry of a list in the case, and the entry that came out. A side that is undefined has none. */
export type Pairing = {
  readonly expected: number | undefined
  readonly actual: Fields | undefined
  /** Names of the fields that differ. */
  readonly differing: readonly string[]
}

/** The expectations with which a case passes. */
export type Present = { readonly rows: readonly Pairing[]; readonly dropped: number; readonly deadLetters: readonly Pairing[] }

/** One difference. `path` is within the case; a side that is undefined has nothing there. */
export type Difference = {
  readonly path: string
  /** Indexes of the records that it is about. */
  readonly records: readonly number[]
  readonly expected?: unknown
  readonly actual?: unknown
  readonly message?: string
}

type Fields = Readonly<Record<string, unknown>>
type Actual = { readonly record: number; readonly fields: Fields; readonly message?: string }

/** Above this many comparisons, rows are paired by their order alone. */
const comparisonsMax = 1_000_000

/** Returns the expected value in the form of previews; undefined if it has no other. */
export type ReadExpected = (row: number, column: string) => ReadValue | undefined

export function compareCase(value: ViewCase, outcomes: readonly RecordOutcome[], read: ReadExpected): readonly Difference[] {
  const { rows, actualRows, letters, actualLetters, droppedRecords: records } = sidesOf(value, outcomes, read)
  const { dropped = 0 } = value
  return [
    ...compareLists('rows', rows, actualRows),
    ...(records.length === dropped ? [] : [{ path: 'dropped', records, expected: dropped, actual: records.length }]),
    ...compareLists('dead_letters', letters, actualLetters),
  ]
}

/** Returns what the case should say instead, beside what it says. */
export function presentOf(value: ViewCase, outcomes: readonly RecordOutcome[], read: ReadExpected): Present {
  const { rows, actualRows, letters, actualLetters, droppedRecords } = sidesOf(value, outcomes, read)
  const pairings = (expected: readonly Fields[], actual: readonly Actual[]): readonly Pairing[] =>
    pair(expected, actual).map(([at, other]) => {
      const [wanted, found] = [
        at === undefined ? undefined : expected[at],
        other === undefined ? undefined : actual[other]?.fields,
      ]
      return {
        expected: at,
        actual: found,
        differing: wanted === undefined || found === undefined ? [] : differing(wanted, found),
      }
    })
  return { rows: pairings(rows, actualRows), dropped: droppedRecords.length, deadLetters: pairings(letters, actualLetters) }
}

function sidesOf({ rows = [], dead_letters = [] }: ViewCase, outcomes: readonly RecordOutcome[], read: ReadExpected) {
  return {
    rows: rows.map((row, index) => withReadValues(row, (column) => read(index, column))),
    actualRows: outcomes.flatMap((outcome): readonly Actual[] =>
      'row' in outcome ? [{ record: outcome.record, fields: outcome.row }] : [],
    ),
    letters: dead_letters.map(withoutUnset),
    actualLetters: outcomes.flatMap((outcome): readonly Actual[] => {
      if (!('deadLetter' in outcome)) return []
      const { message, ...fields } = outcome.deadLetter
      return [{ record: outcome.record, fields: { ...fields, message }, message }]
    }),
    droppedRecords: outcomes.flatMap((outcome) => ('droppedBy' in outcome ? [outcome.record] : [])),
  }
}

function withReadValues(row: Fields, read: (column: string) => ReadValue | undefined): Fields {
  const values = Object.entries(row).map(([column, value]) => {
    const known = read(column)
    return [column, known !== undefined && 'value' in known ? known.value : value]
  })
  return Object.fromEntries(values)
}

function withoutUnset(letter: ExpectedDeadLetter): Fields {
  return Object.fromEntries(Object.entries(letter).filter(([, value]) => value !== undefined))
}

function compareLists(path: string, expected: readonly Fields[], actual: readonly Actual[]): readonly Difference[] {
  return pair(expected, actual).flatMap(([at, other]): readonly Difference[] => {
    const wanted = at === undefined ? undefined : expected[at]
    const found = other === undefined ? undefined : actual[other]
    if (wanted === undefined) {
      if (found === undefined) return []
      const { record, fields, message } = found
      return [{ path, records: [record], actual: message === undefined ? fields : brief(fields), ...(message && { message }) }]
    }
    if (found === undefined) return [{ path: `${path}[${at}]`, records: [], expected: wanted }]
    return differing(wanted, found.fields).map((name) => ({
      path: `${path}[${at}].${name}`,
      records: [found.record],
      expected: wanted[name],
      actual: found.fields[name] ?? null,
    }))
  })
}

function differing(expected: Fields, actual: Fields): readonly string[] {
  return Object.keys(expected).filter((name) => !areEqual(expected[name], actual[name]))
}

function brief({ message: _, ...fields }: Fields): Fields {
  return fields
}

type Pair = readonly [expected: number | undefined, actual: number | undefined]

/** Pairs as many equal entries as possible in order, and what is left between them by order. */
function pair(expected: readonly Fields[], actual: readonly Actual[]): readonly Pair[] {
  const pairs: Pair[] = []
  let [from, to] = [0, 0]
  const fill = (end: number, otherEnd: number) => {
    for (; from < end || to < otherEnd; ) pairs.push([from < end ? from++ : undefined, to < otherEnd ? to++ : undefined])
  }
  for (const [one, other] of commonOf(expected, actual)) {
    fill(one, other)
    pairs.push([from++, to++])
  }
  fill(expected.length, actual.length)
  return pairs
}

/** Returns the indexes of a longest common subsequence. */
function commonOf(expected: readonly Fields[], actual: readonly Actual[]): readonly (readonly [number, number])[] {
  const [rows, columns] = [expected.length, actual.length]
  if (rows * columns > comparisonsMax) return []
  const isSame = (at: number, other: number) => matches(expected[at] ?? {}, actual[other]?.fields ?? {})
  const same = Array.from({ length: rows }, (_, at) => Array.from({ length: columns }, (_, other) => isSame(at, other)))
  const lengths = Array.from({ length: rows + 1 }, () => new Int32Array(columns + 1))
  const lengthAt = (at: number, other: number) => lengths[at]?.[other] ?? 0
  for (let at = rows - 1; at >= 0; at -= 1)
    for (let other = columns - 1; other >= 0; other -= 1)
      lengths[at]?.fill(
        same[at]?.[other] ? lengthAt(at + 1, other + 1) + 1 : Math.max(lengthAt(at + 1, other), lengthAt(at, other + 1)),
        other,
        other + 1,
      )
  const common: (readonly [number, number])[] = []
  for (let [at, other] = [0, 0]; at < rows && other < columns; ) {
    if (same[at]?.[other]) common.push([at++, other++])
    else if (lengthAt(at + 1, other) >= lengthAt(at, other + 1)) at += 1
    else other += 1
  }
  return common
}

function matches(expected: Fields, actual: Fields): boolean {
  return differing(expected, actual).length === 0
}

/** Values of cells are text, numbers, booleans, null, and lists of them. */
function areEqual(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((item, index) => areEqual(item, other[index]))
  return one === (other ?? null)
}
