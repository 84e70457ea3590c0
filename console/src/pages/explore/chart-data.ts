import type { QueryResult } from '../../api/query.ts'
import type { ChartSeries } from '../../design/chart.tsx'

type Result = Pick<QueryResult, 'columns' | 'rows'>

/** How a result can be drawn; undefined if it has no figures to draw. */
export type Drawing =
  | { readonly kind: 'time'; readonly times: readonly number[]; readonly series: readonly ChartSeries[] }
  | {
      readonly kind: 'bars'
      readonly label: string
      readonly bars: readonly Bar[]
      /** Rows that have no bar, because there would be too many. */
      readonly leftOut: number
    }

type Bar = { readonly name: string; readonly value: number }

const tones = [1, 2, 3, 4, 5] as const
const barsMax = 40
const figure = /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|UINTEGER|FLOAT|DOUBLE|DECIMAL\(.*\))$/
const time = /^(TIMESTAMP.*|DATE)$/

/** Draws the figures of a result over its first column of times, or beside its first column of another type. */
export function drawingOf(result: Result): Drawing | undefined {
  const { columns, rows } = result
  const figures = columns.flatMap(({ name, type }, index) => (figure.test(type) ? [{ name, index }] : []))
  const [first] = figures
  if (first === undefined || rows.length < 2) return undefined
  const timeIndex = columns.findIndex(({ type }) => time.test(type))
  if (timeIndex >= 0) return overTime(result, timeIndex, figures)
  const nameIndex = columns.findIndex((_, index) => figures.every((each) => each.index !== index))
  if (nameIndex < 0) return undefined
  const all = rows.flatMap((row) => {
    const value = numberOf(row[first.index])
    return value === null ? [] : [{ name: textOf(row[nameIndex]), value }]
  })
  const bars = all.slice(0, barsMax)
  return bars.length < 2 ? undefined : { kind: 'bars', label: first.name, bars, leftOut: all.length - bars.length }
}

/** A part of a track from 0 to 1. */
export type Span = { readonly start: number; readonly length: number }

/** Returns where each bar lies: all begin at zero, and their lengths are to each other as their values are. */
export function spansOf(values: readonly number[]): readonly Span[] {
  const [lowest, highest] = [Math.min(0, ...values), Math.max(0, ...values)]
  // Divided first: the distance of two doubles may be infinite.
  const scale = Math.max(-lowest, highest)
  const whole = scale === 0 ? 1 : highest / scale - lowest / scale
  const shareOf = (value: number) => (scale === 0 ? 0 : value / scale / whole)
  return values.map((value) => ({ start: shareOf(Math.min(0, value)) - shareOf(lowest), length: Math.abs(shareOf(value)) }))
}

function overTime(
  { rows }: Result,
  timeIndex: number,
  figures: readonly { readonly name: string; readonly index: number }[],
): Drawing | undefined {
  const points = rows
    .map((row) => ({ row, at: Date.parse(String(row[timeIndex])) }))
    .filter(({ at }) => Number.isFinite(at))
    .toSorted((a, b) => a.at - b.at)
  // A line has one value at a time: rows that are not grouped by time are no series.
  if (points.length < 2 || new Set(points.map(({ at }) => at)).size < points.length) return undefined
  const series = tones.flatMap((tone, number): ChartSeries[] => {
    const each = figures[number]
    if (each === undefined) return []
    return [{ label: each.name, tone, kind: 'line', values: points.map(({ row }) => numberOf(row[each.index])) }]
  })
  return { kind: 'time', times: points.map(({ at }) => at), series }
}

function numberOf(value: unknown): number | null {
  if (typeof value !== 'number' && typeof value !== 'string') return null
  const number = Number(value)
  return Number.isFinite(number) ? number : null
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
