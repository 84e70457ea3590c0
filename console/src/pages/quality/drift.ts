/**
 * Finds changes in the columns of a view.
 *
 * Law: the last 24 hours are compared with everything before them, not with all time: a day that is half of all records would hide its own change.
 */
import type { ColumnMetrics } from '../../api/view-metrics.ts'

type Window = Pick<ColumnMetrics['last_24h'], 'values' | 'nulls' | 'cast_failures' | 'cast_dlq' | 'missing'>

export type Rates = {
  /** Rows that the column was read from. */
  readonly rows: number
  /** Accepted records: the share of NULLs is of these. */
  readonly accepted: number
  readonly nulls: number
  readonly cast_failures: number
  readonly missing: number
}

export type DriftKind = 'nulls' | 'cast_failures' | 'missing'
export type Drift = { readonly column: string; readonly kind: DriftKind; readonly before: number; readonly now: number }

/** Fewer rows say nothing about a share. */
const rowsMin = 20
/** A share has drifted if it grew by more than this, and by this factor. */
const grown = { nulls: 0.05, cast_failures: 0.002, missing: 0.002, factor: 1.25 } as const

export function ratesOf(window: Window): Rates {
  const accepted = window.values + window.nulls
  const rows = accepted + window.cast_dlq + window.missing
  const share = (count: number, of: number) => (of === 0 ? 0 : Math.min(1, count / of))
  return {
    rows,
    accepted,
    nulls: share(window.nulls, accepted),
    cast_failures: share(window.cast_failures, rows),
    missing: share(window.missing, rows),
  }
}

/** Returns what was measured before the last 24 hours. */
export function beforeOf({ last_24h, all_time }: Pick<ColumnMetrics, 'last_24h' | 'all_time'>): Window {
  const rest = (name: keyof Window) => Math.max(0, all_time[name] - last_24h[name])
  return {
    values: rest('values'),
    nulls: rest('nulls'),
    cast_failures: rest('cast_failures'),
    cast_dlq: rest('cast_dlq'),
    missing: rest('missing'),
  }
}

/** Returns the columns with the rows that hidden ones were read from: all columns are read from the same rows, and a file has only some. */
export function withRows(columns: readonly ColumnMetrics[]): readonly ColumnMetrics[] {
  const written = columns.find(({ hidden }) => !hidden)
  if (written === undefined) return columns
  const add = (name: 'last_24h' | 'all_time', column: ColumnMetrics) => {
    return { ...column[name], values: written[name].values + written[name].nulls }
  }
  return columns.map((column) =>
    column.hidden ? { ...column, last_24h: add('last_24h', column), all_time: add('all_time', column) } : column,
  )
}

/** Whether there is enough on both sides to compare. */
export function isComparable(column: ColumnMetrics): boolean {
  return ratesOf(column.last_24h).rows >= rowsMin && ratesOf(beforeOf(column)).rows >= rowsMin
}

/** Returns the shares that grew, the columns in their order. */
export function findDrift(columns: readonly ColumnMetrics[]): readonly Drift[] {
  return withRows(columns)
    .filter(isComparable)
    .flatMap((column) => {
      const [before, now] = [ratesOf(beforeOf(column)), ratesOf(column.last_24h)]
      // A version that accepted nothing had no NULLs: that is no share to compare with.
      const hasNulls = Math.min(before.accepted, now.accepted) >= rowsMin
      const kinds: readonly DriftKind[] = [...(hasNulls ? (['nulls'] as const) : []), 'cast_failures', 'missing']
      return kinds
        .filter((kind) => now[kind] > before[kind] + grown[kind] && now[kind] > before[kind] * grown.factor)
        .map((kind) => ({ column: column.name, kind, before: before[kind], now: now[kind] }))
    })
}
