/**
 * One MQTT connection, from CONNECT to its end.
 *
 * Owns: the order of packets, acknowledgements, when reading pauses, how the connection ends. Does not own: bytes on the network (wire.ts),
 * CONNECT (connect.ts), messages (message-receiver.ts), when they are durable (gate/admitted-session.ts), when it is read (flow.ts), deadlines
 * (deadlines.ts), the other connections (sessions.ts).
 * Law: a PUBACK is sent after its message is durable. A message that cannot be stored is not acknowledged, and the connection ends.
 */
import { Buffer } from 'node:buffer'
import type { Clock } from '#lib/clock.ts'
import { mqttLimits } from '#model/limits.ts'
import type { AdmittedSession, Batch, SessionClient } from '../gate/admitted-session.ts'
import type { ConnectionSlot } from '../gate/connection-budget.ts'
import type { Route } from '../gate/endpoint-table.ts'
import { Rejection } from '../gate/rejection.ts'
import type { Backpressure } from './backpressure.ts'
import type { ClientErrorLog } from './client-error-log.ts'
import { handleConnect, packetBytesMax } from './connect.ts'
import { handleControlPacket } from './control-packet-handler.ts'
import { Deadlines } from './deadlines.ts'
import { Flow, pauses } from './flow.ts'
import { HeldBytes } from './held-bytes.ts'
import { sessionLimits } from './limits.ts'
import { MessageReceiver } from './message-receiver.ts'
import type { MqttCounters } from './metrics.ts'
import { encodeDisconnect, encodeRefusingPuback, PUBACK_BYTES, pingResponse, writePuback } from './packets/control-packet.ts'
import { PacketReader } from './packets/packet-reader.ts'
import { MqttError, type Reason, toMqttError } from './packets/reason.ts'
import type { ConnectContext, SessionTerms } from './session-terms.ts'
import type { Wire, WireReader } from './wire/wire.ts'

/** MQTT 5, §3.4.2.1. */
const IMPLEMENTATION_SPECIFIC_ERROR = 0x83

/** Dependencies that all sessions share. */
export type SessionContext = ConnectContext & {
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
  readonly admitted: AdmittedSession
  readonly receiver: MessageReceiver
  readonly held: HeldBytes
}

/** First byte of a packet: type and flags; PUBLISH: its type alone. */
const CONNECT = 0x10
const PUBLISH = 3
const PINGREQ = 0xc0

