/**
 * The types a column may have: an allowlist of DuckDB's, and lists of them.
 *
 * Owns: which types there are, their canonical spelling, and the SQL that makes a value of one from text.
 * Law: what is printed here is made of the allowlist's own words and of numbers, never of the user's text.
 */
const scalars = [
  'BOOLEAN',
  'TINYINT',
  'SMALLINT',
  'INTEGER',
  'BIGINT',
  'HUGEINT',
  'UTINYINT',
  'USMALLINT',
  'UINTEGER',
  'UBIGINT',
  'UHUGEINT',
  'FLOAT',
  'DOUBLE',
  'DECIMAL',
  'VARCHAR',
  'DATE',
  'TIME',
  'TIMESTAMP',
  'TIMESTAMPTZ',
  'UUID',
  'JSON',
  'BLOB',
] as const
type Scalar = (typeof scalars)[number]

const aliases: Readonly<Record<string, Scalar>> = {
  BOOL: 'BOOLEAN',
  INT: 'INTEGER',
  LONG: 'BIGINT',
  REAL: 'FLOAT',
  NUMERIC: 'DECIMAL',
  STRING: 'VARCHAR',
  TEXT: 'VARCHAR',
  DATETIME: 'TIMESTAMP',
  'TIMESTAMP WITH TIME ZONE': 'TIMESTAMPTZ',
}

export type ColumnType = {
  readonly scalar: Scalar
  /** Only of DECIMAL. */
  readonly decimal?: { readonly precision: number; readonly scale: number }
  /** 0 for a scalar, 1 for `T[]`, and so on. */
  readonly depth: number
}

export class TypeProblem extends Error {
  override readonly name = 'TypeProblem'
}

const LIST_DEPTH_MAX = 4
const PRECISION_MAX = 38
const DEFAULT_DECIMAL = { precision: 18, scale: 3 }

/** A time with an offset at its end, such as +02, -05:30 or +00:00:15, and what DuckDB passes over after it. */
const OFFSET = ':\\d\\d?(\\.\\d*)?[+-]\\d\\d(:?\\d\\d){0,2}:?[\\s\\v]*$'

/**
 * What no time with an offset has. DuckDB's TIMESTAMPTZ knows zones by name too, but then reads the texts of the rows that come next in
 * that zone: what one record says would move the times of others.
 */
const LETTERS = '[A-SU-Ya-z]'

/** A time of day has no offset: DuckDB's cast would drop it. */
const OFFSET_OF_TIME = ':\\d\\d?(\\.\\d*)?\\s*[+-]'

const shape = /^([a-z]+(?: +[a-z]+)*) *(?:\( *(\d{1,3}) *(?:, *(\d{1,3}) *)?\))? *((?:\[ *\] *)*)$/i

/** Throws TypeProblem with a message that says which types there are. */
export function parseType(text: string): ColumnType {
  const match = shape.exec(text.trim())
  const word = (match?.[1] ?? '').toUpperCase().replace(/ +/g, ' ')
  const scalar = scalars.find((name) => name === word) ?? (Object.hasOwn(aliases, word) ? aliases[word] : undefined)
  if (match === null || scalar === undefined) {
    throw new TypeProblem(
      `is no type that a column can have: use one of ${scalars.join(', ')}, DECIMAL(p,s), or a list such as VARCHAR[]`,
    )
  }
  const [, , precisionText, scaleText, brackets = ''] = match
  const depth = brackets.split('[').length - 1
  if (depth > LIST_DEPTH_MAX) throw new TypeProblem(`lists may be nested ${LIST_DEPTH_MAX} deep`)
  if (precisionText !== undefined && scalar !== 'DECIMAL')
    throw new TypeProblem(`only DECIMAL takes numbers in parentheses: use ${scalar}`)
  if (scalar !== 'DECIMAL') return { scalar, depth }
  if (precisionText === undefined) return { scalar, depth, decimal: DEFAULT_DECIMAL }
  const precision = Number(precisionText)
  const scale = Number(scaleText ?? 0)
  if (precision < 1 || precision > PRECISION_MAX || scale > precision) {
    throw new TypeProblem(`a DECIMAL has a precision of 1 to ${PRECISION_MAX} and a scale of at most that`)
  }
  return { scalar, depth, decimal: { precision, scale } }
}

/** The canonical spelling, which is also DuckDB's. */
export function printType({ scalar, decimal, depth }: ColumnType): string {
  return (decimal === undefined ? scalar : `${scalar}(${decimal.precision},${decimal.scale})`) + '[]'.repeat(depth)
}

