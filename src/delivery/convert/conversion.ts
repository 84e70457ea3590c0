/**
 * Converts one segment, attempt by attempt.
 *
 * Owns: the plan of an attempt, its slot and priority, and what follows a required view that fails. Does not own: the processes
 * (conversion-runner.ts), what the policy decides (policy.ts).
 * Law: an attempt that ends leaves no files behind, except those that the next one continues with. Records are never dropped silently: if no view
 * applies, they become raw Parquet. A view counts as failed only if the node converts something else right after. While a required view fails
 * and the views of the endpoint stay as they are, only the first segment of its log is tried again, and only in a slot that no other segment wants.
 */
import { once } from 'node:events'
import { isDeepStrictEqual } from 'node:util'
import { type Clock, isoTimestamp, sleep } from '#lib/clock.ts'
import type { FairSlots } from '#lib/fair-slots.ts'
import { settlesBefore } from '#lib/settles-before.ts'
import type { SlotOwner } from '#lib/slot-schedule.ts'
import { SegmentError } from '#log/segment-error.ts'
import { keepRecords } from '#model/endpoint.ts'
import type { BoundView } from '#model/snapshot.ts'
import type { DeliveryRun, SegmentFacts } from '../segments/delivery-run.ts'
import type { Endpoints } from '../segments/endpoints.ts'
import { type FactsOptions, readFacts } from '../segments/read-facts.ts'
import type { KeyWindows } from '../windows/key-windows.ts'
import { viewsAt } from './bound-views.ts'
import { firstLine, RequiredViewFailed } from './build/failures.ts'
import { NotConfiguredError } from './build/transient-error.ts'
import { type CarryOutOptions, carryOut, delayOf } from './carry-out.ts'
import type { ConfigurationCheck } from './configuration-check.ts'
import type { ConversionRunner } from './conversion-runner.ts'
import { examine, examineSegment } from './examination.ts'
import type { ExpensiveViews } from './expensive-views.ts'
import type { HeldLogs } from './held-logs.ts'
import type { Outcome, Verdict } from './policy.ts'
import type { Attempted, Work } from './repeat-attempts.ts'
import { type BuiltArtifacts, type LentSlots, SegmentBuild } from './segment-build.ts'
import { SegmentWindows } from './segment-windows.ts'
import { buildShadows } from './shadow-build.ts'
import type { ShadowRests } from './shadow-rests.ts'
import { isDetached } from './view-progress.ts'

export type ConversionOptions = CarryOutOptions &
  FactsOptions & {
    readonly runner: ConversionRunner
    /** For one conversion. */
    readonly memoryBytes: number
    /** Where conversions run. */
    readonly builds: FairSlots
    readonly endpoints: Endpoints
    readonly configuration: ConfigurationCheck
    readonly expensive: ExpensiveViews
    readonly rests: ShadowRests
    readonly held: HeldLogs
    /** Keys of earlier segments, for views with `dedupe_within`. */
    readonly windows?: KeyWindows
    readonly clock: Clock
  }

export class Conversion implements Work<BuiltArtifacts> {
  readonly #options: ConversionOptions
  readonly #facts: SegmentFacts
  readonly #run: DeliveryRun
  /** Aborts when every earlier segment of the log is committed or parked. */
  readonly #turn = new AbortController()
  /** The build that the next attempt continues. */
  #build: SegmentBuild | undefined
  #order: number | undefined
  #attempts = 0
  /** A salvage that fails may have replaced the segment: a disk can fail after it has done what was asked. */
  #mayBeReplaced = false
  /** The views of the endpoint when the last attempt began. */
  #views = ''
  /** The views with which a required view failed, if the segment rests since. */
  #heldViews: string | undefined
  #updated = new AbortController().signal
  readonly #windows: SegmentWindows

