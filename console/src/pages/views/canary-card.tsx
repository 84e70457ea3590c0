import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { ChartLine } from 'lucide-react'
import { lazy, Suspense, useMemo, useState } from 'react'
import { type Binding, bindingsQuery, detachView } from '../../api/bindings.ts'
import { type Range, ranges, viewSeriesQuery } from '../../api/series.ts'
import { type ViewCounts, viewMetricsQuery } from '../../api/view-metrics.ts'
import { viewsKey } from '../../api/views.ts'
import { Badge } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { Callout } from '../../design/callout.tsx'
import { Confirm } from '../../design/confirm.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { formatCount, formatShare } from '../../design/format.ts'
import { Card, Section } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time, useNow } from '../../design/time.tsx'
import { say } from '../../design/toast.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import {
  type Canary,
  type ColumnDifference,
  compareColumns,
  countBoth,
  findCanary,
  findStopped,
  judgeCanary,
} from './judge-canary.ts'
import style from './views.module.css'

const CanaryChart = lazy(() => import('./canary-chart.tsx').then(({ CanaryChart: component }) => ({ default: component })))

type CanaryAtProps = { readonly endpoint_id: string; readonly endpoint_name: string; readonly view_name: string }

/** Where several versions are attached to an endpoint: their figures, and the choice between them. */
export function CanaryAt({ endpoint_id, endpoint_name, view_name }: CanaryAtProps) {
  const bindings = useQuery(bindingsQuery(useAccount(), endpoint_id))
  if (bindings.isError) return <Failure error={bindings.error} onRetry={() => void bindings.refetch()} />
  const found = findCanary(bindings.data?.items ?? [], view_name)
  const current = found?.others[0]
  const stopped = findStopped(bindings.data?.items ?? [], view_name)
  return (
    <>
      {stopped !== undefined && (
        <Callout kind="warn" title={`The canary of version ${stopped.view_version} at ${endpoint_name} was stopped`}>
          <p>{stopped.stopped_reason}.</p>
        </Callout>
      )}
      {found && current && <CanaryCard found={found} current={current} endpoint_name={endpoint_name} />}
    </>
  )
}

type CanaryCardProps = { readonly found: Canary; readonly current: Binding; readonly endpoint_name: string }

function CanaryCard({ found: { canary, others }, current, endpoint_name }: CanaryCardProps) {
  const account = useAccount()
  const mayChange = useMay('member')
  const [of, ofCanary] = [
    useQuery(viewMetricsQuery(account, current.view_id)),
    useQuery(viewMetricsQuery(account, canary.view_id)),
  ]
  const versions = useMemo(() => ({ current, canary }), [current, canary])
  const [range] = useState(() => rangeSince(canary.canary_start_ts ?? canary.activated_at))
  const series = useQuery(viewSeriesQuery(account, canary.view_id, range, canary.endpoint_id))
  const metricsOf = (metrics: typeof of) => metrics.data?.endpoints.find(({ endpoint_id }) => endpoint_id === canary.endpoint_id)
  const [before, after] = [metricsOf(of), metricsOf(ofCanary)]
  const waits = useWaits(canary)
  const failed = series.error ?? of.error ?? ofCanary.error
  const differences = compareColumns(before, after)
  const counts = series.data && countBoth(series.data, versions)
  const verdict = counts && judgeCanary(counts.before, counts.after, after, differences)
  return (
    <Section
      title={`Canary at ${endpoint_name}: version ${canary.view_version} beside ${current.view_version}`}
      about={aboutFigures(range)}
      actions={mayChange && <Choice canary={canary} others={others} />}
    >
      {failed !== null && <Failure error={failed} />}
      {series.data === undefined || counts === undefined || verdict === undefined ? (
        failed === null && <Skeleton rows={3} height="figure" />
      ) : (
        <>
          {waits ? (
            <Callout kind="note" title="The canary has not begun">
              <p>
                It processes segments that are sealed from <Time at={canary.canary_start_ts ?? canary.activated_at} exact /> on.
              </p>
            </Callout>
          ) : (
            <Callout kind={verdict.kind} title={verdict.title}>
              <p>{verdict.text}</p>
            </Callout>
          )}
          <Table
            label={`Versions at ${endpoint_name}`}
            columns={versionColumns}
            rows={[
              { binding: current, counts: counts.before, role: 'in use' },
              { binding: canary, counts: counts.after, role: 'canary' },
            ]}
            keyOf={({ binding }) => binding.id}
          />
          {counts.after.processed === 0 ? (
            <EmptyState icon={<ChartLine />} title="Nothing to compare yet">
              <p>The share of rejected records of both versions stands here from the canary's first segment on.</p>
            </EmptyState>
          ) : (
            <Card>
              <Suspense fallback={<Skeleton height="chart" />}>
                <CanaryChart series={series.data} versions={versions} />
              </Suspense>
            </Card>
          )}
          {counts.after.processed > 0 && differences !== undefined && differences.length > 0 && (
            <Table label="Columns that differ" columns={differenceColumns} rows={differences} keyOf={({ name }) => name} />
          )}
        </>
      )}
    </Section>
  )
}

