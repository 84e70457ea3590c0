import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { endpointsQuery } from '../../api/endpoints.ts'
import { type CreatedApiKey, createKey, keysKey, type Scope } from '../../api/keys.ts'
import { SelectField, TextField } from '../../design/field.tsx'
import { FieldGroup } from '../../design/field-group.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { CheckboxField } from '../../design/toggle-field.tsx'
import { CallForm } from '../../shell/call-form.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount, useHere } from '../../shell/session.tsx'
import style from './keys.module.css'
import { scopeTexts } from './scopes.ts'

const route = getRouteApi('/signed-in/in/$account/keys/new')

const holders = [
  { value: 'program', label: 'Devices, servers and scripts' },
  { value: 'page', label: 'Web pages' },
] as const

const reaches = [
  { value: 'all', label: 'All endpoints of the account' },
  { value: 'some', label: 'Only some endpoints' },
] as const

export function KeyForm({ onCreated }: { readonly onCreated: (key: CreatedApiKey) => void }) {
  const account = useAccount()
  const queries = useQueryClient()
  const { endpoint } = route.useSearch()
  const [name, setName] = useState('')
  const [holder, setHolder] = useState<'program' | 'page'>('program')
  const [scopes, setScopes] = useState<ReadonlySet<Scope>>(new Set(['ingest']))
  const [reach, setReach] = useState<'all' | 'some'>(endpoint === undefined ? 'all' : 'some')
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(endpoint === undefined ? [] : [endpoint]))
  const [only, setOnly] = useState(endpoint)
  const [origins, setOrigins] = useState('')
  const { allows_public_keys } = useHere().session
  const isPublic = holder === 'page'
  const isAdmin = scopes.has('admin')
  const isLimited = reach === 'some' && !isAdmin
  const isIncomplete = isPublic
    ? !allows_public_keys || only === undefined
    : scopes.size === 0 || (isLimited && chosen.size === 0)
  const create = useMutation({
    mutationFn: () =>
      createKey(
        isPublic
          ? { name, scopes: ['ingest'], endpoint_ids: only === undefined ? [] : [only], public: true, origins: listed(origins) }
          : { name, scopes: [...scopes], endpoint_ids: isLimited ? [...chosen] : null, public: false, origins: null },
      ),
    onSuccess: async (key) => {
      onCreated(key)
      await queries.invalidateQueries({ queryKey: keysKey(account) })
    },
  })
  return (
    <CallForm call={create} action="Create key" disabled={isIncomplete}>
      {(errorOf) => (
        <>
          <TextField
            label="Name"
            value={name}
            onChange={setName}
            required
            maxLength={128}
            autoComplete="off"
            placeholder="thermometers in hall 3"
            hint="What the key is for. You see it in the list and in the audit trail."
            error={errorOf('name')}
          />
          <SelectField
            label="Who holds it"
            value={holder}
            choices={holders}
            onChange={setHolder}
            hint={
              isPublic && !allows_public_keys
                ? 'The operator of this installation does not allow such keys. To allow them: INLET_PUBLIC_KEYS=true, for control and for nodes.'
                : isPublic
                  ? 'Everybody can read the key in the page. So it only sends data, to one endpoint, from the origins that you name.'
                  : 'They keep the key secret.'
            }
            error={errorOf('public')}
          />
          {isPublic && allows_public_keys && (
            <>
              <OneEndpoint chosen={only} onChange={setOnly} error={errorOf('endpoint_ids')} />
              <TextField
                label="Origins"
                value={origins}
                onChange={setOrigins}
                required
                autoComplete="off"
                placeholder="https://app.example.com"
                hint="Pages of these origins can send with the key. Separate several with commas."
                error={errorOf('origins')}
              />
            </>
          )}
          {!isPublic && (
            <FieldGroup label="What it may do" value={scopes} error={errorOf('scopes')}>
              {scopeTexts.map(({ scope, label, hint }) => (
                <CheckboxField
                  key={scope}
                  label={
                    <>
                      {label} <code className={style.soft}>{scope}</code>
                    </>
                  }
                  hint={hint}
                  checked={scopes.has(scope)}
                  onChange={(on) => setScopes(withOrWithout(scopes, scope, on))}
                />
              ))}
            </FieldGroup>
          )}
          {!isPublic && (
            <SelectField
              label="Endpoints"
              value={isAdmin ? 'all' : reach}
              choices={reaches}
              onChange={setReach}
              disabled={isAdmin}
              hint={
                isAdmin
                  ? 'A key that manages everything is for the whole account.'
                  : 'A limited key opens only the endpoints that you choose. You cannot change this later.'
              }
              error={isLimited ? undefined : errorOf('endpoint_ids')}
            />
          )}
          {!isPublic && isLimited && <EndpointChoice chosen={chosen} onChange={setChosen} error={errorOf('endpoint_ids')} />}
        </>
      )}
    </CallForm>
  )
}

type OneEndpointProps = {
  readonly chosen: string | undefined
  readonly onChange: (chosen: string) => void
  readonly error: string | undefined
}

function OneEndpoint({ chosen, onChange, error }: OneEndpointProps) {
  const endpoints = useQuery(endpointsQuery(useAccount()))
  if (endpoints.isError) return <Failure error={endpoints.error} onRetry={() => void endpoints.refetch()} />
  const choices = (endpoints.data?.items ?? []).map(({ id, name, region }) => ({ value: id, label: `${name} (${region})` }))
  return (
    <SelectField
      label="Endpoint"
      value={chosen ?? ''}
      choices={chosen === undefined ? [{ value: '', label: 'Choose an endpoint' }, ...choices] : choices}
      onChange={onChange}
      error={error}
    />
  )
}

type EndpointChoiceProps = {
  readonly chosen: ReadonlySet<string>
  readonly onChange: (chosen: ReadonlySet<string>) => void
  readonly error: string | undefined
}

function EndpointChoice({ chosen, onChange, error }: EndpointChoiceProps) {
  const endpoints = useQuery(endpointsQuery(useAccount()))
  if (endpoints.isError) return <Failure error={endpoints.error} onRetry={() => void endpoints.refetch()} />
  return (
    <FieldGroup label="Which endpoints" value={chosen} error={error}>
      <div className={style.choices}>
        {endpoints.isPending && <Skeleton rows={3} />}
        {endpoints.data?.items.length === 0 && <p className={style.soft}>No endpoint yet. Create one first.</p>}
        {endpoints.data?.items.map(({ id, name, region }) => (
          <CheckboxField
            key={id}
            label={
              <>
                {name} <span className={style.soft}>{region}</span>
              </>
            }
            checked={chosen.has(id)}
            onChange={(on) => onChange(withOrWithout(chosen, id, on))}
          />
        ))}
      </div>
    </FieldGroup>
  )
}

function withOrWithout<T>(set: ReadonlySet<T>, value: T, isIn: boolean): ReadonlySet<T> {
  const others = [...set].filter((each) => each !== value)
  return new Set(isIn ? [...others, value] : others)
}

function listed(origins: string): readonly string[] {
  return origins.split(',').map((origin) => origin.trim())
}