/** The type that the Parquet column has. Parquet knows no 128-bit integers; DuckDB would write them as inexact doubles. */
export function storedType({ scalar, decimal, depth }: ColumnType): ColumnType {
  const isHuge = scalar === 'HUGEINT' || scalar === 'UHUGEINT'
  if (isHuge) return { scalar: 'DECIMAL', depth, decimal: { precision: PRECISION_MAX, scale: 0 } }
  return decimal === undefined ? { scalar, depth } : { scalar, depth, decimal }
}

/** SQL for the value of a scalar type from the SQL of its text; NULL where the text is none. Still to be passed through `portable`. */
export function castText(text: string, type: ColumnType): string {
  const { scalar } = type
  if (scalar === 'VARCHAR') return text
  if (scalar === 'TIMESTAMP' || scalar === 'TIMESTAMPTZ') {
    const moment = castMoment(text)
    return scalar === 'TIMESTAMP' ? moment : `TRY_CAST(${moment} AS TIMESTAMPTZ)`
  }
  if (scalar === 'TIME') return `CASE WHEN NOT regexp_matches(${text}, '${OFFSET_OF_TIME}') THEN TRY_CAST(${text} AS TIME) END`
  const value = `TRY_CAST(${text} AS ${printType(type)})`
  return scalar === 'HUGEINT' || scalar === 'UHUGEINT' ? `TRY_CAST(${value} AS ${printType(storedType(type))})` : value
}

function castMoment(text: string): string {
  const plain = `TRY_CAST(${text} AS TIMESTAMP)`
  // DuckDB's own cast drops an offset: the moment would be another one. By way of TIMESTAMPTZ it's right, and five times slower.
  const nameless = `CASE WHEN NOT regexp_matches(${text}, '${LETTERS}') THEN ${text} END`
  const utc = `TRY_CAST(TRY_CAST(${nameless} AS TIMESTAMPTZ) AS TIMESTAMP)`
  return `CASE WHEN ends_with(${text}, 'Z') THEN ${plain} WHEN regexp_matches(${text}, '${OFFSET}') THEN ${utc} ELSE ${plain} END`
}

/** SQL that makes NULL of scalars that DuckDB has and Parquet has not: infinite days, 24 o'clock. `value` is named more than once. */
export function portable(value: string, { scalar, depth }: ColumnType): string {
  if (depth > 0) return value
  if (isInstant(scalar)) return `CASE WHEN isfinite(${value}) THEN ${value} END`
  return scalar === 'TIME' ? `nullif(${value}, TIME '24:00:00')` : value
}

/** SQL for the value of a list type from SQL of type `from`; NULL where any element is none: TRY turns a failure into NULL. */
export function castList(source: string, from: 'JSON' | 'JSON[]' | 'VARCHAR[]', type: ColumnType): string {
  const { scalar, depth } = type
  const lists = '[]'.repeat(depth)
  const steps = [source]
  const then = (to: string): number => steps.push(`CAST(${steps.at(-1)} AS ${to})`)
  if (scalar === 'JSON') {
    if (from !== 'JSON[]' || depth > 1) then(`JSON${lists}`)
    return `TRY(${steps.at(-1)})`
  }
  if (from !== `VARCHAR${lists}`) {
    if (from === 'VARCHAR[]') then('JSON[]')
    then(`VARCHAR${lists}`)
  }
  const texts = steps.at(-1) ?? source
  if (scalar === 'TIMESTAMP') then(`TIMESTAMPTZ${lists}`)
  if (scalar !== 'VARCHAR') then(printType(type))
  if (scalar === 'HUGEINT' || scalar === 'UHUGEINT') then(printType(storedType(type)))
  const value = steps.at(-1) ?? source
  const shown = `CAST(${texts} AS VARCHAR)`
  if (scalar === 'DATE') return `TRY(CASE WHEN NOT regexp_matches(${shown}, '(?i)inf') THEN ${value} END)`
  // No names of zones, and no infinity.
  if (isInstant(scalar)) return `TRY(CASE WHEN NOT regexp_matches(replace(${shown}, 'NULL', ''), '${LETTERS}') THEN ${value} END)`
  return scalar === 'TIME'
    ? `TRY(CASE WHEN NOT contains(${shown}, '24:00') AND NOT regexp_matches(${shown}, '${OFFSET_OF_TIME}') THEN ${value} END)`
    : `TRY(${value})`
}

/** Whether every text is a value, so that its cast can't fail. */
export function takesAnyText({ scalar, depth }: ColumnType): boolean {
  return depth === 0 && (scalar === 'VARCHAR' || scalar === 'JSON')
}

function isInstant(scalar: Scalar): boolean {
  return scalar === 'DATE' || scalar === 'TIMESTAMP' || scalar === 'TIMESTAMPTZ'
}
