/**
 * One MQTT connection, from CONNECT to its end.
 *
 * Owns: the order of packets, what is in flight, the will, when to stop reading. Does not own: bytes on the network (wire.ts), who may
 * come in (connect.ts), all connections together (sessions.ts).
 * Law: a PUBACK goes out after the message is durable and in the order in which messages came [MQTT-4.6.0-2]; what can't be made
 * durable is not acknowledged, and ends the connection.
 */
import { Buffer } from 'node:buffer'
import { InvariantError } from '#lib/assert.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import { mqttLimits, recordLimits } from '#model/limits.ts'
import { encodeAttributes } from '#model/record-attributes.ts'
import type { FrameInput } from '#wal/frame.ts'
import { type Door, decide, type Route, type Terms, versionOf } from './connect.ts'
import {
  encodeAccepted,
  encodeDisconnect,
  encodeNotSubscribed,
  encodeNotUnsubscribed,
  encodeRefused,
  PUBACK_BYTES,
  pingResponse,
  readControlPacket,
  writePuback,
} from './control-packet.ts'
import type { MqttCounters } from './metrics.ts'
import { PacketReader } from './packet-reader.ts'
import { type ProtocolVersion, readPublish } from './publish.ts'
import { type Reason, Refusal } from './reason.ts'
import type { Wire, WireReader } from './wire.ts'

/** What all sessions share. */
export type Broker = Door & {
  /** Resolves after fdatasync. Frames that became durable at once are answered by one and the same promise. */
  readonly append: (endpointId: string, frame: FrameInput) => Promise<unknown>
  /** Memory that messages take until they are durable. */
  readonly take: (bytes: number) => void
  readonly release: (bytes: number) => void
  readonly packetMsMax: number
  readonly counters: MqttCounters
  readonly clock: Clock
  readonly logger: Logger
  /** The client is in: whoever had its id before is out. */
  readonly opened: (session: Session, terms: Terms) => void
  /** It is closing, and counts no more. */
  readonly left: (session: Session) => void
  readonly over: (session: Session) => void
}

type Packet = ReturnType<typeof readControlPacket>

/** Messages that became durable together. */
type Batch = { readonly promise: Promise<unknown>; readonly messageIds: number[]; messages: number; bytes: number }

/** Bytes of a packet that carries the largest record. */
const packetBytesMax = recordLimits.bytesMax + mqttLimits.topicBytesMax + mqttLimits.propertiesBytesMax + 16
const noAttributes = new Uint8Array(0)
const PUBLISH = 3

/** Why nothing is read: bits, any of which is enough. */
const pauses = { noRoom: 1, inFlight: 2, unsent: 4, draining: 8 } as const

export class Session implements WireReader {
  readonly #broker: Broker
  readonly #wire: Wire
  readonly #route: Route
  readonly #reader = new PacketReader(mqttLimits.connectBytesMax)
  readonly #visit = (bytes: Buffer, at: number, body: number, end: number): boolean => this.#take(bytes, at, body, end)
  #state: 'connecting' | 'open' | 'closing' | 'closed' = 'connecting'
  #terms: Terms | undefined
  #batch: Batch | undefined
  #inFlightMessages = 0
  #inFlightBytes = 0
  #unacknowledged = 0
  #aliases: string[] | undefined
  #paused = 0
  /** Monotonic, ms: of the last sweep that found something new from the client. */
  #heardAt: number
  #wasHeard = false
  #partialSince: number | undefined
  #unsentSince: number | undefined

  constructor(broker: Broker, wire: Wire, route: Route) {
    this.#broker = broker
    this.#wire = wire
    this.#route = route
    this.#heardAt = broker.clock.monotonic()
  }

  get terms(): Terms | undefined {
    return this.#terms
  }