/** Figures are summed up in steps, so that of the version in use a part of a step comes before the canary. */
function aboutFigures(range: Range): string {
  const limit = range === '2d' ? ', two days ago at most' : ''
  return `Both run on the same segments and write files of their own; a backfill of one of them counts too. Figures begin in the ${range === '1h' ? 'minute' : 'interval'} of the canary's first segment${limit}.`
}

/** Whether the time from which on the canary runs is yet to come. */
function useWaits({ canary_start_ts }: Binding): boolean {
  const now = useNow()
  return canary_start_ts !== null && Date.parse(canary_start_ts) > now
}

/** The shortest range that has the whole life of a canary. Nobody watches one for longer than two days. */
function rangeSince(start: string): Range {
  const age = Date.now() - Date.parse(start)
  return age < ranges['1h'] ? '1h' : age < ranges['12h'] ? '12h' : '2d'
}

type Running = {
  readonly binding: Binding
  readonly counts: ViewCounts
  readonly role: 'in use' | 'canary'
}

const versionColumns: readonly TableColumn<Running>[] = [
  {
    title: 'Version',
    cell: ({ binding, role }) => (
      <span className={style.tags}>
        <strong className={style.name}>v{binding.view_version}</strong>
        <Badge tone={role === 'canary' ? 'calm' : 'none'}>{role}</Badge>
        {binding.is_required && <Badge>required</Badge>}
      </span>
    ),
  },
  { title: 'Since', cell: ({ binding }) => <Time at={binding.canary_start_ts ?? binding.activated_at} />, minor: true },
  { title: 'Processed', figure: true, cell: ({ counts }) => formatCount(counts.processed) },
  { title: 'Accepted', figure: true, cell: ({ counts }) => share(counts, 'accepted') },
  { title: 'Dropped', figure: true, cell: ({ counts }) => share(counts, 'dropped'), minor: true },
  { title: 'Dead letters', figure: true, cell: ({ counts }) => share(counts, 'dlq') },
  { title: 'Failed', figure: true, cell: ({ counts }) => share(counts, 'failed'), minor: true },
]

function share(counts: ViewCounts, outcome: 'accepted' | 'dropped' | 'dlq' | 'failed') {
  if (counts.processed === 0) return '–'
  return <span title={`${formatCount(counts[outcome])} records`}>{formatShare(counts[outcome] / counts.processed)}</span>
}

const differenceColumns: readonly TableColumn<ColumnDifference>[] = [
  { title: 'Column', cell: ({ name }) => <strong className={style.name}>{name}</strong> },
  { title: 'In the canary', cell: ({ difference }) => difference },
]

/** Promote: detach the others. Stop: detach the canary. Either way each segment keeps at least one version. */
function Choice({ canary, others }: Canary) {
  const account = useAccount()
  const queries = useQueryClient()
  const [asked, setAsked] = useState<'promote' | 'stop' | null>(null)
  const waits = useWaits(canary)
  const decide = useMutation({
    mutationFn: async (choice: 'promote' | 'stop') => {
      for (const { endpoint_id, id } of choice === 'promote' ? others : [canary]) await detachView(endpoint_id, id)
    },
    onSuccess: (_, choice) => {
      setAsked(null)
      // The buttons go with the card: the keyboard goes on in the page.
      document.querySelector('main')?.focus()
      say(choice === 'promote' ? `Version ${canary.view_version} promoted` : 'Canary stopped')
    },
    // Some may be detached even if another was refused.
    onSettled: () =>
      Promise.all([
        queries.invalidateQueries(bindingsQuery(account, canary.endpoint_id)),
        queries.invalidateQueries({ queryKey: viewsKey(account) }),
      ]),
  })
  const losesRequired = !canary.is_required && others.some(({ is_required }) => is_required)
  const replaced = others.map(({ view_version }) => view_version).join(', ')
  return (
    <div className={style.row}>
      <Button onClick={() => setAsked('stop')}>Stop canary</Button>
      <Button
        look="primary"
        disabled={waits}
        title={
          waits ? 'The canary has not begun: without the other version, segments until then would have no output.' : undefined
        }
        onClick={() => setAsked('promote')}
      >
        Promote canary
      </Button>
      <Confirm
        open={asked === 'promote'}
        onClose={() => setAsked(null)}
        title={`Promote version ${canary.view_version}?`}
        action="Promote canary"
        tone="primary"
        onConfirm={() => decide.mutate('promote')}
        call={decide}
      >
        <p>
          Version {replaced} is detached from {canary.endpoint_name}. Segments that are sealed from now on have the output of
          version {canary.view_version} alone.
        </p>
        {losesRequired && (
          <Callout kind="warn" title="The canary is not required">
            <p>If it fails on a segment, the segment is committed without it. Version {replaced} would have held it back.</p>
          </Callout>
        )}
      </Confirm>
      <Confirm
        open={asked === 'stop'}
        onClose={() => setAsked(null)}
        title={`Stop the canary of version ${canary.view_version}?`}
        action="Stop canary"
        onConfirm={() => decide.mutate('stop')}
        call={decide}
      >
        <p>
          Version {canary.view_version} is detached from {canary.endpoint_name}. Version {replaced} goes on. Files that the canary
          wrote stay in your bucket.
        </p>
      </Confirm>
    </div>
  )
}
