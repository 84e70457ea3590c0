/**
 * `inlet node --adopt-copy NODE`: the first part of it, which makes a directory for `--adopt` of what a lost node had in the copy store.
 *
 * Owns: `<data>/taken-over/<node id>`. Does not own: the delivery (adopt.ts), what is in the store (copies/restore.ts).
 * Law: control gives the lost node to this machine before its copies are read. The credential is durable before, so a command that was
 * stopped goes on. A directory of an earlier takeover is not used again once another machine has got the node: it has another log.
 */
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { controlOf } from '#config/addresses.ts'
import type { Config } from '#config/config.ts'
import { withDataDirectory } from '#config/data-paths.ts'
import { copyFolder } from '#copies/copy-names.ts'
import { openCopyStore } from '#copies/open-store.ts'
import { type CopyPlace, hasCopies, type Restored, removeRestored, restoreLog } from '#copies/restore.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { writeDurably } from '#lib/files.ts'
import { readTrimmed } from '#lib/read-or-create.ts'
import { system } from '#lib/system.ts'
import type { Logger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import { isUuid } from '#lib/uuid.ts'
import { PieceWriter } from '#log/local/piece-writer.ts'
import { nodeLimits } from '#model/limits.ts'
import { ControlClient, ControlError, controlTimeoutMs } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'

export type AdoptCopyOptions = {
  readonly config: Config
  /** The lost node. */
  readonly nodeId: string
  readonly logger: Logger
  readonly clock: Clock
  /** Ends the wait for control and the store. */
  readonly stopping: AbortSignal
}

export type AdoptedCopy = {
  /** For `startAdoption`. */
  readonly directory: string
  /** Call it once all is delivered. */
  removeCopies(): Promise<void>
  /** Tells control that nothing more happens here: all is delivered, or needs a person. Removes the directory if nothing is left. Never rejects. */
  end(): Promise<void>
}

/** The last heartbeat may be that of a machine that has just died. */
const waitMsMax = 2 * nodeLimits.healthySeconds * 1_000
const askMs = 1_000
const commitsMsMax = 300_000
/** Thousands of objects go one by one. */
const removalMsMax = 600_000

/** Throws UserError. */
export async function adoptCopy(options: AdoptCopyOptions): Promise<AdoptedCopy> {
  const { config, nodeId, logger, clock } = options
  const { files } = system
  if (!isUuid(nodeId)) throw new UserError(`--adopt-copy: must be the id of a node, not "${nodeId}": inlet nodes list shows it`)
  const { copyUrl } = config
  if (copyUrl === null) throw new UserError('--adopt-copy: needs INLET_COPY_URL, the copy store of the lost node')
  const by = await readTrimmed(files, config.paths.nodeId)
  if (by === undefined)
    throw new UserError(`${config.paths.data} is not the data directory of a node: run this where a node of the region runs`)
  const directory = join(config.paths.data, 'taken-over', nodeId)
  const { paths } = withDataDirectory(config, directory)
  const done = join(paths.node, 'restored')
  const opened = await openCopyStore({ ...config, copyUrl }, system)
  const place = { store: opened.store, folder: copyFolder(opened.prefix, nodeId) }
  const own = await NodeCredential.open(by, config.paths.nodeCredential, system)
  const control = await ControlClient.open({ ...controlOf(config), pin: null, credential: own, files, clock })
  const restore = async () => {
    await setReplacedAside(options, directory)
    return (await readRestored(done)) ?? (await restoreOnce({ ...options, by, control, place, paths, done }))
  }
  const restored = await restore().catch((error: unknown) => {
    opened.close()
    throw error
  })
  const { damaged } = restored
  let isDelivered = false
  return {
    directory,
    async removeCopies() {
      if (damaged === 0) await removeRestored(place, restored, clock.timeout(removalMsMax))
      else return logger.error({ node_id: nodeId, damaged }, 'the copies stay in the store, because some of them are damaged')
      isDelivered = true
    },
    async end() {
      opened.close()
      try {
        if (isDelivered) await rm(directory, { recursive: true, force: true })
        await control.endTakeOver({ lost_node_id: nodeId }, clock.timeout(controlTimeoutMs))
      } catch (error) {
        logger.warn({ node_id: nodeId, reason: errorMessage(error) }, 'control not told that the takeover has ended')
      }
    },
  }
}

/** Moves a directory away with which this machine had the node before it was revoked, or another one got it. It may have segments that need a person. */
async function setReplacedAside({ config, nodeId, logger, clock, stopping }: AdoptCopyOptions, directory: string): Promise<void> {
  const { paths } = withDataDirectory(config, directory)
  if ((await readTrimmed(system.files, paths.nodeCredential)) === undefined) return
  const credential = await NodeCredential.open(nodeId, paths.nodeCredential, system)
  const control = await ControlClient.open({ ...controlOf(config), pin: null, credential, files: system.files, clock })
  try {
    await control.fetchCommittedSeqs(nodeId, AbortSignal.any([stopping, clock.timeout(controlTimeoutMs)]))
  } catch (error) {
    stopping.throwIfAborted()
    const fence = error instanceof ControlError ? error.fence : undefined
    // Nobody takes over the place of a removed node. The adoption says so, or joins again.
    if (fence === undefined || fence === 'node_removed') return
    const aside = `${directory}-${system.random.bytes(4).toString('hex')}`
    await rename(directory, aside)
    logger.warn({ node_id: nodeId, directory: aside, reason: fence }, 'the directory of an earlier takeover was moved')
  }
}

type RestoreOnceOptions = AdoptCopyOptions & {
  readonly by: string
  readonly control: ControlClient
  readonly place: CopyPlace
  readonly paths: Config['paths']
  /** The file that says what was restored. */
  readonly done: string
}

async function restoreOnce({ place, paths, done, ...options }: RestoreOnceOptions): Promise<Restored> {
  const { nodeId, control, by, logger, clock, stopping } = options
  const { files } = system
  // Before control gives the node away: with another prefix nothing would be restored, and that would look like success.
  if (!(await hasCopies(place, stopping)))
    throw new UserError(`the copy store has nothing of node ${nodeId}: set INLET_COPY_URL to that of the lost node`)
  await writeDurably(files, paths.nodeId, Buffer.from(`${nodeId}\n`))
  const { secret } = await NodeCredential.open(nodeId, paths.nodeCredential, system)
  await takeOver({ ...options, secret })
  await untilCommitsAreKnown({ nodeId, control, logger, clock, stopping })
  const pieces = new PieceWriter(files, paths.wal)
  const restored = await restoreLog({ ...system, ...place, nodeId, by, pieces, logger, clock, signal: stopping })
  await writeDurably(files, paths.walNodeId, Buffer.from(`${nodeId}\n`))
  await writeDurably(files, done, Buffer.from(`${JSON.stringify(restored)}\n`))
  const { ranges: _, ...counts } = restored
  logger.notice({ node_id: nodeId, ...counts }, 'log restored from its copies')
  return restored
}

type TakeOverOptions = AdoptCopyOptions & { readonly control: ControlClient; readonly secret: string }

/** Waits until control takes the lost node for silent. */
async function takeOver({ nodeId, control, secret, logger, clock, stopping }: TakeOverOptions): Promise<void> {
  const askUntil = clock.monotonic() + waitMsMax
  for (let attempt = 0; ; attempt += 1) {
    try {
      const signal = AbortSignal.any([stopping, clock.timeout(controlTimeoutMs)])
      await control.takeOver({ lost_node_id: nodeId, secret }, signal)
      return
    } catch (error) {
      stopping.throwIfAborted()
      const isRunning = error instanceof ControlError && error.status === 409
      if (error instanceof ControlError && error.status >= 400 && error.status < 500 && !isRunning)
        throw new UserError(error.detail)
      if (clock.monotonic() >= askUntil)
        throw new UserError(
          isRunning ? error.detail : 'control was not reached, and it must refuse the lost machine first; try again',
        )
      if (attempt === 0) logger.warn('the adoption waits for control, which must refuse the lost machine')
      await sleep(clock, askMs, stopping)
    }
  }
}

/**
 * Waits until control has read what the lost node delivered and could not report: it must not be delivered again. If a bucket cannot be read for
 * long, it goes on all the same: then markers decide.
 */
async function untilCommitsAreKnown({
  control,
  nodeId,
  logger,
  clock,
  stopping,
}: Pick<TakeOverOptions, 'control' | 'nodeId' | 'logger' | 'clock' | 'stopping'>): Promise<void> {
  const waitUntil = clock.monotonic() + commitsMsMax
  logger.notice({ node_id: nodeId }, 'control reads what the lost node delivered and did not report, which takes a minute')
  let reason = ''
  while (clock.monotonic() < waitUntil) {
    const signal = AbortSignal.any([stopping, clock.timeout(controlTimeoutMs)])
    try {
      const { may_lack } = await control.findCommits(['none'], signal)
      if (may_lack !== true) return
      reason = 'control has not read every bucket of the region'
    } catch (error) {
      stopping.throwIfAborted()
      reason = errorMessage(error)
    }
    await sleep(clock, askMs, stopping)
  }
  logger.warn({ node_id: nodeId, reason }, 'commits of the lost node may not be known: the adoption goes on, and markers decide')
}

async function readRestored(path: string): Promise<Restored | undefined> {
  const text = await readTrimmed(system.files, path)
  return text === undefined ? undefined : (JSON.parse(text) as Restored)
}
