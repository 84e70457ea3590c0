import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { type Range, timesUntilNow, type ViewSeries, valuesAt, viewSeriesQuery } from '../../api/series.ts'
import { Chart, type ChartSeries } from '../../design/chart.tsx'
import { formatCompact, formatShare } from '../../design/format.ts'
import { Card, Columns } from '../../design/layout.tsx'
import { ChartPlaceholders } from '../../shell/chart-placeholders.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount } from '../../shell/session.tsx'

type ViewChartsProps = { readonly view: string; readonly range: Range; readonly endpoint: string | undefined }

/** Charts of a version, and of rejections by other versions of the view. Loaded on demand, because charts are large. */
export function ViewCharts({ view, range, endpoint }: ViewChartsProps) {
  const series = useQuery(viewSeriesQuery(useAccount(), view, range, endpoint))
  if (series.isError && series.data === undefined) return <Failure error={series.error} onRetry={() => void series.refetch()} />
  return series.data === undefined ? <ChartPlaceholders /> : <Charts data={series.data} view={view} />
}

function Charts({ data, view }: { readonly data: ViewSeries; readonly view: string }) {
  const { times, passed, rows, rejected, shares } = useMemo(() => linesOf(data, view), [data, view])
  const shared = { times, sync: 'view', isOpen: true }
  return (
    <Columns minimum={24}>
      <Card>
        <Chart {...shared} label="Records" series={passed} format={formatCompact} />
      </Card>
      {rows.length > 0 && (
        <Card>
          <Chart {...shared} label="Rows" series={rows} format={formatCompact} />
        </Card>
      )}
      <Card>
        <Chart {...shared} label="Rejected" series={rejected} format={formatCompact} />
      </Card>
      <Card>
        <Chart {...shared} label="Share rejected" series={shares} format={formatShare} />
      </Card>
    </Columns>
  )
}

type Counts = Omit<ViewSeries['versions'][number]['buckets'][number], 'at'>

const versionsMax = 5
const tones = [1, 3, 2, 5, 4] as const

function linesOf({ versions, ...window }: ViewSeries, view: string) {
  const times = timesUntilNow(window)
  const own = versions.find(({ view_id }) => view_id === view)?.buckets ?? []
  const all = summed(own)
  // While nothing is pointed at, the legend has the sum of what the chart shows, as the figures above it do.
  const counts = (read: (bucket: Counts) => number) => ({ values: valuesAt(times, own, read, 0), whole: read(all) })
  const shares = versions.slice(0, versionsMax).map(({ view_version, buckets }, index): ChartSeries => {
    const values = valuesAt(times, buckets, rejectedShare, null)
    return { label: `v${view_version}`, tone: tones[index] ?? 1, values, whole: rejectedShare(summed(buckets)) }
  })
  const passed: readonly ChartSeries[] = [
    { label: 'accepted', tone: 1, kind: 'area', ...counts(({ accepted }) => accepted) },
    { label: 'dropped', tone: 2, ...counts(({ dropped }) => dropped) },
  ]
  const rejected: readonly ChartSeries[] = [
    { label: 'dead letters', tone: 3, kind: 'area', ...counts(({ dlq }) => dlq) },
    { label: 'failed', tone: 4, ...counts(({ failed }) => failed) },
  ]
  // Most views write a row for each accepted record.
  const rows: readonly ChartSeries[] =
    all.rows === all.accepted && all.duplicates === 0
      ? []
      : [
          { label: 'rows', tone: 1, kind: 'area', ...counts((bucket) => bucket.rows) },
          ...(all.duplicates === 0 ? [] : [{ label: 'duplicates', tone: 2, ...counts(({ duplicates }) => duplicates) } as const]),
        ]
  return { times, passed, rows, rejected, shares }
}

function summed(buckets: readonly Counts[]): Counts {
  const sum = (read: (counts: Counts) => number) => buckets.reduce((total, counts) => total + read(counts), 0)
  return {
    accepted: sum(({ accepted }) => accepted),
    dropped: sum(({ dropped }) => dropped),
    dlq: sum(({ dlq }) => dlq),
    failed: sum(({ failed }) => failed),
    rows: sum(({ rows }) => rows),
    duplicates: sum(({ duplicates }) => duplicates),
  }
}

function rejectedShare({ accepted, dropped, dlq, failed }: Counts): number | null {
  const processed = accepted + dropped + dlq + failed
  return processed === 0 ? null : (dlq + failed) / processed
}
