/**
 * Makes records of export requests in a thread, so that parsing megabytes holds up nobody else.
 *
 * Owns: the thread, its memory, and who is next. Does not own: the encodings, bounds on records (convert.ts), the response.
 * Law: one request is converted at a time, and accounts take turns. A request that may not fit into the thread is refused before it is parsed.
 */
import { Buffer } from 'node:buffer'
import { AppError } from '#errors.ts'
import { MiB } from '#lib/bytes.ts'
import type { Clock } from '#lib/clock.ts'
import { FairSlots } from '#lib/fair-slots.ts'
import type { SlotOwner } from '#lib/slot-schedule.ts'
import type { ConversionAnswer } from './conversion-thread.ts'
import type { ConversionTask } from './convert.ts'
import type { OtlpEncoding } from './encoding.ts'

/** JSON that is mostly brackets becomes objects of twenty times its size. */
const heapMiBMax = 512
/** Then the thread ends, and its memory returns to the system. */
const idleMs = 60_000

export type ConvertedBody = { readonly payload: readonly Buffer[]; readonly records: number; readonly tooLarge: number }

export type ConversionInput = {
  readonly owner: SlotOwner
  readonly encoding: OtlpEncoding
  /** Bound on all records together. */
  readonly maxBytes: number
  /** Returns undefined once nobody waits for the result any more. */
  readonly body: () => readonly Buffer[] | undefined
}

export type ThreadTask = ConversionTask & { readonly body: Uint8Array<ArrayBuffer> }

export type ConversionThread = {
  /** Takes the bytes of the task. Rejects if the thread ends before it answers. */
  ask(task: ThreadTask): Promise<ConversionAnswer>
  end(): Promise<void>
}

export type ExportConversionsOptions = {
  readonly startThread: (heapMiB: number, onFailure: () => void) => ConversionThread
  readonly clock: Clock
  readonly heapMiB?: number
}

export class ExportConversions {
  readonly #options: ExportConversionsOptions
  readonly #heapMiB: number
  readonly #turns: FairSlots
  readonly #stopped = new AbortController()
  #thread: ConversionThread | undefined
  #cancelIdle: (() => void) | undefined

  constructor(options: ExportConversionsOptions) {
    this.#options = options
    this.#heapMiB = options.heapMiB ?? heapMiBMax
    this.#turns = new FairSlots({ capacity: 1, clock: options.clock })
  }

  /** Resolves with undefined if nobody waits any more. Rejects with AppError. */
  async run({ owner, encoding, maxBytes, body }: ConversionInput): Promise<ConvertedBody | undefined> {
    return await this.#turns.run(owner, { signal: this.#stopped.signal }, async () => {
      const pieces = body()
      if (pieces === undefined) return undefined
      const answer = await this.#ask({ encoding, maxBytes, heapBytes: this.#heapMiB * MiB, body: copyOf(pieces) })
      if ('refused' in answer) throw new AppError(answer.refused.code, answer.refused.message)
      const { payload, ...counts } = answer.converted
      return {
        ...counts,
        payload: payload.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength)),
      }
    })
  }

  /** Call it when no request waits any more. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    this.#cancelIdle?.()
    await this.#thread?.end()
  }

  #ask(task: ThreadTask): Promise<ConversionAnswer> {
    this.#cancelIdle?.()
    this.#thread ??= this.#startThread()
    return this.#thread.ask(task).finally(() => {
      this.#cancelIdle = this.#options.clock.setTimer(() => this.#endIdle(), idleMs)
    })
  }

  #startThread(): ConversionThread {
    const thread = this.#options.startThread(this.#heapMiB, () => {
      if (this.#thread === thread) this.#thread = undefined
    })
    return thread
  }

  #endIdle(): void {
    void this.#thread?.end()
    this.#thread = undefined
  }
}

/** The thread gets memory of its own: the pieces belong to the request. */
function copyOf(pieces: readonly Buffer[]): Uint8Array<ArrayBuffer> {
  const bytes = Buffer.allocUnsafeSlow(pieces.reduce((sum, { byteLength }) => sum + byteLength, 0))
  let at = 0
  for (const piece of pieces) at += piece.copy(bytes, at)
  return bytes
}
