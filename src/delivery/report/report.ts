/**
 * Tells control every two seconds how delivery is.
 *
 * Owns: what a heartbeat of delivery says, and which lags control has. Does not own: when it is sent (node/heartbeat.ts).
 */
import type { LoopDelay } from '#lib/event-loop-delay.ts'
import type { Random } from '#lib/random.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { type EndpointLag, hasReadDisk, type Heartbeat as Message } from '#model/node-protocol.ts'
import { boundLags, boundReasons } from '#node/bounded-report.ts'
import type { CheckedClock } from '#node/checked-clock.ts'
import { type Control, ControlError } from '#node/control-client.ts'
import { Heartbeat, type HeartbeatSink } from '#node/heartbeat.ts'
import { heartbeatSink } from '#node/heartbeat-sink.ts'
import type { Outbox } from '#node/outbox.ts'
import type { RecordedCommits } from '#node/recorded-commits.ts'
import type { SnapshotFeed } from '#node/snapshot-feed.ts'
import type { Scrubber } from '../scrub/scrubber.ts'
import type { Endpoints } from '../segments/endpoints.ts'
import type { Pipeline } from '../segments/pipeline.ts'
import { LagReports } from './lag-report.ts'
import { readCpuSeconds, readProcessMemory } from './process-memory.ts'

export type DeliveryReportOptions = {
  readonly nodeId: string
  readonly control: Control
  readonly conversionPool: { readonly pids: readonly number[] }
  readonly endpoints: Endpoints
  readonly feed: SnapshotFeed
  readonly outbox: Pick<Outbox, 'size' | 'oldestMs'>
  readonly pipeline: Pipeline
  readonly scrubber: Scrubber
  readonly recordedCommits: RecordedCommits
  readonly clock: CheckedClock
  readonly random: Random
  readonly logger: Logger
  readonly delay: LoopDelay
}

export class DeliveryReport implements Service {
  readonly name = 'report of delivery'
  readonly #options: DeliveryReportOptions
  readonly #heartbeat: Heartbeat
  readonly #sink: HeartbeatSink
  readonly #lagReports: LagReports
  #sentLags: readonly EndpointLag[] = []
  #reportedLags: readonly EndpointLag[] | undefined

  constructor(options: DeliveryReportOptions) {
    const { control, feed, recordedCommits, clock, random, logger } = options
    this.#options = options
    this.#lagReports = new LagReports(options)
    this.#sink = heartbeatSink(control, feed, clock, ({ recorded }, message) => {
      this.#lagReports.accept()
      recordedCommits.compared(recorded)
      if (hasReadDisk(message)) this.#reportedLags = this.#sentLags
    })
    this.#heartbeat = new Heartbeat({ control: this, message: () => this.#message(), clock, random, logger })
  }

  /** The lags that control recorded last; undefined before the first time. */
  get reportedLags(): readonly EndpointLag[] | undefined {
    return this.#reportedLags
  }

  start(): Promise<void> {
    return this.#heartbeat.start()
  }

  stop(): Promise<void> {
    return this.#heartbeat.stop()
  }

  async sendHeartbeat(message: Message, signal: AbortSignal): Promise<void> {
    try {
      await this.#sink.sendHeartbeat(message, signal)
    } catch (error) {
      if (error instanceof ControlError && error.status === 409) this.#lagReports.reject()
      else this.#options.recordedCommits.lostContact()
      throw error
    }
  }

  #message(): Message {
    const { nodeId, conversionPool, endpoints, feed, outbox, pipeline, scrubber, recordedCommits } = this.#options
    this.#sentLags = scrubber.addTo(pipeline.lag(), (id) => endpoints.find(id) !== undefined)
    const scrub = scrubber.report()
    const inUse = feed.inUse(pipeline.scannedEpoch)
    // Else that it holds nothing would count: a configuration that is kept has no epoch that says so.
    const isUnread = inUse.kept_position !== undefined && pipeline.scannedEpoch < 0
    const problem = pipeline.problem ?? (isUnread ? 'the segments on this node are not listed yet' : null)
    return {
      process: 'delivery',
      event_loop_delay_ms: this.#options.delay.longestMs,
      event_loop_delay_p50_ms: this.#options.delay.percentileMs(50),
      event_loop_delay_p99_ms: this.#options.delay.percentileMs(99),
      cpu_seconds: readCpuSeconds(),
      memory: readProcessMemory(conversionPool.pids),
      node_id: nodeId,
      ...inUse,
      outbox: { commits: outbox.size, oldest_seconds: outbox.oldestMs / 1000 },
      ...recordedCommits.toCompare(),
      healthy: problem === null,
      reasons: boundReasons(problem === null ? [] : [problem]),
      ...(scrub && { scrub }),
      ...this.#lagReports.next(boundLags(this.#sentLags), pipeline.countedAt),
    }
  }
}
