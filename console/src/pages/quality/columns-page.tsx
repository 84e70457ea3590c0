import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { Rows3 } from 'lucide-react'
import { lazy, Suspense } from 'react'
import type { WindowCounts } from '../../api/view-metrics.ts'
import { viewQuery } from '../../api/views.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { formatCompact, formatCount, formatShare } from '../../design/format.ts'
import { Card, Columns, Section, Stat } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { ChartPlaceholders } from '../../shell/chart-placeholders.tsx'
import { Failure } from '../../shell/failure.tsx'
import { RangeTabs } from '../../shell/range-tabs.tsx'
import { useAccount } from '../../shell/session.tsx'
import { ColumnTable } from './column-table.tsx'
import { DriftNotes } from './drift-notes.tsx'
import style from './quality.module.css'
import { UnmappedPaths } from './unmapped-paths.tsx'
import { EndpointChoice, useViewMetrics } from './view-quality-frame.tsx'

const route = getRouteApi('/signed-in/in/$account/quality/$view')

const ViewCharts = lazy(() => import('./view-charts.tsx').then(({ ViewCharts: component }) => ({ default: component })))

/** Quality of a version, column by column. */
export function ColumnsPage() {
  const { metrics, of, view, endpoint } = useViewMetrics()
  const { range = '12h' } = route.useSearch()
  const detail = useQuery(viewQuery(useAccount(), view))
  if (metrics.isError) return <Failure error={metrics.error} onRetry={() => void metrics.refetch()} />
  if (metrics.data === undefined || of === undefined) return <Skeleton rows={6} height="figure" />
  const { columns = [], unmapped_paths = [], last_24h, all_time } = of
  if (all_time.processed === 0) return <NothingYet />
  return (
    <div className={style.stack}>
      <EndpointChoice endpoints={metrics.data.endpoints} />
      <Outcomes last_24h={last_24h} all_time={all_time} />
      <Section title="Over time">
        <RangeTabs range={range} />
        <Suspense fallback={<ChartPlaceholders />}>
          <ViewCharts view={view} range={range} endpoint={endpoint} />
        </Suspense>
      </Section>
      <DriftNotes columns={columns} />
      <Section
        title="Columns"
        about="The last 24 hours; in grey everything before them, or for the smallest and the largest value all time. NULL is of accepted rows."
      >
        <ColumnTable view={view} columns={columns} />
      </Section>
      <UnmappedPaths view={detail.data} paths={unmapped_paths} />
    </div>
  )
}

function shareOf(count: number, { processed }: WindowCounts): string {
  return formatShare(count / processed)
}

/** Longer figures do not fit beside each other. */
const exactBelow = 1_000_000

function Outcomes({ last_24h, all_time }: { readonly last_24h: WindowCounts; readonly all_time: WindowCounts }) {
  const stats = [
    ['Accepted', 'accepted'],
    ['Dropped', 'dropped'],
    ['Dead letters', 'dlq'],
    ['Failed', 'failed'],
  ] as const
  return (
    <Card>
      <Columns minimum={12}>
        {stats.map(([label, name]) => (
          <Stat
            key={name}
            label={label}
            value={last_24h[name] < exactBelow ? formatCount(last_24h[name]) : formatCompact(last_24h[name])}
            exact={formatCount(last_24h[name])}
            note={
              `${last_24h.processed === 0 ? 'nothing' : shareOf(last_24h[name], last_24h)} in 24 hours, ${shareOf(all_time[name], all_time)} of all time` +
              (name === 'accepted' && last_24h.rows !== last_24h.accepted ? `; ${formatCount(last_24h.rows)} rows` : '') +
              (name === 'dropped' && last_24h.duplicates > 0 ? `; ${formatCount(last_24h.duplicates)} duplicates` : '') +
              (name === 'dlq' && last_24h.redriven > 0 ? `; ${formatCount(last_24h.redriven)} re-driven` : '')
            }
          />
        ))}
      </Columns>
    </Card>
  )
}

function NothingYet() {
  return (
    <EmptyState icon={<Rows3 />} title="This version has processed nothing yet">
      <p>
        Attach it to an endpoint. With the next commit this screen shows, for each column, how often it is NULL, which values do
        not fit its type, and which parts of the records no column reads.
      </p>
    </EmptyState>
  )
}
