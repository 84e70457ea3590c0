/**
 * Times that are numbers, or text in a format.
 *
 * Owns: SQL that reads them, for functions and for columns with a format. Does not own: times in ISO 8601 (cast-sql.ts).
 * Law: a time that no column can have is NULL. Nothing fails a statement.
 */
import { quoteLiteral } from '#duckdb/quote.ts'
import { portable } from './cast-sql.ts'
import { ConditionError, type PartType, quoted } from './condition.ts'
import { instantType, isScalar } from './filter-types.ts'
import { computedFrom } from './own-function.ts'
import type { ConstantCheck } from './text-constants.ts'

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

export const epochUnits: Readonly<Record<string, Unit>> = {
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

/** SQL for the time of a number. Decimals are exact but ten times as slow as whole numbers and doubles. */
export function timeOfNumber(value: string, type: PartType, { whole, double, decimal, bounds }: Unit): string {
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

/** SQL for the time of a text in a format, and the pattern that finds its offset. Throws ConditionError. */
export function timeOfText(text: string, format: string): string {
  const { offset, zulu, hasDayOfYear } = readFormat(format)
  // Without digits DuckDB reads words such as infinity as 1900-01-01.
  const guards = ['[0-9]', ...(offset === undefined ? [] : [offset])].map((regex) => `regexp_matches(x, ${quoteLiteral(regex)})`)
  const read = (each: string): string => `make_timestamp(epoch_us(try_strptime(x, ${quoteLiteral(each)})))`
  const found = zulu === undefined ? read(format) : `coalesce(${read(format)}, ${read(zulu)})`
  // DuckDB reads day 366 of a year that has 365 as the first day of the next one.
  const time = hasDayOfYear
    ? `list_transform([${found}], lambda found: CASE WHEN contains(x, strftime(found, '%Y')) THEN found END)[1]`
    : found
  const guarded = computedFrom(text, () => `CASE WHEN ${guards.join(' AND ')} THEN ${time} END`)
  return computedFrom(guarded, (x) => portable(x, instantType))
}

/** Returns the pattern that finds the offset of a time; undefined if the format has none. Throws ConditionError. */
export function offsetPatternOf(format: string): string | undefined {
  return readFormat(format).offset
}

/** Checks a format for `strptime`. */
export function formatCheck(format: string): ConstantCheck {
  return {
    sql: `SELECT try_strptime('', ${quoteLiteral(format)})`,
    problemWith: () => undefined,
    failed: (reason) => `the format ${quoted(format)} cannot be read: ${reason}`,
  }
}

/** Offsets that text of a TIMESTAMP column may have. DuckDB would read any digits. */
const offsetPattern = '(?:Z|[+-](?:(?:0[0-9]|1[0-3])(?::?[0-5][0-9])?|14(?::?00)?))'

/** Specifiers that DuckDB knows. A hyphen leaves out zeros. */
const specifier = /^%(?:-?[dmyHIMSj]|[aAwbhBYpfzZUWcxXT%gGuVn])$/s

/** Returns a pattern for the offset and all after it if the format has an offset, and the format for UTC written as Z. */
function readFormat(format: string): {
  readonly offset?: string
  readonly zulu?: string
  readonly hasDayOfYear: boolean
} {
  const parts = [...format.matchAll(/%-?.|[^%]+|%/gs)].map(([part]) => part)
  const has = (...specifiers: readonly string[]) => parts.some((part) => specifiers.includes(part.replace('-', '')))
  if (parts.at(-1) === '%') throw new ConditionError(`a format cannot end with a % alone: write %% for the character`)
  const unknown = parts.find((part) => part.startsWith('%') && !specifier.test(part))
  if (unknown !== undefined) {
    const instead = unknown === '%s' ? ': read seconds since 1970 as a number with epoch_s' : ''
    throw new ConditionError(`a format cannot have ${unknown}${instead}`)
  }
  if (parts.includes('%Z')) {
    throw new ConditionError('a format cannot have %Z, because names of zones are ambiguous: use %z for an offset, or at_zone(…)')
  }
  if (parts.includes('%n')) throw new ConditionError('a format cannot have %n, because times have microseconds: use %f')
  if (!has('%Y', '%y', '%G', '%c', '%x')) {
    throw new ConditionError('a format needs a year, such as %Y: without one, all times would be in 1900')
  }
  const hasDayOfYear = has('%j')
  if (hasDayOfYear && (!has('%Y') || has('%m', '%b', '%B', '%d', '%z'))) {
    throw new ConditionError('a format with %j, the day of the year, has the year as %Y, and no month, day of a month or %z')
  }
  const at = parts.indexOf('%z')
  if (at === -1) return { hasDayOfYear }
  if (at !== parts.lastIndexOf('%z')) throw new ConditionError('a format can have one %z')
  const rest = parts.slice(at + 1)
  const matching = rest.map((part) => (part.startsWith('%') ? '[^+-]*' : part.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&')))
  return {
    hasDayOfYear,
    offset: `${offsetPattern}${matching.join('')}\\s*$`,
    zulu: [...parts.slice(0, at), 'Z', ...rest].join(''),
  }
}
