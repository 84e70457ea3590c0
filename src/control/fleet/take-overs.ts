/**
 * Gives lost nodes to others, which deliver their copies.
 *
 * Owns: which node is lost, and who takes it over. Does not own: the delivery (cli/serve/adopt-copy.ts), and the rows
 * (store/nodes/take-overs.ts).
 * Law: a lost node belongs to one other node at a time, and control refuses everybody who had it before. Without INLET_TAKEOVER_AFTER a person
 * decides which node is lost.
 */
import { hashApiKey } from '#auth/secrets.ts'
import { AppError } from '#errors.ts'
import { isoTimestamp } from '#lib/clock.ts'
import { nodeLimits } from '#model/limits.ts'
import type { TakeOvers as Assigned, TakeOver, TakeOverNext } from '#model/node-protocol.ts'
import { eventOutsideApi, insertAuditEvent } from '#store/accounts/audit-events.ts'
import { skipSeqs } from '#store/commits/commits.ts'
import { recordLosses } from '#store/commits/losses.ts'
import { noteMissingCommits } from '#store/commits/missing-commits.ts'
import { onlyDelivers } from '#store/nodes/log-holder.ts'
import { findNodeCredential, replaceLostCredential } from '#store/nodes/node-credentials.ts'
import { findProcess, lockNode } from '#store/nodes/nodes.ts'
import { assignLostNode, endTakeOver, listTakeOvers, noteTakeOver, renewTakeOvers } from '#store/nodes/take-overs.ts'
import { type Db, transact } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import { controlLimits } from '../limits.ts'
import type { NodeIdentity } from './node-access.ts'

export type TakeOversOptions = Pick<ControlContext, 'store' | 'clock' | 'logger'> & {
  /** A node that is silent for so long is lost. Null: nobody takes it over by itself. */
  readonly afterMs: number | null
}

export type TakeOvers = ReturnType<typeof takeOverService>

export function takeOverService({ store, clock, logger, afterMs }: TakeOversOptions) {
  return {
    /**
     * Gives the id of a silent node to another node of its region, for which that one made a secret. Throws not_found, and conflict while the node
     * runs.
     */
    async begin({ id: by, region }: NodeIdentity, { lost_node_id: id, secret }: TakeOver): Promise<void> {
      const hash = hashApiKey(secret)
      const isNew = await transact(store, async (db) => {
        // Either may be removed, or lose its place, meanwhile.
        for (const each of [id, by].toSorted()) await lockNode(db, each)
        if (!(await hasPlace(db, by))) throw new AppError('conflict', 'this node has lost its own place')
        const known = await findNodeCredential(db, id)
        if (known?.region !== region || id === by) throw noNodeToTakeOver(id, region)
        if (known.credential_hash === hash) return false
        const [ingest, delivery] = [await findProcess(db, id, 'ingest'), await findProcess(db, id, 'delivery')]
        const seenAt = Math.max(known.registered_at, ingest?.last_seen_at ?? 0, delivery?.last_seen_at ?? 0)
        if (clock.now() - seenAt <= nodeLimits.healthySeconds * 1_000) throw stillRuns(id, seenAt)
        const isRepeated = await onlyDelivers(db, id)
        await recordLosses(db, id, { cause: 'node_taken_over', credential_hash: known.credential_hash }, clock.now())
        await replaceLostCredential(db, id, hash, clock.now())
        // The lost machine may have gone on with its log, and a receipt must not name two segments.
        if (!isRepeated) await skipSeqs(db, id)
        await noteTakeOver(db, { node_id: id, by_node_id: by }, clock.now())
        // It may have delivered what it could not report, and its markers alone tell. The key that signs them is lost with its disk.
        const notBefore = clock.now() + controlLimits.fencedEndsMs
        await noteMissingCommits(db, region, seenAt, clock.now(), { isAutomatic: true, notBefore })
        await insertAuditEvent(db, takeOverEvent(by, id, clock.now()))
        return true
      })
      if (isNew) logger.warn({ node_id: id, by }, 'another node has taken over a node')
    },

    /** Returns the lost nodes that the node shall take over, and finds one if it has none. */
    async next({ id: by, region }: NodeIdentity, { running }: TakeOverNext): Promise<Assigned> {
      const now = clock.now()
      if (afterMs === null && running.length === 0) return { lost_node_ids: [] }
      const lost_node_ids = await transact(store, async (db) => {
        await renewTakeOvers(db, by, running, now)
        // One that fails with what it has would only keep others from the next one.
        if (afterMs !== null && running.length === 0 && (await listTakeOvers(db, by)).length === 0)
          await assignLostNode(db, { region, by, before: now - afterMs, confirmMs: controlLimits.silenceConfirmedMs }, now)
        return listTakeOvers(db, by)
      })
      return { lost_node_ids: [...lost_node_ids] }
    },

    /** The log of a lost node is delivered, or needs a person. */
    async end({ id: by }: NodeIdentity, lost_node_id: string): Promise<void> {
      await endTakeOver(store.db, { node_id: lost_node_id, by_node_id: by }, clock.now())
    },
  }
}

async function hasPlace(db: Db, id: string): Promise<boolean> {
  const own = await findNodeCredential(db, id)
  return own !== undefined && own.credential_hash !== null && own.credential_revoked_at === null
}

function noNodeToTakeOver(id: string, region: string): AppError {
  return new AppError('not_found', `there is no other node ${id} in region ${region}: inlet nodes list shows all`)
}

function stillRuns(id: string, seenAt: number): AppError {
  return new AppError('conflict', `node ${id} runs: control heard of it at ${isoTimestamp(seenAt)}; stop it, and try again`)
}

function takeOverEvent(by: string, node_id: string, now: number) {
  return eventOutsideApi({ actor: `node:${by}`, operation: 'takeOverNode', account_id: null, resource_id: node_id }, now)
}
