/**
 * Verifies everything on this node and everything that it is to look after in the buckets, slowly and over and over.
 *
 * Owns: when a pass runs, its findings, and how they are reported. Does not own: what a finding is (scrub-node.ts, scrub-bucket.ts).
 * Law: it repairs and removes nothing. A finding stays until it is no longer there, also over a restart: what was found is looked at again long
 * before the next pass. The scrub reads no more bytes a second than configured.
 */
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Files } from '#lib/files.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Random } from '#lib/random.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { type EndpointLag, reportLimits, type ScrubReport } from '#model/node-protocol.ts'
import type { Finding } from '#model/scrub.ts'
import { missingLog, toLag } from '../segments/scanned-log.ts'
import { BytePace } from './byte-pace.ts'
import { scrubLimits } from './limits.ts'
import { BucketScrub, type ScrubBucketOptions } from './scrub-bucket.ts'
import { type NodeTally, type ScrubNodeOptions, scrubNode } from './scrub-node.ts'
import { readScrubState, type ScrubState, writeScrubState } from './scrub-state.ts'

export type ScrubberOptions = Pick<ScrubNodeOptions, 'segments' | 'outbox'> &
  Pick<ScrubBucketOptions, 'delivered' | 'stores' | 'own' | 'isReported'> & {
    /** From the start of one pass to the start of the next, in ms. 0: never. */
    readonly intervalMs: number
    /** 0: files are compared by their size. */
    readonly bytesPerSecond: number
    readonly path: string
    /** Whether control knows this node. */
    readonly isConfigured: () => boolean
    readonly files: Files
    readonly clock: Clock
    readonly random: Random
    readonly logger: Logger
  }

type Running = NonNullable<ScrubState['running']>

const neverScrubbed: Omit<ScrubState, 'due_at'> = { running: null, completed: null, findings: [], unlisted: 0 }

export class Scrubber implements Service {
  readonly name = 'scrubber'
  readonly #options: ScrubberOptions
  readonly #checks: Periodic
  readonly #pace: BytePace
  #state: ScrubState | undefined
  /** On the monotonic clock: when the findings are checked again. At once after a start, which may follow a repair. */
  #recheckAt = 0

