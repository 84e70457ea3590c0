/**
 * The order of a type's values, and their canonical text. Minimum and maximum are stored as canonical text.
 *
 * Law: comparing is exact, and total for any texts, because nodes send them.
 */
import { Buffer } from 'node:buffer'
import { toIsoDate, toIsoInstant } from './iso-dates.ts'

/** Length of a text that is the minimum or maximum of a column. */
export const boundCharsMax = 64

export type ValueOrder = {
  /** Returns the canonical text of a value, from DuckDB's text for it. */
  readonly canonical: (text: string) => string
  /** Compares two canonical texts; negative if `one` comes first. */
  readonly compare: (one: string, other: string) => number
  /** SQL condition for values that are not ordered. */
  readonly excludes?: (value: string) => string
}

export const byBytes: ValueOrder = {
  canonical: (text) => text,
  compare: (one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)),
}

export const textOrder: ValueOrder = { ...byBytes, canonical: shorten }

/** Integers and decimals of any size. Decimals of one type have the same number of digits after the point. */
export const exactOrder: ValueOrder = {
  canonical: (text) => text,
  compare: (one, other) =>
    exactNumber.test(one) && exactNumber.test(other)
      ? sign(BigInt(one.replace('.', '')), BigInt(other.replace('.', '')))
      : byBytes.compare(one, other),
}

export const floatOrder: ValueOrder = {
  canonical: (text) => String(parseFloating(text)),
  compare: (one, other) => sign(Number(one), Number(other)),
  excludes: (value) => `isnan(${value})`,
}

export const dateOrder: ValueOrder = { canonical: toIsoDate, compare: compareIso }
export const instantOrder: ValueOrder = { canonical: toIsoInstant, compare: compareIso }

const exactNumber = /^-?\d+(\.\d+)?$/
const isoParts = /^([+-]?\d{4,7})-(.*)$/

function compareIso(one: string, other: string): number {
  const [, year, rest = ''] = isoParts.exec(one) ?? []
  const [, otherYear, otherRest = ''] = isoParts.exec(other) ?? []
  if (year === undefined || otherYear === undefined) return byBytes.compare(one, other)
  return sign(Number(year), Number(otherYear)) || sign(rest, otherRest)
}

function parseFloating(text: string): number {
  if (text === 'inf') return Number.POSITIVE_INFINITY
  // Adding 0 turns -0 into 0.
  return text === '-inf' ? Number.NEGATIVE_INFINITY : Number(text) + 0
}

/** Shortens a text. The result is never larger than the text, and is a prefix of it. */
function shorten(text: string): string {
  if (text.length <= boundCharsMax) return text
  return [...text.slice(0, 2 * boundCharsMax)].slice(0, boundCharsMax).join('')
}

function sign<T extends bigint | number | string>(one: T, other: T): number {
  return one === other ? 0 : one < other ? -1 : 1
}
