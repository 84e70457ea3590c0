/**
 * One MQTT connection, from its first byte to its close.
 *
 * Owns: which packet is read when, the response to CONNECT, how the connection ends. Does not own: bytes on the network (wire.ts), the decision
 * about CONNECT (connect.ts), what a client sends after it (session.ts), pauses (flow.ts), deadlines (deadlines.ts), the other connections
 * (sessions.ts).
 */
import type { Buffer } from 'node:buffer'
import { mqttLimits } from '#model/limits.ts'
import type { ConnectionSlot } from '../gate/connection-budget.ts'
import type { Route } from '../gate/endpoint-table.ts'
import { Rejection } from '../gate/rejection.ts'
import type { ClientErrorLog, ClientIdentity } from './client-error-log.ts'
import { handleConnect, packetBytesMax } from './connect.ts'
import { Deadlines } from './deadlines.ts'
import { Flow, pauses } from './flow.ts'
import { sessionLimits } from './limits.ts'
import { encodeDisconnect } from './packets/control-packet.ts'
import { PacketReader } from './packets/packet-reader.ts'
import { MqttError, type Reason, toMqttError } from './packets/reason.ts'
import { Session, type SessionConnection, type SessionOptions } from './session.ts'
import type { ConnectContext } from './session-terms.ts'
import type { Wire, WireReader } from './wire/wire.ts'

/** Dependencies that all connections share. */
export type ConnectionContext = ConnectContext &
  Pick<SessionOptions, 'backpressure' | 'clock' | 'counters'> & {
    readonly packetMsMax: number
    readonly clientErrors: ClientErrorLog
    /** Called when the client is connected. An earlier session with its client id must end. */
    readonly onOpen: (session: Session) => void
    /** Called when the connection is closing and no longer counts as connected. */
    readonly onLeave: (session: Session) => void
    readonly onClosed: (connection: Connection) => void
  }

/** First byte of CONNECT: type and flags. */
const CONNECT = 0x10

export class Connection implements WireReader, SessionConnection {
  readonly flow: Flow
  /** Set once CONNECT is accepted. */
  session: Session | undefined
  readonly #context: ConnectionContext
  readonly #wire: Wire
  readonly #route: Route
  readonly #slot: ConnectionSlot
  readonly #reader = new PacketReader(mqttLimits.connectBytesMax)
  readonly #visit = (bytes: Buffer, at: number, body: number, end: number): boolean => this.#onPacket(bytes, at, body, end)
  readonly #deadlines: Deadlines
  #state: 'open' | 'closing' | 'closed' = 'open'
  #receivedAtMicros = 0
  /** Packets that may be read before other connections are read. */
  #packetsLeft = 0

