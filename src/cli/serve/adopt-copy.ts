/**
 * Delivers what a lost node had in the copy store: `inlet node --adopt-copy NODE`, and by itself. It makes a directory for `--adopt` of it.
 *
 * Owns: `<data>/taken-over/<node id>`. Does not own: the delivery (adopt.ts), how it is restored (restore-copies.ts).
 * Law: a directory of an earlier takeover is not used again once another machine has got the node: it has another log. One process at a time uses it:
 * control gives a node that this command takes over to the delivery beside it, too.
 */
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { controlOf } from '#config/addresses.ts'
import { withDataDirectory } from '#config/data-paths.ts'
import { copyFolder } from '#copies/copy-names.ts'
import { openCopyStore } from '#copies/open-store.ts'
import { type CopyPlace, removalOf } from '#copies/restore.ts'
import { errorMessage } from '#lib/error-message.ts'
import { lockExclusively } from '#lib/exclusive.ts'
import { readTrimmed } from '#lib/read-or-create.ts'
import { system } from '#lib/system.ts'
import { UserError } from '#lib/user-error.ts'
import { isUuid } from '#lib/uuid.ts'
import { ControlClient, ControlError, controlTimeoutMs } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'
import { type AdoptionOptions, startAdoption } from './adopt.ts'
import { restoreCopies } from './restore-copies.ts'
import type { App } from './run-app.ts'

export type AdoptCopyOptions = Pick<AdoptionOptions, 'config' | 'logger' | 'clock'> & {
  /** The lost node. */
  readonly nodeId: string
  /** Whether no person has said that the lost machine is off. */
  readonly isByItself?: boolean
  /** Ends the wait for control and the store. The takeover has not ended then: the next start goes on with it. */
  readonly stopping: AbortSignal
}

type AdoptedCopy = {
  /** For `startAdoption`. */
  readonly directory: string
  /** Call it once all is delivered, and again if it fails. */
  removeCopies(signal: AbortSignal): Promise<void>
  /** Tells control that nothing more happens here: all is delivered, or needs a person. Removes the directory if nothing is left. Never rejects. */
  end(): Promise<void>
  /** Lets other processes use the directory. Call it last, whether or not the takeover has ended. */
  close(): void
}

/** Returns an app that finishes once nothing is left to deliver here. Throws UserError. */
export async function deliverCopies(
  options: AdoptCopyOptions & Omit<AdoptionOptions, 'directory' | 'onDelivered'>,
): Promise<App> {
  const { stopping } = options
  const copy = await adoptCopy(options)
  try {
    const { directory, removeCopies: onDelivered } = copy
    const app = await startAdoption({ ...options, directory, onDelivered }, stopping)
    return {
      ...app,
      async stop(signal) {
        try {
          await app.stop(signal)
          if (!stopping.aborted) await copy.end()
        } finally {
          copy.close()
        }
      },
    }
  } catch (error) {
    copy.close()
    throw error
  }
}

/** Makes the directory. Throws UserError. */
export async function adoptCopy(options: AdoptCopyOptions): Promise<AdoptedCopy> {
  const { config, nodeId } = options
  if (!isUuid(nodeId)) throw new UserError(`--adopt-copy: must be the id of a node, not "${nodeId}": inlet nodes list shows it`)
  const { copyUrl } = config
  if (copyUrl === null) throw new UserError('--adopt-copy: needs INLET_COPY_URL, the copy store of the lost node')
  const by = await readTrimmed(system.files, config.paths.nodeId)
  if (by === undefined)
    throw new UserError(`${config.paths.data} is not the data directory of a node: run this where a node of the region runs`)
  using resources = new DisposableStack()
  const hint = 'delivery of this node, or another inlet node --adopt-copy, is taking the node over'
  resources.use(lockExclusively(join(config.paths.data, 'taken-over', `${nodeId}.lock`), hint))
  const { store, prefix, close } = await openCopyStore({ ...config, copyUrl }, system)
  resources.defer(close)
  const copy = await restoreAdopted(options, by, { store, folder: copyFolder(prefix, nodeId) })
  const held = resources.move()
  return { ...copy, close: () => held.dispose() }
}

async function restoreAdopted(options: AdoptCopyOptions, by: string, place: CopyPlace): Promise<Omit<AdoptedCopy, 'close'>> {
  const { config, nodeId, logger, clock } = options
  const { files } = system
  const directory = join(config.paths.data, 'taken-over', nodeId)
  const { paths } = withDataDirectory(config, directory)
  const own = await NodeCredential.open(by, config.paths.nodeCredential, system)
  const openControl = (credential: NodeCredential) =>
    ControlClient.open({ ...controlOf(config), pin: null, credential, files, clock })
  const control = await openControl(own)
  await setReplacedAside(options, directory)
  const restored = await restoreCopies({
    isByItself: false,
    ...options,
    ...system,
    by,
    control,
    asLost: openControl,
    place,
    paths,
  })
  const { damaged } = restored
  const remove = removalOf(place, restored)
  let isDelivered = false
  return {
    directory,
    async removeCopies(signal) {
      if (damaged === 0) await remove(signal)
      else return logger.error({ node_id: nodeId, damaged }, 'the copies stay in the store, because some of them are damaged')
      isDelivered = true
    },
    async end() {
      try {
        await control.endTakeOver({ lost_node_id: nodeId }, clock.timeout(controlTimeoutMs))
        // With it, the next takeover goes on where this one ended.
        if (isDelivered) await rm(directory, { recursive: true, force: true })
      } catch (error) {
        const event = 'control was not told that the takeover has ended, or its directory was not removed'
        logger.warn({ node_id: nodeId, reason: errorMessage(error), next: `inlet node --adopt-copy ${nodeId}` }, event)
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
