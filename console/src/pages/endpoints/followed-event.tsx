import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type Commit, type Endpoint, receiptCommitQuery, receiptQuery } from '../../api/endpoints.ts'
import { slowMs } from '../../api/intervals.ts'
import { recordsQuery } from '../../api/records.ts'
import { Badge } from '../../design/badge.tsx'
import { Callout } from '../../design/callout.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { formatBytes, formatCount, formatDuration } from '../../design/format.ts'
import { Card, Facts, Inline, Section } from '../../design/layout.tsx'
import { Spinner } from '../../design/spinner.tsx'
import { Step, Steps } from '../../design/steps.tsx'
import { Time, useNow } from '../../design/time.tsx'
import { Failure } from '../../shell/failure.tsx'
import style from './endpoints.module.css'
import type { SentEvent } from './test-search.ts'

type FollowedEventProps = { readonly account: string; readonly endpoint: Endpoint; readonly sent: SentEvent }

/** One record on its way: acknowledged, delivered, read back. */
export function FollowedEvent({ account, endpoint, sent }: FollowedEventProps) {
  const { node, segment, after, at } = sent
  const commit = useQuery(receiptCommitQuery(account, endpoint.id, { node_id: node, segment_seq: segment }))
  const delivered = commit.data ?? undefined
  const receipt = useQuery(receiptQuery(account, endpoint.id, { node_id: node, segment_seq: segment }))
  const loss = delivered === undefined && receipt.data?.state === 'lost' ? receipt.data : undefined
  return (
    <Section
      title={delivered !== undefined ? 'In your bucket' : loss === undefined ? 'On its way' : 'Lost'}
      about="This page can be left and opened again: its address has the receipt."
    >
      <Card>
        <Steps>
          <Step mark="good" title="Acknowledged" aside={<Badge tone="good">on disk after {formatDuration(after)}</Badge>}>
            <p className={style.soft}>
              Sent <Time at={at} />. Node <code title={node}>{node.slice(0, 8)}</code> wrote it to segment <code>{segment}</code>{' '}
              and synced its disk before it answered.
            </p>
          </Step>
          <Step
            mark={delivered !== undefined ? 'good' : loss === undefined ? 'none' : 'warn'}
            title="Delivered"
            aside={loss === undefined && <Waited at={at} commit={delivered} />}
          >
            {commit.isError && <Failure error={commit.error} onRetry={() => void commit.refetch()} />}
            {loss !== undefined && (
              <Callout kind="bad" title="The record was lost">
                <p>{loss.reason}.</p>
              </Callout>
            )}
            {loss !== undefined ? null : delivered === undefined ? (
              <WhyItWaits account={account} endpoint={endpoint} at={at} reason={receipt.data?.reason ?? null} />
            ) : (
              <Delivered
                account={account}
                commit={delivered}
                reason={receipt.data?.state === 'delivered' ? receipt.data.reason : null}
              />
            )}
          </Step>
          <Row account={account} endpoint={endpoint} sent={sent} isDelivered={delivered !== undefined} />
        </Steps>
      </Card>
    </Section>
  )
}

function Waited({ at, commit }: { readonly at: string; readonly commit: Commit | undefined }) {
  const now = useNow()
  const until = commit === undefined ? now : Date.parse(commit.uploaded_at)
  const text = formatDuration(Math.max(0, until - Date.parse(at)))
  if (commit !== undefined) return <Badge tone="good">after {text}</Badge>
  return (
    <Inline>
      <Spinner />
      <Badge tone="note">for {text}</Badge>
    </Inline>
  )
}

type WhyItWaitsProps = Pick<FollowedEventProps, 'account' | 'endpoint'> & { readonly at: string; readonly reason: string | null }

function WhyItWaits({ account, endpoint, at, reason }: WhyItWaitsProps) {
  const { id, segment_max_age_seconds, segment_bytes, destination_id, status_reasons, status } = endpoint
  const waits = destination_id === null || status === 'degraded' || status === 'failed'
  // Its segment may have been open before the event arrived: then it is sealed sooner.
  const leftMs = Date.parse(at) + segment_max_age_seconds * 1000 - useNow()
  return (
    <div className={style.soft}>
      <p>
        Its segment is sealed after {formatDuration(segment_max_age_seconds * 1000)} or {formatBytes(segment_bytes)}
        {leftMs >= 1000 && `, so in ${formatDuration(Math.floor(leftMs / 1000) * 1000)} at most`}, converted to Parquet and
        uploaded.
      </p>
      {leftMs >= slowMs && (
        <p>
          You need not wait: a shorter time counts for it at once.{' '}
          <Link to="/in/$account/endpoints/$endpoint/settings" params={{ account, endpoint: id }}>
            Seal sooner
          </Link>
        </p>
      )}
      {waits && <p>It may wait longer: {status_reasons.join('; ')}.</p>}
      {reason !== null && leftMs <= 0 && <p>Its receipt says: {reason}.</p>}
    </div>
  )
}

type DeliveredProps = { readonly account: string; readonly commit: Commit; readonly reason: string | null }

function Delivered({ account, commit, reason }: DeliveredProps) {
  const files = Object.entries(commit.artifacts)
  const rejecting = files.flatMap(([kind]) => /^dlq\/(.+)\/v(\d+)$/.exec(kind)?.slice(1).join(' v') ?? [])
  return (
    <div className={style.files}>
      <p className={style.soft}>
        {formatCount(commit.records)} {commit.records === 1 ? 'record' : 'records'} in {formatCount(files.length)} files.
      </p>
      {reason !== null && (
        <Callout kind="warn" title="It may not be all of them">
          <p>{reason}.</p>
        </Callout>
      )}
      {rejecting.length > 0 && (
        <Callout kind="warn" title="Some records do not fit">
          <p>
            {rejecting.join(', ')} put records of this segment among the dead letters.{' '}
            <Link to="/in/$account/quality" params={{ account }}>
              See why
            </Link>
          </p>
        </Callout>
      )}
      {files.map(([kind, { key, bytes }]) => (
        <CodeBlock key={kind} label={`${kind}, ${formatBytes(bytes)}`} code={`s3://${commit.bucket}/${key}`} wrap />
      ))}
    </div>
  )
}

/** The row is read from the bucket, not from what was sent. */
function Row({ account, endpoint, sent, isDelivered }: FollowedEventProps & { readonly isDelivered: boolean }) {
  const { node: node_id, segment: segment_seq, mark: contains } = sent
  const query = recordsQuery(account, endpoint.id, { limit: 1, node_id, segment_seq, contains })
  const records = useQuery({ ...query, enabled: isDelivered })
  const [row] = records.data?.items ?? []
  return (
    <Step
      mark={row === undefined ? (records.isError ? 'warn' : 'none') : 'good'}
      title="Row in Parquet"
      aside={isDelivered && records.isPending ? <Spinner /> : undefined}
    >
      {!isDelivered && <p className={style.soft}>It is read back from the bucket as soon as it is there.</p>}
      {records.isError && <Failure error={records.error} onRetry={() => void records.refetch()} />}
      {records.isSuccess && row === undefined && <p className={style.soft}>The segment has no record with this text.</p>}
      {row !== undefined && (
        <Facts
          facts={[
            ['ingested_at', <Time key="at" at={row.ingested_at} exact />],
            ['protocol', row.protocol],
            ['segment_seq', row.segment_seq],
            ['record_index', row.record_index],
            ['payload', <code key="payload">{row.record ?? row.record_base64}</code>],
          ]}
        />
      )}
    </Step>
  )
}
