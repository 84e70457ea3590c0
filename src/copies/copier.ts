/**
 * Puts what a node acknowledges into the copy store, beside its disk.
 *
 * Owns: which pieces share an object, in which order they count as copied, and whether this writer still may. Does not own: the log that hands
 * the pieces in, and how long objects stay (held-objects.ts).
 * Law: a piece counts as copied once its object and all with lower numbers are in the store, and after the put the store has no fence against
 * this writer. Every piece that was handed in is copied as long as the process lives, also after its caller was told that it failed.
 */
import { batchCalls } from '#lib/batch-calls.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { Durations } from '#lib/durations.ts'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode } from '#lib/files.ts'
import type { Random } from '#lib/random.ts'
import { settlesBefore } from '#lib/settles-before.ts'
import type { Logger } from '#lib/telemetry.ts'
import { pieceBytes, type SegmentPiece } from '#log/segment-piece.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { ObjectStoreError } from '#objects/store-error.ts'
import { CopyError } from './copy-error.ts'
import { copyName, fenceName } from './copy-names.ts'
import { CopyEncoder, type CopyHeader, readCopy } from './copy-object.ts'
import { copyLimits } from './limits.ts'

export type CopierOptions = {
  readonly nodeId: string
  /** Ten characters, new at each start. */
  readonly incarnation: string
  readonly windowMs: number
  readonly store: ObjectStore
  /** The folder of the node in the store, with a slash at its end. */
  readonly folder: string
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  /** Resolves with the number of fences that do not concern this writer. The first object waits for it. */
  readonly registered: Promise<number>
  /** Called with the pieces of each object, in the order of the numbers, before their callers learn of it. */
  readonly onCopied: (number: number, pieces: readonly SegmentPiece[]) => void
}

/** Pieces that share an object. */
class Window {
  readonly pieces: SegmentPiece[] = []
  /** Its callers wait for this, which may be rejected before the object is copied. */
  readonly answer = Promise.withResolvers<void>()
  readonly copied = Promise.withResolvers<void>()
  bytes = 0
  /** The number of its object, from when it is put. */
  number: number | undefined
  /** It gathered for long enough. */
  isOver = false
  /** Its callers were told that it failed. */
  isLate = false
  cancelLate = () => {}

  constructor() {
    // Nobody may wait any more.
    for (const { promise } of [this.answer, this.copied]) promise.catch(() => undefined)
  }

  reject(error: unknown): void {
    this.answer.reject(error)
    this.copied.reject(error)
  }
}

/** In seconds. */
const putBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

const contentType = 'application/octet-stream'
const noAnswer = 'it does not answer'
const fencedText = 'another machine has taken over this node, and has its copies'

export class Copier {
  readonly puts = new Durations(putBounds)
  readonly #options: CopierOptions
  readonly #findFence: () => Promise<boolean>
  readonly #encoder = new CopyEncoder()
  readonly #stopping = new AbortController()
  #gathering: Window | undefined
  /** The windows that are closed and not copied, the oldest first. */
  readonly #closed: Window[] = []
  #nextNumber = 0
  /** Settles with the object before the next one. */
  #lastCopied: Promise<void> | undefined
  #waitingBytes = 0
  #cancelTimer = () => {}
  /** Why nothing is copied any more. */
  #ended: CopyError | undefined
  /** Why the store took nothing lately, in words for senders: it names nothing of this machine. */
  #problem: string | undefined

