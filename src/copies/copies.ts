/**
 * The second copy of what this node acknowledges, in an object store.
 *
 * Owns: what happens at the start and the end of the process, and what others see of it. Does not own: objects (copier.ts), their removal
 * (held-objects.ts), and what an earlier process has left (earlier-copies.ts).
 * Law: the start does not wait for the store. Until it answers, records that need a copy are refused.
 */
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Random } from '#lib/random.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { FindDelivered } from '#log/log-writer.ts'
import type { SegmentPiece } from '#log/segment-piece.ts'
import type { SegmentRef, SegmentSource } from '#log/segment-source.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { Copier } from './copier.ts'
import { CopyError } from './copy-error.ts'
import { EarlierCopies } from './earlier-copies.ts'
import { countFences } from './fences.ts'
import { HeldObjects, nameOf } from './held-objects.ts'
import { copyLimits } from './limits.ts'
import { readWriterState } from './writer-state.ts'

export type CopiesHooks = {
  /** Whether control accepts this node, after another machine had taken it over. Throws while control cannot be asked. */
  readonly isAccepted: (signal: AbortSignal) => Promise<boolean>
  readonly findDelivered: FindDelivered
  /** Whether an endpoint has the log, and whether it wants copies; undefined until there is a configuration. */
  readonly endpoint: (logName: string) => { readonly isOwned: boolean; readonly isCopied: boolean } | undefined
}

