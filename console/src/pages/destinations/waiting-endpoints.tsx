import { useQuery } from '@tanstack/react-query'
import { type Destination, deliverTo, destinationsKey } from '../../api/destinations.ts'
import { type Endpoint, endpointsQuery } from '../../api/endpoints.ts'
import { Button } from '../../design/button.tsx'
import { formatBytes } from '../../design/format.ts'
import { Section } from '../../design/layout.tsx'
import { StatusBadge } from '../../design/status-badge.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'
import style from './destinations.module.css'

/** The next step after a validation: endpoints whose data has nowhere to go. */
export function WaitingEndpoints({ destination }: { readonly destination: Destination }) {
  const account = useAccount()
  const mayChange = useMay('member')
  const endpoints = useQuery(endpointsQuery(account))
  const waiting =
    endpoints.data?.items.filter(({ destination_id, status }) => destination_id === null && status !== 'draining') ?? []
  const bind = useChange({
    call: ({ id }: Endpoint) => deliverTo(id, destination.id),
    changes: [destinationsKey(account), endpointsQuery(account).queryKey],
    said: ({ name }) => `${name} delivers to ${destination.name}`,
  })
  if (waiting.length === 0) return null
  const columns: readonly TableColumn<Endpoint>[] = [
    { title: 'Name', cell: ({ name }) => <span className={style.name}>{name}</span> },
    { title: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
    { title: 'Waits', cell: ({ lag }) => formatBytes(lag.undelivered_bytes), figure: true, minor: true },
    {
      title: '',
      figure: true,
      cell: (endpoint) =>
        mayChange && (
          <Button size="small" onClick={() => bind.mutate(endpoint)} busy={bind.isPending && bind.variables.id === endpoint.id}>
            Deliver here
          </Button>
        ),
    },
  ]
  return (
    <Section title="Endpoints without a destination" about="Their data waits on the disks of nodes.">
      {bind.isError && <Failure error={bind.error} />}
      <Table label="Endpoints without a destination" columns={columns} rows={waiting} keyOf={({ id }) => id} rowsAtOnce={20} />
    </Section>
  )
}
