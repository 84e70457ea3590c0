/**
 * Reads files with tests of views, and finds the view of each.
 *
 * Law: a record is sent as it is written. A number that JavaScript would round is a problem, because DuckDB reads all of its digits.
 */
import { basename, dirname, join } from 'node:path'
import { MiB } from '#lib/bytes.ts'
import { nearestName } from '#lib/nearest-name.ts'
import { type ParsedFields, parseFields } from '#model/field-errors.ts'
import { recordLimits, viewTestLimits } from '#model/limits.ts'
import type { DeclaredView } from '#model/setup.ts'
import { ViewCase, ViewTests } from '#model/view-test.ts'
import { type Declared, type DeclaredSetup, readParts, Source } from '../setup/kinds/declared.ts'
import type { Problems } from '../setup/kinds/problems.ts'
import type { SetupFile } from '../setup/kinds/read-files.ts'

/** A case, its index in the document, and its records as they are sent. */
export type TestCase = Declared<ViewCase> & { readonly index: number; readonly records: readonly string[] }

/** `mayBeOpen`: a case may say nothing about the result, which is written later. */
export type ReadOptions = { readonly mayBeOpen: boolean }

/** The tests of one view in one document. */
export type Suite = {
  readonly view: Declared<DeclaredView>
  readonly source: Source
  readonly file: SetupFile
  /** The index of the document in the file. */
  readonly document: number
  readonly cases: readonly TestCase[]
  /** Texts that stand for secrets, by name. */
  readonly secrets: Readonly<Record<string, string>>
}

/** Problems are added, and what has none is returned. */
export function readTests(
  tests: readonly SetupFile[],
  setup: DeclaredSetup,
  problems: Problems,
  options: ReadOptions,
): readonly Suite[] {
  return tests.flatMap((file) => {
    const before = problems.count
    const parts = [...readParts(file, problems).entries()].filter(([, { value }]) => value !== null && value !== undefined)
    if (parts.length === 0 && problems.count === before) problems.add({ file: file.name }, '', noCases)
    return parts.flatMap(([document, { part, value }]) => {
      const source = new Source(file.name, part, [])
      return readSuite(source, value, setup, problems, options).map((suite) => ({ ...suite, file, document }))
    })
  })
}

const noCases = 'has no cases: begin with "cases:" and a list of name, records and rows, or delete the file'

function readSuite(
  source: Source,
  content: unknown,
  setup: DeclaredSetup,
  problems: Problems,
  options: ReadOptions,
): readonly Omit<Suite, 'file' | 'document'>[] {
  if (typeof content !== 'object' || content === null || !('cases' in content)) {
    source.report(problems, '', noCases)
    return []
  }
  const parsed = parseFields(ViewTests, content)
  if (parsed.errors !== undefined) reportErrors(parsed, source, problems)
  const view = findView('view' in content && typeof content.view === 'string' ? content.view : undefined, source, setup, problems)
  const entries: readonly unknown[] = Array.isArray(content.cases) ? content.cases.slice(0, viewTestLimits.casesMax) : []
  const names = new Set<string>()
  const allowance = new Allowance()
  const cases = entries.flatMap((entry, index) => {
    const own = source.at('cases', String(index))
    const found = readCase(entry, own, allowance, problems, options)
    if (found === undefined) return []
    if (names.has(found.value.name)) own.report(problems, 'name', 'is the name of another case: each needs its own')
    names.add(found.value.name)
    return [{ ...found, index }]
  })
  return view === undefined ? [] : [{ view, source, cases, secrets: parsed.value?.secrets ?? {} }]
}

/** Returns undefined for a case that has problems. */
function readCase(
  entry: unknown,
  source: Source,
  allowance: Allowance,
  problems: Problems,
  { mayBeOpen }: ReadOptions,
): Omit<TestCase, 'index'> | undefined {
  const before = problems.count
  const parsed = parseFields(ViewCase, entry)
  if (parsed.errors !== undefined) {
    reportErrors(parsed, source, problems)
    return undefined
  }
  const { value } = parsed
  if (!mayBeOpen && !isComplete(value))
    source.report(problems, '', 'says nothing about the result: add rows, dropped or dead_letters, or write them with --update')
  readRows(value, source, allowance, problems)
  const records = readRecords(value.records, source, allowance, problems)
  return problems.count === before ? { value, source, records } : undefined
}

function reportErrors({ errors = [], omitted = 0 }: ParsedFields<unknown>, source: Source, problems: Problems): void {
  for (const { path, message } of errors) source.report(problems, path, message)
  if (omitted > 0) source.report(problems, '', `has ${omitted} more problems`)
}

function isComplete({ rows, dropped, dead_letters }: ViewCase): boolean {
  return rows !== undefined || dropped !== undefined || dead_letters !== undefined
}

