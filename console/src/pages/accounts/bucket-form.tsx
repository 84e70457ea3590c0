import { useState } from 'react'
import { accountsKey, changeAccount } from '../../api/accounts.ts'
import { TextArea } from '../../design/field.tsx'
import { CallForm, type ErrorOf } from '../../shell/call-form.tsx'
import { useChange } from '../../shell/use-change.ts'

type BucketFormProps = { readonly id: string; readonly entries: readonly string[] }

/** Form of the buckets that the account may use with the credentials of the installation, an entry per line. */
export function BucketForm({ id, entries }: BucketFormProps) {
  const [edited, setEdited] = useState<string>()
  const text = edited ?? entries.join('\n')
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  const save = useChange({
    call: () => changeAccount(id, { allowed_buckets: lines }),
    changes: [accountsKey],
    done: () => setEdited(undefined),
    said: 'Buckets saved',
  })
  return (
    <CallForm call={save} action="Save buckets" disabled={edited === undefined}>
      {(errorOf) => (
        <TextArea
          label="Allowed buckets"
          value={text}
          onChange={setEdited}
          rows={Math.max(3, lines.length + 1)}
          hint="One per line, each with or without a prefix: lake, or lake/raw. Two accounts never share one."
          error={lineError(errorOf, lines)}
        />
      )}
    </CallForm>
  )
}

/** Returns what is wrong with the first line that is wrong. */
function lineError(errorOf: ErrorOf, lines: readonly string[]): string | undefined {
  for (const [index, line] of lines.entries()) {
    const message = errorOf(`allowed_buckets.${index}`)
    if (message !== undefined) return `${line}: ${message}`
  }
  return errorOf('allowed_buckets')
}
