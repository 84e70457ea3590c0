import { getRouteApi } from '@tanstack/react-router'
import { Plug } from 'lucide-react'
import { useState } from 'react'
import { bindingsQuery, detachView } from '../../api/bindings.ts'
import { type ViewDetail, viewsKey } from '../../api/views.ts'
import { Badge } from '../../design/badge.tsx'
import { Button } from '../../design/button.tsx'
import { Callout } from '../../design/callout.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { Section } from '../../design/layout.tsx'
import { Table, type TableColumn } from '../../design/table.tsx'
import { Time } from '../../design/time.tsx'
import { AskingButton } from '../../shell/asking-button.tsx'
import { useAccount, useMay } from '../../shell/session.tsx'
import { AttachDialog } from './attach-dialog.tsx'
import { CanaryAt } from './canary-card.tsx'
import { Shadows } from './shadows.tsx'
import { ViewFrame } from './view-frame.tsx'
import style from './views.module.css'

const route = getRouteApi('/signed-in/in/$account/views/$view/endpoints')

type Attached = ViewDetail['endpoints'][number]

/** Where a version runs, and how it does beside others. */
export function ViewEndpointsPage() {
  const { view: id } = route.useParams()
  return <ViewFrame id={id}>{(view) => <ViewEndpoints view={view} />}</ViewFrame>
}

function ViewEndpoints({ view }: { readonly view: ViewDetail }) {
  const [attaching, setAttaching] = useState(false)
  const mayChange = useMay('member')
  const canAttach = mayChange && view.status === 'published'
  const detach = { title: '', figure: true, cell: (from: Attached) => <Detach view={view} from={from} /> }
  const attach = (
    <Button look="primary" onClick={() => setAttaching(true)}>
      Attach version
    </Button>
  )
  return (
    <>
      <Section title="Endpoints" actions={canAttach && view.endpoints.length > 0 && attach}>
        <Table
          label="Endpoints"
          columns={mayChange ? [...columns, detach] : columns}
          rows={view.endpoints}
          keyOf={({ binding_id }) => binding_id}
          empty={
            <EmptyState icon={<Plug />} title="No endpoint runs this version" action={canAttach && attach}>
              <p>
                {view.status === 'draft'
                  ? 'Publish it first: only published versions can be attached.'
                  : view.status === 'archived'
                    ? 'An archived version cannot be attached. Create the next version.'
                    : 'Attach it, and each segment that is sealed from then on becomes a Parquet file with these columns.'}
              </p>
            </EmptyState>
          }
        />
      </Section>
      <Shadows view={view} />
      {stoppedNow(view).map(({ binding_id, endpoint_name, stopped_at, reason }) => (
        <Callout key={binding_id} kind="warn" title={`The canary at ${endpoint_name} was stopped`}>
          <p>
            {reason}. It was detached <Time at={stopped_at} />: later segments have the output of the other version alone. Files
            that it wrote stay in your bucket.
          </p>
        </Callout>
      ))}
      {view.endpoints.map(({ id, endpoint_name }) => (
        <CanaryAt key={id} endpoint_id={id} endpoint_name={endpoint_name} view_name={view.name} />
      ))}
      {attaching && <AttachDialog view={view} open onClose={() => setAttaching(false)} />}
    </>
  )
}

/** Endpoints where this version was stopped, the last time for each, and is not attached again. */
function stoppedNow({ endpoints, stopped_canaries }: ViewDetail): ViewDetail['stopped_canaries'] {
  const seen = new Set(endpoints.map(({ id }) => id))
  return stopped_canaries.filter(({ endpoint_id }) => !seen.has(endpoint_id) && seen.add(endpoint_id))
}

const columns: readonly TableColumn<Attached>[] = [
  { title: 'Endpoint', cell: ({ endpoint_name }) => <strong className={style.name}>{endpoint_name}</strong> },
  { title: 'Region', cell: ({ region }) => region, minor: true },
  { title: 'Required', cell: ({ is_required }) => (is_required ? <Badge tone="note">required</Badge> : 'optional') },
  { title: 'Attached', cell: ({ activated_at }) => <Time at={activated_at} /> },
  {
    title: 'Begins',
    cell: ({ canary_start_ts }) => (canary_start_ts === null ? 'at once' : <Time at={canary_start_ts} />),
    minor: true,
  },
]

type DetachProps = { readonly view: ViewDetail; readonly from: Attached }

function Detach({ view, from: { id, binding_id, endpoint_name, is_required } }: DetachProps) {
  const account = useAccount()
  return (
    <AskingButton
      size="small"
      label="Detach"
      aria-label={`Detach from ${endpoint_name}`}
      title={`Detach version ${view.version} from ${endpoint_name}?`}
      action="Detach version"
      change={{
        call: () => detachView(id, binding_id),
        changes: [bindingsQuery(account, id).queryKey, viewsKey(account)],
        said: `Version ${view.version} detached from ${endpoint_name}`,
      }}
    >
      <p>Segments that are sealed from now on have no output of this version. Files that it wrote stay in your bucket.</p>
      {is_required && (
        <Callout kind="warn">
          <p>It is required: if it holds back the delivery, that ends.</p>
        </Callout>
      )}
    </AskingButton>
  )
}
