import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Pause, Play } from 'lucide-react'
import type { Schemas } from '../../api/client.ts'
import { cancelJob, isUnfinished, type Job, jobQuery, jobsKey, pauseJob, resumeJob } from '../../api/jobs.ts'
import { Badge } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { Callout } from '../../design/callout.tsx'
import { formatCount } from '../../design/format.ts'
import { Card, Columns, Facts, Page, Section, Stat } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { StatusBadge } from '../../design/status-badge.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { AskingButton } from '../../shell/asking-button.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { Failure } from '../../shell/failure.tsx'
import { LoadFailure } from '../../shell/load-failure.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'
import { JobProgress, titleOf } from './job-table.tsx'
import style from './quality.module.css'

const route = getRouteApi('/signed-in/in/$account/jobs/$job')

type JobDetail = Schemas['JobDetail']

/** One job while it runs, and what came of it. */
export function JobPage() {
  const account = useAccount()
  const { job: id } = route.useParams()
  const job = useQuery(jobQuery(account, id))
  const { data } = job
  return (
    <Page
      trail={
        <Link to="/in/$account/jobs" params={{ account }}>
          Jobs
        </Link>
      }
      title={
        <>
          {data === undefined ? 'Job' : titleOf(data)}
          {data !== undefined && <StatusBadge status={data.status} />}
        </>
      }
      actions={data !== undefined && isUnfinished(data) && <Actions job={data} />}
    >
      {job.isError && (
        <LoadFailure
          query={job}
          noun="job"
          back={
            <ButtonLink to="/in/$account/jobs" params={{ account }}>
              Go to the jobs
            </ButtonLink>
          }
        />
      )}
      {data === undefined ? !job.isError && <Skeleton rows={4} height="figure" /> : <Progress job={data} />}
    </Page>
  )
}

function Progress({ job }: { readonly job: JobDetail }) {
  const account = useAccount()
  const { counters, last_error, reasons } = job
  const params = job.view_id === null ? undefined : { account, view: job.view_id }
  return (
    <div className={style.stack}>
      {last_error !== null && job.segments.failed > 0 && (
        <Callout kind="bad" title="The last failure">
          <p>{last_error}</p>
        </Callout>
      )}
      <Card>
        <div className={style.panel}>
          <JobProgress job={job} />
          {params === undefined ? (
            <Stat label="Rows moved" value={formatCount(counters.accepted)} note="to new, larger Parquet files" />
          ) : (
            <Outcomes job={job} params={params} />
          )}
        </div>
      </Card>
      {reasons.length > 0 && (
        <Section
          title={params === undefined ? 'Files that were not merged' : 'Segments without a result'}
          about="Why they were skipped, or failed."
        >
          <Table label="Reasons" columns={reasonColumns} rows={reasons} keyOf={({ outcome, reason }) => `${outcome} ${reason}`} />
        </Section>
      )}
      <Card>
        <Facts facts={factsOf(job, params)} />
      </Card>
    </div>
  )
}

type ViewParams = { readonly account: string; readonly view: string }

function Outcomes({ job, params }: { readonly job: JobDetail; readonly params: ViewParams }) {
  const { counters } = job
  return (
    <Columns minimum={12}>
      <Stat label="Accepted" value={formatCount(counters.accepted)} note={rowsNote(counters)} />
      <Stat label="Dropped" value={formatCount(counters.dropped)} note={droppedNote(counters)} />
      <Stat
        label="Dead letters"
        value={formatCount(counters.dlq)}
        note={
          <Link to="/in/$account/quality/$view/dead-letters" params={params} search={{ endpoint: job.endpoint_id }}>
            look at them
          </Link>
        }
      />
      <Stat label="Failed" value={formatCount(counters.failed)} note="records of segments that failed" />
    </Columns>
  )
}

function droppedNote({ duplicates }: JobDetail['counters']): string {
  return duplicates === 0 ? 'by filters' : `by filters, or as ${formatCount(duplicates)} duplicate rows`
}

function rowsNote({ accepted, rows }: JobDetail['counters']): string {
  return rows === accepted ? 'rows of new Parquet files' : `records, as ${formatCount(rows)} rows of new Parquet files`
}

const reasonColumns: readonly TableColumn<JobDetail['reasons'][number]>[] = [
  { title: 'Reason', cell: ({ reason }) => reason },
  { title: 'Outcome', cell: ({ outcome }) => <Badge tone={outcome === 'failed' ? 'bad' : 'none'}>{outcome}</Badge> },
  { title: 'Segments', cell: ({ segments }) => formatCount(segments), figure: true },
]

function factsOf(job: JobDetail, params: ViewParams | undefined) {
  const time = (at: string | null, otherwise: string) => (at === null ? otherwise : <Time at={at} exact />)
  const view = params && (
    <Link to="/in/$account/quality/$view" params={params}>
      {job.view_name} v{job.view_version}
    </Link>
  )
  return [
    ...(view === undefined ? [] : [['View', view] as const]),
    ['Endpoint', job.endpoint_name],
    ...(job.from_version === null ? [] : [['Reads the dead letters of', `version ${job.from_version}`] as const]),
    ['Segments sealed from', time(job.from, 'the first')],
    ['Segments sealed before', time(job.to, 'the start of the job')],
    ['Created', <Time key="created" at={job.created_at} exact />],
    [
      'Created by',
      job.created_by_name === null ? (
        <code key="by">{job.created_by}</code>
      ) : (
        <span key="by" title={job.created_by}>
          {job.created_by_name}
        </span>
      ),
    ],
    ['First segment leased', time(job.started_at, 'not yet')],
    ['Finished', time(job.finished_at, 'not yet')],
  ] as const
}

function Actions({ job }: { readonly job: Job }) {
  const changes = [jobsKey(useAccount())]
  const mayChange = useMay('member')
  const isPaused = job.status === 'paused'
  const pause = useChange({ call: () => (isPaused ? resumeJob(job.id) : pauseJob(job.id)), changes })
  if (!mayChange) return null
  return (
    <>
      <Button
        icon={isPaused ? <Play aria-hidden="true" /> : <Pause aria-hidden="true" />}
        busy={pause.isPending}
        onClick={() => pause.mutate()}
      >
        {isPaused ? 'Resume' : 'Pause'} job
      </Button>
      <AskingButton
        title="Cancel the job?"
        action="Cancel job"
        change={{ call: () => cancelJob(job.id), changes, said: 'Job canceled' }}
      >
        <p>It stops at once and cannot go on. Files that it has already written stay in the bucket, and a new job skips them.</p>
      </AskingButton>
      {pause.isError && <Failure error={pause.error} />}
    </>
  )
}
