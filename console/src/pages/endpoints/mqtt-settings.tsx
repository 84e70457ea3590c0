import { changeEndpoint, type Endpoint, endpointQuery } from '../../api/endpoints.ts'
import { SelectField, TextField } from '../../design/field.tsx'
import { CheckboxField } from '../../design/toggle-field.tsx'
import { CallForm } from '../../shell/call-form.tsx'
import { useChange } from '../../shell/use-change.ts'
import { useFields } from '../../shell/use-fields.ts'
import { changedSettings } from './setting-texts.ts'

type MqttSettingsProps = {
  readonly account: string
  readonly endpoint: Endpoint
  readonly readOnly: boolean
}

/** Defaults of the API, for an endpoint that never had MQTT. */
const unset: NonNullable<Endpoint['mqtt_config']> = { enabled: false, max_connections: 1000, keepalive_max_s: 300, qos_max: 1 }

const qualities = [
  { value: '1', label: 'QoS 0 and 1: acknowledged once on disk' },
  { value: '0', label: 'QoS 0 only: never acknowledged' },
] as const

/** Whether the endpoint takes MQTT, on what terms, and when a change takes effect. */
export function MqttSettings({ account, endpoint, readOnly }: MqttSettingsProps) {
  const current = endpoint.mqtt_config ?? unset
  const { enabled, max_connections, keepalive_max_s, qos_max } = current
  const { values, field, reset } = useFields({
    enabled,
    max_connections: String(max_connections),
    keepalive_max_s: String(keepalive_max_s),
    qos_max: qos_max === 0 ? ('0' as const) : ('1' as const),
  })
  const change = changedSettings<typeof unset>(current, {
    enabled: values.enabled,
    max_connections: Number(values.max_connections),
    keepalive_max_s: Number(values.keepalive_max_s),
    qos_max: values.qos_max === '0' ? 0 : 1,
  })
  const save = useChange({
    call: () => changeEndpoint(endpoint.id, { mqtt_config: change }),
    changes: [endpointQuery(account, endpoint.id).queryKey],
    done: reset,
    said: 'MQTT settings saved',
  })
  return (
    <CallForm call={save} action="Save MQTT settings" disabled={Object.keys(change).length === 0} readOnly={readOnly}>
      {(errorOf) => (
        <>
          <CheckboxField
            label="Accept MQTT"
            checked={values.enabled}
            onChange={field('enabled').onChange}
            disabled={readOnly}
            error={errorOf('mqtt_config.enabled')}
            hint="Within seconds. Without it, connections are refused, and open ones end."
          />
          {values.enabled && (
            <>
              <TextField
                label="Connections at most, on each node"
                {...field('max_connections', errorOf, 'mqtt_config.max_connections')}
                {...{ type: 'number', min: 1, max: 100_000, disabled: readOnly }}
                hint="For new connections: those above it are refused."
              />
              <TextField
                label="Keep alive at most, in seconds"
                {...field('keepalive_max_s', errorOf, 'mqtt_config.keepalive_max_s')}
                {...{ type: 'number', min: 10, max: 3600, disabled: readOnly }}
                hint="For new connections: they end after one and a half times as long without a packet."
              />
              <SelectField
                label="Quality of service"
                {...field('qos_max', errorOf, 'mqtt_config.qos_max')}
                choices={qualities}
                disabled={readOnly}
                hint="For new connections."
              />
            </>
          )}
        </>
      )}
    </CallForm>
  )
}
