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
import { newIncarnation, type Random } from '#lib/random.ts'
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
import { HeldObjects, nameOf, refOf } from './held-objects.ts'
import { KeyCopies, type KeyPart, type KeySource, seqNameOf } from './key-copies.ts'
import { copyLimits } from './limits.ts'
import { checkCopyStore } from './store-check.ts'
import { findWriterState } from './writer-state.ts'

export type CopiesHooks = {
  /** Whether control accepts this node, after another machine had taken it over. Throws while control cannot be asked. */
  readonly isAccepted: (signal: AbortSignal) => Promise<boolean>
  readonly findDelivered: FindDelivered
  readonly keys: KeySource
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

export class Copies implements Service {
  readonly name = 'copies'
  readonly #options: CopiesOptions
  readonly #copier: Copier
  readonly #keyCopier: Copier
  readonly #held: HeldObjects
  readonly #keys: KeyCopies
  readonly #earlier: EarlierCopies
  readonly #registered = Promise.withResolvers<number>()
  readonly #upkeep: Periodic
  /** Segments of which all is copied, or was handed in by this process. */
  readonly #followed = new Map<string, SegmentRef>()
  /** By log: the segments without a gap that this process was the first to hand in. Their keys go with their objects. */
  readonly #own = new Map<string, { first: number; last: number }>()
  /** Segments that may lack a copy: those of earlier processes, and those from before the endpoint wanted copies. */
  readonly #lacking = new Map<string, SegmentRef>()
  /** Logs that could not be listed since the start. */
  readonly #unlisted = new Set<string>()
  #isRegistered = false
  /** Why the store is unfit for copies. */
  #unfit: string | undefined
  #hasReadEarlier = false

  constructor(options: CopiesOptions) {
    const { store, folder, segments, findDelivered, endpoint, keys: source, clock, random, logger } = options
    this.#options = options
    const incarnation = newIncarnation(random)
    const keyIncarnation = newIncarnation(random)
    this.#copier = this.#copierOf(incarnation)
    this.#keyCopier = this.#copierOf(keyIncarnation)
    const copy = (piece: SegmentPiece) => this.#copier.copyAgain(piece)
    this.#keys = new KeyCopies({
      ...{ source, incarnation: keyIncarnation, clock },
      copied: () => new Set([...this.#held.refs(), ...this.#followed.values(), ...this.#lacking.values()].map(seqNameOf)),
      copy: (piece) => this.#keyCopier.copyAgain(piece),
      copyNow: (piece) => this.#keyCopier.copy(piece),
    })
    const isOwned = (logName: string) => endpoint(logName)?.isOwned ?? true
    const onDelivered = (name: string) => this.#followed.delete(name)
    const onLost = (ref: SegmentRef) => {
      this.#followed.delete(nameOf(ref))
      this.#earlier.forget(ref)
      this.#lacking.set(nameOf(ref), ref)
    }
    const common = { store, folder, segments, copy, logger }
    const own = { incarnations: [incarnation, keyIncarnation], findDelivered, isOwned, onDelivered, onLost, clock }
    this.#held = new HeldObjects({
      ...common,
      ...own,
      keepKeys: (delivered) => this.#keys.keep(delivered),
      knowsKeys: (hour) => source.knows(hour),
    })
    const onObject = (ofObject: string, number: number, pieces: readonly SegmentPiece[]) =>
      this.#held.add(ofObject, number, pieces)
    this.#earlier = new EarlierCopies({ ...common, onObject })
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
      return this.#unfit ?? 'the copy store was not reached since the start of this node'
    return this.#copier.problem
  }

  /** Call it before anything is appended: what is there by now is of an earlier process. */
  async start(): Promise<void> {
    for (const logName of await this.#options.segments.logNames()) await this.#listLacking(logName)
    await this.#upkeep.start()
  }

  #copierOf(incarnation: string): Copier {
    return new Copier({
      ...this.#options,
      incarnation,
      registered: this.#registered.promise,
      onCopied: (number, pieces) => this.#held.add(incarnation, number, pieces),
    })
  }

  copy(piece: SegmentPiece): Promise<void> {
    if (piece.at === 0) this.#follow(piece)
    return this.#copier.copy(piece)
  }

  /**
   * Resolves once all that a segment has by now is copied. Of one that is delivered, the key is copied, which `keyOf` reads: nobody else knows
   * whether an earlier process did that. Rejects with a CopyError if it takes long.
   */
  async whenCopied(logName: string, seq: number, keyOf: () => Promise<KeyPart | undefined>): Promise<void> {
    const { segments } = await this.#options.segments.readLog(logName).catch((cause: unknown) => {
      throw new CopyError('unavailable', 'this node cannot list the segments of the endpoint now', { cause })
    })
    const present = segments.filter((segment) => segment.seq === seq)
    const lacking = present.filter((segment) => !this.#followed.has(nameOf(segment)))
    if (lacking.length > 0) {
      for (const segment of lacking) this.#lacking.set(nameOf(segment), segment)
      this.#upkeep.runNow()
      throw new CopyError('unavailable', 'the records are on this disk, and are being copied')
    }
    await this.#copier.whenCopied()
    const own = this.#own.get(logName)
    if (present.length > 0 || (own !== undefined && own.first <= seq && seq <= own.last)) return
    const key = await keyOf()
    if (key !== undefined) await this.#keys.put(key)
  }

  #follow(piece: SegmentPiece): void {
    const { logName, seq } = piece
    this.#followed.set(nameOf(piece), refOf(piece))
    const own = this.#own.get(logName)
    this.#own.set(logName, { first: own?.last === seq - 1 ? own.first : seq, last: seq })
  }

  async stop(signal: AbortSignal): Promise<void> {
    // In this order: the upkeep may wait for the copier.
    await this.#copier.stop(signal)
    await this.#keyCopier.stop(signal)
    await this.#upkeep.stop()
  }

  /** A log that cannot be listed now is listed later: then its segments of this process are known. */
  async #listLacking(logName: string): Promise<void> {
    try {
      const { segments } = await this.#options.segments.readLog(logName)
      for (const segment of segments) if (!this.#followed.has(nameOf(segment))) this.#lacking.set(nameOf(segment), segment)
      this.#unlisted.delete(logName)
    } catch (error) {
      if (!this.#unlisted.has(logName))
        this.#options.logger.warn(
          { log: logName, reason: errorMessage(error) },
          'a log cannot be listed: its segments are not copied again',
        )
      this.#unlisted.add(logName)
    }
  }

  async #runUpkeep(signal: AbortSignal): Promise<void> {
    if (!this.#isRegistered) await this.#register(signal)
    if (this.#copier.isFenced) return
    if (!this.#hasReadEarlier) await this.#readEarlier(signal)
    await this.#copyLacking()
    await this.#held.removeDelivered(signal)
  }

  async #register(signal: AbortSignal): Promise<void> {
    const { store, folder } = this.#options
    await this.#checkStore(signal)
    const found = await findWriterState(store, folder, signal)
    const before = found?.state ?? { fences: 0, below: {} }
    const fences = await countFences(store, folder, before.fences, signal)
    // Asked after the fences were counted: a machine that takes over later adds another one.
    if (fences > before.fences && !(await this.#options.isAccepted(signal))) return this.#copier.end()
    await this.#held.register({ number: (found?.number ?? -1) + 1, state: { ...before, fences } }, signal)
    this.#isRegistered = true
    this.#registered.resolve(fences)
  }

  /** Throws if the store does not do what copies rest on. */
  async #checkStore(signal: AbortSignal): Promise<void> {
    const { logger } = this.#options
    const findings = await checkCopyStore({ ...this.#options, signal })
    this.#unfit = undefined
    for (const { step, kind, problem, isUnknown } of findings) {
      if (problem === null) continue
      if (kind === 'needed') {
        // An error of the store is in the log alone: it may name what senders must not learn.
        if (!isUnknown) this.#unfit = `the copy store is unfit for copies: not every one of its answers holds (${step})`
        throw new Error(`the check of the copy store failed: ${step}: ${problem}`)
      }
      const isFence = kind === 'fence' && !isUnknown
      logger.warn(
        { step, problem },
        isFence ? 'the copy store is not a second fence: see inlet doctor' : 'the copy store was not tried in full',
      )
    }
  }

  async #readEarlier(signal: AbortSignal): Promise<void> {
    for (const [incarnation, from] of this.#held.earlier()) await this.#earlier.read(incarnation, from, signal)
    this.#hasReadEarlier = true
  }

  async #copyLacking(): Promise<void> {
    const { segments, endpoint } = this.#options
    for (const logName of [...this.#unlisted]) await this.#listLacking(logName)
    for (const [logName, lacking] of Map.groupBy(this.#lacking.values(), (ref) => ref.logName)) {
      const found = endpoint(logName)
      if (found === undefined || this.#unlisted.has(logName)) continue
      const listing = await segments.readLog(logName).catch(() => undefined)
      if (listing === undefined) {
        this.#unlisted.add(logName)
        continue
      }
      const present = new Map(listing.segments.map((segment) => [nameOf(segment), segment]))
      for (const ref of lacking) {
        const segment = present.get(nameOf(ref))
        // An open one is sealed soon: by the recovery, or by the settings that want copies.
        if (segment?.state === 'open') continue
        if (segment !== undefined && found.isCopied && !(await this.#earlier.complete(segment))) continue
        if (segment !== undefined && found.isCopied) {
          this.#followed.set(nameOf(ref), ref)
          this.#held.copiedAgain(nameOf(ref))
        }
        this.#lacking.delete(nameOf(ref))
      }
    }
  }
}
