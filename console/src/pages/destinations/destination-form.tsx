import type { ReactNode } from 'react'
import type { ObjectStore } from '../../api/destinations.ts'
import { Callout } from '../../design/callout.tsx'
import { TextField } from '../../design/field.tsx'
import { Columns, Sheet } from '../../design/layout.tsx'
import { CallForm, type CallFormProps } from '../../shell/call-form.tsx'
import { AccessFields, accessErrors } from './access-fields.tsx'
import { isAllowed } from './allowed-buckets.ts'
import type { Draft } from './destination-draft.ts'

type DestinationFormProps = {
  readonly draft: Draft
  readonly onChange: (draft: Draft) => void
  readonly store: ObjectStore
  readonly call: CallFormProps['call']
  readonly action: string
  readonly disabled?: boolean
  /** Below the fields, before the button. */
  readonly children?: ReactNode
}

/** The settings of a destination, in the words of the store that it is in. */
export function DestinationForm(props: DestinationFormProps) {
  const { draft, onChange, store, call, action, disabled = false, children } = props
  const set = (change: Partial<Draft>) => onChange({ ...draft, ...change })
  const isDirectory = store.kind === 'directory'
  const allowed = store.allowed_buckets ?? []
  const isOutside = allowed.length > 0 && draft.bucket !== '' && !isAllowed(draft, allowed)
  return (
    <Sheet>
      <CallForm call={call} action={action} readOnly={disabled}>
        {(errorOf) => (
          <>
            <TextField
              label="Name"
              value={draft.name}
              onChange={(name) => set({ name })}
              required
              maxLength={128}
              disabled={disabled}
              error={errorOf('name')}
              hint="Endpoints show this name."
              placeholder="lake"
            />
            <Columns>
              <TextField
                label={isDirectory ? 'Directory' : 'Bucket'}
                value={draft.bucket}
                onChange={(bucket) => set({ bucket })}
                required
                disabled={disabled}
                error={errorOf('bucket')}
                hint={isDirectory ? 'Inlet creates it in its data directory.' : 'It must exist.'}
                placeholder="example-lake"
                spellCheck={false}
              />
              <TextField
                label="Prefix"
                value={draft.prefix}
                onChange={(prefix) => set({ prefix })}
                disabled={disabled}
                error={errorOf('prefix')}
                hint={isDirectory ? 'The folder for all files. Optional.' : 'Inlet reads and writes only below it. Optional.'}
                placeholder="raw/events"
                spellCheck={false}
              />
            </Columns>
            {isOutside && (
              <Callout kind="warn">
                The operator allows this account to use <code>{allowed.join(', ')}</code>. Nothing is written anywhere else.
              </Callout>
            )}
            {!isDirectory && <AccessFields {...{ draft, set, store, disabled }} errors={accessErrors(errorOf)} />}
            {children}
          </>
        )}
      </CallForm>
    </Sheet>
  )
}
