import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import {
  changeEndpoint,
  destinationChoicesQuery,
  type Endpoint,
  type EndpointChange,
  endpointQuery,
} from '../../api/endpoints.ts'
import { SelectField, TextField } from '../../design/field.tsx'
import { Card, Facts, Section, Sheet } from '../../design/layout.tsx'
import { Time } from '../../design/time.tsx'
import { say } from '../../design/toast.tsx'
import { CheckboxField } from '../../design/toggle-field.tsx'
import { CallForm } from '../../shell/call-form.tsx'
import { useMay } from '../../shell/session.tsx'
import { destinationChoices, UnvalidatedNote } from './destination-choices.tsx'
import { EndpointRemoval } from './endpoint-removal.tsx'
import style from './endpoints.module.css'
import { MqttSettings } from './mqtt-settings.tsx'
import { useEndpoint } from './use-endpoint.ts'

/** Settings that can be changed, and when a change takes effect. */
export function EndpointSettings() {
  const { account, endpoint } = useEndpoint()
  const mayChange = useMay('member')
  const isOpen = mayChange && endpoint.status !== 'draining'
  return (
    <div className={style.stack}>
      <Section title="Identity">
        <Card>
          <Facts
            facts={[
              ['Id', <code key="id">{endpoint.id}</code>],
              ['Ingest host', <code key="host">{endpoint.ingest_host}</code>],
              ['Region', endpoint.region],
              ['Created', <Time key="created" at={endpoint.created_at} exact />],
            ]}
          />
        </Card>
      </Section>
      <Section
        title="Settings"
        about="Nodes learn of a change within two seconds. What is already sealed keeps the settings of its time."
      >
        <Card>
          <Sheet narrow>
            <SettingsForm key={endpoint.id} account={account} endpoint={endpoint} readOnly={!mayChange} />
          </Sheet>
        </Card>
      </Section>
      <Section title="MQTT" about="For devices and gateways, over WebSocket, and over TCP where the nodes listen for it.">
        <Card>
          <Sheet narrow>
            <MqttSettings key={endpoint.id} account={account} endpoint={endpoint} readOnly={!isOpen} />
          </Sheet>
        </Card>
      </Section>
      {isOpen && <EndpointRemoval account={account} endpoint={endpoint} />}
    </div>
  )
}

type FormProps = { readonly account: string; readonly endpoint: Endpoint; readonly readOnly: boolean }

const mebibyte = 2 ** 20

function inMebibytes(bytes: number): number {
  return Number((bytes / mebibyte).toFixed(2))
}

const formats = {
  parquet_views: ['Parquet of views', 'Typed columns, for each view that is bound.'],
  parquet: ['Raw Parquet', 'Every record as it was sent.'],
  segments: ['Segments', 'The log itself, compressed: for your own tools.'],
} as const
type Format = keyof typeof formats

const periods = [
  { value: '', label: 'Never: leave files as they are' },
  { value: 'day', label: 'Daily: the files of each day' },
  { value: 'hour', label: 'Hourly: the files of each hour' },
] as const
type Period = (typeof periods)[number]['value']

