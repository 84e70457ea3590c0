/**
 * Messages of a connection that are not durable yet.
 *
 * Owns: which messages are stored together, and the memory that they use. Does not own: the connection.
 * Law: `onDurable` is called after fdatasync, for batches in the order in which their messages arrived [MQTT-4.6.0-2].
 */
import type { Room } from '../admission.ts'
import type { Gate } from '../gate.ts'
import type { Rejection } from '../rejection.ts'
import type { Backpressure } from './backpressure.ts'
import { sessionLimits } from './limits.ts'
import { MessageEnvelopes } from './message-envelopes.ts'
import type { MessageProperties } from './publish.ts'

export type InFlightContext = {
  /** Frames that become durable together must share one promise, which identifies their batch. */
  readonly gate: Pick<Gate, 'append' | 'rejectionOf'>
  readonly backpressure: Pick<Backpressure, 'forceReserve'>
}

export type Message = {
  readonly topic: string
  readonly properties: MessageProperties | undefined
  readonly payload: Buffer
}

/** Messages that became durable, or were lost, together. */
export type Batch = {
  readonly promise: Promise<unknown>
  readonly messageIds: number[]
  messages: number
  payloadBytes: number
  /** What they use of the room. */
  bytes: number
}

export type InFlightOptions = {
  readonly context: InFlightContext
  readonly endpointId: string
  readonly room: Room
  readonly clientId: string
  readonly onDurable: (batch: Batch) => void
  readonly onLost: (batch: Batch, rejection: Rejection) => void
}

export class InFlight {
  readonly #options: InFlightOptions
  readonly #envelopes: MessageEnvelopes
  #batch: Batch | undefined
  #messages = 0
  #bytes = 0
  #unacknowledged = 0

  constructor(options: InFlightOptions) {
    this.#options = options
    this.#envelopes = new MessageEnvelopes(options.clientId)
  }

  get messages(): number {
    return this.#messages
  }

  /** Includes the envelope and the overhead of each message. */
  get bytes(): number {
    return this.#bytes
  }

  /** Messages that wait for their PUBACK. */
  get unacknowledged(): number {
    return this.#unacknowledged
  }

  /** `messageId` is 0 if no PUBACK is wanted, `receivedAtMicros` is since 1970 UTC. */
  store({ topic, properties, payload }: Message, messageId: number, receivedAtMicros: number): void {
    const { context, endpointId, room } = this.#options
    const envelope = this.#envelopes.encode(topic, properties)
    // The properties may be larger than the payload.
    const bytes = payload.length + envelope.length + sessionLimits.messageOverheadBytes
    context.backpressure.forceReserve(room, bytes)
    this.#bytes += bytes
    this.#messages += 1
    const promise = context.gate.append(endpointId, {
      layout: 'single',
      receivedAtMicros,
      recordCount: 1,
      envelope,
      payload: [payload],
    })
    let batch = this.#batch
    if (batch?.promise !== promise) {
      batch = this.#batch = { promise, messageIds: [], messages: 0, payloadBytes: 0, bytes: 0 }
      this.#follow(batch)
    }
    batch.messages += 1
    batch.payloadBytes += payload.length
    batch.bytes += bytes
    if (messageId > 0) {
      batch.messageIds.push(messageId)
      this.#unacknowledged += 1
    }
  }

  #follow(batch: Batch): void {
    const { context, onDurable, onLost } = this.#options
    batch.promise.then(
      () => {
        this.#settle(batch)
        onDurable(batch)
      },
      (error: unknown) => {
        const rejection = context.gate.rejectionOf(error)
        this.#settle(batch)
        onLost(batch, rejection)
      },
    )
  }

  #settle(batch: Batch): void {
    if (this.#batch === batch) this.#batch = undefined
    this.#messages -= batch.messages
    this.#bytes -= batch.bytes
    this.#unacknowledged -= batch.messageIds.length
    this.#options.room.release(batch.bytes)
  }
}
