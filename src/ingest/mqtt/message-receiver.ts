/**
 * The messages of one client.
 *
 * Owns: the endpoint's limits on a message, topic aliases, the will. Does not own: the layout of PUBLISH (packets/publish.ts), messages
 * that are not durable yet (gate/admitted-session.ts), acknowledgements (session.ts).
 */
import type { Buffer } from 'node:buffer'
import { ackLevelName } from '#model/ack-level.ts'
import { mqttLimits } from '#model/limits.ts'
import { idempotencyProperty } from '#model/record-envelope.ts'
import type { AdmittedSession } from '../gate/admitted-session.ts'
import type { Backpressure } from './backpressure.ts'
import { sessionLimits } from './limits.ts'
import { MessageEnvelopes } from './message-envelopes.ts'
import { LastTopic, type Message, type MessageProperties, readPublish } from './packets/publish.ts'
import { MqttError } from './packets/reason.ts'
import type { SessionTerms } from './session-terms.ts'

export type MessageReceiverOptions = {
  readonly terms: SessionTerms
  readonly admitted: AdmittedSession
  readonly backpressure: Backpressure
  /** Called for a message that is refused. */
  readonly onRefused: (needsAcknowledgement: boolean, receivedAtMicros: number) => void
}

export class MessageReceiver {
  readonly #terms: SessionTerms
  readonly #admitted: AdmittedSession
  readonly #backpressure: Backpressure
  readonly #onRefused: MessageReceiverOptions['onRefused']
  readonly #envelopes: MessageEnvelopes
  readonly #lastTopic = new LastTopic()
  #aliases: string[] | undefined
  #will: Message | undefined

  constructor({ terms, admitted, backpressure, onRefused }: MessageReceiverOptions) {
    this.#terms = terms
    this.#admitted = admitted
    this.#backpressure = backpressure
    this.#onRefused = onRefused
    this.#envelopes = new MessageEnvelopes(terms.clientId)
    this.#will = terms.will
  }

  /** Whether every message is durable. */
  get isIdle(): boolean {
    return this.#admitted.recordsInFlight === 0
  }

  /** Whether messages in flight have reached this share of their bounds. */
  hasReached(share: number): boolean {
    const { recordsInFlight, bytesInFlight } = this.#admitted
    return recordsInFlight >= mqttLimits.inFlightMessagesMax * share || bytesInFlight >= sessionLimits.inFlightBytesMax * share
  }

  /** Reads and stores a PUBLISH packet. `receivedAtMicros` is since 1970 UTC. Throws MqttError, or Rejection. */
  publish(bytes: Buffer, at: number, body: number, end: number, receivedAtMicros: number): void {
    const { peer, qosMax } = this.#terms
    const { version } = peer
    const {
      qos,
      messageId,
      topic: named,
      topicAlias,
      properties,
      payload,
    } = readPublish(bytes, at, body, end, version, this.#lastTopic)
    if (qos > qosMax) {
      throw new MqttError('qos_not_supported', `QoS ${qos} is above ${qosMax}, the maximum of this endpoint`) // [MQTT-3.2.2-11]
    }
    const topic = topicAlias === 0 ? named : this.#topicOf(topicAlias, named)
    this.#store(topic, properties, payload, messageId, receivedAtMicros)
  }

  dropWill(): void {
    this.#will = undefined
  }

  /** Stores the will, once. Returns false if there is none, or it is refused. [MQTT-3.1.2-8] */
  publishWill(receivedAtMicros: number): boolean {
    const will = this.#will
    if (will === undefined) return false
    this.#will = undefined
    return this.#store(will.topic, will.properties, will.payload, 0, receivedAtMicros)
  }

  /** `messageId` is 0 if no PUBACK is wanted. Returns false if the message is refused. */
  #store(
    topic: string,
    properties: MessageProperties | undefined,
    payload: Buffer,
    messageId: number,
    receivedAtMicros: number,
  ): boolean {
    const envelope = this.#envelopes.encode(topic, properties, this.#admitted.keptSender)
    const property = (wanted: string) => properties?.userProperties.find(([name]) => name === wanted)?.[1]
    const [key, ack] = properties === undefined ? [] : [property(idempotencyProperty), property(ackLevelName)]
    const isTaken = this.#admitted.append({ envelope, payload, key, ack }, messageId, receivedAtMicros)
    if (isTaken) this.#backpressure.check(this.#admitted.room)
    else this.#onRefused(messageId > 0, receivedAtMicros)
    return isTaken
  }

  #topicOf(alias: number, topic: string): string {
    this.#aliases ??= []
    if (topic !== '') {
      this.#aliases[alias] = topic
      return topic
    }
    const known = this.#aliases[alias]
    if (known === undefined) throw new MqttError('protocol_error', `topic alias ${alias} has no topic yet`) // §3.3.2.3.4
    return known
  }
}
