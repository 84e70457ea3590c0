import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type Account, accountsKey, changeAccount, type QuotaName } from '../../api/accounts.ts'
import { TextField } from '../../design/field.tsx'
import { Columns } from '../../design/layout.tsx'
import { say } from '../../design/toast.tsx'
import { CallForm } from '../../shell/call-form.tsx'
import { quotaTexts } from './quota-texts.ts'

type Values = Readonly<Record<QuotaName | 'weight' | 'name', string>>

/** Sends only what was changed. An empty quota restores the default. */
export function QuotaForm({ account }: { readonly account: Account }) {
  const queries = useQueryClient()
  const [edited, setEdited] = useState<Partial<Values>>({})
  const values = { ...valuesOf(account), ...edited }
  const save = useMutation({
    mutationFn: () => changeAccount(account.id, changesOf(edited)),
    onSuccess: async () => {
      setEdited({})
      await queries.invalidateQueries({ queryKey: accountsKey })
      say('Account saved')
    },
  })
  const set = (field: keyof Values) => (value: string) => setEdited({ ...edited, [field]: value })
  return (
    <CallForm call={save} action="Save account" disabled={Object.keys(edited).length === 0}>
      {(errorOf) => (
        <>
          <Columns>
            <TextField label="Name" value={values.name} onChange={set('name')} required maxLength={128} error={errorOf('name')} />
            <TextField
              label="Weight"
              type="number"
              min={1}
              value={values.weight}
              onChange={set('weight')}
              required
              hint="With 2 it gets twice as much of a busy node as one with 1."
              error={errorOf('weight')}
            />
            {quotaTexts.map(({ name, label }) => (
              <TextField
                key={name}
                label={label}
                type="number"
                min={0}
                value={values[name]}
                onChange={set(name)}
                hint="Empty: the default."
                error={errorOf(`quotas.${name}`)}
              />
            ))}
          </Columns>
        </>
      )}
    </CallForm>
  )
}

function valuesOf({ name, weight, quotas }: Account): Values {
  const { endpoints, views, view_versions, api_keys, bytes_per_day, records_per_second } = quotas
  const counts = { weight, endpoints, views, view_versions, api_keys, bytes_per_day, records_per_second }
  return {
    name,
    ...(Object.fromEntries(Object.entries(counts).map(([key, value]) => [key, String(value)])) as Omit<Values, 'name'>),
  }
}

function changesOf({ name, weight, ...quotas }: Partial<Values>) {
  const changed = Object.entries(quotas).map(([key, value]) => [key, value === '' ? null : Number(value)])
  return {
    ...(name === undefined ? {} : { name }),
    ...(weight === undefined ? {} : { weight: Number(weight) }),
    ...(changed.length === 0 ? {} : { quotas: Object.fromEntries(changed) }),
  }
}
