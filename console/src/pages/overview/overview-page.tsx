import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Radio } from 'lucide-react'
import { findEmptyRegion } from '../../../../src/model/empty-region.ts'
import { type Endpoint, endpointsQuery } from '../../api/endpoints.ts'
import type { WholeList } from '../../api/whole-list.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { formatBytes, formatCount, formatDuration } from '../../design/format.ts'
import { Card, Columns, Page, Section, Stat } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { StatusBadge } from '../../design/status-badge.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import type { ChartSearch } from '../../shell/chart-search.ts'
import { Failure } from '../../shell/failure.tsx'
import { Reason } from '../../shell/reason.tsx'
import { useAccount, useHere, useMay } from '../../shell/session.tsx'
import style from './overview-page.module.css'
import { Traffic } from './traffic.tsx'

/** Whether data arrives, and where it waits. */
export function OverviewPage({ search }: { readonly search: ChartSearch }) {
  const { account } = useHere()
  const endpoints = useQuery(endpointsQuery(useAccount()))
  return (
    <Page
      title={account?.account_name ?? ''}
      about="Where your data is: what arrives, what waits on a disk, what is in your bucket."
      actions={<NextSteps endpoint={endpoints.data?.items[0]} />}
    >
      {endpoints.isError && <Failure error={endpoints.error} onRetry={() => void endpoints.refetch()} />}
      <Card>
        <Summary list={endpoints.data} />
      </Card>
      {endpoints.data?.items.length !== 0 && <Traffic endpoints={endpoints.data?.items} search={search} />}
      <Section title="Endpoints">
        {endpoints.data === undefined ? (
          <Skeleton rows={3} height="figure" />
        ) : (
          <EndpointTable endpoints={endpoints.data.items} />
        )}
      </Section>
    </Page>
  )
}

function Summary({ list }: { readonly list: WholeList<Endpoint> | undefined }) {
  const sum = list === undefined ? undefined : summed(list)
  return (
    <Columns minimum={12}>
      <Stat
        label="Endpoints"
        value={sum && formatCount(sum.endpoints)}
        note={sum && (sum.troubled === 0 ? 'none needs attention' : `${formatCount(sum.troubled)} to look at`)}
      />
      <Stat
        label="On its way"
        value={sum && formatBytes(sum.bytes)}
        exact={sum && `${formatCount(sum.bytes)} bytes`}
        note={sum && `${formatCount(sum.segments)} sealed ${sum.segments === 1 ? 'segment' : 'segments'}`}
      />
      <Stat
        label="Oldest that waits"
        value={sum && (sum.oldest_s === null ? '–' : formatDuration(sum.oldest_s * 1000))}
        note="since it was sealed"
      />
    </Columns>
  )
}

function summed({ items: endpoints, total }: WholeList<Endpoint>) {
  const ages = endpoints.flatMap(({ lag }) => lag.oldest_age_seconds ?? [])
  return {
    endpoints: total,
    bytes: endpoints.reduce((sum, { lag }) => sum + lag.undelivered_bytes, 0),
    segments: endpoints.reduce((sum, { lag }) => sum + lag.undelivered_segments, 0),
    oldest_s: ages.length === 0 ? null : Math.max(...ages),
    troubled: endpoints.filter(needsAttention).length,
  }
}

function needsAttention({ status, status_reasons }: Endpoint): boolean {
  return status === 'degraded' || status === 'failed' || findEmptyRegion(status_reasons) !== undefined
}

const columns: readonly TableColumn<Endpoint>[] = [
  { title: 'Name', cell: (endpoint) => <EndpointLink endpoint={endpoint} /> },
  { title: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
  {
    title: 'Reason',
    cell: ({ status_reasons }) => (
      <span className={style.reason}>
        <Reason text={status_reasons.join('; ')} />
      </span>
    ),
  },
  { title: 'Region', cell: ({ region }) => region, minor: true },
  { title: 'Destination', cell: ({ destination_name }) => destination_name ?? 'none', minor: true },
  { title: 'On its way', cell: ({ lag }) => formatBytes(lag.undelivered_bytes), figure: true },
]

function EndpointLink({ endpoint: { id, name } }: { readonly endpoint: Endpoint }) {
  return (
    <Link to="/in/$account/endpoints/$endpoint" params={{ account: useAccount(), endpoint: id }} className={style.name}>
      {name}
    </Link>
  )
}

/** Next steps of a newcomer: see one record arrive, then let a program send. */
function NextSteps({ endpoint }: { readonly endpoint: Endpoint | undefined }) {
  const account = useAccount()
  if (!useMay('member')) return null
  return (
    <>
      <ButtonLink to="/in/$account/keys/new" params={{ account }}>
        Create key
      </ButtonLink>
      {endpoint === undefined ? (
        <ButtonLink look="primary" to="/in/$account/endpoints" params={{ account }}>
          Send a test event
        </ButtonLink>
      ) : (
        <ButtonLink look="primary" to="/in/$account/endpoints/$endpoint/test" params={{ account, endpoint: endpoint.id }}>
          Send a test event
        </ButtonLink>
      )}
    </>
  )
}

function EndpointTable({ endpoints }: { readonly endpoints: readonly Endpoint[] }) {
  return (
    <Table
      label="Endpoints"
      columns={columns}
      rows={endpoints.toSorted((a, b) => Number(needsAttention(b)) - Number(needsAttention(a)))}
      keyOf={({ id }) => id}
      rowsAtOnce={50}
      empty={
        <EmptyState
          icon={<Radio />}
          title="No endpoint yet"
          action={
            <ButtonLink look="primary" to="/in/$account/endpoints" params={{ account: useAccount() }}>
              Create an endpoint
            </ButtonLink>
          }
        >
          <p>An endpoint is an address that takes events over HTTP and MQTT, and writes them to your bucket.</p>
        </EmptyState>
      }
    />
  )
}
