/**
 * Stage 1 of a delivery: builds the files of a segment.
 *
 * Owns: which files an endpoint gets, one conversion's slot, and the proof that a view failed by itself.
 * Does not own: the processes that convert (conversions.ts), how a failure is handled (retry-or-park.ts, view-holds.ts).
 * Law: an attempt that fails leaves no files behind. Records are never dropped silently: if no view applies, they become raw Parquet. A view
 * counts as failed only if the node converts something else right after.
 */
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import type { FairSlots } from '#lib/fair-slots.ts'
import type { SlotOwner, SlotPriority } from '#lib/slot-schedule.ts'
import type { SegmentRef } from '#log/segment-source.ts'
import { commitId } from '#model/commit.ts'
import { keepRecords } from '#model/endpoint.ts'
import type { DeliveryRun, SegmentFacts } from '../segments/delivery-run.ts'
import type { Endpoints } from '../segments/endpoints.ts'
import { viewsAt } from './bound-views.ts'
import { firstLine, RequiredViewFailed } from './build/failures.ts'
import { NotConfiguredError } from './build/transient-error.ts'
import type { BuiltArtifacts } from './build-directory.ts'
import type { ConfigurationCheck } from './configuration-check.ts'
import type { Conversions, SegmentConversion } from './conversions.ts'
import { Detachment } from './detachment.ts'
import { type RetryOrParkOptions, retryOrPark } from './retry-or-park.ts'
import { buildGroups, groupsOf } from './view-groups.ts'
import { ViewHolds } from './view-holds.ts'

export type ConverterOptions = RetryOrParkOptions & {
  readonly nodeId: string
  readonly conversions: {
    readonly build: (request: SegmentConversion) => Promise<BuiltArtifacts>
    readonly probe: Conversions['probe']
  }
  /** For one conversion. */
  readonly memoryBytes: number
  /** Where conversions run. */
  readonly builds: FairSlots
  readonly endpoints: Endpoints
  readonly configuration: ConfigurationCheck
  readonly clock: Clock
}

export class Converter {
  readonly #options: ConverterOptions
  readonly #holds: ViewHolds

  constructor(options: ConverterOptions) {
    this.#options = options
    this.#holds = new ViewHolds(options)
  }

  /** Throws DeliveryEnded or the signal's reason. */
  async readFacts(run: DeliveryRun): Promise<SegmentFacts> {
    const id = commitId(this.#options.nodeId, run.segment.incarnation, run.segment.seq)
    return retryOrPark(this.#options, id, run, {
      attempt: () => this.#readFacts(id, run.segment),
      proveHealth: () => this.#proveHealth(run),
    })
  }

  /** The caller removes the files. Throws DeliveryEnded or the signal's reason. */
  async convert(facts: SegmentFacts, run: DeliveryRun): Promise<BuiltArtifacts> {
    return this.#holds.convert(facts.id, run, (priority, signal) => {
      const attempt = { ...run, signal }
      return retryOrPark(this.#options, facts.id, attempt, {
        attempt: () => this.#convert(facts, attempt, priority),
        proveHealth: () => this.#proveHealth(attempt),
      })
    })
  }

  async #readFacts(id: string, segment: SegmentRef): Promise<SegmentFacts> {
    const { segments, nodeId } = this.#options
    const { logName, incarnation, seq } = segment
    const reader = await segments.open(segment)
    try {
      const { sealedAtMicros, records, damagedRecords } = reader.footer
      return {
        id,
        name: { endpointId: logName, nodeId, log: incarnation, seq, sealedAtMicros },
        records,
        recordsDamaged: damagedRecords,
        walBytes: reader.bytes,
        sealedAt: isoTimestamp(Math.floor(sealedAtMicros / 1000)),
      }
    } finally {
      await reader.close()
    }
  }

  async #convert(facts: SegmentFacts, run: DeliveryRun, priority: SlotPriority): Promise<BuiltArtifacts> {
    const { builds, configuration } = this.#options
    if (priority === 'normal') await configuration.waitUntilCurrent(run.signal)
    return await builds.run(this.#ownerOf(run), { priority, signal: run.signal }, (signal) =>
      this.#buildVerified(facts, { ...run, signal }),
    )
  }

  #ownerOf({ segment: { logName } }: DeliveryRun): SlotOwner {
    const { account_id = logName, account_weight = 1 } = this.#options.endpoints.find(logName) ?? {}
    return { group: account_id, member: logName, weight: account_weight }
  }

  /** Builds the files. If a view fails, converts something else to prove that the view is the cause. */
  async #buildVerified(facts: SegmentFacts, run: DeliveryRun): Promise<BuiltArtifacts> {
    const { warnings } = this.#options
    try {
      const built = await this.#build(facts, run)
      if (built.failed.length === 0) return built
      await this.#options.conversions.probe(run.signal).catch(async (error: unknown) => {
        await built.remove()
        throw error
      })
      const endpoint = facts.name.endpointId
      for (const { view, error } of built.failed) {
        const fields = { segment: facts.id, endpoint, view: view.name, version: view.version, reason: firstLine(error) }
        warnings.warn(`${endpoint} ${view.view_id}`, fields, 'view failed; delivery goes on without it')
      }
      return built
    } catch (error) {
      if (error instanceof RequiredViewFailed) await this.#options.conversions.probe(run.signal)
      throw error
    }
  }

  /** Starts again if a view is detached meanwhile: it is optional then, and has less time. */
  async #build(facts: SegmentFacts, run: DeliveryRun): Promise<BuiltArtifacts> {
    for (;;) {
      const request = this.#planOf(facts)
      using detachment = new Detachment(this.#options.endpoints, facts.name.endpointId, request.views)
      const signal = AbortSignal.any([run.signal, detachment.signal])
      try {
        return await this.#buildGroups({ ...request, segment: run.segment, signal }, run)
      } catch (error) {
        run.signal.throwIfAborted()
        if (!detachment.signal.aborted) throw error
      }
    }
  }

  #buildGroups(request: SegmentConversion, run: DeliveryRun): Promise<BuiltArtifacts> {
    const { builds, conversions } = this.#options
    const { views, outputFormats, bytes, signal } = request
    const groups = groupsOf(views, { bytes, slots: builds.capacity })
    if (groups.length === 1) return conversions.build(request)
    return buildGroups({
      groups,
      build: (views, position, signal) =>
        conversions.build({ ...request, views, outputFormats: position === 0 ? outputFormats : ['parquet_views'], signal }),
      lend: (signal, work) => builds.run(this.#ownerOf(run), { priority: 'low', signal }, work),
      others: builds.capacity - 1,
      signal,
    })
  }

  #planOf({ name, sealedAt, walBytes }: SegmentFacts): Omit<SegmentConversion, 'segment' | 'signal'> {
    const { endpoints, memoryBytes } = this.#options
    const endpoint = endpoints.find(name.endpointId)
    if (endpoint === undefined) throw new NotConfiguredError('the configuration of this node does not have the endpoint yet')
    if (endpoint.destination === null) throw new NotConfiguredError('no destination is bound to the endpoint')
    const formats = endpoint.output_formats
    const views = formats.includes('parquet_views') ? viewsAt(endpoint.views, sealedAt) : []
    const hasOutput = keepRecords(formats) || views.length > 0
    const outputFormats = hasOutput ? formats : [...formats, 'parquet' as const]
    return { bytes: walBytes, outputFormats, views, memoryBytes }
  }

  async #proveHealth(run: DeliveryRun): Promise<void> {
    const { builds, conversions } = this.#options
    await builds.run(this.#ownerOf(run), run, (signal) => conversions.probe(signal))
  }
}
