import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { changeEndpoint, type Endpoint, endpointQuery } from '../../api/endpoints.ts'
import { SelectField, TextField } from '../../design/field.tsx'
import { say } from '../../design/toast.tsx'
import { CheckboxField } from '../../design/toggle-field.tsx'
import { CallForm } from '../../shell/call-form.tsx'

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
  const queries = useQueryClient()
  const current = endpoint.mqtt_config ?? unset
  const [enabled, setEnabled] = useState(current.enabled)
  const [connections, setConnections] = useState(String(current.max_connections))
  const [keepAlive, setKeepAlive] = useState(String(current.keepalive_max_s))
  const [quality, setQuality] = useState<'0' | '1'>(current.qos_max === 0 ? '0' : '1')
  const change = {
    ...(enabled === current.enabled ? {} : { enabled }),
    ...(Number(connections) === current.max_connections ? {} : { max_connections: Number(connections) }),
    ...(Number(keepAlive) === current.keepalive_max_s ? {} : { keepalive_max_s: Number(keepAlive) }),
    ...(Number(quality) === current.qos_max ? {} : { qos_max: Number(quality) }),
  }
  const save = useMutation({
    mutationFn: () => changeEndpoint(endpoint.id, { mqtt_config: change }),
    onSuccess: async () => {
      await queries.invalidateQueries(endpointQuery(account, endpoint.id))
      say('MQTT settings saved')
    },
  })
  return (
    <CallForm call={save} action="Save MQTT settings" disabled={Object.keys(change).length === 0} readOnly={readOnly}>
      {(errorOf) => (
        <>
          <CheckboxField
            label="Accept MQTT"
            checked={enabled}
            onChange={setEnabled}
            disabled={readOnly}
            error={errorOf('mqtt_config.enabled')}
            hint="Within seconds. Without it, connections are refused, and open ones end."
          />
          {enabled && (
            <>
              <TextField
                label="Connections at most, on each node"
                type="number"
                min={1}
                max={100_000}
                value={connections}
                onChange={setConnections}
                disabled={readOnly}
                error={errorOf('mqtt_config.max_connections')}
                hint="For new connections: those above it are refused."
              />
              <TextField
                label="Keep alive at most, in seconds"
                type="number"
                min={10}
                max={3600}
                value={keepAlive}
                onChange={setKeepAlive}
                disabled={readOnly}
                error={errorOf('mqtt_config.keepalive_max_s')}
                hint="For new connections: they end after one and a half times as long without a packet."
              />
              <SelectField
                label="Quality of service"
                value={quality}
                choices={qualities}
                onChange={setQuality}
                disabled={readOnly}
                error={errorOf('mqtt_config.qos_max')}
                hint="For new connections."
              />
            </>
          )}
        </>
      )}
    </CallForm>
  )
}
