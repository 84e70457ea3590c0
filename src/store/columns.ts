/** Conversions between columns and the model. */
import { isoTimestamp } from '#lib/clock.ts'

export const toTime = (epochMs: number): string => isoTimestamp(epochMs)
export const toTimeOrNull = (epochMs: number | null): string | null => (epochMs === null ? null : isoTimestamp(epochMs))
export const fromTime = (iso: string): number => Date.parse(iso)
export const fromTimeOrNull = (iso: string | null): number | null => (iso === null ? null : Date.parse(iso))
export const fromFlag = (flag: boolean): number => (flag ? 1 : 0)

/** Parses JSON that this store wrote itself, so its shape is known. */
export function fromJson<T>(text: string): T {
  return JSON.parse(text) as T
}

export function fromJsonOrNull<T>(text: string | null): T | null {
  return text === null ? null : (JSON.parse(text) as T)
}

export const toJsonOrNull = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))

/** Replaces U+0000 in text from outside, which Postgres cannot store. */
export const toStorableText = (text: string): string => text.replaceAll('\0', '\uFFFD')
