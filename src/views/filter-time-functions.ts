/**
 * Functions that make times: from numbers, from text in a format, and in a time zone.
 *
 * Law: they return a TIMESTAMP that a column can have, or NULL. Nothing depends on the clock or the time zone of the machine: zones come from
 * the data that is built into DuckDB.
 */
import { quoteLiteral } from '#duckdb/quote.ts'
import { portable } from './cast-sql.ts'
import { ConditionError, type Part, type PartType, quoted } from './condition.ts'
import { scalarSize } from './condition-budget.ts'
import { instantType, isNumber, isScalar } from './filter-types.ts'
import { checkText, computedFrom, kindOf, type OwnCall, type OwnFunction, takeArguments, writtenAs } from './own-function.ts'
import { patternSize } from './pattern-size.ts'

/** Microseconds from 1970 to the first moment that a TIMESTAMP column can have, and to the first after the last. */
const [FIRST, END] = ['-62135596800000000', '253402300800000000']

/** SQL for the microseconds of a number, which is a BIGINT, a DOUBLE, or a DECIMAL that has each BIGINT and nine digits of a second. */
type Unit = {
  /** Microseconds in one, or ones in a microsecond. */
  readonly whole: (x: string) => string
  readonly double: (x: string) => string
  readonly decimal: (x: string) => string
  /** The bounds of the numbers: the first, and the first that is too large. */
  readonly bounds: readonly [string, string]
}

const scaled = (factor: number): Omit<Unit, 'bounds'> => ({
  whole: (x) => `${x} * ${factor}`,
  double: (x) => `round(${x} * ${factor})`,
  decimal: (x) => `floor(${x} * ${factor})`,
})

const units: Readonly<Record<string, Unit>> = {
  epoch_s: { ...scaled(1_000_000), bounds: [FIRST.slice(0, -6), END.slice(0, -6)] },
  epoch_ms: { ...scaled(1_000), bounds: [FIRST.slice(0, -3), END.slice(0, -3)] },
  epoch_us: { ...scaled(1), bounds: [FIRST, END] },
  epoch_ns: {
    whole: (x) => `(${x} // 1000 - CASE WHEN ${x} % 1000 < 0 THEN 1 ELSE 0 END)`,
    double: (x) => `round(${x} / 1000)`,
    decimal: (x) => `floor(${x} * 0.001)`,
    bounds: [`${FIRST}000`, `${END}000`],
  },
}

const decimalType = 'DECIMAL(38,9)'

const epochFunctions = Object.entries(units).map(([name, unit]): [string, OwnFunction] => [
  name,
  (call) => {
    const [number] = takeArguments(call, 1, `one number, such as ${name}(sent_at)`) as readonly [Part]
    checkNumber(call, number)
    call.budget.add(scalarSize)
    return { sql: (column) => timeOf(number.sql(column), number.type, unit), type: instantType, size: scalarSize }
  },
])

/** SQL for the time of a number. Decimals are exact but ten times as slow as whole numbers and doubles. */
function timeOf(value: string, type: PartType, { whole, double, decimal, bounds }: Unit): string {
  // Nanoseconds of a BIGINT cannot reach the bounds, and those of larger types do not fit into one.
  const isNanoseconds = bounds[1].length > 19
  const [first, end] = bounds.map((bound) => `CAST('${bound}' AS ${decimalType})`)
  const ofDecimal = `CASE WHEN x >= ${first} AND x < ${end} THEN make_timestamp(CAST(${decimal('x')} AS BIGINT)) END`
  const inTime = isNanoseconds ? 'x IS NOT NULL' : `x >= ${bounds[0]} AND x < ${bounds[1]}`
  if (isScalar(type, 'TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT', 'UTINYINT', 'USMALLINT', 'UINTEGER')) {
    return computedFrom(`CAST(${value} AS BIGINT)`, () => `CASE WHEN ${inTime} THEN make_timestamp(${whole('x')}) END`)
  }
  const ofDouble = (x: string): string =>
    computedFrom(double(x), () => `CASE WHEN x >= ${FIRST} AND x < ${END} THEN make_timestamp(CAST(x AS BIGINT)) END`)
  if (isScalar(type, 'DOUBLE', 'FLOAT')) return ofDouble(`CAST(${value} AS DOUBLE)`)
  if (typeof type === 'object') return computedFrom(`TRY_CAST(${value} AS ${decimalType})`, () => ofDecimal)
  // Only DuckDB knows the type.
  const either = computedFrom(`TRY_CAST(x AS ${decimalType})`, () => ofDecimal)
  return computedFrom(
    value,
    (x) => `CASE WHEN typeof(${x}) IN ('DOUBLE', 'FLOAT') THEN ${ofDouble(`CAST(${x} AS DOUBLE)`)} ELSE ${either} END`,
  )
}

