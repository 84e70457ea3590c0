import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { MailX } from 'lucide-react'
import type { ComponentProps } from 'react'
import { dlqFilesQuery, dlqReasonsQuery, dlqRecordsQuery } from '../../api/dead-letters.ts'
import { viewQuery } from '../../api/views.ts'
import { Callout } from '../../design/callout.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Failure } from '../../shell/failure.tsx'
import { MayLackCommits } from '../../shell/may-lack-commits.tsx'
import { useAccount } from '../../shell/session.tsx'
import { DlqFiles } from './dlq-files.tsx'
import { LetterList } from './letter-list.tsx'
import style from './quality.module.css'
import { ReasonTable } from './reason-table.tsx'
import { EndpointChoice, useViewMetrics } from './view-quality-frame.tsx'

const route = getRouteApi('/signed-in/in/$account/quality/$view')

/** The records that a version rejected: why, which, and their files. */
export function DeadLettersPage() {
  const { metrics, of, view: id, endpoint } = useViewMetrics()
  const { code, column, record } = route.useSearch()
  const view = useQuery(viewQuery(useAccount(), id))
  if (metrics.isError) return <Failure error={metrics.error} onRetry={() => void metrics.refetch()} />
  if (metrics.data === undefined || of === undefined || view.data === undefined) return <Skeleton rows={6} height="figure" />
  const letters = { view: id, count: of.all_time.dlq, endpoint_id: endpoint }
  return (
    <div className={style.stack}>
      <EndpointChoice endpoints={metrics.data.endpoints} />
      <Letters view={view.data} of={letters} filter={{ error_code: code, column }} record={record} />
    </div>
  )
}

type LettersProps = ComponentProps<typeof LetterList>

/** All at once: reasons that arrive later would move the records. */
function Letters({ of, filter, ...rest }: LettersProps) {
  const account = useAccount()
  const reasons = useQuery(dlqReasonsQuery(account, of))
  const records = useQuery(dlqRecordsQuery(account, of, filter))
  const files = useInfiniteQuery(dlqFilesQuery(account, of.view, of.endpoint_id))
  const since = files.data?.pages[0]?.may_lack_commits_since ?? null
  const incomplete = since !== null && (
    <Callout kind="warn" title="This may not be everything">
      <p>
        <MayLackCommits since={since} />
      </p>
    </Callout>
  )
  // Not by the counters: what jobs rejected before an upgrade is not in them.
  if (files.data?.pages[0]?.total === 0) return incomplete || <NoDeadLetters />
  if (reasons.isPending || records.isPending || files.isPending) return <Skeleton rows={8} height="figure" />
  return (
    <>
      {incomplete}
      <ReasonTable of={of} />
      <LetterList of={of} filter={filter} {...rest} />
      <DlqFiles view={of.view} endpoint={of.endpoint_id} />
    </>
  )
}

function NoDeadLetters() {
  return (
    <EmptyState icon={<MailX />} title="No dead letters">
      <p>
        Records that are not valid JSON, lack a required column, or have a value that does not fit a column with{' '}
        <code>cast_failures: dlq</code> end up here, whole, and with the reason. So far every record fits.
      </p>
    </EmptyState>
  )
}
