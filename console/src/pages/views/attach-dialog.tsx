import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { attachView, bindingsQuery } from '../../api/bindings.ts'
import { endpointsQuery } from '../../api/endpoints.ts'
import { type ViewDetail, viewsKey } from '../../api/views.ts'
import { Button } from '../../design/button.tsx'
import { Callout } from '../../design/callout.tsx'
import { Dialog } from '../../design/dialog.tsx'
import { SelectField, TextField } from '../../design/field.tsx'
import { Form } from '../../design/form.tsx'
import { say } from '../../design/toast.tsx'
import { SwitchField } from '../../design/toggle-field.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'
import style from './views.module.css'

type AttachDialogProps = { readonly view: ViewDetail; readonly open: boolean; readonly onClose: () => void }

/** Chooses where a version runs, from when on, and what happens if it fails. */
export function AttachDialog({ view, open, onClose }: AttachDialogProps) {
  const endpoints = useQuery({ ...endpointsQuery(useAccount()), enabled: open })
  const attached = new Set(view.endpoints.map(({ id }) => id))
  const free = endpoints.data?.items.filter(({ id, status }) => !attached.has(id) && status !== 'draining')
  return (
    <Dialog open={open} onClose={onClose} title={`Attach version ${view.version} of ${view.name}`}>
      {endpoints.isError && <Failure error={endpoints.error} onRetry={() => void endpoints.refetch()} />}
      {free !== undefined && free.length === 0 && (
        <Callout title="No endpoint is left">
          <p>Every endpoint has this version already, or the account has none. Create an endpoint first.</p>
        </Callout>
      )}
      {free !== undefined && free.length > 0 && (
        <AttachForm view={view} choices={free.map(({ id, name }) => ({ value: id, label: name }))} onClose={onClose} />
      )}
    </Dialog>
  )
}

type AttachFormProps = {
  readonly view: ViewDetail
  readonly choices: readonly { readonly value: string; readonly label: string }[]
  readonly onClose: () => void
}

function AttachForm({ view, choices, onClose }: AttachFormProps) {
  const account = useAccount()
  const [chosen, setChosen] = useState(choices[0]?.value ?? '')
  const [required, setRequired] = useState<boolean>()
  const [from, setFrom] = useState<'now' | 'time'>('now')
  const [time, setTime] = useState('')
  const [stops, setStops] = useState(true)
  const bindings = useQuery(bindingsQuery(account, chosen))
  const beside = bindings.data?.items.find(({ view_name, status }) => view_name === view.name && status === 'active')
  // A version that replaces a required one is required too, unless somebody says otherwise.
  const isRequired = required ?? beside?.is_required ?? false
  const isCanary = beside !== undefined || from === 'time'
  const attach = useChange({
    call: () =>
      attachView(chosen, {
        view_id: view.id,
        is_required: isRequired,
        canary_start_ts: from === 'now' ? null : new Date(time).toISOString(),
        canary_rule: isCanary && stops ? {} : null,
      }),
    changes: [bindingsQuery(account, chosen).queryKey, viewsKey(account)],
    done: ({ warnings, endpoint_name }) => {
      if (warnings.length > 0) return
      say(`Version ${view.version} attached to ${endpoint_name}`)
      onClose()
    },
  })
  if (attach.isSuccess && attach.data.warnings.length > 0) {
    return (
      <>
        <Callout kind="warn" title="Attached, with a warning">
          {attach.data.warnings.map((warning) => (
            <p key={warning}>{warning}</p>
          ))}
        </Callout>
        <div>
          <Button onClick={onClose}>Close</Button>
        </div>
      </>
    )
  }
  return (
    <Form className={style.form} onSubmit={() => attach.mutate()}>
      <SelectField label="Endpoint" value={chosen} choices={choices} onChange={setChosen} />
      {beside !== undefined && (
        <Callout title={`A canary beside version ${beside.view_version}`}>
          <p>Both versions run on the same segments. Compare their figures here, then promote or stop version {view.version}.</p>
        </Callout>
      )}
      <SelectField
        label="From"
        value={from}
        choices={starts}
        onChange={setFrom}
        hint="Segments that are sealed from then on have its output. A backfill adds older ones."
      />
      {from === 'time' && (
        <TextField label="Time" type="datetime-local" value={time} onChange={setTime} required hint="In your time zone." />
      )}
      <SwitchField
        label="Required"
        checked={isRequired}
        onChange={setRequired}
        hint="If it fails on a segment as a whole, the delivery of the endpoint waits. Otherwise the segment is committed without it."
      />
      {isCanary && (
        <SwitchField
          label="Stop it by itself"
          checked={stops}
          onChange={setStops}
          hint="If 1 point more of its records are dead letters or failed, or 5 points more are NULL in a column, than with the version beside it: after 1000 records."
        />
      )}
      {attach.isError && <Failure error={attach.error} />}
      <div>
        <Button type="submit" look="primary" busy={attach.isPending}>
          Attach version
        </Button>
      </div>
    </Form>
  )
}

const starts = [
  { value: 'now', label: 'Now' },
  { value: 'time', label: 'A later time' },
] as const
