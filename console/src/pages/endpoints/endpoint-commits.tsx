import { useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { PackageCheck } from 'lucide-react'
import { type Commit, commitsQuery } from '../../api/endpoints.ts'
import { Callout } from '../../design/callout.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { formatBytes, formatCount, formatDuration } from '../../design/format.ts'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { Failure } from '../../shell/failure.tsx'
import { MayLackCommits } from '../../shell/may-lack-commits.tsx'
import { useMay } from '../../shell/session.tsx'
import { CommitCharts, delayOf } from './commit-charts.tsx'
import { CommitFiles } from './commit-files.tsx'
import style from './endpoints.module.css'
import { useEndpoint } from './use-endpoint.ts'

/** Each segment that is in the bucket. */
export function EndpointCommits() {
  const { account, endpoint } = useEndpoint()
  const mayChange = useMay('member')
  const commits = useInfiniteQuery(commitsQuery(account, endpoint.id))
  const { commit: shown } = useSearch({ from: '/signed-in/in/$account/endpoints/$endpoint/commits' })
  const navigate = useNavigate({ from: '/in/$account/endpoints/$endpoint/commits' })
  if (commits.isError) return <Failure error={commits.error} onRetry={() => void commits.refetch()} />
  if (commits.data === undefined) return <Skeleton rows={6} height="figure" />
  const rows = commits.data.pages.flatMap(({ items }) => items)
  const since = commits.data.pages[0]?.may_lack_commits_since ?? null
  const columns: readonly TableColumn<Commit>[] = [
    { title: 'Delivered', cell: ({ uploaded_at }) => <Time at={uploaded_at} /> },
    { title: 'Segment', cell: ({ seq }) => <code>{seq}</code> },
    { title: 'Node', cell: ({ node_id }) => <code title={node_id}>{node_id.slice(0, 8)}</code>, minor: true },
    { title: 'Records', cell: (commit) => formatCount(commit.records), figure: true },
    { title: 'Size', cell: ({ wal_bytes }) => formatBytes(wal_bytes), figure: true, minor: true },
    { title: 'Seal to bucket', cell: (commit) => formatDuration(delayOf(commit)), figure: true, minor: true },
    {
      title: 'Files',
      figure: true,
      cell: (commit) => (
        <ButtonLink
          size="small"
          to="/in/$account/endpoints/$endpoint/commits"
          params={{ account, endpoint: endpoint.id }}
          search={{ commit: commit.id }}
          resetScroll={false}
        >
          {formatCount(Object.keys(commit.artifacts).length)} files
        </ButtonLink>
      ),
    },
  ]
  return (
    <div className={style.stack}>
      {since !== null && (
        <Callout kind="warn" title="This may not be everything">
          <p>
            <MayLackCommits since={since} />
          </p>
        </Callout>
      )}
      {rows.length > 0 && <CommitCharts commits={rows} />}
      <Table
        label="Commits"
        columns={columns}
        rows={rows}
        keyOf={({ id }) => id}
        empty={
          <EmptyState
            icon={<PackageCheck />}
            title="Nothing is delivered yet"
            action={
              mayChange && (
                <ButtonLink to="/in/$account/endpoints/$endpoint/test" params={{ account, endpoint: endpoint.id }}>
                  Send a test event
                </ButtonLink>
              )
            }
          >
            <p>
              A segment is sealed after {endpoint.segment_max_age_seconds} s or {formatBytes(endpoint.segment_bytes)}, converted
              to Parquet and uploaded. Then it stands here.
            </p>
          </EmptyState>
        }
        more={commits}
      />
      <CommitFiles
        endpoint={endpoint}
        commit={shown}
        onClose={() => void navigate({ search: {}, replace: true, resetScroll: false })}
      />
    </div>
  )
}
