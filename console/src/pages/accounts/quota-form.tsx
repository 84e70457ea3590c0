import { type Account, accountsKey, changeAccount, type QuotaName } from '../../api/accounts.ts'
import { TextField } from '../../design/field.tsx'
import { Columns } from '../../design/layout.tsx'
import { CallForm } from '../../shell/call-form.tsx'
import { useChange } from '../../shell/use-change.ts'
import { useFields } from '../../shell/use-fields.ts'
import { quotaTexts } from './quota-texts.ts'

type Values = Readonly<Record<QuotaName | 'weight' | 'name', string>>

/** Sends only what was changed. An empty quota restores the default. */
export function QuotaForm({ account }: { readonly account: Account }) {
  const { field, edited, reset } = useFields(valuesOf(account))
  const save = useChange({
    call: () => changeAccount(account.id, changesOf(edited)),
    changes: [accountsKey],
    done: reset,
    said: 'Account saved',
  })
  return (
    <CallForm call={save} action="Save account" disabled={Object.keys(edited).length === 0}>
      {(errorOf) => (
        <Columns>
          <TextField label="Name" {...field('name', errorOf)} required maxLength={128} />
          <TextField
            label="Weight"
            {...field('weight', errorOf)}
            type="number"
            min={1}
            required
            hint="With 2 it gets twice as much of a busy node as one with 1."
          />
          {quotaTexts.map(({ name, label }) => (
            <TextField
              key={name}
              label={label}
              {...field(name, errorOf, `quotas.${name}`)}
              type="number"
              min={0}
              hint="Empty: the default."
            />
          ))}
        </Columns>
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
