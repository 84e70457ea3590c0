import { useQuery } from '@tanstack/react-query'
import { Rows3 } from 'lucide-react'
import { type DeliveredRecord, recordsQuery } from '../../api/records.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { Failure } from '../../shell/failure.tsx'
import style from './endpoints.module.css'
import { useEndpoint } from './use-endpoint.ts'

const shown = 50

/** The latest records, as they stand in the bucket. */
export function EndpointRecords() {
  const { account, endpoint } = useEndpoint()
  const records = useQuery(recordsQuery(account, endpoint.id, { limit: shown }))
  if (records.isError) return <Failure error={records.error} onRetry={() => void records.refetch()} />
  if (records.data === undefined) return <Skeleton rows={6} height="figure" />
  return (
    <Table
      label="Latest records"
      columns={columns}
      rows={records.data.items}
      keyOf={({ commit_id, record_index }) => `${commit_id} ${record_index}`}
      empty={
        <EmptyState icon={<Rows3 />} title="No record yet">
          <p>The latest records stand here as soon as their segment is in the bucket.</p>
        </EmptyState>
      }
    />
  )
}

const columns: readonly TableColumn<DeliveredRecord>[] = [
  { title: 'Received', cell: ({ ingested_at }) => <Time at={ingested_at} /> },
  { title: 'From', cell: ({ protocol, topic }) => (topic === null ? protocol : `${protocol} ${topic}`), minor: true },
  {
    title: 'Record',
    cell: ({ record, record_base64 }) => <code className={style.record}>{record ?? `base64 ${record_base64}`}</code>,
  },
  {
    title: 'Segment',
    cell: ({ segment_seq, record_index }) => (
      <code>
        {segment_seq}:{record_index}
      </code>
    ),
    figure: true,
    minor: true,
  },
]
