/** Delivery as a process: opens files, control, stores and the sandbox of its workers, and runs the plane on them. */

import { controlOf } from '#config/addresses.ts'
import type { Config } from '#config/config.ts'
import type { Clock } from '#lib/clock.ts'
import { EventLoopDelay } from '#lib/event-loop-delay.ts'
import { lockExclusively } from '#lib/exclusive.ts'
import type { Files } from '#lib/files.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Random } from '#lib/random.ts'
import { openSandbox } from '#lib/sandbox.ts'
import { startAll } from '#lib/service.ts'
import { system } from '#lib/system.ts'
import type { Logger } from '#lib/telemetry.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { readAdoption } from '#node/adoption.ts'
import { CheckedClock } from '#node/checked-clock.ts'
import { ControlClient } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'
import { readOrCreateNodeId } from '#node/identity.ts'
import { removeNodeLeftovers } from '#node/leftovers.ts'
import { NodeFence } from '#node/node-fence.ts'
import { openTracer } from '#node/open-tracer.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { openObjectStores } from '#objects/open.ts'
import { type ConversionPool, conversionBounds, createConversionPool } from './convert/conversion-pool.ts'
import { WorkerAccess } from './convert/worker-access.ts'
import { stopWhenFenced } from './fenced-stop.ts'
import { composeDelivery, conversionMemoryBytes } from './plane.ts'
import { MarkerSeal } from './publish/marker-seal.ts'
import { LeftOnDiskReport } from './report/left-on-disk.ts'
import { type Backlog, countWaiting } from './segments/backlog.ts'
import { deliveryLimits } from './segments/limits.ts'
import { IndexThread } from './windows/thread.ts'

export type AppHooks = {
  readonly logger: Logger
  readonly clock: Clock
  /** Stand-ins that fail on purpose. */
  readonly files?: Files
  readonly random?: Random
  readonly stores?: ObjectStores
  /** Shared by several apps: none of them stops it. */
  readonly conversionPool?: ConversionPool
}
export type App = {
  /** Data that this node holds, as of the last scan. */
  backlog(): Backlog
  stop(signal: AbortSignal): Promise<void>
}

export async function startDelivery(config: Config, hooks: AppHooks): Promise<App> {
  const { paths } = config
  const { logger, clock: machine, files, random } = { ...system, ...hooks }
  // A process that delivers for a lost node beside its own starts this again after a failure.
  await using resources = new AsyncDisposableStack()
  // Stores tell how far their clock is from that of the machine.
  const objectStores = await openObjectStores(config, { files, clock: machine, random })
  resources.defer(() => objectStores.close())
  const nodeId = await readOrCreateNodeId(paths, { files, random })
  resources.use(lockExclusively(paths.deliveryLock))
  const credential = await NodeCredential.open(nodeId, paths.nodeCredential, { files, random })
  const control = await ControlClient.open({ ...controlOf(config), credential, files, clock: machine })
  await removeNodeLeftovers(files, paths, 'delivery')
  const clock = await CheckedClock.start({ machine, logger }, control, nodeId)
  const traced = await openTracer(config, { process: 'delivery', nodeId, files, clock, random, logger })
  const sandbox = await openSandbox(logger, config.workerUser)
  const access = new WorkerAccess({ directory: paths.node, user: sandbox.user })
  await access.prepare()
  const commandLine = sandbox.confine(conversionBounds(conversionMemoryBytes(config)))
  const conversionPool = hooks.conversionPool ?? createConversionPool({ clock, commandLine, cwd: access.startDirectory })
  if (hooks.conversionPool === undefined) resources.defer(() => conversionPool.stop())
  const fence = await NodeFence.open({ path: paths.nodeFence, files, logger })
  const indexThread = new IndexThread()
  resources.defer(() => indexThread.stop())
  const segments = new LocalSegmentSource({ directory: paths.wal, files, clock: machine })
  const plane = composeDelivery(config, {
    segments,
    ...{ nodeId, control, fence, files, clock, machine, random, logger, conversionPool, access, keyIndexes: indexThread.indexes },
    delay: new EventLoopDelay(machine),
    stores: hooks.stores ?? objectStores.stores,
    adoption: await readAdoption(files, paths.nodeAdoption),
    seal: await MarkerSeal.open({ files, random }, paths.markerKey),
    tracer: traced?.tracer,
    traces: traced && new (await import('./segment-traces.ts')).SegmentTraces({ ...traced, clock }),
  })
  await plane.prepare()
  // It goes on after delivery has ended, because control refuses the node.
  const leftOnDisk = new LeftOnDiskReport({ nodeId, control, fence, segments, clock, logger })
  await startAll([...plane.services, leftOnDisk])
  const stop = stopWhenFenced({ services: plane.services, fence, logger })
  const held = resources.move()
  return {
    backlog: plane.backlog,
    async stop(signal) {
      await using _released = held
      fence.stopping()
      const progress = new Periodic({
        name: 'stop progress',
        intervalMs: deliveryLimits.stopProgressMs,
        run: () => logger.notice(countWaiting(plane.backlog()), 'stop waits for deliveries; what is left stays on disk'),
        failure: 'stop progress failed',
        clock,
        logger,
      })
      await progress.start()
      await stop(signal)
      await leftOnDisk.stop()
      await progress.stop()
    },
  }
}