export class Session implements WireReader, SessionClient {
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
      clock: context.clock,
      read: (chunk) => this.#read(chunk),
      afterRead: () => {
        // Before CONNECT the reader is bound to less.
        const held = this.#isClosing ? undefined : this.#open?.held
        this.#endIfBusy(held?.count(this.#reader.heldBytes + this.#flow.unreadBytes))
        this.#checkInFlight()
      },
      lacksRoom: () => this.#lacksRoom,
      awaitRoom: () => {
        if (this.#open === undefined) return
        context.backpressure.resumeWhenRoom(this.#open.admitted.room, this)
        this.#endIfBusy(this.#open.held.countUnread(this.#reader.heldBytes + this.#flow.unreadBytes))
      },
    })
  }

  get terms(): SessionTerms | undefined {
    return this.#open?.terms
  }

  /** Undefined until the client is connected. */
  get admitted(): AdmittedSession | undefined {
    return this.#open?.admitted
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
    if (this.#open !== undefined) this.#context.backpressure.forget(this.#open.admitted.room, this)
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

  /** Ends the session if the newest configuration does not allow it. Other changes apply to the next CONNECT. */
  recheck(): void {
    if (this.#open === undefined) return
    const { admitted, receiver } = this.#open
    const refusal = admitted.recheck()
    if (refusal?.outcome === 'unauthorized') {
      // The will was to be sent with that key.
      receiver.dropWill()
      this.end('not_authorized', refusal.message)
    } else if (refusal?.outcome === 'account_suspended')
      this.end('administrative_action', 'the account is suspended; ask the operator of this installation')
    else if (refusal !== undefined || admitted.endpoint.mqtt_config?.enabled !== true)
      this.end('administrative_action', 'the endpoint is paused or deleted, or its MQTT disabled')
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

  #endIfBusy(refusal: string | undefined): void {
    if (refusal !== undefined) this.end('server_busy', refusal)
  }

  get #isClosing(): boolean {
    return this.#state === 'closing' || this.#state === 'closed'
  }

  /**
   * A CONNECT is read even without room, so that the client gets a reason. A packet with reserved memory is read to its end, which
   * releases the memory. Clients that send nothing are not paused, so that thousands of them cost nothing.
   */
  get #lacksRoom(): boolean {
    if (this.#open === undefined || this.#state !== 'open') return false
    const { admitted, held } = this.#open
    return !held.isReserved && !this.#context.backpressure.hasRoom(admitted.room)
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
      const problem = error instanceof Rejection ? toMqttError(error) : error
      if (!(problem instanceof MqttError)) throw error
      this.end(problem.reason, problem.message)
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
    const { backpressure, counters, clientErrors, clock, onOpen } = this.#context
    const result = handleConnect(bytes, { route: this.#route, slot: this.#slot }, this.#context)
    if (result.terms === undefined) {
      const { error, connack, clientId, username } = result
      counters.refused(error.reason)
      clientErrors.add(error.reason, error.message, { address: this.#wire.address, clientId, username })
      this.#close(connack)
      return
    }
    const { terms, connack } = result
    const admitted = result.admitted.open(this)
    const onRefused = (needsAcknowledgement: boolean) => this.#onRefused(admitted, needsAcknowledgement)
    const receiver = new MessageReceiver({ terms, admitted, backpressure, onRefused })
    this.#open = { terms, admitted, receiver, held: new HeldBytes(admitted.room, backpressure) }
    this.#state = 'open'
    this.#deadlines.opened(clock.monotonic())
    this.#reader.bytesMax = packetBytesMax
    onOpen(this, terms)
    counters.accepted(terms.username)
    this.#wire.write(connack)
  }

  stored({ ids, records, payloadBytes }: Batch): void {
    this.#context.counters.stored(this.terms?.username ?? '', records, ids.length, payloadBytes)
    if (this.#state === 'open' && ids.length > 0) {
      const pubacks = Buffer.allocUnsafe(ids.length * PUBACK_BYTES)
      for (let index = 0; index < ids.length; index += 1) writePuback(pubacks, index * PUBACK_BYTES, ids[index] ?? 0)
      this.#write(pubacks)
    }
    this.#settled()
  }

  lost({ ids, records }: Batch, { outcome }: Rejection): void {
    if (outcome === 'idempotency_key_reused' || outcome === 'invalid_idempotency_key') {
      this.#refuse(ids)
      return
    }
    this.#context.counters.lost += records - ids.length
    // With an error code in PUBACK the client would discard the message [MQTT-4.4.0-2]. After a lost connection it sends it again.
    this.end('server_busy', 'the messages could not be stored; connect and send them again')
  }

  /** Sent again, such a message would be refused again. Only MQTT 5 has idempotency keys, so the client understands the reason. */
  #refuse(messageIds: readonly number[]): void {
    if (this.#state === 'open') for (const id of messageIds) this.#write(encodeRefusingPuback(id, IMPLEMENTATION_SPECIFIC_ERROR))
    this.#settled()
  }

  /**
   * Drops a message that is refused, such as one above a quota. One that its client sends again ends the connection, but only after those
   * before it are acknowledged: otherwise the client would send the same messages again and again.
   */
  #onRefused(admitted: AdmittedSession, needsAcknowledgement: boolean): void {
    if (needsAcknowledgement) {
      const { reason, message } = toMqttError(admitted.refusal(this.#receivedAtMicros / 1000))
      this.#endWhenIdle(reason, message)
    } else this.#context.counters.lost += 1
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

  /** Messages are in flight no more. */
  #settled(): void {
    this.#checkInFlight()
    this.#endIfDrained()
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
    this.#open?.held.release()
    onLeave(this)
    this.#slot.leave()
    if (this.#open?.receiver.publishWill(clock.now() * 1000) === true) counters.wills += 1
  }
}