  constructor(
    context: ConnectionContext,
    { wire, route, slot }: { readonly wire: Wire; readonly route: Route; readonly slot: ConnectionSlot },
  ) {
    this.#context = context
    this.#wire = wire
    this.#route = route
    this.#slot = slot
    this.#deadlines = new Deadlines(context.clock.monotonic())
    this.flow = new Flow({
      wire,
      clock: context.clock,
      read: (chunk) => this.#read(chunk),
      // Before CONNECT the reader is bound to less.
      afterRead: () => {
        // After the connection was lost, its messages are read on, but it holds nothing any more.
        if (this.isOpen) this.#endIfBusy(this.session?.held.count(this.#heldBytes))
        this.session?.checkInFlight()
      },
      // A CONNECT is read even without room, so that the client gets a reason.
      lacksRoom: () => this.isOpen && this.session?.held.lacksRoom === true,
      awaitRoom: () => this.#endIfBusy(this.session?.held.waitForRoom(this.#heldBytes)),
    })
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  receive(chunk: Buffer): void {
    if (!this.isOpen) return
    this.#deadlines.received()
    this.#context.counters.receivedBytes += chunk.length
    this.flow.receive(chunk)
  }

  broken(message: string): void {
    this.end('malformed_packet', message)
  }

  drained(): void {
    this.#deadlines.sendDrained()
    this.flow.resume(pauses.unsent)
  }

  closed(): void {
    if (this.#state === 'closed') return
    if (this.isOpen && this.session !== undefined) {
      this.#context.counters.ended('lost')
      this.#leave(this.session)
    }
    this.#state = 'closed'
    this.#context.onClosed(this)
  }

  write(bytes: Buffer): void {
    this.#wire.write(bytes)
    if (this.#wire.unsentBytes <= sessionLimits.unsentBytesMax) return
    this.#deadlines.sendBlocked(this.#context.clock.monotonic())
    this.flow.pause(pauses.unsent)
  }

  /** Stops reading, and ends the connection once all received messages are durable. */
  drain(): void {
    if (!this.isOpen) return
    if (this.session !== undefined) {
      this.session.endWhenIdle('server_shutting_down', 'this node is shutting down; connect again')
      return
    }
    this.flow.pause(pauses.draining)
    this.cut()
  }

  /** Sends the reason to the client if its version supports that, and closes. */
  end(reason: Reason, message: string): void {
    if (!this.isOpen) return
    const { terms } = this.session ?? {}
    if (terms === undefined) {
      // The version is unknown, and no packet is valid in both.
      this.#refuse(reason, message, { connack: undefined, clientId: undefined, username: undefined })
      return
    }
    const { counters, clientErrors } = this.#context
    counters.ended(reason)
    clientErrors.add(reason, message, { address: this.#wire.address, clientId: terms.clientId, username: terms.username })
    this.close(encodeDisconnect(terms.peer, reason, message))
  }

  /** Closes once everything written is sent. */
  close(last?: Buffer): void {
    this.flow.close()
    this.#leave(this.session)
    this.#state = 'closing'
    if (last !== undefined) this.#wire.write(last)
    this.#wire.end()
  }

  /** Closes without sending a reason. */
  cut(): void {
    this.#wire.destroy()
  }

  /** Called once a second: ends the connection if something is overdue. */
  sweep(now: number): void {
    if (!this.isOpen) return
    const { packetMsMax } = this.#context
    const overdue = this.#deadlines.overdue({
      now,
      keepAliveSeconds: this.session?.terms.keepAliveSeconds,
      isPaused: this.flow.isPaused,
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

  /** Bytes that are not read to the end of a packet. */
  get #heldBytes(): number {
    return this.#reader.heldBytes + this.flow.unreadBytes
  }

  #read(chunk: Buffer): number {
    this.#packetsLeft = sessionLimits.packetsPerTurnMax
    // Set once per chunk, because its messages arrived together.
    this.#receivedAtMicros = this.#context.clock.now() * 1000
    try {
      if (this.session === undefined && !this.#reader.isPartial && chunk[0] !== CONNECT) {
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
    this.#deadlines.packetCompleted()
    if (this.session === undefined) this.#connect(bytes.subarray(at, end))
    else this.session.receive(bytes, at, body, end, this.#receivedAtMicros)
    this.#packetsLeft -= 1
    return this.isOpen && this.#packetsLeft > 0 && !this.flow.isPausedFor(pauses.draining)
  }

  #connect(bytes: Buffer): void {
    const { counters, clock, onOpen } = this.#context
    const result = handleConnect(bytes, { route: this.#route, slot: this.#slot, remote: this.#wire }, this.#context)
    if (result.terms === undefined) {
      const { error, ...client } = result
      this.#refuse(error.reason, error.message, client)
      return
    }
    const { terms, admitted, connack } = result
    const session = new Session({ ...this.#context, connection: this, terms, admitted })
    this.session = session
    this.#deadlines.opened(clock.monotonic())
    this.#reader.bytesMax = packetBytesMax
    onOpen(session)
    counters.accepted(terms.username)
    this.#wire.write(connack)
  }

  #refuse(
    reason: Reason,
    message: string,
    { connack, clientId, username }: Omit<ClientIdentity, 'address'> & { readonly connack: Buffer | undefined },
  ): void {
    const { counters, clientErrors } = this.#context
    counters.refused(reason)
    clientErrors.add(reason, message, { address: this.#wire.address, clientId, username })
    this.close(connack)
  }

  /** Frees the client id at once, even if the client closes slowly. */
  #leave(session: Session | undefined): void {
    if (session !== undefined) this.#context.onLeave(session)
    this.#slot.leave()
    session?.leave()
  }
}
