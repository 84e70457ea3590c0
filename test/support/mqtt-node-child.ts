/**
 * A node in a process of its own, so that its memory is measured apart from the clients'. Sends its address and responds to `memory`.
 * With two arguments, a certificate and its key, it uses TLS.
 */
import { anEndpoint, aSnapshot, IngestNode } from './ingest-node.ts'

export type ChildMessage =
  | { readonly url: string; readonly mqttPort: number; readonly endpointId: string }
  | { readonly rss: number }

const mqtt_config = { enabled: true, max_connections: 100_000, keepalive_max_s: 300, qos_max: 1 } as const
const [, , certificate, key] = process.argv
const tls: Record<string, string> =
  certificate === undefined || key === undefined ? {} : { INLET_TLS_CERTIFICATE_FILE: certificate, INLET_TLS_KEY_FILE: key }
const endpoint = anEndpoint({ mqtt_config })
const node = await IngestNode.start({
  snapshot: aSnapshot({ endpoints: [endpoint] }),
  environment: { INLET_MQTT_LISTEN: '127.0.0.1:0', INLET_MAX_CONNECTIONS: '100000', ...tls },
})
process.on('message', (message) => {
  if (message === 'memory') {
    globalThis.gc?.()
    process.send?.({ rss: process.memoryUsage.rss() } satisfies ChildMessage)
  } else void node[Symbol.asyncDispose]().then(() => process.disconnect?.())
})
process.send?.({ url: node.url, mqttPort: node.mqttPort ?? 0, endpointId: endpoint.id } satisfies ChildMessage)
