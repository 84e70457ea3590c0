/** Shows the results of tests to people and to programs. */
import { countNoun } from '#lib/count-noun.ts'
import type { Paint } from '../setup/describe-plan.ts'
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

function describeFailure({ view, name, source, differences }: CaseResult, paint: Paint): string {
  const head = `FAIL ${view}: ${printable(name)} (${printPlace(source.place)})`
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
