import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Cylinder, Plus } from 'lucide-react'
import { type Destination, destinationsQuery } from '../../api/destinations.ts'
import { Badge } from '../../design/badge.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { formatCount } from '../../design/format.ts'
import { Page } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { StatusBadge } from '../../design/status-badge.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import style from './destinations.module.css'

/** The buckets that endpoints can write to. */
export function DestinationsPage() {
  const account = useAccount()
  const destinations = useInfiniteQuery(destinationsQuery(account))
  const rows = destinations.data?.pages.flatMap(({ items }) => items)
  return (
    <Page
      title="Destinations"
      about="A destination is a bucket that Inlet may write to. Endpoints deliver there."
      actions={<CreateLink />}
    >
      {destinations.isError && <Failure error={destinations.error} onRetry={() => void destinations.refetch()} />}
      {destinations.isPending && <Skeleton rows={3} height="figure" />}
      {rows !== undefined && (
        <Table
          label="Destinations"
          columns={columnsOf(account)}
          rows={rows}
          keyOf={({ id }) => id}
          empty={
            <EmptyState icon={<Cylinder />} title="No destination yet" action={<CreateLink />}>
              <p>Your data stays in a bucket that is yours. Name it, let Inlet write to it, and see each step tried.</p>
            </EmptyState>
          }
          more={destinations}
        />
      )}
    </Page>
  )
}

function CreateLink() {
  const account = useAccount()
  if (!useMay('member')) return null
  return (
    <ButtonLink to="/in/$account/destinations/new" params={{ account }} look="primary" icon={<Plus aria-hidden="true" />}>
      Create destination
    </ButtonLink>
  )
}

function columnsOf(account: string): readonly TableColumn<Destination>[] {
  return [
    {
      title: 'Name',
      cell: ({ id, name }) => (
        <Link to="/in/$account/destinations/$destination" params={{ account, destination: id }} className={style.name}>
          {name}
        </Link>
      ),
    },
    { title: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
    {
      title: 'Bucket',
      cell: ({ bucket, prefix }) => <span className={style.where}>{whereOf(bucket, prefix)}</span>,
      minor: true,
    },
    { title: 'Region', cell: ({ region }) => region, minor: true },
    {
      title: 'Validated',
      cell: ({ validated_at, last_error }) => <Validated at={validated_at} failed={last_error !== null} />,
      minor: true,
    },
    { title: 'Endpoints', cell: ({ ref_count }) => formatCount(ref_count), figure: true },
  ]
}

function Validated({ at, failed }: { readonly at: string | null; readonly failed: boolean }) {
  if (failed) return <Badge tone="bad">failed</Badge>
  return at === null ? <span className={style.soft}>never</span> : <Time at={at} />
}

function whereOf(bucket: string, prefix: string): string {
  return prefix === '' ? bucket : `${bucket}/${prefix}`
}
