/**
 * Ingest of a node whose machine is gone, on another machine. It listens nowhere.
 *
 * Owns: that what the node accepted is sealed, that logs of deleted endpoints are closed, and what control learns of it. Does not own:
 * delivery, which runs beside it.
 * Law: the node keeps its id, and gets no new data: it is never healthy, so no client is led to it.
 */

import { controlOf } from '#config/addresses.ts'
import type { Config } from '#config/config.ts'
import type { Clock } from '#lib/clock.ts'
import { lockExclusively } from '#lib/exclusive.ts'
import { startAll, stopAll } from '#lib/service.ts'
import { system } from '#lib/system.ts'
import type { Logger } from '#lib/telemetry.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { beginAdoption } from '#node/adoption.ts'
import { boundBlocked } from '#node/bounded-report.ts'
import { CheckedClock } from '#node/checked-clock.ts'
import { ControlClient, ControlError, controlTimeoutMs } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'
import { Heartbeat } from '#node/heartbeat.ts'
import { heartbeatSink } from '#node/heartbeat-sink.ts'
import { readOrCreateNodeId } from '#node/identity.ts'
import { readJoinToken } from '#node/join-token.ts'
import { removeNodeLeftovers } from '#node/leftovers.ts'
import { NodeFence } from '#node/node-fence.ts'
import { JoinRefused, Registration } from '#node/registration.ts'
import { SnapshotFeed } from '#node/snapshot-feed.ts'
import { findDeliveredBy } from '../find-delivered.ts'
import { StoredRequests } from '../idempotency/stored-requests.ts'
import { blockedEndpoints } from '../report/blocked-endpoints.ts'
import { HandOver, type Receiver } from './hand-over.ts'
import { refuseWhileRunning } from './still-running.ts'
import { describeRefusal, takeOver } from './take-over.ts'

const reason = 'its machine is gone, and its log was adopted by another one: it accepts no data'

type Hooks = {
  readonly logger: Logger
  readonly clock: Clock
  /** Ends a start that waits for control. It rejects with the reason. */
  readonly stopping: AbortSignal
  /** The node on this machine, which learns of the idempotency keys; undefined if there is none. */
  readonly receiver: Receiver | undefined
}

type AdoptedIngest = {
  /** Resolves when control refuses this machine for good. */
  readonly refused: Promise<void>
  /** Whether the node on this machine knows the idempotency keys. */
  hasHandedOver(): boolean
  stop(signal: AbortSignal): Promise<void>
}

/** Starts it on the data directory of the configuration. Throws UserError if the node runs, or control refuses this machine. */
export async function startAdoptedIngest(config: Config, hooks: Hooks): Promise<AdoptedIngest> {
  const { paths } = config
  const { logger, clock: machine } = hooks
  const { files, random } = system
  using resources = new DisposableStack()
  const { nodeId, lock, registration, credential, control } = await claimNode(config, hooks)
  resources.use(lock)
  await removeNodeLeftovers(files, paths, 'ingest')
  const clock = await CheckedClock.start({ machine, logger }, control, nodeId)
  const fence = await NodeFence.open({ path: paths.nodeFence, files, logger })
  // Control did, in the claim.
  await fence.accepted()
  const refused = Promise.withResolvers<void>()
  fence.onFinal(refused.resolve)
  const feed = new SnapshotFeed({
    client: control,
    nodeId,
    kinds: ['installation', 'keys', 'endpoints'],
    path: paths.ingestSnapshot,
    registration: placeOf({ control, credential, registration, logger }, refused.resolve),
    ...{ fence, files, clock, random, logger },
  })
  const { storedRequests: directory } = paths
  const storedRequests = new StoredRequests({ directory, max: config.idempotencyKeysMax, files, clock, logger })
  const log = new LocalLogWriter({
    directory: paths.wal,
    files,
    clock,
    random,
    observer: storedRequests,
    findDelivered: findDeliveredBy({ control, contact: feed.contact, nodeId }),
    logger,
  })
  const handOver = new HandOver({
    ...{ nodeId, from: directory, to: hooks.receiver, done: paths.handedRequests },
    ...{ log, segments: new LocalSegmentSource({ directory: paths.wal, files, clock }), storedRequests },
    ...{ files, random, clock, logger },
  })
  let epoch = -1
  const heartbeat = new Heartbeat({
    control: heartbeatSink(control, feed, clock),
    message: () => ({
      process: 'ingest',
      node_id: nodeId,
      ...feed.inUse(epoch),
      healthy: false,
      reasons: [reason],
      disk_full: false,
      leaving: true,
      blocked: boundBlocked(blockedEndpoints(log.blocked())),
    }),
    clock,
    random,
    logger,
  })
  feed.subscribe((snapshot) => {
    for (const { id, desired_state } of snapshot.endpoints) void log.end(id, desired_state === 'draining' ? 'closed' : 'adopted')
    log.endUnowned(new Set(snapshot.endpoints.map(({ id }) => id)))
    epoch = snapshot.epoch
    heartbeat.beatNow()
  })
  const services = [storedRequests, log, feed, heartbeat, handOver]
  await startAll(services)
  logger.info({ node_id: nodeId, wal: paths.wal }, 'log adopted')
  const held = resources.move()
  return {
    refused: refused.promise,
    hasHandedOver: () => handOver.isDone,
    async stop(signal) {
      using _released = held
      await stopAll(services, signal)
    },
  }
}

