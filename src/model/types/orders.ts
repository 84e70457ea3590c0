/**
 * How the values of a type are ordered, and the text that stands for one: minimum and maximum are kept as that text.
 *
 * Law: comparing is exact, and total whatever the texts are: they come from nodes.
 */
import { Buffer } from 'node:buffer'
import { qualityLimits } from '../limits.ts'
import { isoDate, isoInstant } from './iso-dates.ts'

export type ValueOrder = {
  /** Returns the canonical text of a value, from DuckDB's text for it. */
  readonly canonical: (text: string) => string
  /** Compares two canonical texts; negative if `one` comes first. */
  readonly compare: (one: string, other: string) => number
  /** SQL condition for values that have no place in the order. */
  readonly excludes?: (value: string) => string
}

export const byBytes: ValueOrder = {
  canonical: (text) => text,
  compare: (one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)),
}

export const textOrder: ValueOrder = { ...byBytes, canonical: firstChars }

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

export const dateOrder: ValueOrder = { canonical: isoDate, compare: compareIso }
export const instantOrder: ValueOrder = { canonical: isoInstant, compare: compareIso }

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

/** A shortened text is at most the minimum that it was cut from; a maximum begins with it. */
function firstChars(text: string): string {
  const { textCharsMax } = qualityLimits
  if (text.length <= textCharsMax) return text
  return [...text.slice(0, 2 * textCharsMax)].slice(0, textCharsMax).join('')
}

function sign<T extends bigint | number | string>(one: T, other: T): number {
  return one === other ? 0 : one < other ? -1 : 1
}