/** Returns undefined for a view that has a problem of its own. */
function findView(
  name: string | undefined,
  source: Source,
  setup: DeclaredSetup,
  problems: Problems,
): Declared<DeclaredView> | undefined {
  const { file } = source.place
  const stem = basename(file).replace(/\.test\.ya?ml$/, '')
  const beside = ['.yaml', '.yml'].map((suffix) => join(dirname(file), `${stem}${suffix}`))
  const there = setup.views.filter(({ source }) => beside.includes(source.place.file))
  const wanted = name ?? (there.length === 1 ? there[0]?.value.name : undefined) ?? stem
  const found = setup.views.find(({ value }) => value.name === wanted)
  if (found !== undefined || setup.names.views.has(wanted)) return found
  const known = [...setup.names.views]
  const nearest = nearestName(wanted, known)
  const choice = known.length === 0 ? 'the files declare no views' : `the files declare ${known.slice(0, 10).join(', ')}`
  if (name !== undefined)
    source.report(problems, 'view', `is no view of the files: ${nearest === undefined ? choice : `did you mean ${nearest}?`}`)
  else if (there.length === 0)
    source.report(
      problems,
      '',
      `has no view beside it: add "view: NAME", or name the file after the file of its view (${choice})`,
    )
  else
    source.report(
      problems,
      '',
      `has several views beside it: add "view: NAME" with one of ${there.map(({ value }) => value.name).join(', ')}`,
    )
  return undefined
}

/** Bytes that the records and expected rows of a view may still have. */
class Allowance {
  #left: number = viewTestLimits.bytesMax

  take(bytes: number): boolean {
    this.#left -= bytes
    return this.#left >= 0
  }
}

function readRecords(records: readonly unknown[], source: Source, allowance: Allowance, problems: Problems): readonly string[] {
  return records.map((record, index) => {
    const own = source.at('records', String(index))
    if (typeof record !== 'string') {
      if (weightOf(record, recordLimits.bytesMax) === undefined) own.report(problems, '', tooLong)
      else if (checkNumbers(record, own, problems)) return takeRecord(JSON.stringify(record), own, allowance, problems)
      return ''
    }
    return takeRecord(record, own, allowance, problems)
  })
}

function takeRecord(text: string, source: Source, allowance: Allowance, problems: Problems): string {
  const bytes = Buffer.byteLength(text)
  if (bytes > recordLimits.bytesMax) source.report(problems, '', tooLong)
  else if (!allowance.take(bytes)) source.report(problems, '', tooMuch('records'))
  return text
}

/** Rows are in memory beside the records, and the values that they are read as. */
function readRows({ rows = [], dead_letters = [] }: ViewCase, source: Source, allowance: Allowance, problems: Problems): void {
  const take = (value: unknown, own: Source, what: string) => {
    const weight = weightOf(value, viewTestLimits.bytesMax)
    if (weight !== undefined && allowance.take(weight)) return true
    own.report(problems, '', tooMuch(what))
    return false
  }
  for (const [at, row] of rows.entries()) {
    const own = source.at('rows', String(at))
    // A row that is too much is not looked into.
    if (!take(row, own, 'rows')) return
    checkNumbers(row, own, problems)
  }
  for (const [at, letter] of dead_letters.entries())
    if (!take(letter, source.at('dead_letters', String(at)), 'dead letters')) return
}

const tooLong = `is longer than ${recordLimits.bytesMax / MiB} MiB, which is the most that a record may have`

function tooMuch(what: string): string {
  return `makes the ${what} too long: records, rows and dead letters of a view may have ${viewTestLimits.bytesMax / MiB} MiB together. Test them in several files`
}

/** Returns about the length of a value as text; undefined if that is above the bound. Aliases can make a short file a long text. */
function weightOf(value: unknown, max: number): number | undefined {
  let weight = 0
  const add = (part: unknown): boolean => {
    weight += typeof part === 'string' ? 1 + part.length : 1
    if (weight > max) return false
    if (Array.isArray(part)) return part.every(add)
    if (typeof part !== 'object' || part === null) return true
    return Object.entries(part).every(([name, inner]) => add(name) && add(inner))
  }
  return add(value) ? weight : undefined
}

/** Returns whether JSON has every number as it was written. */
function checkNumbers(value: unknown, source: Source, problems: Problems): boolean {
  if (typeof value === 'number') {
    const isExact = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))
    const message = 'is a number that YAML cannot keep exactly: write it in quotes; for a record, write all of its JSON in quotes'
    if (!isExact) source.report(problems, '', message)
    return isExact
  }
  if (typeof value !== 'object' || value === null) return true
  const parts = Object.entries(value).map(([name, part]) => checkNumbers(part, source.at(name), problems))
  return parts.every(Boolean)
}
