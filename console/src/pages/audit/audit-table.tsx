import { useInfiniteQuery } from '@tanstack/react-query'
import { ScrollText } from 'lucide-react'
import { type AuditEvent, auditEventsQuery } from '../../api/audit-events.ts'
import { Badge } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { Failure } from '../../shell/failure.tsx'
import style from './audit-page.module.css'
import type { AuditSearch } from './audit-search.ts'
import { operationName } from './operation-names.ts'

type AuditTableProps = { readonly of: string; readonly search: AuditSearch }

export function AuditTable({ of, search }: AuditTableProps) {
  const events = useInfiniteQuery(auditEventsQuery(of, search))
  const columns: readonly TableColumn<AuditEvent>[] = [
    { title: 'When', cell: ({ at }) => <Time at={at} /> },
    {
      title: 'What',
      cell: ({ operation, resource_id, resource_name }) => (
        <div>
          <strong title={operation}>{operationName(operation)}</strong>
          {resource_id !== null && <Named id={resource_id} name={resource_name} />}
        </div>
      ),
    },
    { title: 'Who', cell: (event) => <Actor event={event} /> },
    { title: 'From', cell: ({ address }) => (address === null ? '–' : <code>{address}</code>), minor: true },
    { title: 'Result', cell: (event) => <Result event={event} /> },
  ]
  if (events.isError) return <Failure error={events.error} onRetry={() => void events.refetch()} />
  if (events.data === undefined) return <Skeleton rows={8} height="figure" />
  const isFiltered = Object.keys(search).length > 0
  return (
    <Table
      label="Audit events"
      columns={columns}
      rows={events.data.pages.flatMap(({ items }) => items)}
      keyOf={({ id }) => id}
      empty={
        <EmptyState icon={<ScrollText />} title={isFiltered ? 'No event like this' : 'Nothing was changed yet'}>
          <p>
            {isFiltered
              ? 'Clear the filter to see all events.'
              : 'Every change in the account stands here, with who made it, also those that were refused.'}
          </p>
        </EmptyState>
      }
      footer={
        events.hasNextPage && (
          <Button size="small" busy={events.isFetchingNextPage} onClick={() => void events.fetchNextPage()}>
            Show older events
          </Button>
        )
      }
    />
  )
}

const known: Readonly<Record<string, string>> = {
  operator: 'operator',
  cli: 'command line of control',
  bootstrap: 'first start',
  'join-secret': 'a node, by the join secret',
  inlet: 'Inlet, by a rule',
  unknown: 'no valid credentials',
}

function Actor({ event: { actor, actor_name } }: { readonly event: AuditEvent }) {
  const [kind = '', id] = actor.split(':')
  if (id === undefined) return known[actor] ?? actor
  return (
    <div>
      {kind.replace('-', ' ')}
      <Named id={id} name={actor_name} />
    </div>
  )
}

/** Shows the name, or the id of something that has no name, or none any more. */
function Named({ id, name }: { readonly id: string; readonly name: string | null }) {
  if (name === null)
    return (
      <code className={style.id} title={id}>
        {id}
      </code>
    )
  return (
    <span className={style.named} title={id}>
      {name}
    </span>
  )
}

function Result({ event: { result, error, unrecorded } }: { readonly event: AuditEvent }) {
  return (
    <div>
      <Badge tone={result === 'failed' ? 'bad' : 'good'}>{error ?? 'done'}</Badge>
      {unrecorded > 0 && <div className={style.more}>and {unrecorded} more before it</div>}
    </div>
  )
}
