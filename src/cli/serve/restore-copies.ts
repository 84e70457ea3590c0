/**
 * Restores the log of a lost node from its copies, in a directory of its own.
 *
 * Owns: that control gives the node away first, and knows what it delivered. Does not own: what is in the store (copies/restore.ts).
 * Law: control gives the lost node to this machine before its copies are read. By itself that happens only in a store that was tried right before. The credential is durable before. What was restored is noted
 * once it is durable, so a command that was stopped goes on.
 */
import { join } from 'node:path'
import type { Config } from '#config/config.ts'
import { type CopyPlace, hasCopies, type Restored, restoreLog } from '#copies/restore.ts'
import { checkCopyStore } from '#copies/store-check.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { writeDurably } from '#lib/files.ts'
import { readTrimmed } from '#lib/read-or-create.ts'
import type { System } from '#lib/system.ts'
import type { Logger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import type { FindDelivered } from '#log/log-writer.ts'
import type { SegmentRef } from '#log/segment-source.ts'
import { commitId } from '#model/commit.ts'
import { nodeLimits } from '#model/limits.ts'
import { type Control, ControlError, controlTimeoutMs } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'
import { RestoredPieces } from './restored-pieces.ts'

/** The last heartbeat may be that of a machine that has just died. */
const waitMsMax = 2 * nodeLimits.healthySeconds * 1_000
const askMs = 1_000
const commitsMsMax = 300_000
export type RestoreCopiesOptions = Pick<System, 'files' | 'random'> & {
  /** The lost node. */
  readonly nodeId: string
  /** The node that takes over. */
  readonly by: string
  readonly control: Pick<Control, 'takeOver'>
  /** Calls control as the lost node, once this machine has its place. */
  readonly asLost: (credential: NodeCredential) => Promise<Pick<Control, 'findCommits'>>
  readonly place: CopyPlace
  /** Whether no person has said that the lost machine is off. */
  readonly isByItself: boolean
  /** The directory that it is restored to. */
  readonly paths: Config['paths']
  readonly logger: Logger
  readonly clock: Clock
  /** Ends the wait for control and the store. */
  readonly stopping: AbortSignal
}

/** Returns what was restored, also by an earlier call. Throws UserError. */
export async function restoreCopies(options: RestoreCopiesOptions): Promise<Restored> {
  const done = join(options.paths.node, 'restored')
  const text = await readTrimmed(options.files, done)
  return text === undefined ? await restoreOnce(options, done) : (JSON.parse(text) as Restored)
}

async function restoreOnce(options: RestoreCopiesOptions, done: string): Promise<Restored> {
  const { nodeId, by, place, paths, files, random, logger, clock, stopping } = options
  // Before control gives the node away: with another prefix nothing would be restored, and that would look like success.
  if (!(await hasCopies(place, stopping)))
    throw new UserError(`the copy store has nothing of node ${nodeId}: set INLET_COPY_URL to that of the lost node`)
  if (options.isByItself) await assertFences(options)
  await writeDurably(files, paths.nodeId, Buffer.from(`${nodeId}\n`))
  const credential = await NodeCredential.open(nodeId, paths.nodeCredential, { files, random })
  await takeOver({ ...options, secret: credential.secret })
  const control = await options.asLost(credential)
  await untilCommitsAreKnown({ nodeId, control, logger, clock, stopping })
  const { wal, storedRequests } = paths
  const pieces = await RestoredPieces.open({ files, wal, storedRequests })
  const findDelivered = askDelivered({ nodeId, control, clock })
  const restored = await restoreLog({ ...place, random, nodeId, by, pieces, findDelivered, logger, clock, signal: stopping })
  await writeDurably(files, paths.walNodeId, Buffer.from(`${nodeId}\n`))
  await writeDurably(files, done, Buffer.from(`${JSON.stringify(restored)}\n`))
  const { ranges: _, ...counts } = restored
  logger.notice({ node_id: nodeId, ...counts }, 'log restored from its copies')
  return restored
}

const racers = 8

/** The lost machine may still run: then only a store that does all that it says keeps it from acknowledging what nobody delivers. */
async function assertFences({ nodeId, place, random, clock, stopping: signal }: RestoreCopiesOptions): Promise<void> {
  const options = { ...place, racers: Array(racers).fill(place.store), random, clock, signal }
  const wrong = (await checkCopyStore(options)).find(
    ({ kind, problem }) => (kind === 'needed' || kind === 'fence') && problem !== null,
  )
  if (wrong === undefined) return
  throw new UserError(
    `the copy store is not safe for a takeover by itself (${wrong.step}: ${wrong.problem}): make sure that the lost machine is off, then run inlet node --adopt-copy ${nodeId}`,
  )
}

type TakeOverOptions = RestoreCopiesOptions & { readonly secret: string }

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
}: AskOptions & Pick<TakeOverOptions, 'logger' | 'stopping'>): Promise<void> {
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
      throwIfReplaced(error)
      reason = errorMessage(error)
    }
    await sleep(clock, askMs, stopping)
  }
  logger.warn({ node_id: nodeId, reason }, 'commits of the lost node may not be known: the adoption goes on, and markers decide')
}

type AskOptions = Pick<RestoreCopiesOptions, 'nodeId' | 'clock'> & { readonly control: Pick<Control, 'findCommits'> }

/** Returns how to ask control what the lost node delivered. Unlike a node that runs, it reports nothing that would say how new the answer is. */
function askDelivered({ nodeId, control, clock }: AskOptions): FindDelivered {
  const idOf = ({ incarnation, seq }: SegmentRef) => commitId(nodeId, incarnation, seq)
  return async (segments, stopping) => {
    const askUntil = clock.monotonic() + waitMsMax
    for (;;)
      try {
        const signal = AbortSignal.any([stopping, clock.timeout(controlTimeoutMs)])
        const { commits } = await control.findCommits(segments.map(idOf), signal)
        const known = new Set(commits.map(({ id }) => id))
        return segments.filter((segment) => known.has(idOf(segment)))
      } catch (error) {
        stopping.throwIfAborted()
        throwIfReplaced(error)
        if (clock.monotonic() >= askUntil)
          throw new UserError(`control did not say what the lost node delivered (${errorMessage(error)}); try again`)
        await sleep(clock, askMs, stopping)
      }
  }
}

/** Another machine, or the lost one, may have got the place meanwhile: a fence would stop that one. */
function throwIfReplaced(error: unknown): void {
  if (error instanceof ControlError && error.fence !== undefined) throw new UserError(error.detail)
}
