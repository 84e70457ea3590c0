import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Ghost } from 'lucide-react'
import { endpointsQuery } from '../../api/endpoints.ts'
import { endShadow, startShadow } from '../../api/shadows.ts'
import { type ViewCounts, viewMetricsQuery } from '../../api/view-metrics.ts'
import { type ViewDetail, viewsKey } from '../../api/views.ts'
import { Button } from '../../design/button.tsx'
import { formatCount, formatShare } from '../../design/format.ts'
import { Section } from '../../design/layout.tsx'
import { Menu, MenuItem, MenuLabel } from '../../design/menu.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { say } from '../../design/toast.tsx'
import { AskingButton } from '../../shell/asking-button.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import style from './views.module.css'

type Shadow = ViewDetail['shadows'][number] & { readonly counts: ViewCounts | undefined }

/** Endpoints on which a version is only counted, and the way to begin that. Nothing for a version that cannot. */
export function Shadows({ view }: { readonly view: ViewDetail }) {
  const account = useAccount()
  const mayChange = useMay('member')
  const metrics = useQuery({ ...viewMetricsQuery(account, view.id), enabled: view.shadows.length > 0 })
  if (view.shadows.length === 0 && (view.status !== 'draft' || !mayChange)) return null
  const rows = view.shadows.map((shadow) => ({
    ...shadow,
    counts: metrics.data?.endpoints.find(({ endpoint_id }) => endpoint_id === shadow.endpoint_id)?.last_24h,
  }))
  const end: TableColumn<Shadow> = { title: '', figure: true, cell: (shadow) => <End view={view} shadow={shadow} /> }
  return (
    <Section
      title="Shadows"
      about="Nodes run this version on each new segment of these endpoints, and count its outcome. It writes no files."
      actions={mayChange && view.status !== 'archived' && <Start view={view} />}
    >
      {metrics.isError && <Failure error={metrics.error} />}
      {rows.length > 0 && (
        <Table label="Shadows" columns={mayChange ? [...columns, end] : columns} rows={rows} keyOf={({ id }) => id} />
      )}
    </Section>
  )
}

const columns: readonly TableColumn<Shadow>[] = [
  { title: 'Endpoint', cell: ({ endpoint_name }) => <strong className={style.name}>{endpoint_name}</strong> },
  { title: 'Since', cell: ({ started_at }) => <Time at={started_at} />, minor: true },
  { title: 'Processed, 24 h', figure: true, cell: ({ counts }) => formatCount(counts?.processed ?? 0) },
  { title: 'Accepted', figure: true, cell: ({ counts }) => share(counts, 'accepted') },
  { title: 'Dropped', figure: true, cell: ({ counts }) => share(counts, 'dropped'), minor: true },
  { title: 'Dead letters', figure: true, cell: ({ counts }) => share(counts, 'dlq') },
  { title: 'Failed', figure: true, cell: ({ counts }) => share(counts, 'failed'), minor: true },
]

function share(counts: ViewCounts | undefined, outcome: 'accepted' | 'dropped' | 'dlq' | 'failed') {
  return counts === undefined || counts.processed === 0 ? '–' : formatShare(counts[outcome] / counts.processed)
}

function Start({ view }: { readonly view: ViewDetail }) {
  const account = useAccount()
  const queries = useQueryClient()
  const endpoints = useQuery(endpointsQuery(account)).data?.items ?? []
  const known = new Set(view.shadows.map(({ endpoint_id }) => endpoint_id))
  const free = endpoints.filter(({ id, status }) => !known.has(id) && status !== 'draining')
  const start = useMutation({
    mutationFn: ({ id }: { readonly id: string; readonly name: string }) => startShadow(id, view.id),
    onSuccess: (_, { name }) => say(`Version ${view.version} shadows ${name}`),
    onSettled: () => queries.invalidateQueries({ queryKey: viewsKey(account) }),
  })
  return (
    <>
      {start.isError && <Failure error={start.error} />}
      {free.length > 0 && (
        <Menu
          trigger={
            <Button size="small" icon={<Ghost aria-hidden="true" />} busy={start.isPending}>
              Shadow an endpoint
            </Button>
          }
        >
          <MenuLabel>Count this version at</MenuLabel>
          {free.map(({ id, name }) => (
            <MenuItem key={id} onSelect={() => start.mutate({ id, name })}>
              {name}
            </MenuItem>
          ))}
        </Menu>
      )}
    </>
  )
}

function End({ view, shadow: { id, endpoint_id, endpoint_name } }: { readonly view: ViewDetail; readonly shadow: Shadow }) {
  return (
    <AskingButton
      size="small"
      label="End"
      aria-label={`End the shadow at ${endpoint_name}`}
      title={`End the shadow of version ${view.version} at ${endpoint_name}?`}
      action="End shadow"
      change={{
        call: () => endShadow(endpoint_id, id),
        changes: [viewsKey(useAccount())],
        said: `Shadow at ${endpoint_name} ended`,
      }}
    >
      <p>
        Its figures stay until another one starts, or the draft is published. Segments that are sealed from now on are not counted
        for it.
      </p>
    </AskingButton>
  )
}
