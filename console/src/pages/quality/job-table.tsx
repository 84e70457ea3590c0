import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { History } from 'lucide-react'
import type { ReactNode } from 'react'
import { type Job, type JobFilter, jobsQuery } from '../../api/jobs.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { formatCompact, formatCount } from '../../design/format.ts'
import { Skeleton } from '../../design/skeleton.tsx'
import { SplitBar } from '../../design/split-bar.tsx'
import { StatusBadge } from '../../design/status-badge.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount } from '../../shell/session.tsx'
import style from './quality.module.css'

const kindNames = { backfill: 'Backfill', redrive: 'Re-drive', compaction: 'Compaction' } as const satisfies Record<
  Job['kind'],
  string
>

/** Title of a job. A compaction has no view. */
export function titleOf({ kind, view_name, view_version, endpoint_name }: Job): string {
  return view_name === null ? `${kindNames[kind]} of ${endpoint_name}` : `${kindNames[kind]} of ${view_name} v${view_version}`
}

/** Backfills, re-drives and compactions with their progress. */
export function JobTable({ filter, empty }: { readonly filter: JobFilter; readonly empty?: ReactNode }) {
  const account = useAccount()
  const jobs = useInfiniteQuery(jobsQuery(account, filter))
  const rows = jobs.data?.pages.flatMap(({ items }) => items)
  if (jobs.isError && rows === undefined) return <Failure error={jobs.error} onRetry={() => void jobs.refetch()} />
  if (rows === undefined) return <Skeleton rows={4} height="figure" />
  return (
    <Table label="Jobs" columns={columnsOf(account)} rows={rows} keyOf={({ id }) => id} empty={empty ?? <NoJobs />} more={jobs} />
  )
}

function NoJobs() {
  return (
    <EmptyState
      icon={<History />}
      title="No job yet"
      action={
        <ButtonLink to="/in/$account/quality" params={{ account: useAccount() }}>
          Go to data quality
        </ButtonLink>
      }
    >
      <p>
        A backfill runs a version over records that were delivered before it was attached. A re-drive runs a repaired version over
        the dead letters of an older one. Start either from a view under Data quality.
      </p>
    </EmptyState>
  )
}

function columnsOf(account: string): readonly TableColumn<Job>[] {
  return [
    {
      title: 'Job',
      cell: (job) => (
        <>
          <Link to="/in/$account/jobs/$job" params={{ account, job: job.id }} className={style.name}>
            {titleOf(job)}
          </Link>
          <span className={style.under}>{job.view_id === null ? 'small files of all its views' : job.endpoint_name}</span>
        </>
      ),
    },
    { title: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
    { title: 'Progress', cell: (job) => <JobProgress job={job} /> },
    {
      title: 'Accepted',
      cell: ({ counters }) => <span title={formatCount(counters.accepted)}>{formatCompact(counters.accepted)}</span>,
      figure: true,
      minor: true,
    },
    {
      title: 'Rejected',
      cell: ({ counters: { dlq, failed } }) => <span title={formatCount(dlq + failed)}>{formatCompact(dlq + failed)}</span>,
      figure: true,
      minor: true,
    },
    { title: 'Started', cell: ({ created_at }) => <Time at={created_at} />, minor: true },
  ]
}

/** How many of the segments of a job are done, and how. A compaction counts the merged files that it makes, or whose sources it removes. */
export function JobProgress({ job: { kind, segments } }: { readonly job: Pick<Job, 'kind' | 'segments'> }) {
  const { total, done, skipped, failed } = segments
  const units = kind === 'compaction' ? 'merged files' : 'segments'
  return (
    <span className={style.progress}>
      <SplitBar
        label={units}
        progress
        total={total}
        parts={[
          { label: 'done', value: done, tone: 'good' },
          { label: 'skipped', value: skipped, tone: 'none' },
          { label: 'failed', value: failed, tone: 'bad' },
        ]}
      />
      <span className={style.under}>
        {total === 0 ? `no ${units}` : `${formatCount(done + skipped + failed)} of ${formatCount(total)} ${units}`}
      </span>
    </span>
  )
}
