/**
 * Functions that make times: from numbers, from text in a format, and in a time zone.
 *
 * Law: they return a TIMESTAMP that a column can have, or NULL. Nothing depends on the clock or the time zone of the machine: zones come from
 * the data that is built into DuckDB.
 */
import { quoteLiteral } from '#duckdb/quote.ts'
import { portable } from './cast-sql.ts'
import { ConditionError, type Part, quoted, writtenAs } from './condition.ts'
import { scalarSize } from './condition-budget.ts'
import { instantType, isNumber, isScalar, kindOf } from './filter-types.ts'
import { checkText, computedFrom, type OwnCall, type OwnFunction, takeArguments } from './own-function.ts'
import { patternSize } from './pattern-size.ts'
import { epochUnits, formatCheck, offsetPatternOf, timeOfNumber, timeOfText } from './time-formats.ts'

const epochFunctions = Object.entries(epochUnits).map(([name, unit]): [string, OwnFunction] => [
  name,
  (call) => {
    const [number] = takeArguments(call, 1, `one number, such as ${name}(sent_at)`) as readonly [Part]
    checkNumber(call, number)
    call.budget.add(scalarSize)
    return { sql: (column) => timeOfNumber(number.sql(column), number.type, unit), type: instantType, size: scalarSize }
  },
])

function checkNumber({ name }: OwnCall, part: Part): void {
  if (part.type === 'unknown' || isNumber(part.type)) return
  if (part.text !== undefined)
    throw new ConditionError(`${quoted(name)} takes a number: write it without quotes`, 'wrong_type').of(part)
  if (isScalar(part.type, 'TIMESTAMP', 'DATE', 'TIME')) {
    throw new ConditionError(
      `${quoted(name)} makes a time of a number: epoch(${writtenAs(part)}) has the seconds of a time`,
      'wrong_type',
    ).of(part)
  }
  throw new ConditionError(
    `${quoted(name)} takes a number, not ${kindOf(part.type)}: cast it, such as CAST(${writtenAs(part)} AS BIGINT)`,
    'wrong_type',
  ).of(part)
}

/** Returns the local time of an instant in a zone. */
function atZone(call: OwnCall): Part {
  const [given, zone] = takeArguments(call, 2, "a time and a zone, such as at_zone(sent_at, 'Europe/Berlin')") as [Part, Part]
  if (zone.text === undefined) {
    throw new ConditionError(`the zone of ${quoted(call.name)} must be a text constant, such as 'Europe/Berlin'`).of(zone)
  }
  const time = call.values.instant(given)
  if (time.type !== 'unknown' && !isScalar(time.type, 'TIMESTAMP')) {
    const example = isNumber(time.type) ? `epoch_s(${writtenAs(time)})` : `CAST(${writtenAs(time)} AS TIMESTAMP)`
    throw new ConditionError(
      `${quoted(call.name)} takes a TIMESTAMP, not ${kindOf(time.type)}: make one, such as ${example}`,
      'wrong_type',
    ).of(time)
  }
  call.values.check({ ...zoneCheck(zone.text), at: zone.at })
  call.budget.add(scalarSize)
  const name = quoteLiteral(zone.text)
  return {
    // A cast would look up the zone of the session for each value.
    sql: (column) =>
      computedFrom(`timezone(${name}, make_timestamptz(epoch_us(${time.sql(column)})))`, (x) => portable(x, instantType)),
    type: instantType,
    size: scalarSize,
  }
}

/** Abbreviations such as IST have several meanings, so names have a slash, apart from UTC. */
function zoneCheck(zone: string) {
  const name = quoteLiteral(zone)
  return {
    sql: `SELECT coalesce(max(name) FILTER (name = ${name}), max(name)) FROM pg_timezone_names() WHERE lower(name) = lower(${name}) AND (name = 'UTC' OR contains(name, '/'))`,
    problemWith: (found: unknown): string | undefined => {
      if (found === zone) return undefined
      const hint =
        typeof found === 'string' ? quoteLiteral(found) : "a name of the IANA database, such as 'Europe/Berlin' or 'UTC'"
      return `the time zone ${quoted(zone)} is not known: write ${hint}`
    },
  }
}

/** Returns the time that a text has in a format. */
function strptime(call: OwnCall): Part {
  const usage = "text and a format, such as strptime(sent_at, '%d/%m/%Y %H:%M:%S')"
  const [text, formatPart] = takeArguments(call, 2, usage) as [Part, Part]
  const { text: format } = formatPart
  if (format === undefined) {
    throw new ConditionError(`the format of ${quoted(call.name)} must be a text constant, such as '%d/%m/%Y %H:%M:%S'`).of(
      formatPart,
    )
  }
  checkText(call, text)
  const offset = readOffset(format, formatPart)
  call.values.check({ ...formatCheck(format), at: formatPart.at })
  call.budget.countTimeCast()
  if (offset !== undefined) call.budget.patterns.countFunction(call.name, patternSize(offset), text.size)
  return { sql: (column) => timeOfText(text.sql(column), format), type: instantType, size: scalarSize }
}

function readOffset(format: string, part: Part): string | undefined {
  try {
    return offsetPatternOf(format)
  } catch (error) {
    throw error instanceof ConditionError ? error.of(part) : error
  }
}

export const timeFunctions: readonly (readonly [string, OwnFunction])[] = [
  ...epochFunctions,
  ['at_zone', atZone],
  ['strptime', strptime],
]
