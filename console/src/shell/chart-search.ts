import { type Range, ranges } from '../api/series.ts'

/** Search parameters of a screen with charts: how far back they go, and for which endpoint they are. */
export type ChartSearch = { readonly range?: Range; readonly endpoint?: string }

export function readChartSearch({ range, endpoint }: Record<string, unknown>): ChartSearch {
  return { ...(isRange(range) ? { range } : {}), ...(typeof endpoint === 'string' ? { endpoint } : {}) }
}

function isRange(value: unknown): value is Range {
  return typeof value === 'string' && Object.hasOwn(ranges, value)
}
