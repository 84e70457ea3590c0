/** Runs the tests of views: decides all records of a view at once, then compares case by case. */
import { AppError } from '#errors.ts'
import { nearestName } from '#lib/nearest-name.ts'
import { writtenColumns } from '#model/definition.ts'
import { standInOf } from '#model/secret.ts'
import { CaseEnvelope } from '#model/view-test.ts'
import { type ReadValue, type RecordDecider, type RecordOutcome, UndecidedRecords } from '#preview/decide-records.ts'
import type { DeclaredSetup } from '../setup/kinds/declared.ts'
import type { Problems } from '../setup/kinds/problems.ts'
import { compareCase, type Difference, type Present, presentOf, type ReadExpected } from './compare.ts'
import type { Suite, TestCase } from './read-tests.ts'

export type CaseResult = {
  readonly suite: Suite
  readonly testCase: TestCase
  /** The expectations with which it passes. */
  readonly present: () => Present
  /** None: the case passed. */
  readonly differences: readonly Difference[]
}

type CompiledView = Awaited<ReturnType<RecordDecider['compile']>>

/** Compiles every view of the set-up, whether it has tests or not. Problems are added. */
export async function compileViews(
  setup: DeclaredSetup,
  decider: RecordDecider,
  problems: Problems,
): Promise<ReadonlyMap<string, CompiledView>> {
  const compiled = new Map<string, CompiledView>()
  for (const { value, source } of setup.views) {
    try {
      compiled.set(value.name, await decider.compile(value.definition))
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      const { errors = [] } = error
      if (errors.length === 0) source.report(problems, 'definition', error.message)
      for (const { path, message, excerpt } of errors) source.report(problems, path, message, excerpt)
    }
  }
  return compiled
}

/** Expected values that can be none of their column are problems. */
export async function runSuite(
  suite: Suite,
  compiled: CompiledView,
  decider: RecordDecider,
  problems: Problems,
): Promise<readonly CaseResult[]> {
  const { cases, source } = suite
  for (const testCase of cases) reportUnknownColumns(testCase, compiled, problems)
  try {
    const outcomes = await decideCases(suite, compiled, decider)
    const failed = cases.flatMap(({ value }, index) =>
      compareCase(value, outcomes[index] ?? [], () => undefined).some(isAboutRows) ? [index] : [],
    )
    const expected = await readExpected(failed, cases, compiled, decider, problems)
    return cases.map((testCase, index): CaseResult => {
      const { value } = testCase
      const read: ReadExpected = (row, column) => expected.get(index)?.[row]?.get(column)
      const ofCase = outcomes[index] ?? []
      return {
        ...{ suite, testCase },
        differences: compareCase(value, ofCase, read),
        present: () => presentOf(value, ofCase, read),
      }
    })
  } catch (error) {
    if (!(error instanceof UndecidedRecords)) throw error
    source.report(problems, 'cases', `have records that ${error.message}`)
    return []
  }
}

function isAboutRows({ path }: Difference): boolean {
  return path.startsWith('rows')
}

function reportUnknownColumns(
  { value: { rows = [], dead_letters = [] }, source }: TestCase,
  compiled: CompiledView,
  problems: Problems,
): void {
  const all = compiled.columns.map(({ name }) => name)
  const written = writtenColumns(compiled.columns).map(({ name }) => name)
  const check = (columns: readonly string[], name: string, ...path: readonly string[]) => {
    if (columns.includes(name)) return
    const nearest = nearestName(name, columns)
    const hint = nearest === undefined ? `the view has ${columns.slice(0, 20).join(', ')}` : `did you mean ${nearest}?`
    source.at(...path).report(problems, '', `names ${name}, which is no column of the view: ${hint}`)
  }
  for (const [index, row] of rows.entries())
    for (const name of Object.keys(row)) check(written, name, 'rows', String(index), name)
  for (const [index, { column }] of dead_letters.entries())
    if (typeof column === 'string') check(all, column, 'dead_letters', String(index), 'column')
}

/** Returns the outcomes of each case, with the indexes of its own records. */
async function decideCases(
  { cases, secrets }: Suite,
  compiled: CompiledView,
  decider: RecordDecider,
): Promise<readonly (readonly RecordOutcome[])[]> {
  const origins = cases.map(({ value: { envelope } }) => originOf(envelope ?? CaseEnvelope.parse({})))
  const all = cases.flatMap(({ records }, index) => records.map((text, record) => ({ text, index, record })))
  const outcomes = await decider.decide(
    compiled,
    all.map(({ text }) => text),
    {
      originOf: (record) => origins[all[record]?.index ?? 0] ?? originOf(CaseEnvelope.parse({})),
      segmentOf: (record) => all[record]?.index ?? 0,
      secrets: Object.fromEntries(compiled.secrets.map((name) => [name, standInFor(name, secrets)])),
    },
  )
  const ofCases = cases.map((): RecordOutcome[] => [])
  for (const outcome of outcomes) {
    const { index = 0, record = 0 } = all[outcome.record] ?? {}
    ofCases[index]?.push({ ...outcome, record })
  }
  return ofCases
}

/** Tests never have the secret itself. */
function standInFor(name: string, given: Suite['secrets']): string {
  return Object.hasOwn(given, name) ? Buffer.from(given[name] ?? '').toString('base64') : standInOf(name)
}

function originOf({ received_at, ...envelope }: CaseEnvelope) {
  const { headers, topic, client_id, protocol = topic === undefined && client_id === undefined ? 'http' : 'mqtt' } = envelope
  const lowerCase = headers && Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  const set = Object.entries({ ...envelope, headers: lowerCase }).filter(([, value]) => value !== undefined)
  return { envelope: { ...Object.fromEntries(set), protocol }, receivedAtMs: Date.parse(received_at) }
}

/** Reads the expected rows of some cases. Most cases expect values in the form of previews, and need none of it. */
async function readExpected(
  indexes: readonly number[],
  cases: readonly TestCase[],
  compiled: CompiledView,
  decider: RecordDecider,
  problems: Problems,
): Promise<ReadonlyMap<number, readonly ReadonlyMap<string, ReadValue>[]>> {
  const rows = indexes.flatMap((index) => cases[index]?.value.rows ?? [])
  if (rows.length === 0) return new Map()
  const values = await decider.readRows(compiled, rows)
  let next = 0
  const read = new Map<number, readonly ReadonlyMap<string, ReadValue>[]>()
  for (const index of indexes) {
    const testCase = cases[index]
    const count = testCase?.value.rows?.length ?? 0
    const own = values.slice(next, next + count)
    next += count
    read.set(index, own)
    for (const [at, row] of own.entries())
      for (const [column, value] of row)
        if ('problem' in value) testCase?.source.at('rows', String(at), column).report(problems, '', value.problem)
  }
  return read
}
