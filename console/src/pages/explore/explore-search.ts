/** Search parameters that restore the screen. */
export type ExploreSearch = { readonly sql?: string; readonly range?: Range; readonly show?: 'chart' }

export type Range = 'hour' | 'day' | 'week' | 'all'

const hourMs = 3_600_000
const rangeMs: Readonly<Record<Range, number | undefined>> = {
  hour: hourMs,
  day: 24 * hourMs,
  week: 7 * 24 * hourMs,
  all: undefined,
}

export const rangeChoices: readonly { readonly value: Range; readonly label: string }[] = [
  { value: 'hour', label: 'in the last hour' },
  { value: 'day', label: 'in the last 24 hours' },
  { value: 'week', label: 'in the last 7 days' },
  { value: 'all', label: 'at any time' },
]

/** The length of a statement that an address carries: the API takes no longer one. */
const sqlCharsMax = 16_384

export function readExploreSearch({ sql, range, show }: Record<string, unknown>): ExploreSearch {
  return {
    ...(typeof sql === 'string' && sql.length <= sqlCharsMax ? { sql } : {}),
    ...(isRange(range) ? { range } : {}),
    ...(show === 'chart' ? { show } : {}),
  }
}

function isRange(value: unknown): value is Range {
  return typeof value === 'string' && Object.hasOwn(rangeMs, value)
}

/** Returns from when on files are read; undefined for all. */
export function sinceOf(range: Range, now: number): string | undefined {
  const ms = rangeMs[range]
  return ms === undefined ? undefined : new Date(now - ms).toISOString()
}
