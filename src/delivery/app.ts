/** The composition of the delivery process. */
import type { Config } from '#config.ts'
import { controlOf } from '#config-addresses.ts'
import type { Clock } from '#lib/clock.ts'
import { EventLoopDelay } from '#lib/event-loop-delay.ts'
import { lockExclusively } from '#lib/exclusive.ts'
import { FairSlots } from '#lib/fair-slots.ts'
import { type Files, systemFiles } from '#lib/files.ts'
import { Periodic } from '#lib/periodic.ts'
import { openSandbox } from '#lib/sandbox.ts'
import { startAll, stopAll } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { EndpointLag } from '#model/node-protocol.ts'
import { BlockedFile } from '#node/blocked-file.ts'
import { boundLags, boundReasons } from '#node/bounded-report.ts'
import { CheckedClock } from '#node/checked-clock.ts'
import { ControlClient, ControlError } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'
import { Heartbeat } from '#node/heartbeat.ts'
import { heartbeatSink } from '#node/heartbeat-sink.ts'
import { readOrCreateNodeId } from '#node/identity.ts'
import { removeNodeLeftovers } from '#node/leftovers.ts'
import { openTracer } from '#node/open-tracer.ts'
import { Outbox } from '#node/outbox.ts'
import { RecordedCommits } from '#node/recorded-commits.ts'
import { SnapshotFeed } from '#node/snapshot-feed.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { openObjectStores } from '#objects/open.ts'
import { SegmentDirectory } from '#wal/segment-directory.ts'
import { KnownCommits } from './adopt/known-commits.ts'
import { Assignments } from './assignments.ts'
import { MarkerSeal } from './commit/marker-seal.ts'
import { markerSink } from './commit/marker-sink.ts'
import { ConfigurationCheck } from './convert/configuration-check.ts'
import { type ConversionPool, conversionBounds, createConversionPool } from './convert/conversion-pool.ts'
import { Conversions } from './convert/conversions.ts'
import { WorkerAccess } from './convert/worker-access.ts'
import { DestinationBackoff } from './destination-backoff.ts'
import { Endpoints } from './endpoints.ts'
import { countWaiting, type Held } from './held.ts'
import { Janitor } from './janitor.ts'
import { runCompaction } from './jobs/compaction-run.ts'
import { JobWorker } from './jobs/job-worker.ts'
import { runRemoval } from './jobs/removal-run.ts'
import { runUnit } from './jobs/unit-run.ts'
import { LagReports } from './lag-report.ts'
import { deliveryLimits } from './limits.ts'
import { ParkedSegments } from './parked-segments.ts'
import { Pipeline } from './pipeline.ts'
import { readCpuSeconds, readProcessMemory } from './process-memory.ts'
import { openScrubber } from './scrub/open.ts'
import { SegmentDelivery } from './segment-delivery.ts'
import { Uploader } from './upload/uploader.ts'

export type AppHooks = {
  readonly logger: Logger
  readonly clock: Clock
  /** Stand-ins that fail on purpose. */
  readonly files?: Files
  readonly stores?: ObjectStores
  /** Shared by several apps: none of them stops it. */
  readonly conversionPool?: ConversionPool
}
export type App = {
  /** What this node holds, as of the last scan. */
  held(): Held
  stop(signal: AbortSignal): Promise<void>
}

const controlTimeoutMs = 10_000

