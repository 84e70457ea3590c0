import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type DlqReason, dlqReasonsQuery, type LettersOf } from '../../api/dead-letters.ts'
import { formatCount } from '../../design/format.ts'
import { Section } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { SplitBar } from '../../design/split-bar.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount } from '../../shell/session.tsx'
import style from './quality.module.css'
import { reasonWords } from './reason-words.ts'

/** Why records were rejected: each reason leads to its records. */
export function ReasonTable({ of }: { readonly of: LettersOf }) {
  const account = useAccount()
  const reasons = useQuery(dlqReasonsQuery(account, of))
  const { data } = reasons
  if (reasons.isError) return <Failure error={reasons.error} onRetry={() => void reasons.refetch()} />
  return (
    <Section title="Reasons" about={data === undefined ? 'Reading the newest files in your bucket.' : aboutRead(data)}>
      {data === undefined ? (
        <Skeleton rows={4} height="figure" />
      ) : (
        <Table
          label="Reasons"
          columns={columnsOf(account, of.view, data.rows_read)}
          rows={data.items}
          keyOf={({ error_code, column }) => `${error_code} ${column}`}
        />
      )}
    </Section>
  )
}

function aboutRead({ files_read, rows_read }: { readonly files_read: number; readonly rows_read: number }): string {
  return `Of the ${formatCount(rows_read)} records in the newest ${files_read === 1 ? 'file' : `${formatCount(files_read)} files`}.`
}

function columnsOf(account: string, view: string, total: number): readonly TableColumn<DlqReason>[] {
  return [
    {
      title: 'Reason',
      cell: ({ error_code, column }) => (
        <>
          <Link
            to="/in/$account/quality/$view/dead-letters"
            params={{ account, view }}
            search={({ endpoint }: { readonly endpoint?: string }) => ({
              ...(endpoint === undefined ? {} : { endpoint }),
              code: error_code,
              ...(column === null ? {} : { column }),
            })}
            resetScroll={false}
            className={style.name}
          >
            {reasonWords(error_code)}
          </Link>
          {column !== null && <code className={style.under}>{column}</code>}
        </>
      ),
    },
    { title: 'The latest', cell: ({ message }) => <span className={style.message}>{message}</span>, minor: true },
    {
      title: 'Share',
      cell: ({ rows }) => (
        <SplitBar label="Share" parts={[{ label: 'of the records', value: rows, tone: 'warn' }]} total={total} />
      ),
      minor: true,
    },
    { title: 'Records', cell: ({ rows }) => formatCount(rows), figure: true },
    { title: 'Last received', cell: ({ last_ingested_at }) => <Time at={last_ingested_at} />, minor: true },
  ]
}
