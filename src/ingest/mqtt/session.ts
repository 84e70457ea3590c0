/**
 * One MQTT connection, from CONNECT to its end.
 *
 * Owns: the order of packets, acknowledgements, when reading pauses, how the connection ends. Does not own: bytes on the network (wire.ts),
 * CONNECT (connect.ts), messages (message-receiver.ts), when it is read (flow.ts), deadlines (deadlines.ts), the other connections
 * (sessions.ts).
 * Law: a PUBACK is sent after its message is durable. A message that cannot be stored is not acknowledged, and the connection ends.
 */
import { Buffer } from 'node:buffer'
import type { Clock } from '#lib/clock.ts'
import { mqttLimits } from '#model/limits.ts'
import type { Allowance, NodeQuota } from '../gate/allowance.ts'
import type { ConnectionSlot } from '../gate/connection-budget.ts'
import type { Route } from '../gate/endpoint-table.ts'
import type { Gate } from '../gate/gate.ts'
import type { Room } from '../gate/node-room.ts'
import type { Outcome, Rejection } from '../gate/rejection.ts'
import type { Backpressure } from './backpressure.ts'
import type { ClientErrorLog } from './client-error-log.ts'
import { handleConnect, packetBytesMax } from './connect.ts'
import { handleControlPacket } from './control-packet-handler.ts'
import { Deadlines } from './deadlines.ts'
import { Flow, pauses } from './flow.ts'
import type { Batch } from './in-flight.ts'
import { sessionLimits } from './limits.ts'
import { MessageReceiver } from './message-receiver.ts'
import type { MqttCounters } from './metrics.ts'
import { encodeDisconnect, encodeRefusingPuback, PUBACK_BYTES, pingResponse, writePuback } from './packets/control-packet.ts'
import { PacketReader } from './packets/packet-reader.ts'
import { MqttError, type Reason } from './packets/reason.ts'
import type { ConnectContext, SessionTerms } from './session-terms.ts'
import type { Wire, WireReader } from './wire/wire.ts'

/** MQTT 5, §3.4.2.1. */
const IMPLEMENTATION_SPECIFIC_ERROR = 0x83

/** Dependencies that all sessions share. */
export type SessionContext = ConnectContext & {
  readonly gate: Gate
  readonly backpressure: Backpressure
  readonly packetMsMax: number
  readonly clock: Clock
  readonly counters: MqttCounters
  readonly clientErrors: ClientErrorLog
  /** Called when the client is connected. An earlier connection with its client id must end. */
  readonly onOpen: (session: Session, terms: SessionTerms) => void
  /** Called when the connection is closing and no longer counts as connected. */
  readonly onLeave: (session: Session) => void
  readonly onClosed: (session: Session) => void
}

type Open = {
  readonly terms: SessionTerms
  readonly room: Room
  readonly allowance: Allowance
  readonly receiver: MessageReceiver
}

/** First byte of a packet: type and flags; PUBLISH: its type alone. */
const CONNECT = 0x10
const PUBLISH = 3
const PINGREQ = 0xc0

export class Session implements WireReader {
  readonly #context: SessionContext
  readonly #wire: Wire
  readonly #route: Route
  readonly #slot: ConnectionSlot
  readonly #reader = new PacketReader(mqttLimits.connectBytesMax)
  readonly #visit = (bytes: Buffer, at: number, body: number, end: number): boolean => this.#onPacket(bytes, at, body, end)
  readonly #flow: Flow
  readonly #deadlines: Deadlines
  #state: 'connecting' | 'open' | 'closing' | 'closed' = 'connecting'
  #open: Open | undefined
  /** Set once nothing more is read: why the connection ends when every received message is durable. */
  #lastWord: { readonly reason: Reason; readonly message: string } | undefined
  #receivedAtMicros = 0
  /** Packets that may be read before other connections are read. */
  #packetsLeft = 0
  /** Bytes of an incomplete packet that are counted as bytes in flight. */
  #reservedBytes = 0
  /** Other bytes of this connection that are not read to the end of a packet. */
  #unreadBytes = 0

