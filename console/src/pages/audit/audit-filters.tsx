import { useState } from 'react'
import { Button } from '../../design/button.tsx'
import { SelectField, TextField } from '../../design/field.tsx'
import { Form } from '../../design/form.tsx'
import style from './audit-page.module.css'
import type { AuditSearch } from './audit-search.ts'
import { operationName, operationNamed } from './operation-names.ts'

const results = [
  { value: 'all', label: 'All' },
  { value: 'succeeded', label: 'Succeeded' },
  { value: 'failed', label: 'Failed' },
] as const

type AuditFiltersProps = { readonly search: AuditSearch; readonly onChange: (search: AuditSearch) => void }

export function AuditFilters({ search: { operation, result, since }, onChange }: AuditFiltersProps) {
  const [text, setText] = useState(operation === undefined ? '' : operationName(operation))
  const change = (changed: { operation?: string; result?: string; since?: string }) => {
    const next = { operation: operationNamed(text), result: result ?? 'all', since: since ?? '', ...changed }
    onChange({
      ...(next.operation === '' ? {} : { operation: next.operation }),
      ...(next.result === 'succeeded' || next.result === 'failed' ? { result: next.result } : {}),
      ...(next.since === '' ? {} : { since: next.since }),
    })
  }
  return (
    <Form className={style.filters} onSubmit={() => change({})}>
      <TextField label="Operation" value={text} onChange={setText} placeholder="Create key" maxLength={64} autoComplete="off" />
      <SelectField label="Result" value={result ?? 'all'} choices={results} onChange={(value) => change({ result: value })} />
      <TextField
        label="Since"
        type="datetime-local"
        value={since === undefined ? '' : toLocal(since)}
        onChange={(value) => change({ since: value === '' ? '' : new Date(value).toISOString() })}
      />
      <div className={style.buttons}>
        <Button type="submit">Filter</Button>
        {(operation ?? result ?? since) !== undefined && (
          <Button
            look="quiet"
            onClick={() => {
              setText('')
              onChange({})
            }}
          >
            Clear
          </Button>
        )}
      </div>
    </Form>
  )
}

/** In the viewer's zone, as the input of the browser writes it. */
function toLocal(iso: string): string {
  const at = Date.parse(iso)
  if (Number.isNaN(at)) return ''
  const offsetMs = new Date(at).getTimezoneOffset() * 60_000
  return new Date(at - offsetMs).toISOString().slice(0, 16)
}
