/**
 * Messages of a connection that are not durable yet.
 *
 * Owns: which messages are stored together, and the memory that they use. Does not own: the connection.
 * Law: `onDurable` is called after fdatasync, for batches in the order in which their messages arrived [MQTT-4.6.0-2].
 */
import type { Clock } from '#lib/clock.ts'
import type { FrameInput } from '#log/frame.ts'
import { idempotencyProperty } from '#model/record-envelope.ts'
import type { Gate } from '../gate/gate.ts'
import { readIdempotencyKey } from '../gate/idempotency-key.ts'
import type { Room } from '../gate/node-room.ts'
import type { Rejection } from '../gate/rejection.ts'
import type { Backpressure } from './backpressure.ts'
import { sessionLimits } from './limits.ts'
import { MessageEnvelopes } from './message-envelopes.ts'
import type { MessageProperties } from './packets/publish.ts'

export type InFlightContext = {
  /** Frames that become durable together must share one promise, which identifies their batch. */
  readonly gate: Pick<Gate, 'append' | 'appendOnce' | 'rejectionOf'>
  readonly backpressure: Pick<Backpressure, 'forceReserve'>
  readonly clock: Pick<Clock, 'monotonic'>
}

export type Message = {
  readonly topic: string
  readonly properties: MessageProperties | undefined
  readonly payload: Buffer
}

/** Messages that became durable, or were lost, together. */
export type Batch = {
  readonly promise: Promise<unknown>
  /** When its first message was complete, by the clock that never goes back. */
  readonly completeAtMs: number
  readonly messageIds: number[]
  messages: number
  payloadBytes: number
  /** Bytes of the room that its messages use. */
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
  /** Settles after the last batch, while one with a key is in flight: it may be durable later than those after it. */
  #unordered: Promise<unknown> | undefined
  #messages = 0
  #bytes = 0

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

  /** `messageId` is 0 if no PUBACK is wanted, `receivedAtMicros` is since 1970 UTC. */
  store({ topic, properties, payload }: Message, messageId: number, receivedAtMicros: number): void {
    const { context, endpointId, room } = this.#options
    const envelope = this.#envelopes.encode(topic, properties)
    // The properties may be larger than the payload.
    const bytes = payload.length + envelope.length + sessionLimits.messageOverheadBytes
    context.backpressure.forceReserve(room, bytes)
    this.#bytes += bytes
    this.#messages += 1
    const frame: FrameInput = { layout: 'single', receivedAtMicros, recordCount: 1, envelope, payload: [payload] }
    const key = properties?.userProperties.find(([name]) => name === idempotencyProperty)?.[1]
    const promise = key === undefined ? context.gate.append(endpointId, frame) : this.#appendOnce(key, frame)
    let batch = this.#batch
    if (batch?.promise !== promise) {
      const earlier = this.#unordered ?? (key === undefined ? undefined : batch?.promise)
      const completeAtMs = context.clock.monotonic()
      batch = this.#batch = { promise, completeAtMs, messageIds: [], messages: 0, payloadBytes: 0, bytes: 0 }
      this.#follow(batch, key === undefined && earlier === undefined ? promise : this.#after(earlier, promise))
    }
    batch.messages += 1
    batch.payloadBytes += payload.length
    batch.bytes += bytes
    if (messageId > 0) batch.messageIds.push(messageId)
  }

  async #appendOnce(key: string, frame: FrameInput): Promise<unknown> {
    const { context, endpointId } = this.#options
    return await context.gate.appendOnce(endpointId, readIdempotencyKey(key), frame)
  }

  /** Resolves as `promise` does, but not before what came earlier has settled. */
  #after(earlier: Promise<unknown> | undefined, promise: Promise<unknown>): Promise<unknown> {
    const settled = Promise.allSettled([earlier, promise])
    this.#unordered = settled
    void settled.then(() => {
      if (this.#unordered === settled) this.#unordered = undefined
    })
    return settled.then(() => promise)
  }

  #follow(batch: Batch, settles: Promise<unknown>): void {
    const { context, onDurable, onLost } = this.#options
    settles.then(
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
    this.#options.room.release(batch.bytes)
  }
}