  constructor(options: ScrubberOptions) {
    const { bytesPerSecond, clock, logger } = options
    this.#options = options
    this.#pace = new BytePace({ bytesPerSecond: Math.max(bytesPerSecond, scrubLimits.bytesPerSecondMin), clock })
    this.#checks = new Periodic({
      name: this.name,
      intervalMs: scrubLimits.checkMs,
      failureDelay: { msMax: scrubLimits.retryMsMax, random: options.random },
      run: (signal) => this.#runIfDue(signal),
      failure: 'scrub failed; retrying',
      recovery: 'scrub resumed',
      level: 'warn',
      clock,
      logger,
    })
  }

  async start(): Promise<void> {
    const { intervalMs, files, path, clock } = this.#options
    if (intervalMs === 0) return
    const firstAt = clock.now() + Math.min(intervalMs, scrubLimits.firstPassMs)
    const stored = await readScrubState(files, path)
    // A clock that was ahead must not put the next pass off for longer than the interval.
    const dueAt = stored === undefined ? firstAt : Math.min(Date.parse(stored.due_at), clock.now() + intervalMs)
    this.#state = { ...(stored ?? neverScrubbed), due_at: isoTimestamp(dueAt) }
    // Otherwise a process that restarts before its first pass would never begin one.
    if (stored === undefined) await this.#save()
    await this.#checks.start()
  }

  async stop(): Promise<void> {
    await this.#checks.stop()
  }

  /** Known damage: findings of the running pass, and those of the last pass that the running one has not checked again. */
  get findings(): readonly Finding[] {
    const found = new Map<string, Finding>()
    for (const finding of [...(this.#state?.findings ?? []), ...(this.#state?.running?.found ?? [])])
      found.set(nameOf(finding), finding)
    return [...found.values()]
  }

  report(): ScrubReport | undefined {
    if (this.#state === undefined) return undefined
    const { completed, running, unlisted } = this.#state
    return {
      findings: this.findings.length + unlisted + (running?.unlisted ?? 0),
      completed_at: completed?.completed_at ?? null,
      files: completed?.files ?? 0,
      read_bytes: completed?.read_bytes ?? 0,
    }
  }

  /** Adds the findings to the rows of their endpoints. An endpoint without a row gets one, if this node knows the endpoint. */
  addTo(lags: readonly EndpointLag[], isKnown: (endpointId: string) => boolean): readonly EndpointLag[] {
    const byEndpoint = Map.groupBy(this.findings, ({ endpoint_id }) => endpoint_id ?? '')
    if (byEndpoint.size === 0) return lags
    const rows = new Map(lags.map((lag) => [lag.endpoint_id, lag]))
    for (const [id, [first, ...others]] of byEndpoint) {
      if (first === undefined || !(rows.has(id) || isKnown(id))) continue
      const scrub_finding = `${first.where} ${first.message}`.slice(0, reportLimits.reasonCharsMax)
      rows.set(id, { ...(rows.get(id) ?? emptyLag(id)), scrub_findings: others.length + 1, scrub_finding })
    }
    return [...rows.values()].sort((a, b) => (a.endpoint_id < b.endpoint_id ? -1 : 1))
  }

  async #runIfDue(signal: AbortSignal): Promise<void> {
    const { clock, isConfigured } = this.#options
    const state = this.#state
    if (state === undefined || !isConfigured()) return
    // A pass comes first: what is on the node is verified also while control is away, which a recheck asks.
    if (state.running === null && clock.now() < Date.parse(state.due_at)) return this.#recheckIfDue(state, signal)
    state.running ??= await this.#begin(signal)
    await this.#scrubBuckets(state, state.running, signal)
    await this.#complete(state, state.running)
  }

  /** The disk of the node is scrubbed first: its data exists only once. */
  async #begin(signal: AbortSignal): Promise<Running> {
    const started_at = isoTimestamp(this.#options.clock.now())
    const tally = { segments: 0, commits: 0, files: 0, read_bytes: 0 }
    const running: Running = { started_at, after: null, found: [], unlisted: 0, tally }
    const found = await this.#scrubNode((finding) => this.#add(running, finding), signal)
    tally.segments = found.segments
    return running
  }

  #scrubNode(onFinding: (finding: Finding) => void, signal: AbortSignal, only?: readonly Finding[]): Promise<NodeTally> {
    const { segments, outbox } = this.#options
    const onRead = (bytes: number) => this.#pace.spend(bytes, signal)
    return scrubNode({ segments, outbox, onRead, onFinding, signal, ...(only && { only }) })
  }

  #bucketScrub(onFinding: (finding: Finding) => void, signal: AbortSignal, only?: readonly Finding[]): BucketScrub {
    const { delivered, stores, own, isReported, bytesPerSecond, clock } = this.#options
    return new BucketScrub({
      ...{ delivered, stores, own, isReported, clock, signal, onFinding, ...(only && { only }) },
      readsContent: bytesPerSecond > 0,
      requestMs: scrubLimits.requestMs,
      onRead: (bytes) => this.#pace.spend(bytes, signal),
    })
  }

  async #scrubBuckets(state: ScrubState, running: Running, signal: AbortSignal): Promise<void> {
    for (;;) {
      const page = await this.#options.delivered.endpoints(running.after, signal)
      for (const endpoint of page.endpoints) {
        await this.#recheckIfDue(state, signal)
        const bucket = this.#bucketScrub((finding) => this.#add(running, finding), signal)
        await bucket.scrub(endpoint, page.kept_since)
        const { commits, files, readBytes, gaps } = bucket.tally
        if (gaps.length > 0) this.#options.logger.notice({ endpoint: endpoint.id, gaps }, 'seqs without a segment or a commit')
        running.tally.commits += commits
        running.tally.files += files
        running.tally.read_bytes += readBytes
        running.after = endpoint.id
        await this.#save()
      }
      if (page.next === null) return
      running.after = page.next
    }
  }

  /** Removes findings that were repaired, so that a repair shows soon. New damage waits for a pass. */
  async #recheckIfDue(state: ScrubState, signal: AbortSignal): Promise<void> {
    const { clock, delivered } = this.#options
    if (this.findings.length === 0 || clock.monotonic() < this.#recheckAt) return
    const still = new Set<string>()
    const onFinding = (finding: Finding) => still.add(nameOf(finding))
    await this.#scrubNode(onFinding, signal, this.findings)
    const byEndpoint = Map.groupBy(this.findings, ({ endpoint_id }) => endpoint_id)
    for (let after: string | null = null; ; ) {
      const page = await delivered.endpoints(after, signal)
      for (const endpoint of page.endpoints) {
        const found = byEndpoint.get(endpoint.id)
        if (found === undefined) continue
        // A bucket that could not be reached hid what is in it.
        const only = found.some(({ where }) => where === endpoint.id) ? undefined : found
        await this.#bucketScrub(onFinding, signal, only).scrub(endpoint, page.kept_since)
      }
      after = page.next
      if (after === null) break
    }
    this.#recheckAt = clock.monotonic() + scrubLimits.recheckMs
    const isStill = (finding: Finding) => still.has(nameOf(finding))
    this.#logRepaired(this.findings.filter((finding) => !isStill(finding)))
    state.findings = state.findings.filter(isStill)
    if (state.running !== null) state.running.found = state.running.found.filter(isStill)
    await this.#save()
  }

  #logRepaired(gone: readonly Finding[]): void {
    for (const { kind, where } of gone) this.#options.logger.notice({ kind, where }, 'damage is gone')
  }

  #add(running: Running, finding: Finding): void {
    const known = new Set(this.findings.map(nameOf))
    if (running.found.some((other) => nameOf(other) === nameOf(finding))) return
    if (running.found.length >= scrubLimits.findingsMax) running.unlisted += 1
    else running.found.push(finding)
    if (!known.has(nameOf(finding))) this.#options.logger.error({ ...finding }, 'scrub found damage')
  }

  async #complete(state: ScrubState, { started_at, found, unlisted, tally }: Running): Promise<void> {
    const { clock, intervalMs, logger } = this.#options
    const gone = state.findings.filter((finding) => !found.some((other) => nameOf(other) === nameOf(finding)))
    this.#logRepaired(gone)
    state.completed = { started_at, completed_at: isoTimestamp(clock.now()), ...tally }
    state.findings = found
    state.unlisted = unlisted
    state.running = null
    state.due_at = isoTimestamp(Date.parse(started_at) + intervalMs)
    logger.info({ ...tally, findings: found.length + unlisted }, 'scrub completed')
    await this.#save()
  }

  async #save(): Promise<void> {
    const { files, path, logger } = this.#options
    if (this.#state === undefined) return
    // Without it, a restart begins the pass again.
    await writeScrubState(files, path, this.#state).catch((error: unknown) =>
      logger.warn({ reason: errorMessage(error) }, 'state of the scrub not written'),
    )
  }
}

function nameOf({ kind, where }: Finding): string {
  return `${kind} ${where}`
}

function emptyLag(endpointId: string): EndpointLag {
  return toLag(missingLog(endpointId), {
    isOwned: true,
    blockedBy: null,
    failingView: null,
    oldestSealedAt: null,
    recordsOf: () => 0,
  })
}
