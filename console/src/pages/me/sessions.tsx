import { useQuery } from '@tanstack/react-query'
import { endOtherSessions, endSession, type OpenSession, sessionsQuery } from '../../api/sessions.ts'
import { Badge } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useChange } from '../../shell/use-change.ts'
import { browserName } from './browser-name.ts'

export function Sessions() {
  const sessions = useQuery(sessionsQuery)
  const changes = [sessionsQuery.queryKey]
  const end = useChange({ call: ({ id }: OpenSession) => endSession(id), changes, said: 'Session ended' })
  const endOthers = useChange({ call: endOtherSessions, changes, said: 'All other sessions ended' })
  const columns: readonly TableColumn<OpenSession>[] = [
    { title: 'Browser', cell: ({ user_agent }) => browserName(user_agent) },
    { title: 'Address', cell: ({ address }) => <code>{address ?? 'unknown'}</code>, minor: true },
    { title: 'Signed in', cell: ({ created_at }) => <Time at={created_at} />, minor: true },
    { title: 'Last seen', cell: ({ last_seen_at }) => <Time at={last_seen_at} /> },
    {
      title: '',
      figure: true,
      cell: (each) =>
        each.is_current ? (
          <Badge tone="good">this one</Badge>
        ) : (
          <Button size="small" onClick={() => end.mutate(each)} busy={end.isPending && end.variables.id === each.id}>
            End
          </Button>
        ),
    },
  ]
  if (sessions.isError) return <Failure error={sessions.error} onRetry={() => void sessions.refetch()} />
  if (sessions.data === undefined) return <Skeleton rows={2} height="figure" />
  const failed = [end, endOthers].find(({ isError }) => isError)
  return (
    <>
      {failed && <Failure error={failed.error} />}
      <Table
        label="Sessions"
        columns={columns}
        rows={sessions.data}
        keyOf={({ id }) => id}
        footer={
          sessions.data.length > 1 && (
            <Button size="small" busy={endOthers.isPending} onClick={() => endOthers.mutate()}>
              End all others
            </Button>
          )
        }
      />
    </>
  )
}
