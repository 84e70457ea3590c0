import { useMutation, useQuery } from '@tanstack/react-query'
import { Download } from 'lucide-react'
import { endpointsQuery } from '../../api/endpoints.ts'
import { latestDeadLetters, latestRecords } from '../../api/sample-records.ts'
import type { ViewDetail } from '../../api/views.ts'
import { Button } from '../../design/button.tsx'
import { Menu, MenuItem, MenuLabel } from '../../design/menu.tsx'
import { say } from '../../design/toast.tsx'
import { useAccount } from '../../shell/session.tsx'
import { joinSamples } from './samples.ts'

type Source = { readonly name: string; readonly read: () => Promise<readonly string[]> }

/** Reads records of a source, and gives them to the samples. */
export function useTakeRecords(onTake: (text: string) => void) {
  return useMutation({
    mutationFn: ({ read }: Source) => read(),
    onSuccess: (records, { name }) => {
      if (records.length === 0) say(`${name}: none can be a sample`)
      else onTake(joinSamples(records))
    },
  })
}

type TakeRecordsProps = {
  /** Versions that may have rejected records; none for a new view. */
  readonly versions: ViewDetail['versions']
  readonly take: ReturnType<typeof useTakeRecords>
}

/** Fills the samples with records that arrived: the latest of an endpoint, or the dead letters of a version. */
export function TakeRecords({ versions, take }: TakeRecordsProps) {
  const endpoints = useQuery(endpointsQuery(useAccount())).data?.items ?? []
  const rejecting = versions.filter(({ status }) => status !== 'draft')
  const item = (key: string, source: Source) => (
    <MenuItem key={key} onSelect={() => take.mutate(source)}>
      {source.name}
    </MenuItem>
  )
  if (endpoints.length === 0 && rejecting.length === 0) return null
  return (
    <Menu
      trigger={
        <Button size="small" icon={<Download aria-hidden="true" />} busy={take.isPending}>
          Take records
        </Button>
      }
    >
      {endpoints.length > 0 && <MenuLabel>Latest records</MenuLabel>}
      {endpoints.map(({ id, name }) => item(id, { name: `Records of ${name}`, read: () => latestRecords(id) }))}
      {rejecting.length > 0 && <MenuLabel>Dead letters</MenuLabel>}
      {rejecting.map(({ id, version }) =>
        item(id, { name: `Dead letters of version ${version}`, read: () => latestDeadLetters(id) }),
      )}
    </Menu>
  )
}
