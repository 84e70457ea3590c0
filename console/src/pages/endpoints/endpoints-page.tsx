import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Plus, Radio } from 'lucide-react'
import { useState } from 'react'
import { type Endpoint, endpointsQuery } from '../../api/endpoints.ts'
import type { WholeList } from '../../api/whole-list.ts'
import { Button } from '../../design/button.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { TextField } from '../../design/field.tsx'
import { formatBytes, formatCount } from '../../design/format.ts'
import { Page } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { StatusBadge } from '../../design/status-badge.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import { CreateEndpoint } from './create-endpoint.tsx'
import style from './endpoints.module.css'

const route = getRouteApi('/signed-in/in/$account/endpoints')

/** From so many on, people look for one by its name. */
const manyEndpoints = 20

/** All endpoints of an account, and what keeps each from being active. */
export function EndpointsPage() {
  const account = useAccount()
  const mayChange = useMay('member')
  const endpoints = useQuery(endpointsQuery(account))
  const { find = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const [creating, setCreating] = useState(false)
  const create = mayChange && (
    <Button look="primary" icon={<Plus aria-hidden="true" />} onClick={() => setCreating(true)}>
      Create endpoint
    </Button>
  )
  return (
    <Page
      title="Endpoints"
      about="Addresses that take events over HTTP and MQTT, and deliver them to your bucket."
      actions={create}
    >
      {endpoints.isError && <Failure error={endpoints.error} onRetry={() => void endpoints.refetch()} />}
      {endpoints.data === undefined ? (
        !endpoints.isError && <Skeleton rows={3} height="figure" />
      ) : (
        <>
          {(endpoints.data.items.length > manyEndpoints || find !== '') && (
            <div className={style.search}>
              <TextField
                label="Find an endpoint"
                type="search"
                value={find}
                onChange={(text) => void navigate({ search: text === '' ? {} : { find: text }, replace: true })}
                placeholder="Name, region or status"
              />
            </div>
          )}
          <Table
            label="Endpoints"
            columns={columnsOf(account)}
            rows={endpoints.data.items.filter((endpoint) => matches(endpoint, find))}
            keyOf={({ id }) => id}
            rowsAtOnce={100}
            empty={
              find === '' ? (
                <EmptyState icon={<Radio />} title="No endpoint yet" action={create}>
                  <p>Create one, send an event to it, and see the row in Parquet a moment later.</p>
                </EmptyState>
              ) : (
                <EmptyState title={`No endpoint matches “${find}”`} />
              )
            }
            footer={endpoints.data.total > endpoints.data.items.length && restOf(endpoints.data)}
          />
        </>
      )}
      <CreateEndpoint open={creating} onClose={() => setCreating(false)} />
    </Page>
  )
}

function matches({ name, region, status, id }: Endpoint, text: string): boolean {
  const words = text.toLowerCase().split(/\s+/)
  return words.every((word) => [name, region, status, id].some((value) => value.toLowerCase().includes(word)))
}

function restOf({ items, total }: WholeList<Endpoint>): string {
  return `These are the newest ${formatCount(items.length)} of ${formatCount(total)} endpoints. The API lists all of them.`
}

function columnsOf(account: string): readonly TableColumn<Endpoint>[] {
  return [
    {
      title: 'Name',
      cell: ({ id, name }) => (
        <Link to="/in/$account/endpoints/$endpoint" params={{ account, endpoint: id }} className={style.name}>
          {name}
        </Link>
      ),
    },
    { title: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
    {
      title: 'Reason',
      cell: ({ status_reasons }) => <span className={style.soft}>{status_reasons.join('; ')}</span>,
      minor: true,
    },
    { title: 'Region', cell: ({ region }) => region, minor: true },
    { title: 'Destination', cell: ({ destination_name }) => destination_name ?? 'none', minor: true },
    { title: 'On its way', cell: ({ lag }) => formatBytes(lag.undelivered_bytes), figure: true },
  ]
}
