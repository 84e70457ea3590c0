import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { type Node, nodesQuery } from '../../api/nodes.ts'
import { Badge } from '../../design/badge.tsx'
import { Callout } from '../../design/callout.tsx'
import { CopyButton } from '../../design/copy-button.tsx'
import { formatCount } from '../../design/format.ts'
import { Card, Facts, Inline, Page, Section } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { Failure } from '../../shell/failure.tsx'
import { Missing } from '../../shell/load-failure.tsx'
import { DiskMeter } from './disk-meter.tsx'
import { NodeActions } from './node-actions.tsx'
import { NodeLogs } from './node-logs.tsx'
import { labelOf, NodeState, shortId, stateOf } from './node-state.tsx'

const route = getRouteApi('/signed-in/outside/operate/nodes/$node')

/** One machine: what it runs, how it is, and what its disk holds. */
export function NodePage() {
  const { node: id } = route.useParams()
  const nodes = useInfiniteQuery(nodesQuery)
  const node = nodes.data?.pages.flatMap(({ items }) => items).find((each) => each.id === id)
  const { hasNextPage, isFetching, fetchNextPage } = nodes
  // The API lists nodes and has no call for one: its page is looked for.
  if (node === undefined && hasNextPage && !isFetching) void fetchNextPage()
  const label = node === undefined ? shortId(id) : labelOf(node)
  const frame = (content: ReactNode, actions?: ReactNode) => (
    <Page
      trail={<Link to="/operate/nodes">Nodes</Link>}
      title={
        <Inline>
          Node {label} <CopyButton text={id} label="Copy its id" wordless />
        </Inline>
      }
      actions={actions}
    >
      {content}
    </Page>
  )
  if (nodes.isError) return frame(<Failure error={nodes.error} onRetry={() => void nodes.refetch()} />)
  if (node === undefined && (nodes.isPending || hasNextPage)) return frame(<Skeleton rows={6} height="figure" />)
  if (node === undefined)
    return frame(<Missing noun="node" back={<ButtonLink to="/operate/nodes">Go to the nodes</ButtonLink>} />)
  return frame(<Known node={node} />, <NodeActions node={node} />)
}

function Known({ node }: { readonly node: Node }) {
  const { word, reasons } = stateOf(node)
  return (
    <>
      {word !== 'healthy' && reasons.length > 0 && (
        <Callout kind={word === 'new' || word === 'leaving' ? 'note' : 'bad'} title={`The node is ${word}`}>
          {reasons.map((reason) => (
            <p key={reason}>{reason}</p>
          ))}
          <p>
            What it accepted is on its disk, and is delivered as soon as it runs again. <code>docs/operations.md</code> says what
            to do with a machine that does not come back.
          </p>
        </Callout>
      )}
      {node.scrub_findings > 0 && (
        <Callout kind="bad" title={`The scrub knows of ${formatCount(node.scrub_findings)} damaged files`}>
          <p>
            They are on its disk or in buckets. <code>inlet scrub</code> lists them and says what to do about each.
          </p>
        </Callout>
      )}
      <Card>
        <Facts facts={factsOf(node)} />
      </Card>
      <Section title="Processes" about="A node takes records in one process and delivers them in another.">
        <Table
          label="Processes"
          columns={processColumns}
          rows={[
            { name: 'ingest', process: node.ingest },
            { name: 'delivery', process: node.delivery },
          ]}
          keyOf={({ name }) => name}
        />
      </Section>
      <NodeLogs node={node} />
    </>
  )
}

function factsOf(node: Node): readonly (readonly [string, ReactNode])[] {
  const { id, region, version, ipv4, ipv6, ingest_address, registered_at, join_token_id, credential, disk } = node
  const joinedWith = join_token_id === null ? 'the join secret of the installation' : <code>{join_token_id}</code>
  return [
    ['State', <NodeState key="state" node={node} />],
    ['Id', <code key="id">{id}</code>],
    ['Region', region],
    ['Inlet', version ?? 'unknown'],
    ['Disk', <DiskMeter key="disk" disk={disk} />],
    ['Addresses for DNS', [...ipv4, ...ipv6].join(', ') || 'none'],
    ['Listens at', <code key="address">{ingest_address}</code>],
    ['Registered', <Time key="registered" at={registered_at} />],
    ['Joined with', joinedWith],
    ['Credential', credential],
  ]
}

type Process = { readonly name: string; readonly process: Node['ingest'] }

const processColumns: readonly TableColumn<Process>[] = [
  { title: 'Process', cell: ({ name }) => <strong>{name}</strong> },
  { title: 'State', cell: ({ process }) => <ProcessState process={process} /> },
  {
    title: 'Epoch',
    cell: ({ process }) => (process === null || process.applied_epoch < 0 ? '–' : formatCount(process.applied_epoch)),
    figure: true,
  },
  { title: 'Last seen', cell: ({ process }) => (process === null ? 'never' : <Time at={process.last_seen_at} />) },
]

function ProcessState({ process }: Pick<Process, 'process'>) {
  if (process === null) return <Badge dot>not reported yet</Badge>
  const { healthy, leaving, reasons } = process
  return (
    <Badge tone={healthy ? (leaving ? 'calm' : 'good') : 'bad'} dot>
      {healthy ? (leaving ? 'leaving' : 'healthy') : reasons.join('; ') || 'unhealthy'}
    </Badge>
  )
}
