/**
 * Delivery composed from its ports. It opens nothing: app.ts does.
 *
 * Owns: which part gets which, and the order in which they start and stop. Does not own: what any part does.
 */
import type { Clock } from '#lib/clock.ts'
import type { LoopDelay } from '#lib/event-loop-delay.ts'
import { FairSlots } from '#lib/fair-slots.ts'
import type { Files } from '#lib/files.ts'
import type { Random } from '#lib/random.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { SegmentSource } from '#log/segment-source.ts'
import type { Adoption } from '#node/adoption.ts'
import { BlockedFile } from '#node/blocked-file.ts'
import type { CheckedClock } from '#node/checked-clock.ts'
import { type Control, ControlError } from '#node/control-client.ts'
import type { NodeFence } from '#node/node-fence.ts'
import { Outbox, type OutboxOptions } from '#node/outbox.ts'
import { RecordedCommits } from '#node/recorded-commits.ts'
import { SnapshotFeed } from '#node/snapshot-feed.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { ConfigurationCheck } from './convert/configuration-check.ts'
import type { ConversionPool } from './convert/conversion-pool.ts'
import { ConversionRunner } from './convert/conversion-runner.ts'
import type { WorkerAccess } from './convert/worker-access.ts'
import { DeliveredKeys } from './jobs/committed-keys.ts'
import { runCompaction } from './jobs/compaction-run.ts'
import { JobWorker } from './jobs/job-worker.ts'
import { runRemoval } from './jobs/removal-run.ts'
import { runUnit } from './jobs/unit-run.ts'
import { conditionalPutsByDestination } from './publish/conditional-puts.ts'
import { DestinationBackoff } from './publish/destination-backoff.ts'
import { KnownCommits } from './publish/known-commits.ts'
import { uploadLimits } from './publish/limits.ts'
import type { MarkerSeal } from './publish/marker-seal.ts'
import { markerSink } from './publish/marker-sink.ts'
import { Uploader } from './publish/uploader.ts'
import { DeliveryReport } from './report/report.ts'
import { composeScrubber, type ScrubConfig } from './scrub/compose-scrubber.ts'
import { SegmentDelivery } from './segment-delivery.ts'
import type { SegmentTraces } from './segment-traces.ts'
import { Assignments } from './segments/assignments.ts'
import type { Backlog } from './segments/backlog.ts'
import { Endpoints } from './segments/endpoints.ts'
import { Janitor } from './segments/janitor.ts'
import { ParkedSegments } from './segments/parked-segments.ts'
import { Pipeline } from './segments/pipeline.ts'
import { KeyWindows } from './windows/key-windows.ts'
import type { KeyIndexes } from './windows/thread.ts'

export type DeliveryPorts = {
  readonly nodeId: string
  /** The last adoption of the log, if there was one. */
  readonly adoption: Adoption | undefined
  readonly control: Control
  readonly fence: NodeFence
  readonly segments: SegmentSource
  readonly files: Files
  /** Control's time. */
  readonly clock: CheckedClock
  /** The machine's own, with which commands on this machine compare. */
  readonly machine: Clock
  readonly random: Random
  readonly logger: Logger
  /** For how long the event loop of this process was held. */
  readonly delay: LoopDelay
  readonly stores: ObjectStores
  readonly seal: MarkerSeal
  readonly conversionPool: ConversionPool
  readonly keyIndexes: KeyIndexes
  readonly access: WorkerAccess
  readonly tracer: Service | undefined
  /** Undefined if no segment is traced. */
  readonly traces: SegmentTraces | undefined
}

export type DeliveryConfig = ScrubConfig & {
  readonly paths: Readonly<
    Record<'deliverySnapshot' | 'recordedCommits' | 'parked' | 'scratch' | 'assignments' | 'deliveryBlocked' | 'windows', string>
  >
  readonly deliveryMemoryBytes: number
  /** Disk for the indexes of `dedupe_within`. */
  readonly dedupeBytesMax: number
  /** Conversions at the same time. */
  readonly deliveryParallel: number
}

