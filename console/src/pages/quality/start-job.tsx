import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { endpointsQuery } from '../../api/endpoints.ts'
import { type JobKind, jobsKey, startBackfill, startRedrive } from '../../api/jobs.ts'
import type { ViewDetail } from '../../api/views.ts'
import { Button } from '../../design/button.tsx'
import { Callout } from '../../design/callout.tsx'
import { Dialog } from '../../design/dialog.tsx'
import { SelectField, TextField } from '../../design/field.tsx'
import { Columns } from '../../design/layout.tsx'
import { CallForm } from '../../shell/call-form.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'

type OfView = { readonly view: ViewDetail }

/** The two ways of running a version over what was delivered before. */
export function StartJobs({ view }: OfView) {
  const [kind, setKind] = useState<JobKind>()
  if (view.status !== 'published') return null
  const close = () => setKind(undefined)
  const into = newestOf(view)
  return (
    <>
      <Button onClick={() => setKind('redrive')}>Re-drive dead letters</Button>
      <Button look="primary" onClick={() => setKind('backfill')}>
        Backfill
      </Button>
      <Dialog
        open={kind === 'backfill'}
        onClose={close}
        title={`Backfill version ${view.version} of ${view.name}`}
        about="Runs this version over segments that were delivered without it. Their records become rows of new files."
      >
        <JobForm view={view} kind="backfill" onClose={close} />
      </Dialog>
      <Dialog
        open={kind === 'redrive'}
        onClose={close}
        title={`Re-drive dead letters into version ${into.version}`}
        about={`Runs version ${into.version} over the records that another version rejected. Those that fit now become rows.`}
      >
        <RedriveForm view={view} into={into} onClose={close} />
      </Dialog>
    </>
  )
}

type FormProps = OfView & { readonly onClose: () => void }

type Version = ViewDetail['versions'][number]

/** Returns the version to re-drive into: dead letters of an older version are usually repaired by a newer one. */
function newestOf({ versions, id, version }: ViewDetail): Pick<Version, 'id' | 'version'> {
  const published = versions.filter(({ status }) => status === 'published')
  return published.reduce((newest, each) => (each.version > newest.version ? each : newest), { id, version })
}

function RedriveForm({ view, into, onClose }: FormProps & { readonly into: Pick<Version, 'id' | 'version'> }) {
  const others = view.versions.filter(({ id, status }) => id !== into.id && status !== 'draft')
  // First the version whose screen this is.
  const sources = others.toSorted((a, b) => Number(b.id === view.id) - Number(a.id === view.id) || b.version - a.version)
  if (sources.length > 0) return <JobForm view={view} into={into.id} kind="redrive" versions={sources} onClose={onClose} />
  return (
    <Callout title="There is no other version yet">
      <p>
        Dead letters of a version would be rejected by it again. Create the next version with the repair, publish it, and re-drive
        from there.
      </p>
    </Callout>
  )
}

type JobFormProps = FormProps & { readonly kind: JobKind; readonly into?: string; readonly versions?: readonly Version[] }

function JobForm({ view, kind, into = view.id, versions = [], onClose }: JobFormProps) {
  const account = useAccount()
  const navigate = useNavigate()
  const endpoints = useQuery(endpointsQuery(account))
  const choices = (endpoints.data?.items ?? []).map(({ id, name }) => ({ value: id, label: name }))
  const [chosen, setChosen] = useState<string>()
  const endpoint_id = chosen ?? view.endpoints[0]?.id ?? choices[0]?.value ?? ''
  const [version, setVersion] = useState(String(versions[0]?.version ?? ''))
  const [from, setFrom] = useState('')
  const [to, setTo] = useState('')
  const start = useChange({
    call: () => {
      const request = { endpoint_id, from: instantOf(from), to: instantOf(to) }
      return kind === 'backfill'
        ? startBackfill(view.id, request)
        : startRedrive(into, { ...request, from_version: Number(version) })
    },
    changes: [jobsKey(account)],
    done: async ({ id }) => {
      onClose()
      await navigate({ to: '/in/$account/jobs/$job', params: { account, job: id } })
    },
  })
  if (endpoints.isError) return <Failure error={endpoints.error} onRetry={() => void endpoints.refetch()} />
  if (endpoints.isSuccess && choices.length === 0) return <Callout title="The account has no endpoint">Create one first.</Callout>
  return (
    <CallForm call={start} action={kind === 'backfill' ? 'Start backfill' : 'Start re-drive'} disabled={endpoint_id === ''}>
      {() => (
        <>
          <SelectField label="Endpoint" value={endpoint_id} choices={choices} onChange={setChosen} />
          {kind === 'redrive' && (
            <SelectField
              label="Dead letters of"
              value={version}
              choices={versions.map((each) => ({ value: String(each.version), label: `version ${each.version}` }))}
              onChange={setVersion}
            />
          )}
          <Columns minimum={12}>
            <TextField label="Sealed from" type="datetime-local" value={from} onChange={setFrom} hint="Empty: from the first." />
            <TextField label="Sealed before" type="datetime-local" value={to} onChange={setTo} hint="Empty: until now." />
          </Columns>
        </>
      )}
    </CallForm>
  )
}

/** A time as it is typed, in the viewer's zone. */
function instantOf(text: string): string | null {
  return text === '' ? null : new Date(text).toISOString()
}
