import { useQuery } from '@tanstack/react-query'
import { changeEndpoint, destinationChoicesQuery, type Endpoint, endpointQuery } from '../../api/endpoints.ts'
import { Callout } from '../../design/callout.tsx'
import { SelectField, TextField } from '../../design/field.tsx'
import { CheckboxField } from '../../design/toggle-field.tsx'
import { CallForm, type ErrorOf } from '../../shell/call-form.tsx'
import { useChange } from '../../shell/use-change.ts'
import { type Fields, useFields } from '../../shell/use-fields.ts'
import { destinationChoices, UnvalidatedNote } from './destination-choices.tsx'
import {
  addresses,
  changedSettings,
  copyChoices,
  type Format,
  formats,
  namesIn,
  periods,
  type SettingTexts,
  settingsOf,
  textsOf,
} from './setting-texts.ts'

type SettingsFormProps = { readonly account: string; readonly endpoint: Endpoint; readonly readOnly: boolean }

export function SettingsForm({ account, endpoint, readOnly }: SettingsFormProps) {
  const destinations = useQuery(destinationChoicesQuery(account))
  const fields = useFields(textsOf(endpoint))
  const { values, field, reset } = fields
  const change = changedSettings(settingsOf(textsOf(endpoint)), settingsOf(values))
  const save = useChange({
    call: () => changeEndpoint(endpoint.id, change),
    changes: [endpointQuery(account, endpoint.id).queryKey],
    done: reset,
    said: 'Settings saved',
  })
  // While it drains, only where its data goes can change.
  const disabled = readOnly || endpoint.status === 'draining'
  return (
    <CallForm call={save} action="Save settings" disabled={Object.keys(change).length === 0} readOnly={readOnly}>
      {(errorOf) => (
        <>
          <TextField label="Name" {...field('name', errorOf)} disabled={disabled} maxLength={128} hint="At once." />
          <SelectField
            label="Destination"
            {...field('destination_id', errorOf)}
            disabled={readOnly}
            hint="For each segment that is delivered from then on, also those that wait."
            choices={[...destinationChoices(destinations.data), { value: '', label: 'None: keep data on the nodes' }]}
          />
          <UnvalidatedNote destination={destinations.data?.find(({ id }) => id === values.destination_id)} />
          <TextField
            label="Seal a segment after, in seconds"
            {...field('segment_max_age_seconds', errorOf)}
            {...{ type: 'number', min: 1, max: 3600, disabled }}
            hint="Within seconds, also for the open segment. Less means fresher data and smaller files."
          />
          <TextField
            label="Seal a segment at, in MiB"
            {...field('segment_bytes', errorOf)}
            {...{ type: 'number', min: 8, max: 1000, step: 'any', disabled }}
            hint="Within seconds, also for the open segment. Whichever comes first."
          />
          <SelectField
            label="A record is acknowledged once it is"
            {...field('copies', errorOf)}
            disabled={disabled}
            hint="For each record that is sent from then on. With a copy it survives the machine; each node of the region needs INLET_COPY_URL."
            choices={copyChoices}
          />
          {formatFields(fields, errorOf, disabled)}
          {compactionFields(fields, errorOf, disabled)}
          <TextField
            label="HTTP headers to keep"
            {...field('kept_headers')}
            disabled={disabled}
            placeholder="x-hub-signature-256, x-github-event"
            error={listError(errorOf, 'kept_headers', values.kept_headers)}
            hint="Kept with each record that is sent from then on, such as the signature of a webhook: $$.headers.<name> in views. Separate names with commas."
          />
          {senderFields(fields, errorOf, disabled)}
          {save.isSuccess && save.data.warnings.length > 0 && (
            <Callout kind="warn" title="Saved, with a warning">
              {save.data.warnings.map((warning) => (
                <p key={warning}>{warning}</p>
              ))}
            </Callout>
          )}
        </>
      )}
    </CallForm>
  )
}

function formatFields({ values, field }: Fields<SettingTexts>, errorOf: ErrorOf, disabled: boolean) {
  const { value: chosen, onChange } = field('output_formats')
  return (Object.keys(formats) as Format[]).map((format) => (
    <CheckboxField
      key={format}
      label={formats[format][0]}
      hint={formats[format][1]}
      checked={values.output_formats.includes(format)}
      onChange={(checked) => onChange(checked ? [...chosen, format] : chosen.filter((each) => each !== format))}
      disabled={disabled}
      error={format === 'segments' ? errorOf('output_formats') : undefined}
    />
  ))
}

function senderFields({ values, field }: Fields<SettingTexts>, errorOf: ErrorOf, disabled: boolean) {
  return (
    <>
      <SelectField
        label="Address of the client"
        {...field('address')}
        disabled={disabled}
        error={errorOf('kept_fields')}
        hint="Kept with each record that is sent from then on: $$.address in views."
        choices={addresses}
      />
      <CheckboxField
        label="Keep the name of the API key"
        hint="With each record that is sent from then on: $$.key_name in views."
        checked={values.keeps_key_name}
        onChange={field('keeps_key_name').onChange}
        disabled={disabled}
      />
    </>
  )
}

function compactionFields({ values, field }: Fields<SettingTexts>, errorOf: ErrorOf, disabled: boolean) {
  return (
    <>
      <SelectField
        label="Merge small files"
        {...field('period')}
        disabled={disabled}
        error={errorOf('compaction.period') ?? errorOf('compaction')}
        hint="Once a day or an hour is over. The merged files are in a folder of their own, compacted/."
        choices={periods}
      />
      {values.period !== '' && (
        <>
          <TextField
            label="Except the files of these views"
            {...field('except_views')}
            disabled={disabled}
            error={listError(errorOf, 'compaction.except_views', values.except_views)}
            hint="Names, with commas. Other views and raw Parquet are merged."
          />
          <TextField
            label="Remove merged files after, in hours"
            {...field('remove_after_hours', errorOf, 'compaction.remove_after_hours')}
            {...{ type: 'number', min: 1, max: 8760, disabled }}
            hint="Empty keeps them. A week is 168. Programs that follow markers must run at least this often, and end within it. Programs that read whole folders miss the rows of removed files: except their views above."
          />
        </>
      )}
    </>
  )
}

/** Returns the error of a list, or that of the first name in it that has one. */
function listError(errorOf: ErrorOf, path: string, names: string): string | undefined {
  return [path, ...namesIn(names).map((_, at) => `${path}.${at}`)].map(errorOf).find(Boolean)
}