function checkNumber({ name }: OwnCall, part: Part): void {
  if (part.type === 'unknown' || isNumber(part.type)) return
  if (part.text !== undefined) throw new ConditionError(`${quoted(name)} takes a number: write it without quotes`)
  if (isScalar(part.type, 'TIMESTAMP', 'DATE', 'TIME')) {
    throw new ConditionError(`${quoted(name)} makes a time of a number: epoch(${writtenAs(part)}) has the seconds of a time`)
  }
  throw new ConditionError(
    `${quoted(name)} takes a number, not ${kindOf(part.type)}: cast it, such as CAST(${writtenAs(part)} AS BIGINT)`,
  )
}

/** Returns the local time of an instant in a zone. */
function atZone(call: OwnCall): Part {
  const [given, zone] = takeArguments(call, 2, "a time and a zone, such as at_zone(sent_at, 'Europe/Berlin')") as [Part, Part]
  if (zone.text === undefined) {
    throw new ConditionError(`the zone of ${quoted(call.name)} must be a text constant, such as 'Europe/Berlin'`)
  }
  const time = call.values.instant(given)
  if (time.type !== 'unknown' && !isScalar(time.type, 'TIMESTAMP')) {
    const example = isNumber(time.type) ? `epoch_s(${writtenAs(time)})` : `CAST(${writtenAs(time)} AS TIMESTAMP)`
    throw new ConditionError(`${quoted(call.name)} takes a TIMESTAMP, not ${kindOf(time.type)}: make one, such as ${example}`)
  }
  call.values.check(zoneCheck(zone.text))
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
    throw new ConditionError(`the format of ${quoted(call.name)} must be a text constant, such as '%d/%m/%Y %H:%M:%S'`)
  }
  checkText(call, text)
  const { offset, zulu } = readFormat(format)
  call.values.check({
    sql: `SELECT try_strptime('', ${quoteLiteral(format)})`,
    problemWith: () => undefined,
    failed: (reason) => `the format ${quoted(format)} cannot be read: ${reason}`,
  })
  call.budget.countTimeCast()
  if (offset !== undefined) call.budget.patterns.countFunction(call.name, patternSize(offset), text.size)
  // Without digits DuckDB reads words such as infinity as 1900-01-01.
  const guards = ['[0-9]', ...(offset === undefined ? [] : [offset])].map((regex) => ['x', quoteLiteral(regex)].join(', '))
  const read = (each: string): string => `make_timestamp(epoch_us(try_strptime(x, ${quoteLiteral(each)})))`
  const time = zulu === undefined ? read(format) : `coalesce(${read(format)}, ${read(zulu)})`
  const guarded = `CASE WHEN ${guards.map((each) => `regexp_matches(${each})`).join(' AND ')} THEN ${time} END`
  return {
    sql: (column) =>
      computedFrom(
        computedFrom(text.sql(column), () => guarded),
        (x) => portable(x, instantType),
      ),
    type: instantType,
    size: scalarSize,
  }
}

/** Offsets that text of a TIMESTAMP column may have. DuckDB would read any digits. */
const offsetPattern = '(?:Z|[+-](?:(?:0[0-9]|1[0-3])(?::?[0-5][0-9])?|14(?::?00)?))'

/** Returns a pattern for the offset and all after it if the format has an offset, and the format for UTC written as Z. */
function readFormat(format: string): { readonly offset?: string; readonly zulu?: string } {
  const parts = [...format.matchAll(/%-?.|[^%]+|%/gs)].map(([part]) => part)
  if (parts.includes('%Z')) {
    throw new ConditionError('a format cannot have %Z, because names of zones are ambiguous: use %z for an offset, or at_zone(…)')
  }
  if (parts.includes('%n')) throw new ConditionError('a format cannot have %n, because times have microseconds: use %f')
  const at = parts.indexOf('%z')
  if (at === -1) return {}
  if (at !== parts.lastIndexOf('%z')) throw new ConditionError('a format can have one %z')
  const rest = parts.slice(at + 1)
  const matching = rest.map((part) => (part.startsWith('%') ? '[^+-]*' : part.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&')))
  return {
    offset: `${offsetPattern}${matching.join('')}\\s*$`,
    zulu: [...parts.slice(0, at), 'Z', ...rest].join(''),
  }
}

export const timeFunctions: readonly (readonly [string, OwnFunction])[] = [
  ...epochFunctions,
  ['at_zone', atZone],
  ['strptime', strptime],
]
