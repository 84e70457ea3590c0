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
import type { Random } from '#lib/random.ts'
import type { Service } from '#lib/service.ts'
import { settlesBefore } from '#lib/settles-before.ts'
import type { Logger } from '#lib/telemetry.ts'
import { pieceBytes, type SegmentPiece } from '#log/segment-piece.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { CopyError } from './copy-error.ts'
import { copyName, fenceName } from './copy-names.ts'
import { type CopyHeader, decodeCopy, encodeCopy } from './copy-object.ts'
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
const fencedText = 'another machine has taken over this node, and has its copies'

export class Copier implements Service {
  readonly name = 'copies'
  readonly puts = new Durations(putBounds)
  readonly #options: CopierOptions
  readonly #findFence: () => Promise<boolean>
  readonly #stopping = new AbortController()
  #gathering: Window | undefined
  /** The windows that are closed and not copied, the oldest first. */
  readonly #closed: Window[] = []
  #nextNumber = 0
  #waitingBytes = 0
  #cancelTimer = () => {}
  /** Why nothing is copied any more. */
  #ended: CopyError | undefined
  #problem: unknown

  constructor(options: CopierOptions) {
    const { store, folder, registered } = options
    this.#options = options
    const find = batchCalls(async () => {
      const name = fenceName(folder, (await registered) + 1)
      return (await store.head(name, this.#stopping.signal)) !== undefined
    })
    this.#findFence = () => find(undefined)
  }

  get objectsInFlight(): number {
    return this.#closed.length
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
    if (this.#closed[0]?.isLate === true) return `the copy store takes no records: ${errorMessage(this.#problem)}`
    return this.#waitingBytes > copyLimits.waitingBytesMax ? 'records arrive faster than the copy store takes them' : undefined
  }

  async start(): Promise<void> {}

  /** Resolves once the piece is copied. Rejects with a CopyError; after `unavailable` it may still be copied. */
  copy(piece: SegmentPiece): Promise<void> {
    return this.#add(piece).answer.promise
  }

  /** Resolves once the piece is copied, however late. Rejects with a CopyError once this writer may not, or the process ends. */
  copyAgain(piece: SegmentPiece): Promise<void> {
    return this.#add(piece).copied.promise
  }

  #add(piece: SegmentPiece): Window {
    const window = this.#gather()
    const bytes = pieceBytes(piece)
    window.pieces.push(piece)
    window.bytes += bytes
    this.#waitingBytes += bytes
    this.#closeIfDue()
    return window
  }

  /** Resolves once all that was handed in by now is copied. Rejects with a CopyError. */
  whenCopied(): Promise<void> {
    return (this.#gathering ?? this.#closed.at(-1))?.answer.promise ?? Promise.resolve()
  }

  /** Another machine has the place of this one: nothing more counts as copied. */
  end(): void {
    this.#end(new CopyError('fenced', fencedText))
  }

  /** Copies what was handed in, until the signal aborts. */
  async stop(signal: AbortSignal): Promise<void> {
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

  /** A window gathers on while as many objects as may be are in flight. */
  #closeIfDue(): void {
    const window = this.#gathering
    if (window === undefined || this.#closed.length >= copyLimits.putsParallel) return
    if (window.isOver || window.bytes >= copyLimits.objectBytes) this.#close(window)
  }

  #close(window: Window): void {
    this.#cancelTimer()
    this.#gathering = undefined
    const before = this.#closed.at(-1)?.copied.promise
    const number = this.#nextNumber
    this.#nextNumber += 1
    this.#closed.push(window)
    void this.#copyWindow(window, number, before)
  }

  async #copyWindow(window: Window, number: number, before: Promise<void> | undefined): Promise<void> {
    try {
      await this.#options.registered
      await this.#put(window, number)
      // Not before the put: whoever looks for objects after it has put the fence finds this one, or this writer finds the fence.
      const isFenced = await this.#untilItWorks(() => this.#findFence())
      if (isFenced) throw new CopyError('fenced', fencedText)
      await before
      this.#options.onCopied(number, window.pieces)
      this.#waitingBytes -= window.bytes
      this.#closed.shift()
      window.copied.resolve()
      window.answer.resolve()
      this.#closeIfDue()
    } catch (error) {
      if (error instanceof CopyError && error.reason === 'fenced') this.#end(error)
      // Else the process ends.
      window.reject(error)
    } finally {
      window.cancelLate()
    }
  }

  #answerLate(window: Window): void {
    window.isLate = true
    const problem = this.#problem === undefined ? 'it does not answer' : errorMessage(this.#problem)
    window.answer.reject(new CopyError('unavailable', `the copy store did not take the records in time: ${problem}`))
  }

  async #put(window: Window, number: number): Promise<void> {
    const { nodeId, incarnation, store, folder, clock, random } = this.#options
    const header: CopyHeader = {
      ...{ kind: 'pieces', nodeId, incarnation, number },
      writer: random.bytes(16).toString('hex'),
      createdAtMicros: clock.now() * 1_000,
    }
    const object = await encodeCopy(header, window.pieces)
    const name = copyName(folder, incarnation, number)
    const startedAtMs = clock.monotonic()
    await this.#untilItWorks(async (signal) => {
      const isNew = await store.putIfAbsent(name, object, { contentType, metadata: {}, attempts: 1, signal })
      if (!isNew) await this.#expectOwn(name, header)
    })
    this.puts.observe(clock.monotonic() - startedAtMs)
  }

  /** An earlier attempt may have been stored, and its answer lost. */
  async #expectOwn(name: string, { writer }: CopyHeader): Promise<void> {
    const object = await this.#options.store.get(name, this.#stopping.signal)
    if (object === undefined) throw new Error('the copy store refused a new object, and does not have it')
    if ((await decodeCopy(object)).writer !== writer) throw new CopyError('fenced', fencedText)
  }

  async #untilItWorks<R>(work: (signal: AbortSignal) => Promise<R>): Promise<R> {
    const { clock } = this.#options
    for (let pauseMs: number = copyLimits.retryMsMin; ; pauseMs = Math.min(pauseMs * 2, copyLimits.retryMsMax)) {
      this.#stopping.signal.throwIfAborted()
      try {
        return await work(AbortSignal.any([this.#stopping.signal, clock.timeout(copyLimits.putMsMax)]))
      } catch (error) {
        if (error instanceof CopyError) throw error
        this.#problem = error
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
