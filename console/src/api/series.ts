import { queryOptions } from '@tanstack/react-query'
import { client, ok, type Schemas } from './client.ts'
import { movingMs, slowMs, whileThere } from './intervals.ts'

export type EndpointSeries = Schemas['EndpointSeries']

/** How far back charts go, in ms. The API chooses the length of the buckets. */
export const ranges = { '1h': 3_600_000, '12h': 12 * 3_600_000, '2d': 2 * 86_400_000, '30d': 30 * 86_400_000 } as const
export type Range = keyof typeof ranges

export const endpointSeriesQuery = (account: string, id: string, range: Range) =>
  queryOptions({
    queryKey: [account, 'endpoints', id, 'series', range],
    queryFn: () => {
      const since = new Date(Date.now() - ranges[range]).toISOString()
      return ok(client.GET('/v1/endpoints/{id}/series', { params: { path: { id }, query: { since } } }))
    },
    refetchInterval: whileThere(range === '1h' ? movingMs : slowMs),
  })

type Window = Pick<EndpointSeries, 'since' | 'until' | 'step_seconds'>

/** Returns when each bucket of a series begins, but not of the last one, which is not over. In ms since 1970. */
export function timesOf({ since, until, step_seconds }: Window): readonly number[] {
  const [start, stepMs] = [Date.parse(since), step_seconds * 1000]
  const buckets = Math.max(0, Math.floor((Date.parse(until) - start) / stepMs))
  return Array.from({ length: buckets }, (_, bucket) => start + bucket * stepMs)
}

/** The same with the bucket that is not over, for counts: without it, what came last would be missing. */
export function timesUntilNow({ since, until, step_seconds }: Window): readonly number[] {
  const [start, stepMs] = [Date.parse(since), step_seconds * 1000]
  const buckets = Math.floor((Date.parse(until) - start) / stepMs) + 1
  return Array.from({ length: buckets }, (_, bucket) => start + bucket * stepMs)
}

/** Returns how many seconds of the bucket that begins at `at` are over: a rate divides by them. */
export function secondsOver({ until, step_seconds }: Window, at: number): number {
  return Math.min(step_seconds, Math.max(1, (Date.parse(until) - at) / 1000))
}

/** Returns a value for each time. The API leaves out buckets in which nothing happened: they get `empty`. */
export function valuesAt<Bucket extends { readonly at: string }>(
  times: readonly number[],
  buckets: readonly Bucket[],
  read: (bucket: Bucket) => number | null,
  empty: 0 | null,
): readonly (number | null)[] {
  const byTime = new Map(buckets.map((bucket) => [Date.parse(bucket.at), bucket]))
  return times.map((time) => {
    const bucket = byTime.get(time)
    return bucket === undefined ? empty : read(bucket)
  })
}

export type ViewSeries = Schemas['ViewSeries']

/**
 * Series of all versions of a view, for one endpoint or for all. They come from commits, and an endpoint has one in a minute or
 * so: shorter buckets would mostly be empty.
 */
export const viewSeriesQuery = (account: string, id: string, range: Range, endpoint_id: string | undefined) =>
  queryOptions({
    queryKey: [account, 'views', id, 'series', range, endpoint_id],
    queryFn: () => {
      const since = new Date(Date.now() - ranges[range]).toISOString()
      const step = range === '1h' ? { step: '1m' as const } : {}
      const query = { since, ...step, ...(endpoint_id === undefined ? {} : { endpoint_id }) }
      return ok(client.GET('/v1/views/{id}/series', { params: { path: { id }, query } }))
    },
    refetchInterval: whileThere(range === '1h' ? movingMs : slowMs),
  })