function SettingsForm({ account, endpoint, readOnly }: FormProps) {
  const queries = useQueryClient()
  const destinations = useQuery(destinationChoicesQuery(account))
  const [name, setName] = useState(endpoint.name)
  const [destination, setDestination] = useState(endpoint.destination_id ?? '')
  const [age, setAge] = useState(String(endpoint.segment_max_age_seconds))
  const [size, setSize] = useState(String(inMebibytes(endpoint.segment_bytes)))
  const [outputs, setOutputs] = useState<readonly Format[]>(endpoint.output_formats)
  const [period, setPeriod] = useState<Period>(endpoint.compaction?.period ?? '')
  const [except, setExcept] = useState((endpoint.compaction?.except_views ?? []).join(', '))
  const [removeAfter, setRemoveAfter] = useState(String(endpoint.compaction?.remove_after_hours ?? ''))
  const compaction =
    period === ''
      ? null
      : {
          period,
          except_views: [...namesIn(except)],
          remove_after_hours: removeAfter === '' ? null : Number(removeAfter),
        }
  const [headers, setHeaders] = useState(endpoint.kept_headers.join(', '))
  const change: EndpointChange = {
    ...(name === endpoint.name ? {} : { name }),
    ...(destination === (endpoint.destination_id ?? '') ? {} : { destination_id: destination === '' ? null : destination }),
    ...(Number(age) === endpoint.segment_max_age_seconds ? {} : { segment_max_age_seconds: Number(age) }),
    ...(Number(size) === inMebibytes(endpoint.segment_bytes) ? {} : { segment_bytes: Math.round(Number(size) * mebibyte) }),
    ...(sameFormats(outputs, endpoint.output_formats) ? {} : { output_formats: [...outputs] }),
    ...(JSON.stringify(compaction) === JSON.stringify(endpoint.compaction) ? {} : { compaction }),
    ...(namesIn(headers).join() === endpoint.kept_headers.join() ? {} : { kept_headers: namesIn(headers) }),
  }
  const save = useMutation({
    mutationFn: () => changeEndpoint(endpoint.id, change),
    onSuccess: async () => {
      await queries.invalidateQueries(endpointQuery(account, endpoint.id))
      say('Settings saved')
    },
  })
  const toggle = (format: Format) => (checked: boolean) =>
    setOutputs(checked ? [...outputs, format] : outputs.filter((each) => each !== format))
  // While it drains, only where its data goes can change.
  const fixed = readOnly || endpoint.status === 'draining'
  return (
    <CallForm call={save} action="Save settings" disabled={Object.keys(change).length === 0} readOnly={readOnly}>
      {(errorOf) => (
        <>
          <TextField
            label="Name"
            value={name}
            onChange={setName}
            disabled={fixed}
            maxLength={128}
            error={errorOf('name')}
            hint="At once."
          />
          <SelectField
            label="Destination"
            value={destination}
            onChange={setDestination}
            disabled={readOnly}
            error={errorOf('destination_id')}
            hint="For each segment that is delivered from then on, also those that wait."
            choices={[...destinationChoices(destinations.data), { value: '', label: 'None: keep data on the nodes' }]}
          />
          <UnvalidatedNote destination={destinations.data?.find(({ id }) => id === destination)} />
          <TextField
            label="Seal a segment after, in seconds"
            type="number"
            min={1}
            max={3600}
            value={age}
            onChange={setAge}
            disabled={fixed}
            error={errorOf('segment_max_age_seconds')}
            hint="Within seconds, also for the open segment. Less means fresher data and smaller files."
          />
          <TextField
            label="Seal a segment at, in MiB"
            type="number"
            min={8}
            max={1000}
            step="any"
            value={size}
            onChange={setSize}
            disabled={fixed}
            error={errorOf('segment_bytes')}
            hint="Within seconds, also for the open segment. Whichever comes first."
          />
          {(Object.keys(formats) as Format[]).map((format) => (
            <CheckboxField
              key={format}
              label={formats[format][0]}
              hint={formats[format][1]}
              checked={outputs.includes(format)}
              onChange={toggle(format)}
              disabled={fixed}
              error={format === 'segments' ? errorOf('output_formats') : undefined}
            />
          ))}
          <SelectField
            label="Merge small files"
            value={period}
            onChange={setPeriod}
            disabled={fixed}
            error={errorOf('compaction.period') ?? errorOf('compaction')}
            hint="Once a day or an hour is over. The merged files are in a folder of their own, compacted/."
            choices={periods}
          />
          {period !== '' && (
            <TextField
              label="Except the files of these views"
              value={except}
              onChange={setExcept}
              disabled={fixed}
              error={['compaction.except_views', ...namesIn(except).map((_, at) => `compaction.except_views.${at}`)]
                .map(errorOf)
                .find(Boolean)}
              hint="Names, with commas. Other views and raw Parquet are merged."
            />
          )}
          {period !== '' && (
            <TextField
              label="Remove merged files after, in hours"
              type="number"
              min={1}
              max={8760}
              value={removeAfter}
              onChange={setRemoveAfter}
              disabled={fixed}
              error={errorOf('compaction.remove_after_hours')}
              hint="Empty keeps them. A week is 168. Programs that follow markers must run at least this often, and end within it. Programs that read whole folders miss the rows of removed files: except their views above."
            />
          )}
          <TextField
            label="HTTP headers to keep"
            value={headers}
            onChange={setHeaders}
            disabled={fixed}
            placeholder="x-hub-signature-256, x-github-event"
            error={['kept_headers', ...namesIn(headers).map((_, at) => `kept_headers.${at}`)].map(errorOf).find(Boolean)}
            hint="Kept with each record that is sent from then on, such as the signature of a webhook: $$.headers.<name> in views. Separate names with commas."
          />
        </>
      )}
    </CallForm>
  )
}

/** Nodes know headers by their names in lower case. */
function namesIn(text: string): string[] {
  return text
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((name) => name !== '')
}

function sameFormats(some: readonly Format[], others: readonly Format[]): boolean {
  return some.length === others.length && some.every((format) => others.includes(format))
}
