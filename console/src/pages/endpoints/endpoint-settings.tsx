import { Card, Facts, Section, Sheet } from '../../design/layout.tsx'
import { Time } from '../../design/time.tsx'
import { useMay } from '../../shell/session.tsx'
import { EndpointRemoval } from './endpoint-removal.tsx'
import style from './endpoints.module.css'
import { MqttSettings } from './mqtt-settings.tsx'
import { SettingsForm } from './settings-form.tsx'
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
