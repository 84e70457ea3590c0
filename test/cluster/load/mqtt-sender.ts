/**
 * Publishes messages with QoS 1 to one endpoint, a few in flight. The client is one that others wrote: it connects again by itself and
 * repeats what has no PUBACK yet.
 */
import mqtt from 'mqtt'
import { within } from '../../support/within.ts'
import { recordsIn, recordText, type Sent } from '../../torture/ledger.ts'
import { Dialer } from './dialer.ts'
import { type Sender, type SenderOptions, stopMsMax } from './sender.ts'

const inFlightMax = 5
const connectTimeoutMs = 3_000
const keepaliveSeconds = 3
const reconnectMs = 300

export class MqttSender implements Sender {
  readonly #options: SenderOptions
  readonly #running: Promise<void>
  readonly #inFlight = new Set<Promise<void>>()
  readonly #dialer: Dialer
  #isStopping = false

  constructor(options: SenderOptions) {
    this.#options = options
    this.#dialer = new Dialer(options.resolve, options.random)
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    const late = () => new Error(`${this.#inFlight.size} MQTT messages were not acknowledged after everything healed`)
    await within(stopMsMax, this.#running, late)
  }

  async #run(): Promise<void> {
    const { random, apiKey, ingestHost, port, transport, ca } = this.#options
    const { lookup } = this.#dialer
    const client = mqtt.connect({
      protocol: transport,
      host: ingestHost,
      port,
      path: '/mqtt',
      ...{ ca, lookup, wsOptions: { ca, lookup } },
      protocolVersion: 5,
      clientId: `cluster-${random.seed()}`,
      username: 'cluster',
      password: apiKey,
      connectTimeout: connectTimeoutMs,
      keepalive: keepaliveSeconds,
      reconnectPeriod: reconnectMs,
      reconnectOnConnackError: true,
    })
    this.#watch(client)
    client.on('packetsend', (packet) => {
      if (packet.cmd === 'publish') this.#noteSent(packet.payload.toString())
    })
    while (!this.#isStopping) {
      if (this.#inFlight.size < inFlightMax) this.#publish(client)
      await new Promise((resolve) => setTimeout(resolve, random.between(50, 200)))
    }
    await Promise.all(this.#inFlight)
    await client.endAsync(true)
  }

  /** A connection that fails is noticed, and one that ends is not. */
  #watch(client: mqtt.MqttClient): void {
    let isConnected = false
    let reason = 'closed before CONNACK'
    client.on('error', (error) => {
      reason = String(error)
    })
    client.on('connect', () => {
      isConnected = true
    })
    client.on('close', () => {
      if (!isConnected && !this.#isStopping) {
        const { address, isNamed, startedAt } = this.#dialer
        this.#options.notices.note({
          endpointId: this.#options.endpointId,
          startedAt,
          isNamed,
          text: `MQTT connection to ${address}: ${reason}`,
        })
        this.#dialer.avoid()
      }
      isConnected = false
    })
  }

  #publish(client: mqtt.MqttClient): void {
    const { ledger, random, endpointId, waits } = this.#options
    const sent = ledger.create(endpointId, 1)
    const payload = recordText(sent.id, 0, 'x'.repeat(random.between(0, 300)))
    const acknowledged = waits.begin(endpointId)
    const done = this.#repeat(client, sent, payload).then(() => {
      acknowledged()
      this.#inFlight.delete(done)
    })
    this.#inFlight.add(done)
  }

  /** The client repeats a message over new connections. An error code in a PUBACK ends that. */
  async #repeat(client: mqtt.MqttClient, sent: Sent, payload: string): Promise<void> {
    const { ledger, notices, endpointId } = this.#options
    for (;;) {
      const startedAt = performance.now()
      try {
        await client.publishAsync('plant/7', payload, { qos: 1 })
        sent.attempts[sent.attempts.length - 1] = 'acknowledged'
        ledger.acknowledgedRecords += 1
        return
      } catch (error) {
        notices.note({
          endpointId,
          startedAt,
          isNamed: true,
          text: `MQTT message at ${this.#dialer.address}: ${String(error)}`,
        })
        await new Promise((resolve) => setTimeout(resolve, reconnectMs))
      }
    }
  }

  /** Until the PUBACK is there, each repetition may have been stored. */
  #noteSent(payload: string): void {
    for (const { id } of recordsIn(payload)) this.#options.ledger.sent[id]?.attempts.push('unknown')
  }
}
