/** Publishes messages with QoS 1 to one endpoint, a few in flight, until it is stopped. Publishes some again that got no PUBACK. */
import { MqttClient } from '../../support/mqtt-client.ts'
import { within } from '../../support/within.ts'
import { type Outcome, recordText, type Sent } from '../ledger.ts'
import type { Sender, SenderOptions } from './http-sender.ts'

const ackTimeoutMs = 4_000
const inFlightMax = 10

export class MqttSender implements Sender {
  readonly #options: SenderOptions
  readonly #running: Promise<void>
  #client: MqttClient | undefined
  #isStopping = false
  #again: readonly { readonly sent: Sent; readonly payload: string }[] = []

  constructor(options: SenderOptions) {
    this.#options = options
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#running
    this.#client?.destroy()
  }

  async #run(): Promise<void> {
    const { random } = this.#options
    while (!this.#isStopping) {
      try {
        this.#client ??= await this.#connect()
        await this.#publish(this.#client)
      } catch {
        this.#client?.destroy()
        this.#client = undefined
        await new Promise((resolve) => setTimeout(resolve, 200))
      }
      await new Promise((resolve) => setTimeout(resolve, random.between(20, 140)))
    }
  }

  async #connect(): Promise<MqttClient> {
    const { ingestUrl, apiKey, endpointId, random } = this.#options
    const over = {
      port: Number(new URL(ingestUrl).port),
      transport: 'ws',
      version: random.pick([4, 5] as const),
      path: `/mqtt?endpoint=${endpointId}`,
    } as const
    const credentials = { clientId: `torture-${random.seed()}`, password: Buffer.from(apiKey) }
    // A stopped process accepts connections and says nothing.
    const connecting = MqttClient.connect(over, credentials)
    const { client, connack } = await within(ackTimeoutMs, connecting).catch((error: unknown) => {
      connecting.then(
        (late) => late.client.destroy(),
        () => undefined,
      )
      throw error
    })
    if ((connack?.returnCode ?? connack?.reasonCode) === 0) return client
    client.destroy()
    throw new Error('connection refused')
  }

  /** Publishes a few messages at once and waits for their PUBACKs. */
  async #publish(client: MqttClient): Promise<void> {
    const { ledger, random, endpointId } = this.#options
    const fresh = Array.from({ length: random.between(1, inFlightMax - this.#again.length) }, () => {
      const sent = ledger.create(endpointId, 1)
      return { sent, payload: recordText(sent.id, 0, 'x'.repeat(random.between(0, 300))) }
    })
    const batch = [...this.#again, ...fresh]
    this.#again = []
    const acks = new Map(batch.map((_, index) => [index + 1, Promise.withResolvers<Exclude<Outcome, 'pending'>>()]))
    const outcomes = batch.map(({ sent }, index) =>
      ledger.attempt(sent, () => acks.get(index + 1)?.promise ?? Promise.reject(new Error('no such message'))),
    )
    try {
      for (const [index, { payload }] of batch.entries()) client.publish(payload, { messageId: index + 1 })
      for (let missing = batch.length; missing > 0; missing -= 1) {
        const packet = await client.next(ackTimeoutMs)
        if (packet?.cmd !== 'puback') throw new Error('the connection ended')
        acks.get(packet.messageId)?.resolve((packet.reasonCode ?? 0) < 0x80 ? 'acknowledged' : 'unknown')
      }
    } finally {
      for (const ack of acks.values()) ack.reject(new Error('no PUBACK'))
      const ends = await Promise.all(outcomes)
      this.#again = batch.filter((_, index) => ends[index] === 'unknown' && random.isLuckyIn(2)).slice(0, inFlightMax - 1)
    }
  }
}