  receive(chunk: Buffer): void {
    if (this.#state === 'closing' || this.#state === 'closed') return
    this.#wasHeard = true
    this.#broker.counters.receivedBytes += chunk.length
    try {
      this.#reader.push(chunk, this.#visit)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      this.end(error.reason, error.message)
    }
    this.#checkInFlight()
  }

  drained(): void {
    this.#unsentSince = undefined
    this.#pause(pauses.unsent, false)
  }

  closed(): void {
    if (this.#state === 'closed') return
    // [MQTT-3.1.2-8]: whatever ended it, but for a DISCONNECT, which has taken the will away.
    this.#publishWill()
    this.#state = 'closed'
    this.#broker.over(this)
  }

  /** There is no room for more, or there is again. */
  setRoom(hasRoom: boolean): void {
    this.#pause(pauses.noRoom, !hasRoom)
  }

  /** Takes nothing more, and ends when everything that came is durable. */
  drain(): void {
    if (this.#state === 'connecting') this.cut()
    this.#pause(pauses.draining, true)
    this.#endIfDrained()
  }

  /** Tells the client why, as far as its version can, and closes. */
  end(reason: Reason, message: string): void {
    if (this.#state === 'closing' || this.#state === 'closed') return
    const { counters, logger } = this.#broker
    const { version, clientId } = this.#terms ?? {}
    if (version === undefined) counters.refused(reason)
    else counters.ended(reason)
    if (reason === 'malformed_packet' || reason === 'protocol_error') {
      logger.debug({ reason, message, clientId }, 'an MQTT client breaks the protocol')
    }
    // Before CONNECT nobody knows the version, and there is nothing that a client of either would understand.
    this.#close(version === undefined ? undefined : encodeDisconnect(version, reason, message))
  }

  /** Closes without another word. */
  cut(): void {
    this.#wire.destroy()
  }

  /** Once a second: ends what is late. */
  sweep(now: number): void {
    // What we don't read, we can't miss.
    if (this.#wasHeard || this.#paused !== 0) this.#heardAt = now
    this.#wasHeard = false
    this.#partialSince = this.#reader.isPartial && this.#paused === 0 ? (this.#partialSince ?? now) : undefined
    if (this.#unsentSince !== undefined && now - this.#unsentSince > mqttLimits.unsentMsMax) this.#wire.destroy()
    const silentMs = now - this.#heardAt
    if (this.#state === 'connecting') {
      if (now - this.#heardAt > mqttLimits.connectTimeoutMs || late(this.#partialSince, now, mqttLimits.connectTimeoutMs))
        this.#wire.destroy()
    } else if (this.#state === 'open') {
      // [MQTT-3.1.2-22]
      if (silentMs > (this.#terms?.keepAliveSeconds ?? 0) * 1500) {
        this.end('keep_alive_timeout', 'nothing came for one and a half times the keep alive')
      } else if (late(this.#partialSince, now, this.#broker.packetMsMax)) {
        this.end('keep_alive_timeout', `a packet did not come whole in ${this.#broker.packetMsMax / 1000} s`)
      }
    }
  }

  /** False once nothing more is to be read. */
  #take(bytes: Buffer, at: number, body: number, end: number): boolean {
    const terms = this.#terms
    if (terms === undefined) this.#connect(bytes.subarray(at, end))
    else if ((bytes[at] ?? 0) >> 4 === PUBLISH) this.#publish(bytes, at, body, end, terms)
    else this.#answer(readControlPacket(bytes.subarray(at, end), terms.version), terms.version)
    return this.#state === 'open'
  }

  #connect(bytes: Buffer): void {
    const { counters } = this.#broker
    let version: ProtocolVersion = 4
    try {
      const packet = readControlPacket(bytes, undefined)
      if (packet.cmd !== 'connect') {
        // [MQTT-3.1.0-1]
        this.#close(undefined)
        return
      }
      version = versionOf(packet)
      const terms = decide(packet, this.#route, this.#broker)
      this.#terms = terms
      this.#state = 'open'
      this.#reader.bytesMax = packetBytesMax
      this.#broker.opened(this, terms)
      counters.accepted(terms.username)
      this.#wire.write(
        encodeAccepted(version, {
          maximumQoS: terms.qosMax,
          receiveMaximum: mqttLimits.inFlightMessagesMax,
          maximumPacketSize: packetBytesMax,
          topicAliasMaximum: mqttLimits.topicAliasMax,
          sessionExpiryInterval: terms.sessionExpiryInterval,
          assignedClientIdentifier: terms.assignedClientId,
          serverKeepAlive: terms.serverKeepAlive,
        }),
      )
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      counters.refused(error.reason)
      this.#close(encodeRefused(version, error.reason, error.message))
    }
  }

  #publish(bytes: Buffer, at: number, body: number, end: number, terms: Terms): void {
    const { qos, messageId, topic: named, topicAlias, properties, payload } = readPublish(bytes, at, body, end, terms.version)
    if (qos > terms.qosMax) {
      throw new Refusal('qos_not_supported', `QoS ${qos} is above the ${terms.qosMax} that this endpoint takes`) // [MQTT-3.2.2-11]
    }
    if (payload.length > recordLimits.bytesMax) {
      throw new Refusal('packet_too_large', `a message is longer than ${recordLimits.bytesMax} bytes`)
    }
    // [MQTT-3.3.4-9]
    if (terms.version === 5 && qos > 0 && this.#unacknowledged >= mqttLimits.inFlightMessagesMax) {
      throw new Refusal('receive_maximum_exceeded', `more than ${mqttLimits.inFlightMessagesMax} messages wait for their PUBACK`)
    }
    const topic = topicAlias === 0 ? named : this.#topicOf(topicAlias, named)
    this.#store(
      terms,
      {
        topic,
        payload,
        attributes:
          properties === undefined
            ? noAttributes
            : Buffer.from(encodeAttributes(properties.contentType, properties.userProperties)),
      },
      messageId,
    )
    this.#broker.counters.published(terms.username, qos, payload.length)
  }

  #topicOf(alias: number, topic: string): string {
    this.#aliases ??= []
    if (topic !== '') {
      this.#aliases[alias] = topic
      return topic
    }
    const known = this.#aliases[alias]
    if (known === undefined) throw new Refusal('protocol_error', `the topic alias ${alias} was never given a topic`) // §3.3.2.3.4
    return known
  }

  /** `messageId` is 0 where no PUBACK is wanted. */
  #store(
    { endpoint, clientId }: Terms,
    message: { readonly topic: string; readonly payload: Buffer; readonly attributes: Uint8Array },
    messageId: number,
  ): void {
    const { append, take, clock } = this.#broker
    const bytes = message.payload.length + mqttLimits.messageOverheadBytes
    take(bytes)
    this.#inFlightBytes += bytes
    this.#inFlightMessages += 1
    const promise = append(endpoint.id, {
      protocol: 'mqtt',
      layout: 'single',
      receivedAtMicros: clock.now() * 1000,
      recordCount: 1,
      topic: message.topic,
      clientId,
      attributes: message.attributes,
      payload: [message.payload],
    })
    let batch = this.#batch
    if (batch?.promise !== promise) {
      const made: Batch = { promise, messageIds: [], messages: 0, bytes: 0 }
      batch = this.#batch = made
      promise.then(
        () => this.#durable(made),
        (error: unknown) => this.#lost(made, error),
      )
    }
    batch.messages += 1
    batch.bytes += bytes
    if (messageId > 0) {
      batch.messageIds.push(messageId)
      this.#unacknowledged += 1
    }
  }

  #durable(batch: Batch): void {
    this.#settle(batch)
    const { messageIds } = batch
    if (this.#state === 'open' && messageIds.length > 0) {
      const answers = Buffer.allocUnsafe(messageIds.length * PUBACK_BYTES)
      for (let index = 0; index < messageIds.length; index += 1)
        writePuback(answers, index * PUBACK_BYTES, messageIds[index] ?? 0)
      this.#write(answers)
    }
    this.#checkInFlight()
    this.#endIfDrained()
  }

  #lost(batch: Batch, error: unknown): void {
    if (error instanceof InvariantError) {
      // A promise must not swallow it: a broken invariant ends the process.
      queueMicrotask(() => {
        throw error
      })
    }
    this.#settle(batch)
    this.#broker.counters.lost += batch.messages - batch.messageIds.length
    // An error in a PUBACK would tell the client to forget the message [MQTT-4.4.0-1]; a connection that ends has it sent again.
    this.end('server_busy', 'the messages could not be stored; connect and send them again')
  }

  #settle(batch: Batch): void {
    if (this.#batch === batch) this.#batch = undefined
    this.#inFlightMessages -= batch.messages
    this.#inFlightBytes -= batch.bytes
    this.#unacknowledged -= batch.messageIds.length
    this.#broker.release(batch.bytes)
  }

  #answer(packet: Packet, version: ProtocolVersion): void {
    switch (packet.cmd) {
      case 'pingreq':
        this.#write(pingResponse) // [MQTT-3.12.4-1]
        break
      case 'subscribe':
        if (packet.subscriptions.length === 0) throw new Refusal('protocol_error', 'SUBSCRIBE without a topic filter') // [MQTT-3.8.3-2]
        this.#write(encodeNotSubscribed(version, idOf(packet), packet.subscriptions.length))
        break
      case 'unsubscribe':
        if (packet.unsubscriptions.length === 0) throw new Refusal('protocol_error', 'UNSUBSCRIBE without a topic filter')
        this.#write(encodeNotUnsubscribed(version, idOf(packet), packet.unsubscriptions.length))
        break
      case 'disconnect':
        this.#disconnected(packet.reasonCode ?? 0)
        break
      default:
        // [MQTT-3.1.0-2] for CONNECT. The others answer what this server never sends.
        throw new Refusal('protocol_error', `${packet.cmd.toUpperCase()} has no place here`)
    }
  }