export type CopiesOptions = CopiesHooks & {
  readonly nodeId: string
  readonly windowMs: number
  readonly store: ObjectStore
  /** The folder of the node in the store, with a slash at its end. */
  readonly folder: string
  readonly segments: Pick<SegmentSource, 'logNames' | 'readLog' | 'open'>
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

const incarnationAlphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'

export class Copies implements Service {
  readonly name = 'copies'
  readonly #options: CopiesOptions
  readonly #copier: Copier
  readonly #held: HeldObjects
  readonly #earlier: EarlierCopies
  readonly #registered = Promise.withResolvers<number>()
  readonly #upkeep: Periodic
  /** Segments of which all is copied, or was handed in by this process. */
  readonly #followed = new Set<string>()
  /** Segments that may lack a copy: those of earlier processes, and those from before the endpoint wanted copies. */
  readonly #lacking = new Map<string, SegmentRef>()
  #isRegistered = false
  #hasReadEarlier = false
  #problem: string | undefined

  constructor(options: CopiesOptions) {
    const { store, folder, segments, findDelivered, endpoint, clock, random, logger } = options
    this.#options = options
    const incarnation = Array.from(random.bytes(10), (byte) => incarnationAlphabet[byte % incarnationAlphabet.length]).join('')
    this.#copier = new Copier({
      ...options,
      incarnation,
      registered: this.#registered.promise,
      onCopied: (number, pieces) => this.#held.add(incarnation, number, pieces),
    })
    const copy = (piece: SegmentPiece) => this.#copier.copyAgain(piece)
    const isOwned = (logName: string) => endpoint(logName)?.isOwned ?? true
    const onDelivered = (name: string) => this.#followed.delete(name)
    this.#held = new HeldObjects({ incarnation, store, folder, segments, findDelivered, isOwned, copy, onDelivered, clock })
    const onObject = (ofObject: string, number: number, pieces: readonly SegmentPiece[]) =>
      this.#held.add(ofObject, number, pieces)
    this.#earlier = new EarlierCopies({ store, folder, segments, onObject, copy, logger })
    this.#upkeep = new Periodic({
      name: 'upkeep of copies',
      intervalMs: copyLimits.upkeepIntervalMs,
      runAtStart: true,
      run: (signal) => this.#runUpkeep(signal),
      failure: 'the copies of earlier records were not looked after',
      recovery: 'the copies of earlier records are looked after again',
      level: 'warn',
      // Control waits for the first report of delivery.
      failuresBeforeLog: 4,
      clock,
      logger,
    })
  }

  /** Objects in the store that are not removed yet. */
  get objects(): number {
    return this.#held.count
  }

  /** Bytes of the pieces in them. */
  get bytes(): number {
    return this.#held.bytes
  }

  get waitingBytes(): number {
    return this.#copier.waitingBytes
  }

  get oldestMs(): number {
    return this.#held.oldestMs
  }

  get objectsInFlight(): number {
    return this.#copier.objectsInFlight
  }

  get puts(): Copier['puts'] {
    return this.#copier.puts
  }

  /** Why records that need a copy are refused; undefined while they are taken. */
  get refusal(): string | undefined {
    if (!this.#isRegistered && !this.#copier.isFenced)
      return `the copy store was not reached since the start: ${this.#problem ?? 'it has not answered yet'}`
    return this.#copier.problem
  }

  /** Call it before anything is appended: what is there by now is of an earlier process. */
  async start(): Promise<void> {
    const { segments } = this.#options
    for (const logName of await segments.logNames())
      for (const segment of (await segments.readLog(logName)).segments) this.#lacking.set(nameOf(segment), segment)
    await this.#upkeep.start()
  }

  copy(piece: SegmentPiece): Promise<void> {
    if (piece.at === 0) this.#followed.add(nameOf(piece))
    return this.#copier.copy(piece)
  }

  /** Resolves once all that a segment has by now is copied, or delivered. Rejects with a CopyError if that takes long. */
  async whenCopied(logName: string, seq: number): Promise<void> {
    const { segments } = await this.#options.segments.readLog(logName)
    const lacking = segments.filter((segment) => segment.seq === seq && !this.#followed.has(nameOf(segment)))
    if (lacking.length > 0) {
      for (const segment of lacking) this.#lacking.set(nameOf(segment), segment)
      this.#upkeep.runNow()
      throw new CopyError('unavailable', 'the records are on this disk, and are being copied')
    }
    await this.#copier.whenCopied()
  }

  async stop(signal: AbortSignal): Promise<void> {
    // In this order: the upkeep may wait for the copier.
    await this.#copier.stop(signal)
    await this.#upkeep.stop()
  }

  async #runUpkeep(signal: AbortSignal): Promise<void> {
    try {
      if (!this.#isRegistered) await this.#register(signal)
      if (this.#copier.isFenced) return
      if (!this.#hasReadEarlier) await this.#readEarlier(signal)
      await this.#copyLacking()
      await this.#held.removeDelivered(signal)
      this.#problem = undefined
    } catch (error) {
      this.#problem = errorMessage(error)
      throw error
    }
  }

  async #register(signal: AbortSignal): Promise<void> {
    const { store, folder } = this.#options
    const before = await readWriterState(store, folder, signal)
    const fences = await countFences(store, folder, before.fences, signal)
    // Asked after the fences were counted: whoever takes over later adds another one.
    if (fences > before.fences && !(await this.#options.isAccepted(signal))) return this.#copier.end()
    await this.#held.register({ ...before, fences }, signal)
    this.#isRegistered = true
    this.#registered.resolve(fences)
  }

  async #readEarlier(signal: AbortSignal): Promise<void> {
    for (const [incarnation, from] of this.#held.earlier()) await this.#earlier.read(incarnation, from, signal)
    this.#hasReadEarlier = true
  }

  async #copyLacking(): Promise<void> {
    const { segments, endpoint } = this.#options
    for (const [logName, lacking] of Map.groupBy(this.#lacking.values(), (ref) => ref.logName)) {
      const found = endpoint(logName)
      if (found === undefined) continue
      const present = new Map((await segments.readLog(logName)).segments.map((segment) => [nameOf(segment), segment]))
      for (const ref of lacking) {
        const segment = present.get(nameOf(ref))
        // An open one is sealed soon: by the recovery, or by the settings that want copies.
        if (segment?.state === 'open') continue
        if (segment !== undefined && found.isCopied && !(await this.#earlier.complete(segment))) continue
        if (segment !== undefined && found.isCopied) this.#followed.add(nameOf(ref))
        this.#lacking.delete(nameOf(ref))
      }
    }
  }
}
