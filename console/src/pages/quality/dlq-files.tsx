import { useInfiniteQuery } from '@tanstack/react-query'
import { type DlqFile, dlqFilesQuery } from '../../api/dead-letters.ts'
import { DownloadLink } from '../../design/download-link.tsx'
import { formatBytes, formatCount } from '../../design/format.ts'
import { Section } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount } from '../../shell/session.tsx'

type DlqFilesProps = { readonly view: string; readonly endpoint: string | undefined }

/** The files of dead letters in the bucket. */
export function DlqFiles({ view, endpoint }: DlqFilesProps) {
  const files = useInfiniteQuery(dlqFilesQuery(useAccount(), view, endpoint))
  const rows = files.data?.pages.flatMap((page) => page.files)
  const total = files.data?.pages[0]?.total ?? 0
  if (rows?.length === 0) return null
  return (
    <Section
      title="Files"
      about={`${formatCount(total)} in your bucket, one for each segment with dead letters: gzipped NDJSON. Links are good for an hour.`}
    >
      {files.isError && <Failure error={files.error} onRetry={() => void files.refetch()} />}
      {files.isPending && <Skeleton rows={3} height="figure" />}
      {rows !== undefined && (
        <Table
          label="Files"
          columns={columns}
          rows={rows}
          keyOf={({ s3_bucket, s3_key }) => `${s3_bucket}/${s3_key}`}
          more={files}
        />
      )}
    </Section>
  )
}

const columns: readonly TableColumn<DlqFile>[] = [
  { title: 'Delivered', cell: ({ created_at }) => <Time at={created_at} /> },
  { title: 'Endpoint', cell: ({ endpoint_name }) => endpoint_name, minor: true },
  {
    title: 'Re-driven',
    cell: ({ redriven_at }) => (redriven_at === null ? '–' : <Time at={redriven_at} />),
    minor: true,
  },
  { title: 'Records', cell: ({ rows }) => formatCount(rows), figure: true },
  { title: 'Size', cell: ({ bytes }) => formatBytes(bytes), figure: true, minor: true },
  { title: '', cell: (file) => <FileLink file={file} />, figure: true },
]

function FileLink({ file: { download_url, segment_seq } }: { readonly file: DlqFile }) {
  if (download_url === null) return 'no link: its destination was deleted, or denies reading'
  return <DownloadLink href={download_url} label={`Download segment ${segment_seq}`} />
}