  #disconnected(reasonCode: number): void {
    // [MQTT-3.14.4-3]; 4 is "disconnect with will message".
    if (this.#terms !== undefined && reasonCode !== 4) this.#terms = { ...this.#terms, will: undefined }
    this.#broker.counters.ended('client')
    this.#close(undefined)
  }

  #publishWill(): void {
    const terms = this.#terms
    if (terms?.will === undefined) return
    const { topic, payload, attributes } = terms.will
    this.#terms = { ...terms, will: undefined }
    this.#store(terms, { topic, payload, attributes: Buffer.from(attributes) }, 0)
    this.#broker.counters.wills += 1
  }

  #write(bytes: Buffer): void {
    this.#wire.write(bytes)
    if (this.#wire.unsentBytes <= mqttLimits.unsentBytesMax) return
    this.#unsentSince ??= this.#broker.clock.monotonic()
    this.#pause(pauses.unsent, true)
  }

  #checkInFlight(): void {
    const { inFlightMessagesMax, inFlightBytesMax } = mqttLimits
    const isPaused = (this.#paused & pauses.inFlight) !== 0
    // A pause ends when half of it is through, so that a client doesn't go on and off with each message.
    const share = isPaused ? 0.5 : 1
    const full = this.#inFlightMessages >= inFlightMessagesMax * share || this.#inFlightBytes >= inFlightBytesMax * share
    if (full !== isPaused) this.#pause(pauses.inFlight, full)
  }

  #pause(why: number, isOn: boolean): void {
    const before = this.#paused
    this.#paused = isOn ? before | why : before & ~why
    if (before === 0 && this.#paused !== 0) this.#wire.pause()
    else if (before !== 0 && this.#paused === 0) this.#wire.resume()
  }

  #endIfDrained(): void {
    if ((this.#paused & pauses.draining) !== 0 && this.#inFlightMessages === 0) {
      this.end('server_shutting_down', 'this node is shutting down; connect again')
    }
  }

  #close(last: Buffer | undefined): void {
    this.#state = 'closing'
    // Its place is free at once, also where the client is slow to leave.
    this.#broker.left(this)
    this.#publishWill()
    if (last !== undefined) this.#wire.write(last)
    this.#wire.end()
  }
}

function late(since: number | undefined, now: number, msMax: number): boolean {
  return since !== undefined && now - since > msMax
}

function idOf({ messageId }: { readonly messageId?: number }): number {
  if (messageId === undefined || messageId === 0) throw new Refusal('malformed_packet', 'a packet identifier is 0') // [MQTT-2.2.1-3]
  return messageId
}
