import { useMemo } from 'react'
import type { Binding } from '../../api/bindings.ts'
import { type ViewSeries, valuesAt } from '../../api/series.ts'
import { Chart, type ChartSeries } from '../../design/chart.tsx'
import { formatShare } from '../../design/format.ts'
import { bucketsOf, bucketsOfCanary, countsOf, rejectedShare, timesUntilLast, type Versions } from './judge-canary.ts'

/** The share of records that each of two versions rejected, over time. Loaded on demand, because charts are large. */
export function CanaryChart({ series, versions }: { readonly series: ViewSeries; readonly versions: Versions }) {
  const { times, lines } = useMemo(() => linesOf(series, versions), [series, versions])
  return <Chart label="Share rejected" times={times} series={lines} format={formatShare} height={140} />
}

function linesOf(series: ViewSeries, { current, canary }: Versions) {
  const times = timesUntilLast(series, canary)
  const line = ({ view_version }: Binding, buckets: ReturnType<typeof bucketsOf>, tone: ChartSeries['tone']): ChartSeries => ({
    label: `v${view_version}`,
    tone,
    values: valuesAt(times, buckets, (bucket) => rejectedShare(countsOf([bucket])), null),
  })
  return {
    times,
    lines: [line(current, bucketsOf(series, current.view_id), 1), line(canary, bucketsOfCanary(series, canary), 3)],
  }
}
