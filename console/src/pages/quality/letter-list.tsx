import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type DlqRecord, dlqRecordsQuery, type LettersOf, type ReasonFilter } from '../../api/dead-letters.ts'
import type { ViewDetail } from '../../api/views.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { Section } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount } from '../../shell/session.tsx'
import { DeadLetter } from './dead-letter.tsx'
import style from './quality.module.css'
import { reasonWords } from './reason-words.ts'

type LetterListProps = {
  readonly view: ViewDetail
  readonly of: LettersOf
  readonly filter: ReasonFilter
  /** Place of the open record, see `placeOf`. */
  readonly record: string | undefined
}

/** The latest dead letters, and one of them in full. */
export function LetterList({ view, of, filter, record }: LetterListProps) {
  const account = useAccount()
  const records = useQuery(dlqRecordsQuery(account, of, filter))
  const items = records.data?.items
  const open = items?.find((each) => placeOf(each) === record) ?? items?.[0]
  const isFiltered = filter.error_code !== undefined || filter.column !== undefined
  if (records.isError) return <Failure error={records.error} onRetry={() => void records.refetch()} />
  return (
    <Section
      title={filter.error_code === undefined ? 'Latest records' : `Records: ${reasonWords(filter.error_code)}`}
      about={filter.column === undefined ? undefined : `Rejected because of the column ${filter.column}.`}
      actions={
        isFiltered && (
          <ButtonLink
            size="small"
            to="/in/$account/quality/$view/dead-letters"
            params={{ account, view: view.id }}
            search={({ endpoint }: { readonly endpoint?: string }) => (endpoint === undefined ? {} : { endpoint })}
            resetScroll={false}
          >
            Show all reasons
          </ButtonLink>
        )
      }
    >
      {items === undefined && <Skeleton rows={5} height="figure" />}
      {items !== undefined && open === undefined && (
        <EmptyState title="No such record among the latest">
          <p>The newest files in your bucket have none. Older ones are in the files below.</p>
        </EmptyState>
      )}
      {items !== undefined && open !== undefined && (
        <div className={style.letters}>
          <div className={style.letterList}>
            <Table label="Records" columns={columnsOf(account, view.id, open)} rows={items} keyOf={placeOf} />
          </div>
          <DeadLetter letter={open} view={view} />
        </div>
      )}
    </Section>
  )
}

/** Where a record stands, as it is written in addresses. */
function placeOf({ endpoint_id, segment_seq, record_index, ingested_at }: DlqRecord): string {
  return `${endpoint_id.slice(0, 8)}-${segment_seq}-${record_index}-${ingested_at.slice(11, 19).replaceAll(':', '')}`
}

function columnsOf(account: string, view: string, open: DlqRecord): readonly TableColumn<DlqRecord>[] {
  return [
    {
      title: 'Received',
      cell: (letter) => (
        <Link
          to="/in/$account/quality/$view/dead-letters"
          params={{ account, view }}
          search={(search: object) => ({ ...search, record: placeOf(letter) })}
          replace
          resetScroll={false}
          aria-current={letter === open ? 'true' : undefined}
          className={style.letterLink}
        >
          <Time at={letter.ingested_at} />
        </Link>
      ),
    },
    {
      title: 'Reason',
      cell: ({ error_code, message }) => (
        <>
          {reasonWords(error_code)}
          <span className={`${style.under} ${style.message}`}>{message}</span>
        </>
      ),
    },
  ]
}