  constructor(options: ConversionOptions, facts: SegmentFacts, run: DeliveryRun) {
    this.#options = options
    this.#facts = facts
    this.#run = run
    this.#windows = new SegmentWindows(options.windows, facts)
    void run.turn.then(() => this.#turn.abort())
  }

  async attempt(): Promise<Attempted<BuiltArtifacts>> {
    const { builds, endpoints, held, clock, logger } = this.#options
    const { segment, signal: stop, report } = this.#run
    const { id } = this.#facts
    const startedAt = clock.monotonic()
    this.#updated = endpoints.nextUpdate()
    const isHeld = await this.#waitForConfiguration()
    const notReady = await this.#prepareWindows()
    if (notReady !== undefined) return notReady
    // Any change may release a segment that is held, whose attempt may wait for a slot for long. Others only end if a view of theirs is detached.
    using changed = endpoints.when(() => (isHeld ? this.#describeViews() !== this.#views : this.#isDetached()))
    const use = {
      priority: isHeld ? 'low' : 'normal',
      order: this.#order,
      signal: AbortSignal.any([stop, changed.signal]),
    } as const
    using slot = await builds.acquire(this.#owner, use).catch(() => undefined)
    stop.throwIfAborted()
    if (slot === undefined) return { kind: 'superseded' }
    this.#order = slot.order
    const signal = AbortSignal.any([use.signal, slot.preempted])
    try {
      this.#build ??= this.#plan()
      const built = await this.#build.attempt(this.#lentSlots, signal)
      if (built === undefined) return { kind: 'unfinished' }
      if (this.#mayBeReplaced && (await this.#isReplaced())) return { kind: 'salvaged' }
      await this.#proveFailures(built, signal)
      const result = await this.#windows.register(built)
      this.#build = undefined
      if (held.release(id, segment.logName))
        logger.info({ segment: id, endpoint: segment.logName }, 'required view no longer fails')
      report(null)
      return { kind: 'done', result }
    } catch (error) {
      const outcome = signal.aborted ? undefined : await this.#examine(error, clock.monotonic() - startedAt, signal)
      stop.throwIfAborted()
      // A segment that was salvaged is another one: its facts must be read again, also if the attempt was to end meanwhile.
      const isReplaced = outcome?.kind === 'salvaged' || outcome?.kind === 'quarantined'
      return outcome === undefined || (signal.aborted && !isReplaced) ? { kind: 'superseded' } : outcome
    }
  }

  async carryOut(verdict: Verdict, outcome: Outcome): Promise<void> {
    if (verdict.kind === 'continue') return
    await this.#discard()
    if (verdict.kind !== 'hold' || outcome.kind !== 'view failed')
      return carryOut(this.#options, verdict, outcome, { id: this.#facts.id, run: this.#run, updated: this.#updated })
    this.#options.held.hold(this.#facts.id, outcome.error, this.#run)
    const { pause } = verdict
    this.#heldViews = pause && this.#views
    if (pause === undefined) await this.#waitForViews(this.#turn.signal)
    else await this.#waitForViews(this.#run.signal, delayOf(pause, this.#options.random))
  }

  async end(): Promise<void> {
    this.#options.held.release(this.#facts.id, this.#run.segment.logName)
    this.#windows.end()
    await this.#discard()
  }

  async #isReplaced(): Promise<boolean> {
    return !isDeepStrictEqual(await readFacts(this.#options, this.#run.segment), this.#facts)
  }

  /** Waits for the turn of a segment whose views have a window. Returns an outcome if what it is compared with is not ready. */
  async #prepareWindows(): Promise<Outcome | undefined> {
    const { signal } = this.#run
    if (this.#build !== undefined || !this.#windows.areNeededBy(this.#viewsOfSegment)) return undefined
    await settlesBefore(this.#run.turn, signal)
    signal.throwIfAborted()
    try {
      await this.#windows.prepare(this.#viewsOfSegment, signal)
      return undefined
    } catch (error) {
      signal.throwIfAborted()
      return this.#examine(error, 0, signal)
    }
  }

  get #viewsOfSegment(): readonly BoundView[] {
    const { output_formats: formats = [], views = [] } = this.#options.endpoints.find(this.#facts.name.endpointId) ?? {}
    return formats.includes('parquet_views') ? viewsAt(views, this.#facts.sealedAt) : []
  }

  /** Returns whether nothing has changed since a required view failed. */
  async #waitForConfiguration(): Promise<boolean> {
    const { configuration, held } = this.#options
    const { segment, signal } = this.#run
    this.#views = this.#describeViews()
    if (this.#attempts++ === 0 && held.has(segment.logName)) {
      await this.#waitForViews(this.#turn.signal)
      this.#views = this.#describeViews()
    }
    const isHeld = this.#heldViews === this.#views
    if (!isHeld) await configuration.waitUntilCurrent(signal)
    return isHeld
  }

  /** Waits until the endpoint has other views, `until` aborts, or the time is over. Throws the abort reason of the run. */
  async #waitForViews(until: AbortSignal, delayMs?: number): Promise<void> {
    const { signal } = this.#run
    using changed = this.#options.endpoints.when(() => this.#describeViews() !== this.#views)
    const over = AbortSignal.any([signal, until, changed.signal])
    if (delayMs !== undefined) await sleep(this.#options.clock, delayMs, over)
    else if (!over.aborted) await once(over, 'abort')
    signal.throwIfAborted()
  }

  /** Returns a text that differs if a conversion may end differently. Snapshots also change for reasons of other endpoints. */
  #describeViews(): string {
    const { output_formats, views = [] } = this.#options.endpoints.find(this.#run.segment.logName) ?? {}
    return JSON.stringify([output_formats, views.map(({ definition: _, ...binding }) => binding)])
  }

  /** Whether a view that is being built was detached meanwhile: it is optional then, and has less time. */
  #isDetached(): boolean {
    const endpoint = this.#options.endpoints.find(this.#run.segment.logName)
    const attached = (views: readonly BoundView[] = []) =>
      new Set(views.flatMap((view) => (isDetached(view) ? [] : view.binding_id)))
    return endpoint !== undefined && !attached(this.#build?.views).isSubsetOf(attached(endpoint.views))
  }

  #plan(): SegmentBuild {
    const { endpoints, runner, expensive, rests, builds, memoryBytes, clock } = this.#options
    const { name, sealedAt, walBytes: bytes, records } = this.#facts
    const endpoint = endpoints.find(name.endpointId)
    if (endpoint === undefined) throw new NotConfiguredError('the configuration of this node does not have the endpoint yet')
    if (endpoint.destination === null) throw new NotConfiguredError('no destination is bound to the endpoint')
    const formats = endpoint.output_formats
    const views = this.#viewsOfSegment.map((view) => this.#windows.withWindow(view))
    const hasOutput = keepRecords(formats) || views.length > 0
    const outputFormats = hasOutput ? formats : [...formats, 'parquet' as const]
    const segment = { segment: this.#run.segment, bytes, memoryBytes }
    const shadows = viewsAt(endpoint.shadows ?? [], sealedAt)
    const runShadows = (signal: AbortSignal) =>
      buildShadows(runner, rests, { ...segment, shadows, records, at: () => isoTimestamp(clock.now()) }, signal)
    const findKeys = (viewId: string, keys: Uint8Array) => this.#windows.find(viewId, keys)
    const request = { ...segment, outputFormats, views, findKeys, ...(shadows.length === 0 ? {} : { runShadows }) }
    return new SegmentBuild(runner, expensive, request, builds.capacity)
  }

  /** If optional views failed, converts something else to prove that they are the cause. */
  async #proveFailures({ failed }: BuiltArtifacts, signal: AbortSignal): Promise<void> {
    const { runner, warnings } = this.#options
    if (failed.length > 0) await runner.probe(signal)
    const endpoint = this.#facts.name.endpointId
    for (const { view, error } of failed) {
      const fields = { segment: this.#facts.id, endpoint, view: view.name, version: view.version, reason: firstLine(error) }
      warnings.warn(`${endpoint} ${view.view_id}`, fields, 'view failed; delivery goes on without it')
    }
  }

  async #examine(error: unknown, tookMs: number, signal: AbortSignal): Promise<Outcome> {
    const { segment } = this.#run
    this.#mayBeReplaced ||= error instanceof SegmentError
    const probe = () => this.#options.runner.probe(signal)
    if (!(error instanceof RequiredViewFailed))
      return examineSegment(error, { ...this.#options, segment, id: this.#facts.id, probe })
    const outcome = await examine(error, probe)
    return outcome.kind === 'failed' ? { kind: 'view failed', error, tookMs, isFirst: this.#turn.signal.aborted } : outcome
  }

  async #discard(): Promise<void> {
    const build = this.#build
    this.#build = undefined
    await build?.remove()
  }

  get #owner(): SlotOwner {
    return ownerOf(this.#run, this.#options.endpoints)
  }

  get #lentSlots(): LentSlots {
    const { builds } = this.#options
    return {
      count: builds.capacity - 1,
      lend: (signal, work) => builds.run(this.#owner, { priority: 'low', signal }, work),
    }
  }
}

/** Returns who uses a slot for the segment. */
export function ownerOf({ segment: { logName } }: DeliveryRun, endpoints: Endpoints): SlotOwner {
  const { account_id = logName, account_weight = 1 } = endpoints.find(logName) ?? {}
  return { tenant: account_id, member: logName, weight: account_weight }
}
