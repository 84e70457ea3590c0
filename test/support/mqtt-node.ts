/** Starts a node that accepts MQTT and connects to it. */
import { expect, onTestFinished } from 'vitest'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { anEndpoint, aSnapshot, IngestNode, type IngestNodeOptions } from './ingest-node.ts'
import { MqttClient, type Over, type Received, type Version } from './mqtt-client.ts'
import { useOne } from './use-one.ts'

export const mqttSettings = { enabled: true, max_connections: 1_000, keepalive_max_s: 300, qos_max: 1 } as const

export function mqttEndpoint(change: Partial<SnapshotEndpoint> = {}): SnapshotEndpoint {
  return anEndpoint({ mqtt_config: mqttSettings, ...change })
}

export type Transport = 'tcp' | 'ws'

export class MqttNode implements AsyncDisposable {
  readonly node: IngestNode
  readonly endpoint: SnapshotEndpoint

  private constructor(node: IngestNode, endpoint: SnapshotEndpoint) {
    this.node = node
    this.endpoint = endpoint
  }

  static async start({
    endpoint = mqttEndpoint(),
    environment = {},
    ...options
  }: IngestNodeOptions & { readonly endpoint?: SnapshotEndpoint } = {}): Promise<MqttNode> {
    const node = await IngestNode.start({
      snapshot: aSnapshot({ endpoints: [endpoint] }),
      ...options,
      environment: { INLET_MQTT_LISTEN: '127.0.0.1:0', ...environment },
    })
    return new MqttNode(node, endpoint)
  }

  over(transport: Transport, version: Version = 4): Over {
    const port = transport === 'tcp' ? (this.node.mqttPort ?? 0) : Number(new URL(this.node.url).port)
    return { port, transport, version }
  }

  /** Opens a connection that sends nothing by itself. */
  async open(over: Over): Promise<MqttClient> {
    const client = await MqttClient.open(over)
    onTestFinished(() => client.destroy())
    return client
  }

  /** Connects a client and expects it to be accepted. */
  async connect(over: Over, packet: Parameters<typeof MqttClient.connect>[1] = {}): Promise<MqttClient> {
    const { client, connack } = await MqttClient.connect(over, packet)
    onTestFinished(() => client.destroy())
    expect(connack?.returnCode ?? connack?.reasonCode).toBe(0)
    return client
  }

  connections(): Promise<number> {
    return this.node.metric('inlet_mqtt_connections')
  }

  /** Stops the node and returns topic and payload of everything that it stored. */
  async stored(): Promise<readonly string[]> {
    const frames = await this.node.frames(this.endpoint.id)
    return frames.map(({ topic, payload }) => `${topic} ${Buffer.from(payload)}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.node[Symbol.asyncDispose]()
  }
}

/** Starts one node for tests of a file or a suite that only look at what it responds. */
export function useMqttNode(): () => MqttNode {
  return useOne(() => MqttNode.start())
}

/** Returns how a node ends a connection: it just closes it in 3.1.1, and sends a DISCONNECT with a reason in 5. */
export async function expectEnd(client: MqttClient, reasonCode: number): Promise<void> {
  const packet: Received = await client.next()
  if (client.version === 5) {
    expect(packet).toMatchObject({ cmd: 'disconnect', reasonCode })
    expect(packet.properties.reasonString.length).toBeGreaterThan(5)
    expect(await client.next()).toBeUndefined()
  } else expect(packet).toBeUndefined()
}
