/**
 * One MQTT connection, from CONNECT to its end.
 *
 * Owns: the order of packets, the will, what is a reason to stop reading. Does not own: bytes on the network (wire.ts), who may come in
 * (connect.ts), reading on and off (flow.ts), what is in flight (in-flight.ts), what is late (deadlines.ts), all connections (sessions.ts).
 * Law: a PUBACK goes out after its message is durable; what can't be made durable is not acknowledged, and ends the connection.
 */
import { Buffer } from 'node:buffer'
import type { Clock } from '#lib/clock.ts'
import { mqttLimits, recordLimits } from '#model/limits.ts'
import { type Door, decide, type Route, type Terms } from './connect.ts'
import {
  encodeAccepted,
  encodeDisconnect,
  encodeNotSubscribed,
  encodeNotUnsubscribed,
  encodeRefused,
  PUBACK_BYTES,
  peerOf,
  peerSaid,
  pingResponse,
  readControlPacket,
  writePuback,
} from './control-packet.ts'
import { Deadlines } from './deadlines.ts'
import { Flow, pauses } from './flow.ts'
import { type Batch, InFlight, type Storage } from './in-flight.ts'
import { sessionLimits } from './limits.ts'
import type { MqttCounters } from './metrics.ts'
import { PacketReader } from './packet-reader.ts'
import { LastTopic, readPublish } from './publish.ts'
import { type Reason, Refusal } from './reason.ts'
import type { RefusalLog } from './refusal-log.ts'
import type { Wire, WireReader } from './wire.ts'

/** What all sessions share. */
export type Broker = Door &
  Storage & {
    /** Memory for a packet on its way in; false where there is none. */
    readonly reserve: (bytes: number) => boolean
    /** Whether more may be read. */
    readonly hasRoom: () => boolean
    /** Has `goOn` called when it may. */
    readonly awaitRoom: (session: Session) => void
    readonly packetMsMax: number
    readonly clock: Clock
    readonly counters: MqttCounters
    readonly refusals: RefusalLog
    /** The client is in: whoever had its id before is out. */
    readonly opened: (session: Session, terms: Terms) => void
    /** It is closing, and counts no more. */
    readonly left: (session: Session) => void
    readonly over: (session: Session) => void
  }

type Opened = { readonly terms: Terms; readonly inFlight: InFlight }

/** Bytes of a packet that carries the largest record. */
const packetBytesMax = recordLimits.bytesMax + mqttLimits.topicBytesMax + mqttLimits.propertiesBytesMax + 16
/** First byte: type and flags. */
const CONNECT = 0x10
const PUBLISH = 3
const PINGREQ = 0xc0

export class Session implements WireReader {
  readonly #broker: Broker
  readonly #wire: Wire
  readonly #route: Route
  readonly #reader = new PacketReader(mqttLimits.connectBytesMax)
  readonly #visit = (bytes: Buffer, at: number, body: number, end: number): boolean => this.#take(bytes, at, body, end)
  #state: 'connecting' | 'open' | 'closing' | 'closed' = 'connecting'
  #opened: Opened | undefined
  #will: Terms['will']
  #aliases: string[] | undefined
  readonly #lastTopic = new LastTopic()
  readonly #flow: Flow
  #receivedAtMicros = 0
  /** Packets that may be read before others have their turn. */
  #packetsLeft = 0
  /** Of a packet that is not whole, and reserved. */
  #reservedBytes = 0
  readonly #deadlines: Deadlines

