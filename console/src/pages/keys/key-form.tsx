import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { endpointsQuery } from '../../api/endpoints.ts'
import { type CreatedApiKey, createKey, keysKey, type NewKey, type Scope } from '../../api/keys.ts'
import { SelectField, TextField } from '../../design/field.tsx'
import { FieldGroup } from '../../design/field-group.tsx'
import { Skeleton } from '../../design/skeleton.tsx'
import { CheckboxField } from '../../design/toggle-field.tsx'
import { CallForm, type ErrorOf } from '../../shell/call-form.tsx'
import { Failure } from '../../shell/failure.tsx'
import { useAccount, useHere } from '../../shell/session.tsx'
import { useChange } from '../../shell/use-change.ts'
import { type Fields, useFields } from '../../shell/use-fields.ts'
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
  const { endpoint } = route.useSearch()
  const fields = useFields(blankKey(endpoint))
  const { values, field } = fields
  const { allows_public_keys } = useHere().session
  const isPublic = values.holder === 'page'
  const isRefused = isPublic && !allows_public_keys
  const create = useChange({
    call: () => createKey(keyOf(values)),
    leave: onCreated,
    changes: [keysKey(account)],
  })
  return (
    <CallForm call={create} action="Create key" disabled={isRefused || isIncomplete(values)}>
      {(errorOf) => (
        <>
          <TextField
            label="Name"
            {...field('name', errorOf)}
            required
            maxLength={128}
            autoComplete="off"
            placeholder="thermometers in hall 3"
            hint="What the key is for. You see it in the list and in the audit trail."
          />
          <SelectField
            label="Who holds it"
            {...field('holder', errorOf, 'public')}
            choices={holders}
            hint={
              isRefused
                ? 'The operator of this installation does not allow such keys. To allow them: INLET_PUBLIC_KEYS=true, for control and for nodes.'
                : isPublic
                  ? 'Everybody can read the key in the page. So it only sends data, to one endpoint, from the origins that you name.'
                  : 'They keep the key secret.'
            }
          />
          {!isPublic && programFields(fields, errorOf)}
          {isPublic && !isRefused && pageFields(fields, errorOf)}
        </>
      )}
    </CallForm>
  )
}

type KeyValues = ReturnType<typeof blankKey>

function blankKey(endpoint: string | undefined) {
  return {
    name: '',
    holder: 'program' as 'program' | 'page',
    scopes: new Set<Scope>(['ingest']) as ReadonlySet<Scope>,
    reach: endpoint === undefined ? ('all' as const) : ('some' as const),
    chosen: new Set(endpoint === undefined ? [] : [endpoint]) as ReadonlySet<string>,
    only: endpoint,
    origins: '',
  }
}

const isLimited = ({ reach, scopes }: KeyValues) => reach === 'some' && !scopes.has('admin')

function isIncomplete(values: KeyValues): boolean {
  if (values.holder === 'page') return values.only === undefined
  return values.scopes.size === 0 || (isLimited(values) && values.chosen.size === 0)
}

function keyOf(values: KeyValues): NewKey {
  const { name, holder, scopes, chosen, only, origins } = values
  return holder === 'page'
    ? { name, scopes: ['ingest'], endpoint_ids: only === undefined ? [] : [only], public: true, origins: listed(origins) }
    : { name, scopes: [...scopes], endpoint_ids: isLimited(values) ? [...chosen] : null, public: false, origins: null }
}

function pageFields({ field }: Fields<KeyValues>, errorOf: ErrorOf) {
  const { value: chosen, onChange, error } = field('only', errorOf, 'endpoint_ids')
  return (
    <>
      <OneEndpoint {...{ chosen, onChange, error }} />
      <TextField
        label="Origins"
        {...field('origins', errorOf)}
        required
        autoComplete="off"
        placeholder="https://app.example.com"
        hint="Pages of these origins can send with the key. Separate several with commas."
      />
    </>
  )
}

function programFields({ values, field }: Fields<KeyValues>, errorOf: ErrorOf) {
  const scopes = field('scopes', errorOf)
  const { value: chosen, onChange } = field('chosen')
  const isAdmin = scopes.value.has('admin')
  const limited = isLimited(values)
  return (
    <>
      <FieldGroup label="What it may do" value={scopes.value} error={scopes.error}>
        {scopeTexts.map(({ scope, label, hint }) => (
          <CheckboxField
            key={scope}
            label={
              <>
                {label} <code className={style.soft}>{scope}</code>
              </>
            }
            hint={hint}
            checked={scopes.value.has(scope)}
            onChange={(on) => scopes.onChange(withOrWithout(scopes.value, scope, on))}
          />
        ))}
      </FieldGroup>
      <SelectField
        label="Endpoints"
        {...field('reach')}
        value={isAdmin ? 'all' : values.reach}
        choices={reaches}
        disabled={isAdmin}
        hint={
          isAdmin
            ? 'A key that manages everything is for the whole account.'
            : 'A limited key opens only the endpoints that you choose. You cannot change this later.'
        }
        error={limited ? undefined : errorOf('endpoint_ids')}
      />
      {limited && <EndpointChoice {...{ chosen, onChange }} error={errorOf('endpoint_ids')} />}
    </>
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