  constructor(
    context: SessionContext,
    { wire, route, slot }: { readonly wire: Wire; readonly route: Route; readonly slot: ConnectionSlot },
  ) {
    this.#context = context
    this.#wire = wire
    this.#route = route
    this.#slot = slot
    this.#deadlines = new Deadlines(context.clock.monotonic())
    this.#flow = new Flow({
      wire,
      read: (chunk) => this.#read(chunk),
      afterRead: () => {
        this.#accountHeldBytes()
        this.#checkInFlight()
      },
      lacksRoom: () => this.#lacksRoom,
      awaitRoom: () => {
        if (this.#open === undefined) return
        context.backpressure.resumeWhenRoom(this.#open.room, this)
        this.#holdUnread(this.#open.room, this.#reader.heldBytes + this.#flow.unreadBytes)
      },
    })
  }

  get terms(): SessionTerms | undefined {
    return this.#open?.terms
  }

  receive(chunk: Buffer): void {
    if (this.#isClosing) return
    this.#deadlines.received()
    this.#context.counters.receivedBytes += chunk.length
    this.#flow.receive(chunk)
  }

  /** Continues reading once there is room again. */
  resume(): void {
    this.#flow.resume(pauses.noRoom)
  }

  /** Called when the connection has closed: nothing may wait for room any more. */
  stopWaiting(): void {
    if (this.#open !== undefined) this.#context.backpressure.forget(this.#open.room, this)
  }

  /** Counts the bytes of an incomplete packet as bytes in flight, once they exceed what every connection may hold. */
  #accountHeldBytes(): void {
    if (this.#isClosing) return
    const room = this.#open?.room
    // Before CONNECT the reader is bound to less.
    if (room === undefined) return
    const { backpressure } = this.#context
    const bytes = this.#reader.heldBytes + this.#flow.unreadBytes
    const counted = bytes > sessionLimits.heldBytesFree ? bytes : 0
    const more = counted - this.#reservedBytes
    if (more < 0) room.release(-more)
    const refusal = more > 0 ? backpressure.tryReserve(room, more) : undefined
    if (refusal !== undefined) {
      this.end('server_busy', `${refusal}: connect again and send the message again`)
      return
    }
    this.#reservedBytes = counted
    if (bytes - counted !== this.#unreadBytes) this.#holdUnread(room, bytes - counted)
  }

  broken(message: string): void {
    this.end('malformed_packet', message)
  }

  drained(): void {
    this.#deadlines.sendDrained()
    this.#flow.resume(pauses.unsent)
  }

  closed(): void {
    if (this.#state === 'closed') return
    if (this.#state === 'open') {
      this.#context.counters.ended('lost')
      this.#leave()
    }
    this.#state = 'closed'
    this.#context.onClosed(this)
  }

  /** Stops reading, and ends the connection once all received messages are durable. */
  drain(): void {
    if (this.#state === 'connecting') this.cut()
    this.#endWhenIdle('server_shutting_down', 'this node is shutting down; connect again')
  }

  /** Sends the reason to the client if its version supports that, and closes. */
  end(reason: Reason, message: string): void {
    if (this.#isClosing) return
    const { counters, clientErrors } = this.#context
    const { terms } = this
    if (terms === undefined) counters.refused(reason)
    else counters.ended(reason)
    clientErrors.add(reason, message, { address: this.#wire.address, clientId: terms?.clientId, username: terms?.username })
    // Before CONNECT the version is unknown, and no packet is valid in both versions.
    this.#close(terms === undefined ? undefined : encodeDisconnect(terms.peer, reason, message))
  }

  /** Ends the session of a key whose access ended. Its will was to be sent with that key. */
  revoke(): void {
    this.#open?.receiver.dropWill()
    this.end('not_authorized', 'the API key was revoked; connect with another one')
  }

  /** Closes without sending a reason. */
  cut(): void {
    this.#wire.destroy()
  }

  /** Called once a second: ends the connection if something is overdue. */
  sweep(now: number): void {
    if (this.#isClosing) return
    const { packetMsMax } = this.#context
    const overdue = this.#deadlines.overdue({
      now,
      keepAliveSeconds: this.terms?.keepAliveSeconds,
      isPaused: this.#flow.isPaused,
      isPartial: this.#reader.isPartial,
      packetMsMax,
    })
    switch (overdue) {
      case undefined:
        return
      case 'connect':
      case 'unread':
        this.cut()
        return
      case 'paused':
        // The client's PINGREQ got no response either, and we cannot see whether the client is still there.
        this.end('server_busy', 'nothing could be read for one and a half times the keep alive; connect again')
        return
      case 'silent':
        this.end('keep_alive_timeout', 'no packet for one and a half times the keep alive')
        return
      case 'packet':
        this.end('keep_alive_timeout', `a packet was not complete after ${packetMsMax / 1000} s`)
    }
  }

  #holdUnread(room: Room, bytes: number): void {
    if (room.tryHold(bytes - this.#unreadBytes)) this.#unreadBytes = bytes
    else
      this.end('server_busy', 'the connections to this endpoint hold too many unread bytes; use fewer, and connect again later')
  }

  get #isClosing(): boolean {
    return this.#state === 'closing' || this.#state === 'closed'
  }

  /**
   * A CONNECT is read even without room, so that the client gets a reason. A packet with reserved memory is read to its end, which
   * releases the memory. Clients that send nothing are not paused, so that thousands of them cost nothing.
   */
  get #lacksRoom(): boolean {
    const room = this.#open?.room
    return room !== undefined && this.#state === 'open' && this.#reservedBytes === 0 && !this.#context.backpressure.hasRoom(room)
  }

  #read(chunk: Buffer): number {
    this.#packetsLeft = sessionLimits.packetsPerTurnMax
    // Set once per chunk, because its messages arrived together.
    this.#receivedAtMicros = this.#context.clock.now() * 1000
    try {
      if (this.#state === 'connecting' && !this.#reader.isPartial && chunk[0] !== CONNECT) {
        // Not MQTT, so do not wait for a complete packet. [MQTT-3.1.0-1]; before CONNECT no packet can be sent.
        throw new MqttError('protocol_error', 'the first packet is not a CONNECT')
      }
      return this.#reader.push(chunk, this.#visit)
    } catch (error) {
      if (!(error instanceof MqttError)) throw error
      this.end(error.reason, error.message)
      return chunk.length
    }
  }

  /** Returns false if reading must stop, or pause until the next turn. */
  #onPacket(bytes: Buffer, at: number, body: number, end: number): boolean {
    const open = this.#open
    this.#deadlines.packetCompleted()
    if (open === undefined) this.#connect(bytes.subarray(at, end))
    else if ((bytes[at] ?? 0) >> 4 === PUBLISH) open.receiver.publish(bytes, at, body, end, this.#receivedAtMicros)
    else this.#control(bytes.subarray(at, end), open)
    this.#packetsLeft -= 1
    return this.#state === 'open' && this.#packetsLeft > 0 && this.#lastWord === undefined
  }

  #connect(bytes: Buffer): void {
    const { gate, counters, clientErrors, clock, onOpen } = this.#context
    const result = handleConnect(bytes, { route: this.#route, slot: this.#slot, context: this.#context })
    if (result.terms === undefined) {
      const { error, connack, clientId, username } = result
      counters.refused(error.reason)
      clientErrors.add(error.reason, error.message, { address: this.#wire.address, clientId, username })
      this.#close(connack)
      return
    }
    const { terms, connack } = result
    const room = gate.room(terms.endpointId)
    const allowance = gate.allowance(terms.accountId)
    const receiver = new MessageReceiver({
      terms,
      room,
      allowance,
      context: this.#context,
      onDurable: (batch) => this.#onDurable(batch),
      onLost: (batch, rejection) => this.#onLost(batch, rejection),
      onRefused: (quota, needsAcknowledgement) => this.#onRefused(allowance, quota, needsAcknowledgement),
    })
    this.#open = { terms, room, allowance, receiver }
    this.#state = 'open'
    this.#deadlines.opened(clock.monotonic())
    this.#reader.bytesMax = packetBytesMax
    onOpen(this, terms)
    counters.accepted(terms.username)
    this.#wire.write(connack)
  }

  #onDurable({ messageIds, messages, payloadBytes, completeAtMs }: Batch): void {
    const { gate, counters, clock } = this.#context
    const durationMs = clock.monotonic() - completeAtMs
    counters.acknowledgements.observe(durationMs, messages)
    if (this.#open !== undefined) {
      const { allowance, terms } = this.#open
      allowance.count(messages, payloadBytes)
      gate.counters(terms.endpointId).accepted(messages, messages, payloadBytes, durationMs)
    }
    counters.stored(this.terms?.username ?? '', messages, messageIds.length, payloadBytes)
    if (this.#state === 'open' && messageIds.length > 0) {
      const pubacks = Buffer.allocUnsafe(messageIds.length * PUBACK_BYTES)
      for (let index = 0; index < messageIds.length; index += 1)
        writePuback(pubacks, index * PUBACK_BYTES, messageIds[index] ?? 0)
      this.#write(pubacks)
    }
    this.#checkInFlight()
    this.#endIfDrained()
  }

  #onLost({ messages, messageIds }: Batch, { outcome }: Rejection): void {
    this.#countRefused(outcome, messages)
    if (outcome === 'idempotency_key_reused' || outcome === 'invalid_idempotency_key') {
      this.#refuse(messageIds)
      return
    }
    this.#context.counters.lost += messages - messageIds.length
    // With an error code in PUBACK the client would discard the message [MQTT-4.4.0-2]. After a lost connection it sends it again.
    this.end('server_busy', 'the messages could not be stored; connect and send them again')
  }

  /** Sent again, such a message would be refused again. Only MQTT 5 has idempotency keys, so the client understands the reason. */
  #refuse(messageIds: readonly number[]): void {
    if (this.#state === 'open') for (const id of messageIds) this.#write(encodeRefusingPuback(id, IMPLEMENTATION_SPECIFIC_ERROR))
    this.#checkInFlight()
    this.#endIfDrained()
  }

  /**
   * Drops a message above a quota. One that its client sends again ends the connection, but only after those before it are acknowledged:
   * otherwise the client would send the same messages again and again.
   */
  #onRefused(allowance: Allowance, quota: NodeQuota, needsAcknowledgement: boolean): void {
    const { gate, counters } = this.#context
    this.#countRefused('quota_exceeded', 1)
    if (needsAcknowledgement) {
      const { message } = gate.exceeded(allowance, quota, this.#receivedAtMicros / 1000)
      this.#endWhenIdle('quota_exceeded', message)
    } else {
      gate.countRefusal(quota)
      counters.lost += 1
    }
  }

  #countRefused(outcome: Outcome, messages: number): void {
    if (this.#open !== undefined) this.#context.gate.counters(this.#open.terms.endpointId).refused(outcome, messages)
  }

  #control(bytes: Buffer, { terms, receiver }: Open): void {
    if (bytes[0] === PINGREQ && bytes.length === 2) {
      this.#write(pingResponse) // [MQTT-3.12.4-1]
      return
    }
    const result = handleControlPacket(bytes, terms)
    if (result.kind === 'reply') {
      this.#write(result.bytes)
      return
    }
    if (!result.keepsWill) receiver.dropWill()
    this.#context.counters.ended('client')
    this.#close(undefined)
  }

  #write(bytes: Buffer | undefined): void {
    if (bytes === undefined) return
    this.#wire.write(bytes)
    if (this.#wire.unsentBytes <= sessionLimits.unsentBytesMax) return
    this.#deadlines.sendBlocked(this.#context.clock.monotonic())
    this.#flow.pause(pauses.unsent)
  }

  /** Also for MQTT 5, where 0x93 would end the connection: bridges of mosquitto exceed the receive maximum, and would never get through their queue. */
  #checkInFlight(): void {
    const receiver = this.#open?.receiver
    if (receiver === undefined) return
    const isPaused = this.#flow.isPausedFor(pauses.inFlight)
    // A pause ends at half of the bound, so that a client is not paused and resumed with every message.
    const isFull = receiver.hasReached(isPaused ? 0.5 : 1)
    if (isFull && !isPaused) this.#flow.pause(pauses.inFlight)
    else if (!isFull && isPaused) this.#flow.resume(pauses.inFlight)
  }

  #endWhenIdle(reason: Reason, message: string): void {
    this.#lastWord ??= { reason, message }
    this.#flow.pause(pauses.draining)
    this.#endIfDrained()
  }

  #endIfDrained(): void {
    if (this.#lastWord !== undefined && this.#open?.receiver.isIdle === true)
      this.end(this.#lastWord.reason, this.#lastWord.message)
  }

  #close(last: Buffer | undefined): void {
    this.#flow.close()
    this.#leave()
    this.#state = 'closing'
    if (last !== undefined) this.#wire.write(last)
    this.#wire.end()
  }

  /** Frees the client id at once, even if the client closes slowly, and publishes the will. */
  #leave(): void {
    const { clock, counters, onLeave } = this.#context
    this.#open?.room.release(this.#reservedBytes)
    this.#reservedBytes = 0
    this.#open?.room.tryHold(-this.#unreadBytes)
    this.#unreadBytes = 0
    onLeave(this)
    this.#slot.leave()
    if (this.#open?.receiver.publishWill(clock.now() * 1000) === true) counters.wills += 1
  }
}
