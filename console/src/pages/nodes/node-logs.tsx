import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { type LogOwner, type Node, type NodeLog, nodeLogsQuery } from '../../api/nodes.ts'
import { Badge, type Tone } from '../../design/badge.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { SelectField } from '../../design/field.tsx'
import { formatBytes, formatCount } from '../../design/format.ts'
import { Section } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { Failure } from '../../shell/failure.tsx'
import { owners } from './node-search.ts'
import { shortId } from './node-state.tsx'
import style from './nodes.module.css'

const route = getRouteApi('/signed-in/outside/operate/nodes/$node')

const tones = { active: 'good', paused: 'none', draining: 'calm', deleted: 'warn', unknown: 'bad' } as const satisfies Record<
  LogOwner,
  Tone
>

const choices = [
  { value: 'all', label: 'Every endpoint' },
  ...owners.map((owner) => ({ value: owner, label: `Endpoints that are ${owner}` })),
] as const

/** Logs on the disk of the node, by endpoint. */
export function NodeLogs({ node }: { readonly node: Node }) {
  const { owner } = route.useSearch()
  const navigate = route.useNavigate()
  const logs = useInfiniteQuery(nodeLogsQuery(node.id, owner))
  return (
    <Section
      title="On its disk"
      about="What waits to be delivered, by endpoint. Segments of deleted or unknown endpoints have no owner: nothing delivers them."
      actions={
        <SelectField
          label="Show"
          value={owner ?? 'all'}
          choices={choices}
          onChange={(value) => void navigate({ search: value === 'all' ? {} : { owner: value as LogOwner }, replace: true })}
        />
      }
    >
      {logs.isError && <Failure error={logs.error} onRetry={() => void logs.refetch()} />}
      {logs.isPending && <Skeleton rows={2} height="figure" />}
      {logs.isSuccess && (
        <Table
          label="Segments by endpoint"
          columns={columns}
          rows={logs.data.pages.flatMap(({ items }) => items)}
          keyOf={({ endpoint_id }) => endpoint_id}
          empty={
            <EmptyState title={owner === undefined ? 'The disk holds nothing' : 'Nothing of such endpoints'}>
              Everything that this node accepted is in buckets.
            </EmptyState>
          }
          more={logs}
        />
      )}
    </Section>
  )
}

const columns: readonly TableColumn<NodeLog>[] = [
  {
    title: 'Endpoint',
    cell: ({ endpoint_id, endpoint_name }) => (
      <>
        <strong className={style.name}>{endpoint_name ?? 'unknown'}</strong>
        <code className={style.soft} title={endpoint_id}>
          {shortId(endpoint_id)}
        </code>
      </>
    ),
  },
  {
    title: 'Owner',
    cell: ({ owner }) => (
      <Badge tone={tones[owner]} dot>
        {owner}
      </Badge>
    ),
  },
  { title: 'Open', cell: ({ open_segments }) => formatCount(open_segments), figure: true, minor: true },
  { title: 'Sealed', cell: ({ sealed_segments }) => formatCount(sealed_segments), figure: true },
  { title: 'Parked', cell: ({ parked_segments }) => formatCount(parked_segments), figure: true, minor: true },
  { title: 'Quarantined', cell: ({ quarantined_segments }) => formatCount(quarantined_segments), figure: true, minor: true },
  { title: 'Records', cell: ({ records }) => (records === null ? '–' : formatCount(records)), figure: true, minor: true },
  { title: 'Bytes', cell: ({ bytes }) => formatBytes(bytes), figure: true },
  {
    title: 'Oldest',
    cell: ({ oldest_sealed_at }) => (oldest_sealed_at === null ? '–' : <Time at={oldest_sealed_at} />),
    minor: true,
  },
  {
    title: 'Needs attention',
    cell: ({ blocked_by, append_blocked_by, scrub_findings, scrub_finding }) =>
      [blocked_by, append_blocked_by, scrub_finding && `${formatCount(scrub_findings)} damaged: ${scrub_finding}`]
        .filter((why) => why !== null)
        .join('; ') || '–',
    minor: true,
  },
]