export async function startDelivery(config: Config, hooks: AppHooks): Promise<App> {
  const { paths } = config
  const { logger, clock: machine, files = systemFiles } = hooks
  // Stores tell how far their clock is from that of the machine.
  const objectStores = await openObjectStores(config, { clock: machine })
  const stores = hooks.stores ?? objectStores.stores
  const nodeId = await readOrCreateNodeId(paths)
  const lock = lockExclusively(paths.deliveryLock)
  const credential = await NodeCredential.open(nodeId, paths.nodeCredential)
  const control = await ControlClient.open({ ...controlOf(config), credential, timeoutMs: controlTimeoutMs })
  await removeNodeLeftovers(files, paths, 'delivery')
  const clock = await CheckedClock.start({ machine, logger }, control, nodeId)

  const feed = new SnapshotFeed({
    client: control,
    nodeId,
    kinds: ['endpoints', 'views'],
    path: paths.deliverySnapshot,
    files,
    clock,
    logger,
  })
  const endpoints = new Endpoints()
  feed.subscribe((snapshot) => endpoints.update(snapshot))

  const traced = await openTracer(config, { process: 'delivery', nodeId, clock, logger })
  const traces = traced && new (await import('./segment-traces.ts')).SegmentTraces({ ...traced, clock })
  const segments = new SegmentDirectory({ directory: paths.wal, files })
  const janitor = new Janitor({ files, segments })
  const recordedCommits = new RecordedCommits({ path: paths.recordedCommits, files, clock, logger })
  const outbox = new Outbox({
    directory: paths.outbox,
    async send(commits, signal) {
      return (await recordedCommits.whenSent(() => control.sendCommits(commits, signal))).recorded
    },
    onRecorded: async (entry) => {
      pipeline.markCommitted(entry.id)
      await traces?.recorded(entry.id)
      await janitor.removeDelivered(entry)
    },
    onLost: ({ id }) => pipeline.deliverAgain(id),
    files,
    clock,
    logger,
  })
  const parked = new ParkedSegments({ directory: paths.parked, files, clock })
  const memoryBytes = Math.floor(config.deliveryMemoryBytes / config.deliveryParallel)
  const sandbox = await openSandbox(logger, config.workerUser)
  const access = new WorkerAccess({ directory: paths.node, user: sandbox.user })
  await access.prepare()
  const commandLine = sandbox.confine(conversionBounds(memoryBytes))
  const conversionPool = hooks.conversionPool ?? createConversionPool({ clock, commandLine, cwd: access.startDirectory })
  const conversions = new Conversions({ pool: conversionPool, wal: paths.wal, scratch: paths.scratch, access, clock })
  const builds = new FairSlots({ capacity: config.deliveryParallel, clock })
  const { uploadsParallel, uploadsParallelPerDestination, uploadsParallelBackingOff } = deliveryLimits
  const backoff = new DestinationBackoff({ clock })
  const seal = await MarkerSeal.open(paths.markerKey)
  const delivery = new SegmentDelivery({
    nodeId,
    segments,
    conversions,
    memoryBytes,
    builds,
    uploader: new Uploader({
      parallel: uploadsParallel,
      parallelPerDestination: uploadsParallelPerDestination,
      parallelBackingOff: uploadsParallelBackingOff,
      backoff,
    }),
    backoff,
    stores,
    parked,
    seal,
    knownCommits: new KnownCommits({ find: (ids, signal) => control.findCommits(ids, signal), clock, logger }),
    sinks: [markerSink(seal), { name: 'outbox', record: ({ commit }) => outbox.add(commit) }],
    endpoints,
    traces,
    configuration: new ConfigurationCheck({ isCurrent: (signal) => feed.isCurrent(signal), endpoints, clock, logger }),
    clock,
    logger,
  })
  const scrubber = openScrubber(config, { nodeId, control, segments, stores, seal, outbox, feed, files, clock, logger })
  const pipeline = new Pipeline({
    nodeId,
    segments,
    parked,
    deliver: (run) => delivery.run(run),
    isReported: (id) => outbox.has(id),
    reportingBlockedBy: (endpointId) => outbox.reasonOf(endpointId),
    endpoints,
    clock,
    logger,
  })
  const unitOptions = { scratch: paths.scratch, memoryBytes, builds, conversions, stores, clock }
  const jobs = new JobWorker({
    nodeId,
    control,
    isConfigured: () => feed.current() !== undefined,
    run: (unit, signal) => {
      if ('compaction' in unit) return runCompaction(unit, unitOptions, signal)
      return 'removal' in unit ? runRemoval(unit, unitOptions, signal) : runUnit(unit, unitOptions, signal)
    },
    clock,
    logger,
  })
  const delay = new EventLoopDelay(clock)
  const lagReports = new LagReports(clock)
  let sentLags: readonly EndpointLag[] = []
  let reportedLags: readonly EndpointLag[] | undefined
  const sink = heartbeatSink(control, feed, clock, ({ recorded }) => {
    lagReports.accept()
    recordedCommits.compared(recorded)
    reportedLags = sentLags
  })
  const heartbeat = new Heartbeat({
    control: {
      async sendHeartbeat(message, signal) {
        try {
          await sink.sendHeartbeat(message, signal)
        } catch (error) {
          if (error instanceof ControlError && error.status === 409) lagReports.reject()
          else recordedCommits.lostContact()
          throw error
        }
      },
    },
    message: () => {
      sentLags = scrubber.addTo(pipeline.lag(), (id) => endpoints.find(id) !== undefined)
      const scrub = scrubber.report()
      return {
        process: 'delivery',
        event_loop_delay_ms: delay.longestMs,
        event_loop_delay_p50_ms: delay.percentileMs(50),
        event_loop_delay_p99_ms: delay.percentileMs(99),
        cpu_seconds: readCpuSeconds(),
        memory: readProcessMemory(conversionPool.pids),
        node_id: nodeId,
        ...feed.inUse(pipeline.scannedEpoch),
        ...recordedCommits.toCompare(),
        healthy: pipeline.problem === null,
        reasons: boundReasons(pipeline.problem === null ? [] : [pipeline.problem]),
        ...(scrub && { scrub }),
        ...lagReports.next(boundLags(sentLags)),
      }
    },
    clock,
    logger,
  })

  const assignments = new Assignments({
    directory: paths.assignments,
    endpoints,
    hasSegments: (log) => segments.hasUndelivered(log),
    files,
    clock,
    logger,
  })
  const blockedFile = new BlockedFile({
    path: paths.deliveryBlocked,
    blocked: () =>
      new Map(pipeline.lag().flatMap(({ endpoint_id, blocked_by }) => (blocked_by === null ? [] : [[endpoint_id, blocked_by]]))),
    files,
    clock: machine,
    logger,
  })

  feed.subscribe(() => pipeline.scanSoon())

  await janitor.clearScratch(paths.scratch)
  const retried = await parked.retryAll()
  if (retried.length > 0) logger.info({ segments: retried.length }, 'parked segments are tried again')
  // Stopped in reverse: jobs are aborted, the pipeline delivers what it can, and the outbox stops last, so that it can send its commits.
  const services = [
    ...(traced === undefined ? [] : [traced.tracer]),
    feed,
    assignments,
    recordedCommits,
    outbox,
    pipeline,
    heartbeat,
    blockedFile,
    jobs,
    scrubber,
  ]
  await startAll(services)
  const held = (): Held => ({
    isCurrent: !feed.contact.mayLackChanges && pipeline.scannedEpoch === endpoints.epoch,
    ...{ lags: pipeline.lag(), reportedLags, reports: outbox.size, problem: pipeline.problem },
  })
  return {
    held,
    async stop(signal) {
      const progress = new Periodic({
        name: 'stop progress',
        intervalMs: deliveryLimits.stopProgressMs,
        run: () => logger.notice(countWaiting(held()), 'stop waits for deliveries; what is left stays on disk'),
        failure: 'stop progress failed',
        clock,
        logger,
      })
      await progress.start()
      await stopAll(services, signal)
      await progress.stop()
      if (hooks.conversionPool === undefined) await conversionPool.stop()
      objectStores.close()
      lock[Symbol.dispose]()
    },
  }
}
