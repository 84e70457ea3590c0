/**
 * The session of a client whose CONNECT was accepted.
 *
 * Owns: acknowledgements, which messages may be in flight, what follows from a change of the configuration. Does not own: bytes and the end of
 * the connection (connection.ts), messages (message-receiver.ts), when they are durable (gate/admitted-session.ts), the other sessions
 * (sessions.ts).
 * Law: a PUBACK is sent after its message is durable. A message that cannot be stored is not acknowledged, and the connection ends.
 */
import { Buffer } from 'node:buffer'
import type { Clock } from '#lib/clock.ts'
import { type AckLevel, ackLevelName } from '#model/ack-level.ts'
import type { Admitted } from '../gate/admitted.ts'
import type { AdmittedSession, Batch, SessionClient } from '../gate/admitted-session.ts'
import type { Rejection } from '../gate/rejection.ts'
import type { Backpressure } from './backpressure.ts'
import { handleControlPacket } from './control-packet-handler.ts'
import { type Flow, pauses } from './flow.ts'
import { HeldBytes } from './held-bytes.ts'
import { MessageReceiver } from './message-receiver.ts'
import type { MqttCounters } from './metrics.ts'
import { encodePubacks, encodePubackWith, encodeRefusingPuback, pingResponse } from './packets/control-packet.ts'
import { type Reason, toMqttError } from './packets/reason.ts'
import type { SessionTerms } from './session-terms.ts'

/** MQTT 5, §3.4.2.1. */
const IMPLEMENTATION_SPECIFIC_ERROR = 0x83

/** First byte of a packet: type and flags; PUBLISH: its type alone. */
const PUBLISH = 3
const PINGREQ = 0xc0

/** The connection of a session. */
export interface SessionConnection {
  readonly isOpen: boolean
  readonly flow: Flow
  write(bytes: Buffer): void
  /** Sends the reason to the client if its version supports that, and closes. */
  end(reason: Reason, message: string): void
  close(): void
}

export type SessionOptions = {
  readonly connection: SessionConnection
  readonly terms: SessionTerms
  readonly admitted: Admitted
  readonly backpressure: Backpressure
  readonly clock: Clock
  readonly counters: MqttCounters
}

export class Session implements SessionClient {
  readonly terms: SessionTerms
  readonly admitted: AdmittedSession
  readonly held: HeldBytes
  readonly connection: SessionConnection
  readonly #receiver: MessageReceiver
  readonly #clock: Clock
  readonly #counters: MqttCounters
  /** Set once nothing more is read: why the connection ends when every received message is durable. */
  #pendingEnd: { readonly reason: Reason; readonly message: string } | undefined

