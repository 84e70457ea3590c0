/**
 * The types that a column may have. Everything about a type is in its entry here.
 *
 * To add a type, add an entry, describe it in docs/views.md, and add its values to views/values-in-parquet.test.ts.
 */
import { toIsoDate, toIsoInstant } from './iso-dates.ts'
import { byBytes, dateOrder, exactOrder, floatOrder, instantOrder, textOrder, type ValueOrder } from './orders.ts'
import { instantFromText, isFiniteText, isTimeOfDay, isZonelessText, timeOfDayFromText, zonedFromText } from './text-casts.ts'

export type Decimal = { readonly precision: number; readonly scale: number }

export type TypeDescriptor = {
  /** Other names that a definition may use. */
  readonly aliases?: readonly string[]
  /** Precision and scale if the definition has none. Only DECIMAL has them. */
  readonly defaultDecimal?: Decimal
  /** The type in Parquet files, if they lack this one. */
  readonly storedAs?: { readonly scalar: 'DECIMAL'; readonly decimal: Decimal }

  /** Values are read as JSON instead of as text. */
  readonly readsJson?: true
  /** Every text is a value: the cast cannot fail, and an object or list becomes its JSON. */
  readonly acceptsAnyText?: true
  /** SQL for the value, from SQL for its text; NULL if the text is not a value. TRY_CAST if not set. */
  readonly fromText?: (text: string) => string
  /** SQL that turns values that Parquet cannot store into NULL. It repeats `value`. */
  readonly portable?: (value: string) => string
  /** SQL for the smallest and the largest value, also in lists. Others become NULL. */
  readonly range?: readonly [smallest: string, largest: string]
  /** A type that the elements of a list are cast to first. */
  readonly listVia?: string
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
const finite = (value: string): string => `CASE WHEN isfinite(${value}) THEN ${value} END`
// DuckDB's own range is larger. But at its ends a conversion fails, and beyond 2^53 milliseconds from 1970 it may return another instant.
const instantRange = (type: string) => [`${type} '-270000-01-01 00:00:00Z'`, `${type} '270000-12-31 23:59:59.999999Z'`] as const

export const descriptors = {
  BOOLEAN: { aliases: ['BOOL'], order: byBytes },
  TINYINT: integer,
  SMALLINT: integer,
  INTEGER: { ...integer, aliases: ['INT'] },
  BIGINT: { ...integer, aliases: ['LONG'] },
  HUGEINT: hugeInteger,
  UTINYINT: integer,
  USMALLINT: integer,
  UINTEGER: integer,
  UBIGINT: integer,
  UHUGEINT: hugeInteger,
  FLOAT: { aliases: ['REAL'], isNumber: true, order: floatOrder, toJson: shortestFloat },
  DOUBLE: { isNumber: true, order: floatOrder },
  DECIMAL: { aliases: ['NUMERIC'], defaultDecimal: { precision: 18, scale: 3 }, isNumber: true, order: exactOrder },
  VARCHAR: { aliases: ['STRING', 'TEXT'], acceptsAnyText: true, fromText: (text) => text, order: textOrder },
  DATE: { portable: finite, listGuard: isFiniteText, order: dateOrder, toJson: toIsoDate },
  TIME: {
    fromText: timeOfDayFromText,
    portable: (value) => `nullif(${value}, TIME '24:00:00')`,
    listGuard: isTimeOfDay,
    order: byBytes,
  },
  TIMESTAMP: {
    aliases: ['DATETIME'],
    fromText: instantFromText,
    range: instantRange('TIMESTAMP'),
    listVia: 'TIMESTAMPTZ',
    listGuard: isZonelessText,
    order: instantOrder,
    toJson: toIsoInstant,
  },
  TIMESTAMPTZ: {
    aliases: ['TIMESTAMP WITH TIME ZONE'],
    fromText: zonedFromText,
    range: instantRange('TIMESTAMPTZ'),
    listGuard: isZonelessText,
    filteredAs: 'TIMESTAMP',
    order: instantOrder,
    toJson: toIsoInstant,
  },
  UUID: { order: byBytes },
  JSON: { readsJson: true, acceptsAnyText: true },
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
