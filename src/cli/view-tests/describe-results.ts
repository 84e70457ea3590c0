/** Shows the results of tests to people and to programs. */
import { countNoun } from '#lib/count-noun.ts'
import { type Paint, plain } from '../setup/describe-plan.ts'
import { printable, printPlace } from '../setup/kinds/problems.ts'
import type { Difference } from './compare.ts'
import type { CaseResult } from './run-tests.ts'

/** Characters of a value that are shown, and before the first one that differs. */
const shownMax = 160
const before = 40

/** `untested` are names of views. */
export function describeResults(results: readonly CaseResult[], untested: readonly string[], paint: Paint): string {
  const failed = results.filter(({ differences }) => differences.length > 0)
  const parts = [
    ...failed.map((result) => describeFailure(result, paint)),
    ...(failed.length === 0 ? [] : [`${paint('-', '- expected')}  ${paint('+', '+ came out')}`]),
    failed.length === 0
      ? `${countNoun(results.length, 'case')} passed.`
      : `${failed.length} of ${countNoun(results.length, 'case')} failed.`,
  ]
  const without = untested.length === 0 ? '' : `Views without a test: ${untested.join(', ')}.\n`
  return `${parts.join('\n\n')}\n${without}`
}

/** For programs: every case, with its place. */
export function resultsToJson(results: readonly CaseResult[], untested: readonly string[]) {
  const cases = results.map(({ suite, testCase: { value, source }, differences }) => {
    const { file, position } = source.place
    const passed = differences.length === 0
    return { view: suite.view.value.name, name: value.name, file, ...position, passed, differences }
  })
  const passed = cases.filter((each) => each.passed).length
  return { counts: { passed, failed: cases.length - passed }, cases, views_without_tests: untested }
}

/** For CI: JUnit's XML, with a suite for each view. */
export function resultsToJunit(results: readonly CaseResult[]): string {
  const counts = (some: readonly CaseResult[]) => {
    const failed = some.filter(({ differences }) => differences.length > 0).length
    return `tests="${some.length}" failures="${failed}" errors="0"`
  }
  const suites = [...Map.groupBy(results, ({ suite }) => suite.view.value.name)].map(([view, own]) => {
    const cases = own.map((result) => describeInJunit(view, result))
    return `  <testsuite name="${escapeXml(view)}" ${counts(own)}>\n${cases.join('')}  </testsuite>\n`
  })
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ${counts(results)}>\n${suites.join('')}</testsuites>\n`
}

function describeInJunit(view: string, result: CaseResult): string {
  const { value, source } = result.testCase
  const { file, position } = source.place
  const names = `classname="${escapeXml(view)}" name="${escapeXml(value.name)}" file="${escapeXml(file)}" line="${position?.line}"`
  if (result.differences.length === 0) return `    <testcase ${names}/>\n`
  const paths = result.differences.map(({ path }) => path).join(', ')
  const text = escapeXml(describeFailure(result, plain))
  return `    <testcase ${names}>\n      <failure message="${escapeXml(paths)}">${text}</failure>\n    </testcase>\n`
}

/** XML has no control characters, not even as references. */
function escapeXml(text: string): string {
  const lines = text.split('\n').map(printable).join('\n')
  const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
  return lines
    .replaceAll(/[&<>"]/g, (character) => escapes[character] ?? '')
    .replaceAll(/[\ufffe\uffff]/g, '\ufffd')
    .toWellFormed()
}

function describeFailure({ suite: { view }, testCase: { value, source }, differences }: CaseResult, paint: Paint): string {
  const head = `FAIL ${view.value.name}: ${printable(value.name)} (${printPlace(source.place)})`
  return [head, ...differences.flatMap((difference) => describeDifference(difference, paint))].join('\n')
}

function describeDifference({ path, records, expected, actual, message }: Difference, paint: Paint): readonly string[] {
  const of = records.map((record) => `records[${record}]`).join(', ')
  const why = message === undefined ? '' : `: ${message}`
  const head =
    expected === undefined
      ? `${path}: one more, of ${of}${why}`
      : actual === undefined
        ? `${path}: is missing`
        : `${path}${of === '' ? '' : `, of ${of}`}${why}`
  const [wanted, found] = [expected, actual].map((value) => (value === undefined ? undefined : printValue(value)))
  const from = wanted === undefined || found === undefined ? 0 : firstDifference(wanted, found)
  return [
    `  ${printable(head)}`,
    ...(wanted === undefined ? [] : [`    ${paint('-', `- ${cut(wanted, from)}`)}`]),
    ...(found === undefined ? [] : [`    ${paint('+', `+ ${cut(found, from)}`)}`]),
  ]
}

/** Prints a value as YAML in one line. */
function printValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(printValue).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value).map(([name, part]) => `${printName(name)}: ${printValue(part)}`)
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`
}

function printName(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name)
}

function firstDifference(one: string, other: string): number {
  let at = 0
  while (at < one.length && one[at] === other[at]) at += 1
  return at
}

/** Cuts a long text to what is around its first difference. */
function cut(text: string, from: number): string {
  if (text.length <= shownMax) return printable(text)
  const start = from + before <= shownMax ? 0 : from - before
  const end = start + shownMax
  return printable(`${start > 0 ? '…' : ''}${text.slice(start, end)}${end < text.length ? '…' : ''}`)
}
