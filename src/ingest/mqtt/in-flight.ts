/**
 * Messages of a connection on their way to the disk.
 *
 * Owns: what is not durable yet, and the memory that it takes. Does not own: the connection.
 * Law: `onDurable` comes after fdatasync, and batches in the order in which their messages came [MQTT-4.6.0-2].
 */
import { InvariantError } from '#lib/assert.ts'
import type { FrameInput } from '#wal/frame.ts'
import { sessionLimits } from './limits.ts'
import { MessageEnvelopes } from './message-envelopes.ts'
import type { MessageProperties } from './publish.ts'

/** Where messages go. */
export type Storage = {
  /** Resolves after fdatasync. Frames that became durable at once are answered by one and the same promise. */
  readonly append: (endpointId: string, frame: FrameInput) => Promise<unknown>
  /** Memory that messages take until they are durable: what was read must go somewhere. */
  readonly take: (bytes: number) => void
  readonly release: (bytes: number) => void
}

export type Message = {
  readonly topic: string
  readonly properties: MessageProperties | undefined
  readonly payload: Buffer
}

/** Messages that became durable, or were lost, together. */
export type Batch = { readonly promise: Promise<unknown>; readonly messageIds: number[]; messages: number; payloadBytes: number }

export type InFlightOptions = {
  readonly storage: Storage
  readonly endpointId: string
  readonly clientId: string
  readonly onDurable: (batch: Batch) => void
  readonly onLost: (batch: Batch, error: unknown) => void
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

  /** With what a message costs beside its payload. */
  get bytes(): number {
    return this.#bytes
  }

  /** Messages that wait for their PUBACK. */
  get unacknowledged(): number {
    return this.#unacknowledged
  }

  /** `messageId` is 0 where no PUBACK is wanted, `receivedAtMicros` since 1970 UTC. */
  store({ topic, properties, payload }: Message, messageId: number, receivedAtMicros: number): void {
    const { storage, endpointId } = this.#options
    const bytes = payload.length + sessionLimits.messageOverheadBytes
    storage.take(bytes)
    this.#bytes += bytes
    this.#messages += 1
    const promise = storage.append(endpointId, {
      layout: 'single',
      receivedAtMicros,
      recordCount: 1,
      envelope: this.#envelopes.encode(topic, properties),
      payload: [payload],
    })
    let batch = this.#batch
    if (batch?.promise !== promise) {
      batch = this.#batch = { promise, messageIds: [], messages: 0, payloadBytes: 0 }
      this.#follow(batch)
    }
    batch.messages += 1
    batch.payloadBytes += payload.length
    if (messageId > 0) {
      batch.messageIds.push(messageId)
      this.#unacknowledged += 1
    }
  }

  #follow(batch: Batch): void {
    batch.promise.then(
      () => {
        this.#settle(batch)
        this.#options.onDurable(batch)
      },
      (error: unknown) => {
        if (error instanceof InvariantError) {
          // A promise must not swallow it: a broken invariant ends the process.
          queueMicrotask(() => {
            throw error
          })
        }
        this.#settle(batch)
        this.#options.onLost(batch, error)
      },
    )
  }

  #settle(batch: Batch): void {
    if (this.#batch === batch) this.#batch = undefined
    const bytes = batch.payloadBytes + batch.messages * sessionLimits.messageOverheadBytes
    this.#messages -= batch.messages
    this.#bytes -= bytes
    this.#unacknowledged -= batch.messageIds.length
    this.#options.storage.release(bytes)
  }
}
