import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { ShieldCheck } from 'lucide-react'
import { allViewMetricsQuery, type ViewMetrics, type WindowCounts } from '../../api/view-metrics.ts'
import { Badge } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { formatCompact, formatCount } from '../../design/format.ts'
import { Page } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount } from '../../shell/session.tsx'
import { OutcomeBar } from './outcomes.tsx'
import style from './quality.module.css'
import { watchedVersions } from './watched-versions.ts'

const route = getRouteApi('/signed-in/in/$account/quality')

/** All views: what each accepts, and what it rejects. */
export function QualityPage() {
  const account = useAccount()
  const { idle: withIdle = false } = route.useSearch()
  const navigate = route.useNavigate()
  const metrics = useInfiniteQuery(allViewMetricsQuery(account))
  const all = metrics.data?.pages.flatMap(({ items }) => items)
  const { shown, idle } = watchedVersions(all ?? [], withIdle)
  return (
    <Page
      title="Data quality"
      about="What each view made of records in the last 24 hours, in live delivery and in jobs. Views that reject most stand first."
    >
      {metrics.isError && <Failure error={metrics.error} onRetry={() => void metrics.refetch()} />}
      {metrics.isPending && <Skeleton rows={4} height="figure" />}
      {all !== undefined && (
        <Table
          label="Views"
          columns={columnsOf(account)}
          rows={shown}
          keyOf={({ view_id }) => view_id}
          empty={
            <EmptyState
              icon={<ShieldCheck />}
              title="No view is published yet"
              action={
                <ButtonLink to="/in/$account/views" params={{ account }}>
                  Go to the views
                </ButtonLink>
              }
            >
              <p>
                A view gives records columns and types. Once one is published and attached to an endpoint, this screen shows how
                many records fit, which do not, and why.
              </p>
            </EmptyState>
          }
          footer={
            metrics.hasNextPage ? (
              <Button size="small" busy={metrics.isFetchingNextPage} onClick={() => void metrics.fetchNextPage()}>
                Load more
              </Button>
            ) : idle > 0 ? (
              <Button
                size="small"
                look="quiet"
                onClick={() => void navigate({ search: withIdle ? {} : { idle: true }, replace: true })}
              >
                {withIdle ? 'Hide' : 'Show'} {formatCount(idle)} older {idle === 1 ? 'version' : 'versions'} without records
              </Button>
            ) : undefined
          }
        />
      )}
    </Page>
  )
}

function columnsOf(account: string): readonly TableColumn<ViewMetrics>[] {
  return [
    {
      title: 'View',
      cell: ({ view_id, view_name, view_version, endpoints }) => (
        <>
          <Link to="/in/$account/quality/$view" params={{ account, view: view_id }} className={style.name}>
            {view_name} v{view_version}
          </Link>
          <span className={style.under}>
            {endpoints.map(({ endpoint_name }) => endpoint_name).join(', ') || 'no records yet'}
          </span>
        </>
      ),
    },
    {
      title: 'Outcome',
      cell: ({ aggregated: { last_24h } }) =>
        last_24h.processed === 0 ? (
          <span className={style.soft}>nothing in 24 hours</span>
        ) : (
          <OutcomeBar label="Outcome" counts={last_24h} />
        ),
      minor: true,
    },
    { title: 'Accepted', cell: ({ aggregated: { last_24h } }) => <Count of={last_24h.accepted} />, figure: true },
    { title: 'Dropped', cell: ({ aggregated: { last_24h } }) => <Count of={last_24h.dropped} />, figure: true, minor: true },
    {
      title: 'Dead letters',
      cell: ({ view_id, aggregated: { last_24h } }) => <RejectedCount account={account} view={view_id} counts={last_24h} />,
      figure: true,
    },
    { title: 'Rejected', cell: (view) => <Rejected view={view} />, figure: true },
    { title: 'Last error', cell: ({ endpoints }) => <LastError endpoints={endpoints} />, minor: true },
  ]
}

function Count({ of }: { readonly of: number }) {
  return <span title={formatCount(of)}>{of === 0 ? '–' : formatCompact(of)}</span>
}

type RejectedCountProps = { readonly account: string; readonly view: string; readonly counts: WindowCounts }

function RejectedCount({ account, view, counts: { dlq, redriven } }: RejectedCountProps) {
  if (dlq === 0) return '–'
  return (
    <>
      <Link to="/in/$account/quality/$view/dead-letters" params={{ account, view }} title={formatCount(dlq)}>
        {formatCompact(dlq)}
      </Link>
      {redriven > 0 && (
        <span className={style.under} title={formatCount(redriven)}>
          {redriven === dlq ? 'all' : formatCompact(redriven)} re-driven
        </span>
      )}
    </>
  )
}

/** Shares of rejected records, in per cent: from when on they are worth attention. */
const warnPct = 0.1
const badPct = 5

function Rejected({ view: { endpoints, aggregated } }: { readonly view: ViewMetrics }) {
  if (endpoints.some(({ held_since }) => held_since !== null)) return <Badge tone="bad">holds delivery</Badge>
  if (aggregated.last_24h.processed === 0) return '–'
  const pct = aggregated.error_rate_pct
  return <Badge tone={pct >= badPct ? 'bad' : pct >= warnPct ? 'warn' : 'good'}>{pct} %</Badge>
}

function LastError({ endpoints }: Pick<ViewMetrics, 'endpoints'>) {
  const [latest] = endpoints
    .flatMap(({ last_error_at, last_error_code }) => (last_error_at === null ? [] : [{ last_error_at, last_error_code }]))
    .toSorted((one, other) => (one.last_error_at < other.last_error_at ? 1 : -1))
  if (latest === undefined) return <span className={style.soft}>none</span>
  return (
    <>
      <Time at={latest.last_error_at} />
      <span className={style.under}>{latest.last_error_code}</span>
    </>
  )
}
