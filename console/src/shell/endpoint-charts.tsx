import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import {
  type EndpointSeries,
  endpointSeriesQuery,
  type Range,
  secondsOver,
  timesOf,
  timesUntilNow,
  valuesAt,
} from '../api/series.ts'
import { Chart, type ChartSeries } from '../design/chart.tsx'
import { formatBytes, formatCompact, formatDuration } from '../design/format.ts'
import { Card, Columns } from '../design/layout.tsx'
import { ChartPlaceholders } from './chart-placeholders.tsx'
import { Failure } from './failure.tsx'
import { useAccount } from './session.tsx'

/** Charts of one endpoint: accepted records, acknowledgement, delivery, and what waits for it. Loaded on demand, because charts are large. */
export function EndpointCharts({ endpoint, range }: { readonly endpoint: string; readonly range: Range }) {
  const series = useQuery(endpointSeriesQuery(useAccount(), endpoint, range))
  if (series.isError && series.data === undefined) return <Failure error={series.error} onRetry={() => void series.refetch()} />
  return series.data === undefined ? <ChartPlaceholders /> : <Charts data={series.data} />
}

function Charts({ data }: { readonly data: EndpointSeries }) {
  const { times, throughput, latency, lag, waiting } = useMemo(() => linesOf(data), [data])
  const shared = { times, sync: 'endpoint', isOpen: showsOpen(data) }
  return (
    <Columns minimum={24}>
      <Card>
        <Chart {...shared} label="Per second" series={throughput} format={formatCompact} />
      </Card>
      <Card>
        <Chart {...shared} label="Acknowledged after" series={latency} format={formatDuration} />
      </Card>
      <Card>
        <Chart {...shared} label="In the bucket after sealing" series={lag} format={formatDuration} />
      </Card>
      <Card>
        <Chart {...shared} label="Not yet in the bucket" series={waiting} format={formatBytes} />
      </Card>
    </Columns>
  )
}

/** In a short bucket that is not over, most is not reported yet: the line would fall at its end. Waiting for a long one would hide minutes. */
function showsOpen({ step_seconds }: Pick<EndpointSeries, 'step_seconds'>): boolean {
  return step_seconds >= 300
}

type Lines = {
  readonly times: readonly number[]
  readonly throughput: readonly ChartSeries[]
  readonly latency: readonly ChartSeries[]
  readonly lag: readonly ChartSeries[]
  readonly waiting: readonly ChartSeries[]
}

function linesOf({ buckets, ...window }: EndpointSeries): Lines {
  const times = showsOpen(window) ? timesUntilNow(window) : timesOf(window)
  const values = (read: (bucket: EndpointSeries['buckets'][number]) => number | null, empty: 0 | null) =>
    valuesAt(times, buckets, read, empty)
  const perSecond = (count: number, at: string) => count / secondsOver(window, Date.parse(at))
  const refusals = (refused: Readonly<Record<string, number>>) => Object.values(refused).reduce((sum, count) => sum + count, 0)
  return {
    times,
    throughput: [
      { label: 'records', tone: 1, kind: 'area', values: values(({ records, at }) => perSecond(records, at), 0) },
      { label: 'refused', tone: 4, values: values(({ refused, at }) => perSecond(refusals(refused), at), 0) },
    ],
    latency: [
      { label: 'half', tone: 1, values: values((bucket) => bucket.ack_latency_ms?.p50 ?? null, null) },
      { label: '99 %', tone: 2, values: values((bucket) => bucket.ack_latency_ms?.p99 ?? null, null) },
    ],
    lag: [{ label: 'longest', tone: 3, kind: 'bars', values: values((bucket) => bucket.commit_lag_ms?.max ?? null, null) }],
    waiting: [{ label: 'most', tone: 3, kind: 'bars', values: values((bucket) => bucket.undelivered_bytes_max, null) }],
  }
}
