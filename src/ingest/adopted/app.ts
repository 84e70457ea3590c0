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
import { beginAdoption } from '#node/adoption.ts'
import { boundBlocked } from '#node/bounded-report.ts'
import { CheckedClock } from '#node/checked-clock.ts'
import { ControlClient, controlTimeoutMs } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'
import { Heartbeat } from '#node/heartbeat.ts'
import { heartbeatSink } from '#node/heartbeat-sink.ts'
import { readOrCreateNodeId } from '#node/identity.ts'
import { readJoinToken } from '#node/join-token.ts'
import { removeNodeLeftovers } from '#node/leftovers.ts'
import { NodeFence } from '#node/node-fence.ts'
import { Registration } from '#node/registration.ts'
import { SnapshotFeed } from '#node/snapshot-feed.ts'
import { findDeliveredBy } from '../find-delivered.ts'
import { blockedEndpoints } from '../report/blocked-endpoints.ts'
import { refuseWhileRunning } from './still-running.ts'
import { askStanding, takeOver } from './take-over.ts'

const reason = 'its machine is gone, and its log was adopted by another one: it accepts no data'

/** Starts it on the data directory of the configuration. Throws UserError if the node runs, or cannot be proven to control. */
export async function startAdoptedIngest(
  config: Config,
  { logger, clock: machine }: { readonly logger: Logger; readonly clock: Clock },
): Promise<{ stop(signal: AbortSignal): Promise<void> }> {
  const { paths } = config
  const { files, random } = system
  const { nodeId, lock, joinSecret, credential, control } = await claimNode(config, machine, logger)
  await removeNodeLeftovers(files, paths, 'ingest')
  const node = { region: config.region, ipv4: [], ipv6: [], ingest_address: '' }
  const clock = await CheckedClock.start({ machine, logger }, control, nodeId)
  const registration = new Registration({ client: control, credential, joinSecret, node, logger })
  const fence = await NodeFence.open({ path: paths.nodeFence, files, logger })
  const feed = new SnapshotFeed({
    client: control,
    nodeId,
    kinds: ['installation', 'keys', 'endpoints'],
    path: paths.ingestSnapshot,
    registration: {
      // The credential opens the region of the node, whatever the region of this machine.
      async register(signal, wasConfigured) {
        const standing = await askStanding({ control, credential }, signal)
        if (standing !== 'accepted') await registration.register(signal, wasConfigured)
      },
    },
    ...{ fence, files, clock, random, logger },
  })
  const log = new LocalLogWriter({
    directory: paths.wal,
    files,
    clock,
    random,
    findDelivered: findDeliveredBy({ control, contact: feed.contact, nodeId }),
    logger,
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
    logger,
  })
  feed.subscribe((snapshot) => {
    for (const { id, desired_state } of snapshot.endpoints) void log.end(id, desired_state === 'draining' ? 'closed' : 'adopted')
    log.endUnowned(new Set(snapshot.endpoints.map(({ id }) => id)))
    epoch = snapshot.epoch
    heartbeat.beatNow()
  })
  const services = [log, feed, heartbeat]
  await startAll(services)
  logger.info({ node_id: nodeId, wal: paths.wal }, 'log adopted')
  return {
    async stop(signal) {
      await stopAll(services, signal)
      lock[Symbol.dispose]()
    },
  }
}

/** Locks the data directory, proves to control that the node does not run, and takes over its id. */
async function claimNode(config: Config, machine: Clock, logger: Logger) {
  const { paths } = config
  const { files, random } = system
  const nodeId = await readOrCreateNodeId(paths, { files, random })
  const lock = lockExclusively(paths.ingestLock, 'does the node still run?')
  const { secret: joinSecret, pin } = await readJoinToken(config, { files, random })
  const credential = await NodeCredential.open(nodeId, paths.nodeCredential, { files, random })
  const control = await ControlClient.open({ ...controlOf(config), pin, credential, files, clock: machine })
  const ask = async () => {
    const signal = machine.timeout(controlTimeoutMs)
    await control.establishTrust(signal)
    return (await control.fetchLastHeartbeat(nodeId, signal)).seconds_ago
  }
  try {
    await refuseWhileRunning(nodeId, { ask, clock: machine, logger })
    await takeOver({ control, credential, clock: machine, random, logger })
    await beginAdoption({ files, random }, paths.nodeAdoption)
  } catch (error) {
    lock[Symbol.dispose]()
    throw error
  }
  return { nodeId, lock, joinSecret, credential, control }
}