  constructor(broker: Broker, wire: Wire, route: Route) {
    this.#broker = broker
    this.#wire = wire
    this.#route = route
    this.#deadlines = new Deadlines(broker.clock.monotonic())
    this.#flow = new Flow({
      wire,
      read: (chunk) => this.#read(chunk),
      afterRead: () => {
        this.holds()
        this.#checkInFlight()
      },
      lacksRoom: () => this.#lacksRoom,
      awaitRoom: () => broker.awaitRoom(this),
    })
  }

  get terms(): Terms | undefined {
    return this.#opened?.terms
  }

  receive(chunk: Buffer): void {
    // An empty frame of a WebSocket is no packet, and so no sign of life.
    if (this.#isClosing || chunk.length === 0) return
    this.#deadlines.heard()
    this.#broker.counters.receivedBytes += chunk.length
    this.#flow.receive(chunk)
  }

  /** There is room again. */
  goOn(): void {
    this.#flow.goOn(pauses.noRoom)
  }

  /** Counts what a packet on its way in takes, once that is more than any connection may hold. */
  holds(): void {
    if (this.#isClosing) return
    const bytes = this.#reader.heldBytes + this.#wire.heldBytes + this.#flow.unreadBytes
    if (this.#state === 'connecting') {
      // Whoever it is, and whatever it wraps its CONNECT in.
      if (bytes > 2 * mqttLimits.connectBytesMax) this.end('packet_too_large', 'too much comes before CONNECT')
      return
    }
    const counted = bytes > sessionLimits.heldBytesFree ? bytes : 0
    const more = counted - this.#reservedBytes
    if (more < 0) this.#broker.release(-more)
    else if (more > 0 && !this.#broker.reserve(more)) {
      this.end('server_busy', 'this node has as many bytes in memory as it may; connect again and send the message again')
      return
    }
    this.#reservedBytes = counted
  }

  broken(message: string): void {
    this.end('malformed_packet', message)
  }

  drained(): void {
    this.#deadlines.drained()
    this.#flow.goOn(pauses.unsent)
  }

  closed(): void {
    if (this.#state === 'closed') return
    if (this.#state === 'open') {
      this.#broker.counters.ended('lost')
      this.#leave()
    }
    this.#state = 'closed'
    this.#broker.over(this)
  }

  /** Takes nothing more, and ends when everything that came is durable. */
  drain(): void {
    if (this.#state === 'connecting') this.cut()
    this.#flow.pause(pauses.draining)
    this.#endIfDrained()
  }

  /** Tells the client why, as far as its version can, and closes. */
  end(reason: Reason, message: string): void {
    if (this.#isClosing) return
    const { counters, refusals } = this.#broker
    const { terms } = this
    if (terms === undefined) counters.refused(reason)
    else counters.ended(reason)
    refusals.refused(reason, message, { address: this.#wire.address, clientId: terms?.clientId, username: terms?.username })
    // Before CONNECT nobody knows the version, and there is nothing that a client of either would understand.
    this.#close(terms === undefined ? undefined : encodeDisconnect(terms.peer, reason, message))
  }

  /** Closes without another word. */
  cut(): void {
    this.#wire.destroy()
  }

  /** Once a second: ends what is late. */
  sweep(now: number): void {
    if (this.#isClosing) return
    const { packetMsMax } = this.#broker
    const late = this.#deadlines.late({
      now,
      keepAliveSeconds: this.terms?.keepAliveSeconds,
      isPaused: this.#flow.isPaused,
      isPartial: this.#reader.isPartial || this.#wire.heldBytes > 0,
      packetMsMax,
    })
    switch (late) {
      case undefined:
        return
      case 'connect':
      case 'answers':
        this.cut()
        return
      case 'unread':
        // The client got no answer to its PINGREQ either, and we can't see whether it is still there.
        this.end('server_busy', 'nothing could be read for one and a half times the keep alive; connect again')
        return
      case 'silent':
        this.end('keep_alive_timeout', 'nothing came for one and a half times the keep alive')
        return
      case 'packet':
        this.end('keep_alive_timeout', `a packet did not come whole in ${packetMsMax / 1000} s`)
    }
  }

  get #isClosing(): boolean {
    return this.#state === 'closing' || this.#state === 'closed'
  }

  /**
   * A CONNECT is read to be answered. A packet whose memory is reserved is read to its end: that gives the memory back. Who sends
   * nothing is not paused, so that thousands of them cost nothing.
   */
  get #lacksRoom(): boolean {
    return this.#state === 'open' && this.#reservedBytes === 0 && !this.#broker.hasRoom()
  }

  #read(chunk: Buffer): number {
    this.#packetsLeft = sessionLimits.packetsPerTurnMax
    // Once for all messages of a chunk: they came together.
    this.#receivedAtMicros = this.#broker.clock.now() * 1000
    try {
      if (this.#state === 'connecting' && !this.#reader.isPartial && chunk.length > 0 && chunk[0] !== CONNECT) {
        // Who doesn't speak MQTT is not waited for. [MQTT-3.1.0-1]; before CONNECT there is nothing to answer with.
        throw new Refusal('protocol_error', 'the first packet is no CONNECT')
      }
      return this.#reader.push(chunk, this.#visit)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      this.end(error.reason, error.message)
      return chunk.length
    }
  }

  /** False once nothing more is to be read, or not at once. */
  #take(bytes: Buffer, at: number, body: number, end: number): boolean {
    const opened = this.#opened
    this.#deadlines.took()
    if (opened === undefined) this.#connect(bytes.subarray(at, end))
    else if ((bytes[at] ?? 0) >> 4 === PUBLISH) this.#publish(bytes, at, body, end, opened)
    else this.#control(bytes.subarray(at, end), opened.terms)
    this.#packetsLeft -= 1
    return this.#state === 'open' && this.#packetsLeft > 0
  }

  #connect(bytes: Buffer): void {
    const { counters, refusals } = this.#broker
    let peer = peerSaid(bytes)
    let packet: ReturnType<typeof readControlPacket> | undefined
    try {
      packet = readControlPacket(bytes, undefined)
      if (packet.cmd !== 'connect') throw new Refusal('protocol_error', 'the first packet is no CONNECT')
      peer = peerOf(packet)
      const terms = decide(packet, this.#route, this.#broker)
      const accepted = encodeAccepted(peer, {
        maximumQoS: terms.qosMax,
        receiveMaximum: mqttLimits.inFlightMessagesMax,
        maximumPacketSize: packetBytesMax,
        topicAliasMaximum: mqttLimits.topicAliasMax,
        sessionExpiryInterval: terms.sessionExpiryInterval,
        assignedClientIdentifier: terms.assignedClientId,
        serverKeepAlive: terms.serverKeepAlive,
      })
      if (accepted === undefined) throw new Refusal('packet_too_large', 'the maximum packet size has no room for a CONNACK')
      this.#open(terms)
      this.#wire.write(accepted)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      counters.refused(error.reason)
      const { clientId, username } = packet?.cmd === 'connect' ? packet : {}
      refusals.refused(error.reason, error.message, { address: this.#wire.address, clientId, username })
      this.#close(encodeRefused(peer, error.reason, error.message))
    }
  }

  #open(terms: Terms): void {
    const { endpointId, clientId, will } = terms
    const inFlight = new InFlight({
      storage: this.#broker,
      endpointId,
      clientId,
      onDurable: (batch) => this.#durable(batch),
      onLost: (batch) => this.#lost(batch),
    })
    this.#opened = { terms, inFlight }
    this.#will = will
    this.#state = 'open'
    this.#deadlines.opened(this.#broker.clock.monotonic())
    this.#reader.bytesMax = packetBytesMax
    this.#broker.opened(this, terms)
    this.#broker.counters.accepted(terms.username)
  }

  #publish(bytes: Buffer, at: number, body: number, end: number, { terms, inFlight }: Opened): void {
    const { version } = terms.peer
    const {
      qos,
      messageId,
      topic: named,
      topicAlias,
      properties,
      payload,
    } = readPublish(bytes, at, body, end, version, this.#lastTopic)
    if (qos > terms.qosMax) {
      throw new Refusal('qos_not_supported', `QoS ${qos} is above the ${terms.qosMax} that this endpoint takes`) // [MQTT-3.2.2-11]
    }
    if (payload.length > recordLimits.bytesMax) {
      throw new Refusal('packet_too_large', `a message is longer than ${recordLimits.bytesMax} bytes`)
    }
    // [MQTT-3.3.4-7]
    if (version === 5 && qos > 0 && inFlight.unacknowledged >= mqttLimits.inFlightMessagesMax) {
      throw new Refusal('receive_maximum_exceeded', `more than ${mqttLimits.inFlightMessagesMax} messages wait for their PUBACK`)
    }
    const topic = topicAlias === 0 ? named : this.#topicOf(topicAlias, named)
    inFlight.store({ topic, properties, payload }, messageId, this.#receivedAtMicros)
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

  #durable({ messageIds, messages, payloadBytes }: Batch): void {
    this.#broker.counters.stored(this.terms?.username ?? '', messages, messageIds.length, payloadBytes)
    if (this.#state === 'open' && messageIds.length > 0) {
      const answers = Buffer.allocUnsafe(messageIds.length * PUBACK_BYTES)
      for (let index = 0; index < messageIds.length; index += 1)
        writePuback(answers, index * PUBACK_BYTES, messageIds[index] ?? 0)
      this.#write(answers)
    }
    this.#checkInFlight()
    this.#endIfDrained()
  }

  #lost({ messages, messageIds }: Batch): void {
    this.#broker.counters.lost += messages - messageIds.length
    // An error in a PUBACK would tell the client to forget the message [MQTT-4.4.0-2]; a connection that ends has it sent again.
    this.end('server_busy', 'the messages could not be stored; connect and send them again')
  }

  #control(bytes: Buffer, { peer, sessionExpiryInterval }: Terms): void {
    if (bytes[0] === PINGREQ && bytes.length === 2) {
      this.#write(pingResponse) // [MQTT-3.12.4-1]
      return
    }
    if (bytes.length > mqttLimits.controlBytesMax) {
      throw new Refusal('packet_too_large', `a packet that is no PUBLISH is longer than ${mqttLimits.controlBytesMax} bytes`)
    }
    const packet = readControlPacket(bytes, peer.version)
    switch (packet.cmd) {
      case 'subscribe':
        if (packet.subscriptions.length === 0) throw new Refusal('protocol_error', 'SUBSCRIBE without a topic filter') // [MQTT-3.8.3-2]
        this.#write(encodeNotSubscribed(peer, idOf(packet), packet.subscriptions.length))
        break
      case 'unsubscribe':
        if (packet.unsubscriptions.length === 0) throw new Refusal('protocol_error', 'UNSUBSCRIBE without a topic filter') // [MQTT-3.10.3-2]
        this.#write(encodeNotUnsubscribed(peer, idOf(packet), packet.unsubscriptions.length))
        break
      case 'disconnect':
        if (sessionExpiryInterval === undefined && (packet.properties?.sessionExpiryInterval ?? 0) > 0) {
          throw new Refusal('protocol_error', 'DISCONNECT with a session expiry, which CONNECT had not') // §3.14.2.2.2
        }
        // [MQTT-3.14.4-3]: any other reason leaves the will in force.
        if ((packet.reasonCode ?? 0) === 0) this.#will = undefined
        this.#broker.counters.ended('client')
        this.#close(undefined)
        break
      default:
        // [MQTT-3.1.0-2] for CONNECT. The others answer what this server never sends.
        throw new Refusal('protocol_error', `${packet.cmd.toUpperCase()} has no place here`)
    }
  }

  #write(bytes: Buffer | undefined): void {
    if (bytes === undefined) return
    this.#wire.write(bytes)
    if (this.#wire.unsentBytes <= sessionLimits.unsentBytesMax) return
    this.#deadlines.unsent(this.#broker.clock.monotonic())
    this.#flow.pause(pauses.unsent)
  }

  #checkInFlight(): void {
    const inFlight = this.#opened?.inFlight
    if (inFlight === undefined) return
    const { inFlightMessagesMax } = mqttLimits
    const { inFlightBytesMax } = sessionLimits
    const isPaused = this.#flow.isPausedFor(pauses.inFlight)
    // A pause ends when half of it is through, so that a client doesn't go on and off with each message.
    const share = isPaused ? 0.5 : 1
    const full = inFlight.messages >= inFlightMessagesMax * share || inFlight.bytes >= inFlightBytesMax * share
    if (full && !isPaused) this.#flow.pause(pauses.inFlight)
    else if (!full && isPaused) this.#flow.goOn(pauses.inFlight)
  }

  #endIfDrained(): void {
    if (this.#flow.isPausedFor(pauses.draining) && this.#opened?.inFlight.messages === 0) {
      this.end('server_shutting_down', 'this node is shutting down; connect again')
    }
  }

  #close(last: Buffer | undefined): void {
    this.#flow.close()
    this.#leave()
    this.#state = 'closing'
    if (last !== undefined) this.#wire.write(last)
    this.#wire.end()
  }

  /** Its place is free at once, also where the client is slow to leave, and its will is published. */
  #leave(): void {
    this.#broker.release(this.#reservedBytes)
    this.#reservedBytes = 0
    this.#broker.left(this)
    const will = this.#will
    if (will === undefined) return
    // [MQTT-3.1.2-8]
    this.#will = undefined
    this.#opened?.inFlight.store(will, 0, this.#broker.clock.now() * 1000)
    this.#broker.counters.wills += 1
  }
}

function idOf({ messageId }: { readonly messageId?: number }): number {
  if (messageId === undefined || messageId === 0) throw new Refusal('malformed_packet', 'a packet identifier is 0') // [MQTT-2.2.1-3]
  return messageId
}
