import { useQuery } from '@tanstack/react-query'
import { objectStoreQuery } from '../../api/destinations.ts'
import { commitFilesQuery, type Endpoint, type CommitFiles as Files } from '../../api/endpoints.ts'
import { CodeBlock } from '../../design/code-block.tsx'
import { Dialog } from '../../design/dialog.tsx'
import { DownloadLink } from '../../design/download-link.tsx'
import { formatBytes } from '../../design/format.ts'
import { Facts } from '../../design/layout.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Time } from '../../design/time.tsx'
import { LoadFailure } from '../../shell/load-failure.tsx'
import { useAccount } from '../../shell/session.tsx'
import { fileName } from './commit-file-name.ts'
import style from './endpoints.module.css'

type CommitFilesProps = {
  readonly endpoint: Endpoint
  /** The commit that the address names. */
  readonly commit: string | undefined
  readonly onClose: () => void
}

/** The files of a commit: to download, and as addresses that tools for the store take. */
export function CommitFiles({ endpoint, commit, onClose }: CommitFilesProps) {
  const account = useAccount()
  const files = useQuery({ ...commitFilesQuery(account, endpoint.id, commit ?? ''), enabled: commit !== undefined })
  const store = useQuery(objectStoreQuery(account))
  const title = files.data === undefined ? 'Files' : `Segment ${files.data.seq}`
  return (
    <Dialog
      open={commit !== undefined}
      onClose={onClose}
      title={title}
      about="Links are good for an hour, and need no credentials."
      wide
    >
      {files.isError && files.data === undefined && <LoadFailure query={files} noun="commit" back={null} />}
      {(files.isPending || store.isPending) && <Skeleton rows={6} height="figure" />}
      {files.data !== undefined && !store.isPending && (
        <FileList commit={files.data} inDirectory={store.data?.kind === 'directory'} />
      )}
    </Dialog>
  )
}

function FileList({ commit, inDirectory }: { readonly commit: Files; readonly inDirectory: boolean }) {
  // A local bucket is a directory, which no tool for S3 can open.
  const scheme = inDirectory ? '' : 's3://'
  return (
    <div className={style.files}>
      <Facts
        facts={[
          ['Commit', <code key="id">{commit.id}</code>],
          ['Sealed', <Time key="sealed" at={commit.sealed_at} exact />],
          ['Delivered', <Time key="delivered" at={commit.uploaded_at} exact />],
        ]}
      />
      {commit.files.map(({ kind, key, bytes, download_url }) => (
        <CodeBlock
          key={kind}
          label={`${fileName(kind)}, ${formatBytes(bytes)}`}
          code={`${scheme}${commit.bucket}/${key}`}
          wrap
          action={download_url !== null && <DownloadLink href={download_url} label={`Download ${fileName(kind)}`} />}
        />
      ))}
    </div>
  )
}