type Place = {
  readonly control: ControlClient
  readonly credential: NodeCredential
  readonly registration: Registration
  readonly logger: Logger
}

/**
 * Joins again if the database is an older copy. Any other refusal ends the adoption by the fence. The node is not registered anew: its
 * credential opens its region, whatever that of this machine.
 */
function placeOf({ control, credential, registration, logger }: Place, onRefused: () => void): Pick<Registration, 'register'> {
  return {
    async register(signal) {
      if (await isAccepted(control, credential.nodeId, signal)) return
      await registration.join(signal).catch((error: unknown) => {
        if (!(error instanceof JoinRefused)) throw error
        logger.error(describeRefusal(error, 'unknown', credential.nodeId))
        onRefused()
        throw error
      })
    },
  }
}

/** Returns false if control does not know the credential. Throws if it says why it refuses it. */
async function isAccepted(control: ControlClient, nodeId: string, signal: AbortSignal): Promise<boolean> {
  await control.establishTrust(signal)
  try {
    await control.fetchCommittedSeqs(nodeId, signal)
    return true
  } catch (error) {
    if (error instanceof ControlError && error.status === 401 && error.fence === undefined) return false
    throw error
  }
}

/** Locks the data directory, proves to control that the node does not run, and takes over its id. */
async function claimNode(config: Config, { logger, clock, stopping }: Hooks) {
  const { paths } = config
  const { files, random } = system
  using resources = new DisposableStack()
  const nodeId = await readOrCreateNodeId(paths, { files, random })
  resources.use(lockExclusively(paths.ingestLock, 'does the node still run?'))
  const { secret: joinSecret, pin } = await readJoinToken(config, { files, random })
  const credential = await NodeCredential.open(nodeId, paths.nodeCredential, { files, random })
  const control = await ControlClient.open({ ...controlOf(config), pin, credential, files, clock })
  const node = { region: config.region, ipv4: [], ipv6: [], ingest_address: '' }
  const registration = new Registration({ client: control, credential, joinSecret, node, logger })
  const ask = async () => {
    const signal = AbortSignal.any([stopping, clock.timeout(controlTimeoutMs)])
    await control.establishTrust(signal)
    return (await control.fetchLastHeartbeat(nodeId, signal)).seconds_ago
  }
  await refuseWhileRunning(nodeId, { ask, clock, logger, stopping })
  await takeOver({ control, credential, registration, clock, random, logger, stopping })
  await beginAdoption({ files, random }, paths.nodeAdoption)
  return { nodeId, lock: resources.move(), registration, credential, control }
}