export type DeliveryPlane = {
  /** In the order of their start. They stop in reverse: jobs are aborted, the pipeline delivers what it can, and the outbox sends its commits. */
  readonly services: readonly Service[]
  /** Data that this node holds, as of the last scan. */
  backlog(): Backlog
  /** Call it once, before the services start. */
  prepare(): Promise<void>
}

/** Returns the memory of one conversion. */
export function conversionMemoryBytes({ deliveryMemoryBytes, deliveryParallel }: DeliveryConfig): number {
  return Math.floor(deliveryMemoryBytes / deliveryParallel)
}

export function composeDelivery(config: DeliveryConfig, ports: DeliveryPorts): DeliveryPlane {
  const { paths } = config
  const { nodeId, control, fence, segments, files, clock, machine, random, logger, traces } = ports
  const feed = new SnapshotFeed({
    ...{ client: control, nodeId, fence, files, clock, random, logger },
    kinds: ['endpoints', 'views'],
    path: paths.deliverySnapshot,
  })
  const endpoints = new Endpoints()
  feed.subscribe((snapshot) => endpoints.update(snapshot))

  const janitor = new Janitor({ files, segments })
  const recordedCommits = new RecordedCommits({ path: paths.recordedCommits, files, clock, logger })
  const outbox = composeOutbox(config, ports, recordedCommits, {
    // While a stop waits for commits, no heartbeat says that control refuses this node.
    onUnauthorized: () => feed.registerAgain(),
    async onRecorded(entry) {
      pipeline.markCommitted(entry.id)
      await traces?.recorded(entry.id)
      await janitor.removeDelivered(entry)
    },
    onLost: ({ id }) => pipeline.deliverAgain(id),
  })
  const parked = new ParkedSegments({ directory: paths.parked, files, clock })
  const conversion = composeConversion(config, ports)
  const windows = composeWindows(config, ports, { ...conversion, outbox, endpoints })
  const delivery = composeSegmentDelivery(ports, conversion, { segments, parked, outbox, endpoints, feed, windows })
  const pipeline = new Pipeline({
    ...{ nodeId, segments, parked, endpoints, fence, clock, random, logger },
    deliver: delivery.run.bind(delivery),
    isReported: (id) => outbox.has(id),
    reportingBlockedBy: (endpointId) => outbox.reasonOf(endpointId),
  })
  const scrubber = composeScrubber(config, { ...ports, outbox, feed })
  const jobs = composeJobs(ports, { ...conversion, scratch: paths.scratch }, feed)
  const report = new DeliveryReport({ ...ports, endpoints, feed, outbox, pipeline, scrubber, recordedCommits })
  const hasSegments = async (logName: string) =>
    (await segments.readLog(logName)).segments.some(({ state }) => state !== 'quarantined')
  const assignments = new Assignments({ directory: paths.assignments, endpoints, hasSegments, files, clock, logger })
  const blockedFile = new BlockedFile({
    path: paths.deliveryBlocked,
    blocked: () =>
      new Map(pipeline.lag().flatMap(({ endpoint_id, blocked_by }) => (blocked_by === null ? [] : [[endpoint_id, blocked_by]]))),
    ...{ files, clock: machine, logger },
  })
  feed.subscribe(() => pipeline.scanSoon())
  return {
    services: [
      ...(ports.tracer === undefined ? [] : [ports.tracer]),
      ...[feed, assignments, recordedCommits, outbox, pipeline, report, blockedFile, jobs, scrubber],
    ],
    backlog: () => ({
      isCurrent: !feed.contact.mayLackChanges && pipeline.scannedEpoch === endpoints.epoch,
      ...{ lags: pipeline.lag(), reportedLags: report.reportedLags, reports: outbox.size, problem: pipeline.problem },
    }),
    async prepare() {
      await janitor.clearScratch(paths.scratch)
      await windows.open()
      const retried = await parked.retryAll()
      if (retried.length > 0) logger.info({ segments: retried.length }, 'parked segments are tried again')
    },
  }
}