  constructor({ connection, terms, admitted, backpressure, clock, counters }: SessionOptions) {
    this.terms = terms
    this.admitted = admitted.openSession(this)
    this.held = new HeldBytes(this.admitted.room, backpressure, connection.flow)
    this.connection = connection
    this.#clock = clock
    this.#counters = counters
    this.#receiver = new MessageReceiver({
      ...{ terms, admitted: this.admitted, backpressure },
      onRefused: (needsAcknowledgement, receivedAtMicros) => this.#onRefused(needsAcknowledgement, receivedAtMicros),
    })
  }

  /** Handles a packet. Throws MqttError, or Rejection. */
  receive(bytes: Buffer, at: number, body: number, end: number, receivedAtMicros: number): void {
    if ((bytes[at] ?? 0) >> 4 === PUBLISH) this.#receiver.publish(bytes, at, body, end, receivedAtMicros)
    else this.#control(bytes.subarray(at, end))
  }

  /** Pauses reading while too many messages are in flight. Also for MQTT 5, where 0x93 would end the connection: bridges of mosquitto exceed the receive maximum, and would never get through their queue. */
  checkInFlight(): void {
    const { flow } = this.connection
    const isPaused = flow.isPausedFor(pauses.inFlight)
    // A pause ends at half of the bound, so that a client is not paused and resumed with every message.
    const isFull = this.#receiver.hasReached(isPaused ? 0.5 : 1)
    if (isFull && !isPaused) flow.pause(pauses.inFlight)
    else if (!isFull && isPaused) flow.resume(pauses.inFlight)
  }

  /** Ends the session if the newest configuration does not allow it. Other changes apply to the next CONNECT. */
  recheck(): void {
    const refusal = this.admitted.recheck()
    if (refusal?.outcome === 'unauthorized') {
      // The will was to be sent with that key.
      this.#receiver.dropWill()
      this.connection.end('not_authorized', refusal.message)
    } else if (refusal?.outcome === 'fenced' || refusal?.outcome === 'unverifiable')
      this.connection.end('administrative_action', refusal.message)
    else if (refusal?.outcome === 'account_suspended')
      this.connection.end('administrative_action', 'the account is suspended; ask the operator of this installation')
    else if (refusal !== undefined || this.admitted.endpoint.mqtt_config?.enabled !== true)
      this.connection.end('administrative_action', 'the endpoint is paused or deleted, or its MQTT disabled')
  }

  /** Stops reading, and ends the connection once all received messages are durable. */
  endWhenIdle(reason: Reason, message: string): void {
    this.#pendingEnd ??= { reason, message }
    this.connection.flow.pause(pauses.draining)
    this.#endIfDrained()
  }

  /** Called once, when the connection closes or is lost: publishes the will. */
  leave(): void {
    this.held.release()
    if (this.#receiver.publishWill(this.#clock.now() * 1000)) this.#counters.wills += 1
    this.admitted.end()
  }

  stored({ ids, records, payloadBytes, asked, level }: Batch): void {
    this.#counters.stored(this.terms.username, records, ids.length, payloadBytes)
    if (this.connection.isOpen && ids.length > 0)
      this.connection.write(asked === undefined ? encodePubacks(ids) : this.#encodeLevels(ids, level))
    this.#settled()
  }

  /** Only MQTT 5 has properties, so the client understands them. */
  #encodeLevels(messageIds: readonly number[], level: AckLevel): Buffer {
    return Buffer.concat(messageIds.map((id) => encodePubackWith(this.terms.peer, id, { [ackLevelName]: level })))
  }

  lost({ ids, records }: Batch, { outcome }: Rejection): void {
    if (outcome === 'idempotency_key_reused' || outcome === 'invalid_idempotency_key' || outcome === 'invalid_ack_level') {
      this.#refuse(ids)
      return
    }
    this.#counters.lost += records - ids.length
    // With an error code in PUBACK the client would discard the message [MQTT-4.4.0-2]. After a lost connection it sends it again.
    this.connection.end('server_busy', 'the messages could not be stored; connect and send them again')
  }

  /** Sent again, such a message would be refused again. Only MQTT 5 has what is wrong with it, so the client understands the reason. */
  #refuse(messageIds: readonly number[]): void {
    if (this.connection.isOpen)
      for (const id of messageIds) this.connection.write(encodeRefusingPuback(id, IMPLEMENTATION_SPECIFIC_ERROR))
    this.#settled()
  }

  /**
   * Drops a message that is refused, such as one above a quota. One that its client sends again ends the connection, but only after those
   * before it are acknowledged: otherwise the client would send the same messages again and again.
   */
  #onRefused(needsAcknowledgement: boolean, receivedAtMicros: number): void {
    if (needsAcknowledgement) {
      const { reason, message } = toMqttError(this.admitted.refusal(receivedAtMicros / 1000))
      this.endWhenIdle(reason, message)
    } else this.#counters.lost += 1
  }

  #control(bytes: Buffer): void {
    if (bytes[0] === PINGREQ && bytes.length === 2) {
      this.connection.write(pingResponse) // [MQTT-3.12.4-1]
      return
    }
    const result = handleControlPacket(bytes, this.terms)
    if (result.kind === 'reply') {
      if (result.bytes !== undefined) this.connection.write(result.bytes)
      return
    }
    if (!result.keepsWill) this.#receiver.dropWill()
    this.#counters.ended('client')
    this.connection.close()
  }

  /** Messages are in flight no more. */
  #settled(): void {
    this.checkInFlight()
    this.#endIfDrained()
  }

  #endIfDrained(): void {
    if (this.#pendingEnd !== undefined && this.#receiver.isIdle)
      this.connection.end(this.#pendingEnd.reason, this.#pendingEnd.message)
  }
}
