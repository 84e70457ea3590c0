import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Server } from 'lucide-react'
import { type Node, nodesQuery } from '../../api/nodes.ts'
import { readinessQuery } from '../../api/readiness.ts'
import { Callout } from '../../design/callout.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { formatBytes, formatCount } from '../../design/format.ts'
import { Card, Columns, Page, Section, Stat } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { Failure } from '../../shell/failure.tsx'
import { DiskMeter } from './disk-meter.tsx'
import { JoinTokens } from './join-tokens.tsx'
import { NodeState, shortId } from './node-state.tsx'
import style from './nodes.module.css'

/** The machines of the installation: whether they run, what they run, and what waits on their disks. */
export function NodesPage() {
  const nodes = useInfiniteQuery(nodesQuery)
  const all = nodes.data?.pages.flatMap(({ items }) => items)
  return (
    <Page
      title="Nodes"
      about="Nodes take records, keep them on their disk, and deliver them. Each belongs to a region."
      actions={
        <ButtonLink look="primary" to="/operate/nodes/join">
          Add a node
        </ButtonLink>
      }
    >
      {nodes.isError && <Failure error={nodes.error} onRetry={() => void nodes.refetch()} />}
      <Notes />
      <Card>
        <Summary nodes={all} total={nodes.data?.pages[0]?.total} />
      </Card>
      <Section title="All nodes">
        {all === undefined ? (
          <Skeleton rows={3} height="figure" />
        ) : (
          <Table label="Nodes" columns={columns} rows={all} keyOf={({ id }) => id} empty={<NoNodes />} more={nodes} />
        )}
      </Section>
      <JoinTokens />
    </Page>
  )
}

/** Warnings about control and its database. */
function Notes() {
  const { data: notes = [] } = useQuery(readinessQuery)
  return notes.map((note) => (
    <Callout key={note} kind="warn" title="Control has a warning">
      <p>{note}.</p>
    </Callout>
  ))
}

type SummaryProps = { readonly nodes: readonly Node[] | undefined; readonly total: number | undefined }

function Summary({ nodes, total = 0 }: SummaryProps) {
  const sum = nodes && summed(nodes)
  return (
    <Columns minimum={12}>
      <Stat
        label="Healthy"
        value={sum && `${formatCount(sum.healthy)} of ${formatCount(sum.nodes)}`}
        note={sum && (total > sum.nodes ? `of the ${formatCount(sum.nodes)} nodes below` : sum.regions.join(', ') || 'no region')}
      />
      <Stat
        label="Configuration"
        value={sum && (sum.behind === 0 ? 'current' : `${formatCount(sum.behind)} behind`)}
        note={sum && (sum.epoch < 0 ? 'none applied yet' : `epoch ${formatCount(sum.epoch)}`)}
      />
      <Stat
        label="Waiting on disks"
        value={sum && formatBytes(sum.waiting)}
        exact={sum && `${formatCount(sum.waiting)} bytes`}
        note="not yet in a bucket"
      />
      <Stat label="Without owner" value={sum && formatCount(sum.unowned)} note="segments of deleted or unknown endpoints" />
    </Columns>
  )
}

function summed(nodes: readonly Node[]) {
  const epoch = Math.max(-1, ...nodes.map(epochOf))
  return {
    nodes: nodes.length,
    healthy: nodes.filter(({ healthy }) => healthy).length,
    regions: [...new Set(nodes.map(({ region }) => region))].toSorted(),
    epoch,
    behind: nodes.filter((node) => node.healthy && epochOf(node) < epoch).length,
    waiting: nodes.reduce((sum, { segments }) => sum + segments.bytes, 0),
    unowned: nodes.reduce((sum, { unowned }) => sum + countSegments(unowned), 0),
  }
}

/** Returns the epoch of the process that is behind the other. */
function epochOf({ ingest, delivery }: Node): number {
  return Math.min(ingest?.applied_epoch ?? -1, delivery?.applied_epoch ?? -1)
}

function countSegments(totals: Node['segments']): number {
  const { open_segments, sealed_segments, parked_segments, quarantined_segments } = totals
  return open_segments + sealed_segments + parked_segments + quarantined_segments
}

const columns: readonly TableColumn<Node>[] = [
  {
    title: 'Node',
    cell: ({ id, name, ingest_address }) => (
      <>
        <Link to="/operate/nodes/$node" params={{ node: id }} className={style.name}>
          {name ?? <code>{shortId(id)}</code>}
        </Link>
        <span className={style.soft}>
          {name !== null && `${shortId(id)} · `}
          {ingest_address}
        </span>
      </>
    ),
  },
  { title: 'State', cell: (node) => <NodeState node={node} /> },
  { title: 'Region', cell: ({ region }) => region },
  { title: 'Disk', cell: ({ disk }) => <DiskMeter disk={disk} />, minor: true },
  { title: 'Version', cell: ({ version }) => version ?? 'unknown', minor: true },
  { title: 'Epoch', cell: (node) => (epochOf(node) < 0 ? '–' : formatCount(epochOf(node))), figure: true, minor: true },
  { title: 'Waiting', cell: ({ segments }) => formatBytes(segments.bytes), figure: true },
  { title: 'Last seen', cell: ({ ingest }) => (ingest === null ? 'never' : <Time at={ingest.last_seen_at} />), minor: true },
]

function NoNodes() {
  return (
    <EmptyState
      icon={<Server />}
      title="No node yet"
      action={
        <ButtonLink look="primary" to="/operate/nodes/join">
          Add a node
        </ButtonLink>
      }
    >
      <p>A node is a machine that runs Inlet in a region. You make a token here, and start the node with it there.</p>
    </EmptyState>
  )
}