  constructor(options: CopierOptions) {
    const { store, folder, registered } = options
    this.#options = options
    const find = batchCalls(async () => {
      const name = fenceName(folder, (await registered) + 1)
      const signal = AbortSignal.any([this.#stopping.signal, options.clock.timeout(copyLimits.putMsMax)])
      return (await store.head(name, signal)) !== undefined
    })
    this.#findFence = () => find(undefined)
  }

  get objectsInFlight(): number {
    return Math.min(this.#closed.length, copyLimits.putsParallel)
  }

  /** Bytes of pieces that are not copied yet. */
  get waitingBytes(): number {
    return this.#waitingBytes
  }

  get isFenced(): boolean {
    return this.#ended?.reason === 'fenced'
  }

  /** Why nothing more should be handed in now; undefined if it may. */
  get problem(): string | undefined {
    if (this.isFenced) return fencedText
    if (this.#closed[0]?.isLate === true) return `the copy store takes no records: ${this.#problem ?? noAnswer}`
    return this.#waitingBytes > copyLimits.waitingBytesMax ? 'records arrive faster than the copy store takes them' : undefined
  }

  /** Resolves once the piece is copied. Rejects with a CopyError; after `unavailable` it may still be copied. */
  copy(piece: SegmentPiece): Promise<void> {
    return this.#add(piece).answer.promise
  }

  /** Resolves once the piece is copied, however late. Rejects with a CopyError once this writer may not, or the process ends. */
  copyAgain(piece: SegmentPiece): Promise<void> {
    return this.#add(piece).copied.promise
  }

  /** Returns the window with the end of the piece: it counts as copied once those before it are. */
  #add(piece: SegmentPiece): Window {
    let last: Window | undefined
    for (const part of partsOf(piece)) {
      const bytes = pieceBytes(part)
      last = this.#gather()
      last.pieces.push(part)
      last.bytes += bytes
      this.#waitingBytes += bytes
      this.#closeIfDue()
    }
    return last ?? this.#gather()
  }

  /** Resolves once all that was handed in by now is copied. Rejects with a CopyError, also once this writer has ended: it forgets then what it refuses. */
  whenCopied(): Promise<void> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended)
    return (this.#gathering ?? this.#closed.at(-1))?.answer.promise ?? Promise.resolve()
  }

  /** Another machine has the place of this one: nothing more counts as copied. */
  end(): void {
    this.#end(new CopyError('fenced', fencedText))
  }

  /** Copies what was handed in, until the signal aborts. */
  async stop(signal: AbortSignal): Promise<void> {
    if (this.#ended !== undefined) return
    if (this.#gathering !== undefined) this.#close(this.#gathering)
    await settlesBefore(this.whenCopied(), signal).catch(() => undefined)
    this.#end(new CopyError('unavailable', 'the node stops'))
  }

  #gather(): Window {
    if (this.#gathering !== undefined) return this.#gathering
    const { clock, windowMs } = this.#options
    const window = new Window()
    if (this.#ended !== undefined) {
      window.reject(this.#ended)
      return window
    }
    const ms = this.#closed.length === 0 ? Math.min(windowMs, copyLimits.quietWindowMs) : windowMs
    this.#gathering = window
    window.cancelLate = clock.setTimer(() => this.#answerLate(window), copyLimits.answerMsMax)
    this.#cancelTimer = clock.setTimer(() => {
      window.isOver = true
      this.#closeIfDue()
    }, ms)
    return window
  }

  /** A window gathers on until it is full, while as many objects as may be are in flight. */
  #closeIfDue(): void {
    const window = this.#gathering
    if (window === undefined) return
    const isFull = window.bytes >= copyLimits.objectBytes
    if (isFull || (window.isOver && this.#closed.length < copyLimits.putsParallel)) this.#close(window)
  }

  #close(window: Window): void {
    this.#cancelTimer()
    this.#gathering = undefined
    this.#closed.push(window)
    this.#putNext()
  }

  /** Begins to put those windows that have their turn. */
  #putNext(): void {
    for (const window of this.#closed.slice(0, copyLimits.putsParallel)) {
      if (window.number !== undefined) continue
      window.number = this.#nextNumber
      this.#nextNumber += 1
      void this.#copyWindow(window, window.number, this.#lastCopied)
      this.#lastCopied = window.copied.promise
    }
  }

  async #copyWindow(window: Window, number: number, before: Promise<void> | undefined): Promise<void> {
    try {
      await this.#options.registered
      await this.#put(window, number)
      // Not before the put: a machine that has put the fence and looks for objects finds this one, or this writer finds the fence.
      const isFenced = await this.#untilItWorks(() => this.#findFence())
      if (isFenced) throw new CopyError('fenced', fencedText)
      await before
      this.#options.onCopied(number, window.pieces)
      this.#waitingBytes -= window.bytes
      this.#closed.shift()
      window.copied.resolve()
      window.answer.resolve()
      this.#putNext()
      this.#closeIfDue()
    } catch (error) {
      window.reject(error)
      // Anything else is a bug, after which no window would be copied any more. Thrown outside the promise, which would swallow it.
      if (error instanceof CopyError) this.#end(error)
      else
        queueMicrotask(() => {
          throw error
        })
    } finally {
      window.cancelLate()
    }
  }

  #answerLate(window: Window): void {
    window.isLate = true
    window.answer.reject(
      new CopyError('unavailable', `the copy store did not take the records in time: ${this.#problem ?? noAnswer}`),
    )
  }

  async #put(window: Window, number: number): Promise<void> {
    const { nodeId, incarnation, store, folder, clock, random } = this.#options
    const header: CopyHeader = {
      ...{ kind: 'pieces', nodeId, incarnation, number },
      writer: random.bytes(16).toString('hex'),
      createdAtMicros: clock.now() * 1_000,
    }
    const object = await this.#encoder.encode(header, window.pieces)
    const name = copyName(folder, incarnation, number)
    const startedAtMs = clock.monotonic()
    await this.#untilItWorks(async (signal) => {
      const isNew = await store.putIfAbsent(name, object, { contentType, metadata: {}, attempts: 1, signal })
      if (!isNew) await this.#expectOwn(number, header, signal)
    })
    this.puts.observe(clock.monotonic() - startedAtMs)
  }

  /** An earlier attempt may have been stored, and its answer lost. */
  async #expectOwn(number: number, { writer }: CopyHeader, signal: AbortSignal): Promise<void> {
    const { incarnation, store, folder } = this.#options
    const object = await readCopy(store, folder, { incarnation, number }, signal)
    if (object === undefined) throw new Error('the copy store refused a new object, and does not have it')
    if (object === 'damaged') throw new Error('the copy store has another object under a new name, which is damaged')
    if (object.writer !== writer) throw new CopyError('fenced', fencedText)
  }

  async #untilItWorks<R>(work: (signal: AbortSignal) => Promise<R>): Promise<R> {
    const { clock, logger } = this.#options
    for (let pauseMs: number = copyLimits.retryMsMin; ; pauseMs = Math.min(pauseMs * 2, copyLimits.retryMsMax)) {
      this.#stopping.signal.throwIfAborted()
      try {
        const result = await work(AbortSignal.any([this.#stopping.signal, clock.timeout(copyLimits.putMsMax)]))
        if (this.#problem !== undefined) logger.notice('the copy store works again')
        this.#problem = undefined
        return result
      } catch (error) {
        if (error instanceof CopyError) throw error
        if (this.#problem === undefined && !this.#stopping.signal.aborted)
          logger.warn({ reason: errorMessage(error), err: error }, 'the copy store fails; it is tried again')
        this.#problem = describe(error)
      }
      await sleep(clock, pauseMs, this.#stopping.signal)
    }
  }

  #end(error: CopyError): void {
    if (this.#ended !== undefined) return
    this.#ended = error
    this.#stopping.abort(error)
    this.#cancelTimer()
    for (const window of this.#closed) window.reject(error)
    this.#gathering?.reject(error)
    this.#gathering = undefined
    if (this.isFenced) this.#options.logger.error({ node_id: this.#options.nodeId }, fencedText)
  }
}

/** Without paths and names, which senders must not learn. */
function describe(error: unknown): string {
  if (error instanceof ObjectStoreError) return error.reason.replaceAll('_', ' ')
  return errorCode(error) ?? (error instanceof Error && error.name === 'TimeoutError' ? noAnswer : 'it fails')
}

/** Splits what is larger than an object. */
function* partsOf(piece: SegmentPiece): Generator<SegmentPiece> {
  if (pieceBytes(piece) <= copyLimits.objectBytes) return yield piece
  const { chunks, ...rest } = piece
  let { at } = piece
  for (const chunk of chunks)
    for (let from = 0; from < chunk.byteLength; from += copyLimits.objectBytes) {
      const part = chunk.subarray(from, from + copyLimits.objectBytes)
      yield { ...rest, at, chunks: [part] }
      at += part.byteLength
    }
}
