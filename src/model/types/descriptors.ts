/**
 * The types that a column may have. Everything about a type is in its entry here.
 *
 * To add a type, add an entry, describe it in docs/views.md, and add its values to views/values-in-parquet.test.ts.
 */
import { toIsoDate, toIsoInstant } from './iso-dates.ts'
import { byBytes, dateOrder, exactOrder, floatOrder, instantOrder, textOrder, type ValueOrder } from './orders.ts'
import { strictJson } from './strict-json.ts'
import { inDuckDbSyntax, instantFromText, isTimeOfDay, isZonelessText, timeOfDayFromText, zonedFromText } from './text-casts.ts'

export type Decimal = { readonly precision: number; readonly scale: number }

/** Another type that a column has in Parquet. */
export type FileForm = {
  /** A column may ask for DuckDB's own form by this word. */
  readonly unless: 'native' | 'naive'
  readonly type: string
  /** SQL for the value, from SQL for a value of the type. A cast if not set. */
  readonly fromValue?: (value: string) => string
}

export type TypeDescriptor = {
  /** Other names that a definition may use. */
  readonly aliases?: readonly string[]
  /** Precision and scale if the definition has none. Only DECIMAL has them. */
  readonly defaultDecimal?: Decimal
  /** The type that values have from the cast on, if Parquet lacks this one. */
  readonly storedAs?: { readonly scalar: 'DECIMAL'; readonly decimal: Decimal }
  /** How Parquet stores the type, so that every engine reads it. As DuckDB writes it if not set. */
  readonly inFile?: FileForm

  /** Values are read as JSON instead of as text. */
  readonly readsJson?: true
  /** Every text is a value: the cast cannot fail, and an object or list becomes its JSON. */
  readonly acceptsAnyText?: true
  /** SQL for the value, from SQL for its text; NULL if the text is not a value. TRY_CAST if not set. */
  readonly fromText?: (text: string) => string
  /** SQL for a value that every reader understands, from SQL for a value or an item of a list, which it repeats. */
  readonly portable?: (value: string) => string
  /** SQL for the smallest and the largest value, also in lists. Others become NULL. */
  readonly range?: readonly [smallest: string, largest: string]
  /** A type that the elements of a list are cast to first. */
  readonly listVia?: string
  /** SQL for another spelling of a text, which elements of a list get if the list cannot be cast as it is. */
  readonly inDuckDbSyntax?: (text: string) => string
  /** SQL condition that a list must meet, from SQL for the list's text. */
  readonly listGuard?: (text: string) => string
  /** The type that values have in a filter. */
  readonly filteredAs?: 'TIMESTAMP'

  readonly isNumber?: true

  /** Order of the values, for minimum and maximum. Types without an order have neither. */
  readonly order?: ValueOrder
  /** The JSON form of a value, from its text. If not set, the value as DuckDB's client returns it: integers beyond 32 bits and decimals are text. */
  readonly toJson?: (text: string) => string | number
}

const integer: TypeDescriptor = { isNumber: true, order: exactOrder }
// Parquet has no 128-bit integers, and DuckDB would write them as inexact doubles.
const hugeInteger: TypeDescriptor = { ...integer, storedAs: { scalar: 'DECIMAL', decimal: { precision: 38, scale: 0 } } }
// Beyond these years Python and Polars fail, ClickHouse returns another instant, and BigQuery refuses the file. Infinity is beyond them, too.
const instantRange = (type: string) => [`${type} '0001-01-01 00:00:00Z'`, `${type} '9999-12-31 23:59:59.999999Z'`] as const
// Spark and Polars refuse a file with a native UUID or TIME, or read bytes. Trino's tables have no unsigned types. Readers that know JSON parse it, and round its numbers.
const portably = (type: string): FileForm => ({ unless: 'native', type })

export const descriptors = {
  BOOLEAN: { aliases: ['BOOL'], order: byBytes },
  TINYINT: integer,
  SMALLINT: integer,
  INTEGER: { ...integer, aliases: ['INT'] },
  BIGINT: { ...integer, aliases: ['LONG'] },
  HUGEINT: hugeInteger,
  UTINYINT: { ...integer, inFile: portably('SMALLINT') },
  USMALLINT: { ...integer, inFile: portably('INTEGER') },
  UINTEGER: { ...integer, inFile: portably('BIGINT') },
  UBIGINT: { ...integer, inFile: portably('DECIMAL(20,0)') },
  UHUGEINT: hugeInteger,
  FLOAT: { aliases: ['REAL'], isNumber: true, order: floatOrder, toJson: shortestFloat },
  DOUBLE: { isNumber: true, order: floatOrder },
  DECIMAL: { aliases: ['NUMERIC'], defaultDecimal: { precision: 18, scale: 3 }, isNumber: true, order: exactOrder },
  VARCHAR: { aliases: ['STRING', 'TEXT'], acceptsAnyText: true, fromText: (text) => text, order: textOrder },
  DATE: { range: [`DATE '0001-01-01'`, `DATE '9999-12-31'`], order: dateOrder, toJson: toIsoDate },
  TIME: {
    fromText: timeOfDayFromText,
    // Parquet has no 24:00.
    range: [`TIME '00:00:00'`, `TIME '23:59:59.999999'`],
    inDuckDbSyntax,
    listGuard: isTimeOfDay,
    inFile: portably('VARCHAR'),
    order: byBytes,
  },
  TIMESTAMP: {
    aliases: ['DATETIME'],
    fromText: instantFromText,
    range: instantRange('TIMESTAMP'),
    listVia: 'TIMESTAMPTZ',
    inDuckDbSyntax,
    listGuard: isZonelessText,
    // A cast would look up the time zone for each value.
    inFile: { unless: 'naive', type: 'TIMESTAMPTZ', fromValue: (value) => `make_timestamptz(epoch_us(${value}))` },
    order: instantOrder,
    toJson: toIsoInstant,
  },
  TIMESTAMPTZ: {
    aliases: ['TIMESTAMP WITH TIME ZONE'],
    fromText: zonedFromText,
    range: instantRange('TIMESTAMPTZ'),
    inDuckDbSyntax,
    listGuard: isZonelessText,
    filteredAs: 'TIMESTAMP',
    order: instantOrder,
    toJson: toIsoInstant,
  },
  UUID: { inFile: portably('VARCHAR'), order: byBytes },
  JSON: { readsJson: true, acceptsAnyText: true, portable: strictJson, inFile: portably('VARCHAR') },
  BLOB: {},
} as const satisfies Readonly<Record<string, TypeDescriptor>>

export type ScalarName = keyof typeof descriptors

/** Returns the shortest decimal that reads back as the same 32-bit number. NaN and infinities stay text. */
function shortestFloat(text: string): number | string {
  const exact = Number(text)
  if (!Number.isFinite(exact)) return text
  const digits = [1, 2, 3, 4, 5, 6, 7, 8].find((count) => Math.fround(Number(exact.toPrecision(count))) === exact)
  return Number(exact.toPrecision(digits ?? 9))
}