function composeOutbox(
  { paths }: DeliveryConfig,
  { control, files, clock, random, logger }: DeliveryPorts,
  recordedCommits: RecordedCommits,
  { onUnauthorized, ...events }: Pick<OutboxOptions, 'onRecorded' | 'onLost'> & { readonly onUnauthorized: () => void },
): Outbox {
  return new Outbox({
    ...{ directory: paths.outbox, files, clock, random, logger, ...events },
    async send(commits, signal) {
      try {
        return (await recordedCommits.whenSent(() => control.sendCommits(commits, signal))).recorded
      } catch (error) {
        if (error instanceof ControlError && error.status === 401) onUnauthorized()
        throw error
      }
    },
  })
}

type ConversionParts = { readonly runner: ConversionRunner; readonly builds: FairSlots; readonly memoryBytes: number }

function composeConversion(
  config: DeliveryConfig,
  { segments, conversionPool: pool, access, files, clock }: DeliveryPorts,
): ConversionParts {
  const { scratch } = config.paths
  return {
    runner: new ConversionRunner({ pool, segments, scratch, access, files, clock }),
    builds: new FairSlots({ capacity: config.deliveryParallel, clock }),
    memoryBytes: conversionMemoryBytes(config),
  }
}

function composeWindows(
  { paths, dedupeBytesMax }: DeliveryConfig,
  { keyIndexes, ...ports }: DeliveryPorts,
  parts: ConversionParts & { readonly outbox: Outbox; readonly endpoints: Endpoints },
): KeyWindows {
  const { endpoints } = parts
  return new KeyWindows({
    ...{ directory: paths.windows, bytesMax: dedupeBytesMax, indexes: keyIndexes },
    committed: new DeliveredKeys({ ...ports, ...parts, scratch: paths.scratch }),
    usersOf: (endpointId) => {
      const endpoint = endpoints.find(endpointId)
      return endpoint && { account: endpoint.account_id, views: new Set(endpoint.views.map(({ view_id }) => view_id)) }
    },
    ...{ files: ports.files, clock: ports.clock, logger: ports.logger },
  })
}

function composeSegmentDelivery(
  { nodeId, adoption, control, stores, seal, traces, clock, random, logger }: DeliveryPorts,
  conversion: ConversionParts,
  parts: {
    readonly segments: SegmentSource
    readonly parked: ParkedSegments
    readonly outbox: Outbox
    readonly endpoints: Endpoints
    readonly feed: SnapshotFeed
    readonly windows: KeyWindows
  },
): SegmentDelivery {
  const { endpoints, feed, outbox, ...others } = parts
  const backoff = new DestinationBackoff({ clock, random })
  return new SegmentDelivery({
    ...{
      nodeId,
      adoption: adoption?.id,
      ...others,
      ...conversion,
      endpoints,
      stores,
      seal,
      traces,
      backoff,
      clock,
      random,
      logger,
    },
    uploader: new Uploader({ ...uploadLimits, backoff }),
    knownCommits: new KnownCommits({
      find: async (ids, signal) => (await control.findCommits(ids, signal)).commits,
      ...{ clock, random, logger },
    }),
    sinks: [
      markerSink({ seal, earlierAdoptions: adoption?.earlier, logger }),
      { name: 'outbox', record: ({ commit }) => outbox.add(commit) },
    ],
    configuration: new ConfigurationCheck({ isCurrent: (signal) => feed.isCurrent(signal), endpoints, clock, random, logger }),
  })
}

function composeJobs(
  { nodeId, control, stores, files, clock, random, logger }: DeliveryPorts,
  conversion: ConversionParts & { readonly scratch: string },
  feed: SnapshotFeed,
): JobWorker {
  const options = { ...conversion, stores, files, clock, conditionalOf: conditionalPutsByDestination(logger) }
  return new JobWorker({
    ...{ nodeId, control, clock, random, logger },
    isConfigured: () => feed.current() !== undefined,
    run(unit, signal) {
      if ('compaction' in unit) return runCompaction(unit, options, signal)
      return 'removal' in unit ? runRemoval(unit, options, signal) : runUnit(unit, options, signal)
    },
  })
}
