/**
 * The messages of one client.
 *
 * Owns: the endpoint's limits on a message, topic aliases, the will. Does not own: the layout of PUBLISH (publish.ts), messages
 * that are not durable yet (in-flight.ts), acknowledgements (session.ts).
 */
import type { Buffer } from 'node:buffer'
import { mqttLimits, recordLimits } from '#model/limits.ts'
import type { Allowance, NodeQuota } from '../gate/allowance.ts'
import type { Room } from '../gate/node-room.ts'
import type { Rejection } from '../gate/rejection.ts'
import { type Batch, InFlight, type InFlightContext, type Message } from './in-flight.ts'
import { sessionLimits } from './limits.ts'
import { LastTopic, readPublish } from './packets/publish.ts'
import { MqttError } from './packets/reason.ts'
import type { SessionTerms } from './session-terms.ts'

export type MessageReceiverOptions = {
  readonly terms: SessionTerms
  readonly room: Room
  readonly allowance: Allowance
  readonly context: InFlightContext
  readonly onDurable: (batch: Batch) => void
  readonly onLost: (batch: Batch, rejection: Rejection) => void
  /** Called instead of storing a message. */
  readonly onRefused: (quota: NodeQuota, needsAcknowledgement: boolean) => void
}

export class MessageReceiver {
  readonly #terms: SessionTerms
  readonly #allowance: Allowance
  readonly #onRefused: MessageReceiverOptions['onRefused']
  readonly #inFlight: InFlight
  readonly #lastTopic = new LastTopic()
  #aliases: string[] | undefined
  #will: Message | undefined

  constructor({ terms, room, allowance, context, onDurable, onLost, onRefused }: MessageReceiverOptions) {
    const { endpointId, clientId, will } = terms
    this.#terms = terms
    this.#allowance = allowance
    this.#onRefused = onRefused
    this.#will = will
    this.#inFlight = new InFlight({ context, endpointId, room, clientId, onDurable, onLost })
  }

  /** Whether every message is durable. */
  get isIdle(): boolean {
    return this.#inFlight.messages === 0
  }

  /** Whether messages in flight have reached this share of their bounds. */
  hasReached(share: number): boolean {
    const { messages, bytes } = this.#inFlight
    return messages >= mqttLimits.inFlightMessagesMax * share || bytes >= sessionLimits.inFlightBytesMax * share
  }

  /** Reads and stores a PUBLISH packet. `receivedAtMicros` is since 1970 UTC. Throws MqttError. */
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
    if (payload.length > recordLimits.bytesMax) {
      throw new MqttError('packet_too_large', `a message is longer than ${recordLimits.bytesMax} bytes`)
    }
    const topic = topicAlias === 0 ? named : this.#topicOf(topicAlias, named)
    this.#store({ topic, properties, payload }, messageId, receivedAtMicros)
  }

  dropWill(): void {
    this.#will = undefined
  }

  /** Stores the will, once. Returns false if there is none, or a quota is used up. [MQTT-3.1.2-8] */
  publishWill(receivedAtMicros: number): boolean {
    const will = this.#will
    if (will === undefined) return false
    this.#will = undefined
    return this.#store(will, 0, receivedAtMicros)
  }

  /** Returns whether the quotas of the account allow it. */
  #store(message: Message, messageId: number, receivedAtMicros: number): boolean {
    const exceeded = this.#allowance.take(1, receivedAtMicros / 1000)
    if (exceeded === undefined) this.#inFlight.store(message, messageId, receivedAtMicros)
    else this.#onRefused(exceeded, messageId > 0)
    return exceeded === undefined
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
