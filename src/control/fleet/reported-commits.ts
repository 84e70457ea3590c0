import type { z } from 'zod'
import { AppError, type FieldError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import { commitId, type SegmentCommit } from '#model/commit.ts'
import { summarize } from '#model/field-errors.ts'
import type { CommitsFound, CommitsRecorded, DeliveredFound, DeliveredLookup } from '#model/node-protocol.ts'
import { currentPosition } from '#store/cluster/epoch.ts'
import { listForeignEndpoints, listForeignViews, listOwnEndpoints } from '#store/cluster/node-scope.ts'
import { countRecordedCommits, findCommits, listCommitsOf, recordCommit } from '#store/commits/commits.ts'
import { findLossOf } from '#store/commits/losses.ts'
import { findMissing, listMissingCommits } from '#store/commits/missing-commits.ts'
import { findProcess } from '#store/nodes/nodes.ts'
import { type Db, type Store, transact } from '#store/store.ts'
import type { DeliveredMetrics } from '../metrics/delivered-metrics.ts'
import { listRecordKeys } from '../resources/record-keys.ts'
import type { NodeIdentity } from './node-access.ts'

export type ReportedCommitsOptions = {
  readonly store: Store
  readonly clock: Clock
  readonly delivered: Pick<DeliveredMetrics, 'add'>
}

export type ReportedCommits = ReturnType<typeof reportedCommits>

export function reportedCommits({ store, clock, delivered }: ReportedCommitsOptions) {
  return {
    /** Returns those of the commits of the node that are recorded. */
    async find(node: NodeIdentity, ids: readonly string[]): Promise<CommitsFound> {
      // First: what the node noted with that report is then seen below.
      const reported = await findProcess(store.db, node.id, 'delivery')
      const missing = findMissing(await listMissingCommits(store.db), node.region)
      const commits = await findCommits(store.db, node.id, ids)
      return { commits, may_lack: missing !== undefined, reported_at: reported?.last_seen_at ?? null }
    },

    /**
     * Returns those of the segments that are delivered with all of their records. They may be of other nodes, for endpoints of the regions of the
     * node.
     */
    async findDelivered(node: NodeIdentity, segments: DeliveredLookup['segments']): Promise<DeliveredFound> {
      const ids = segments.map(({ endpoint_id }) => endpoint_id)
      const own = await listOwnEndpoints(store.db, node.id, ids)
      const asked = segments.filter(({ endpoint_id }) => own.has(endpoint_id))
      if (asked.length === 0) return { delivered: [] }
      const delivered: DeliveredFound['delivered'] = []
      for (const commit of await listCommitsOf(store.db, asked)) {
        const { id: commit_id, endpoint_id, node_id, seq, records_damaged } = commit
        const isPartial = records_damaged > 0 || (await findLossOf(store.db, endpoint_id, commit))?.partial !== undefined
        if (!isPartial) delivered.push({ ...{ endpoint_id, node_id, seq, commit_id }, keys: listRecordKeys(commit) })
      }
      return { delivered }
    },

    /**
     * Records commits in the order given, each in its own transaction. Commits in the response are durable.
     * A commit of an unknown endpoint (the database was restored from an older copy) is recorded like any other: its objects are in
     * the bucket, and rejecting it would block the node's outbox forever. Throws validation_error if a commit is not the node's.
     */
    async record(node: NodeIdentity, commits: readonly SegmentCommit[]): Promise<z.infer<typeof CommitsRecorded>> {
      await assertOwn(store.db, node, commits)
      const recorded: string[] = []
      let newCount = 0
      for (const commit of commits) {
        if ((await transact(store, (db) => recordCommit(db, commit, clock.now()))) === 'new') {
          newCount += 1
          delivered.add(commit)
        }
        recorded.push(commit.id)
      }
      const { database } = await currentPosition(store.db)
      return { recorded, new: newCount, total: { database, commits: await countRecordedCommits(store.db, node.id) } }
    },
  }
}

/**
 * Throws validation_error for a commit of another node, region or account. Not `forbidden`, which a node takes for trouble with its
 * credential: it would try all of its commits again instead of holding this one.
 */
async function assertOwn(db: Db, node: NodeIdentity, commits: readonly SegmentCommit[]): Promise<void> {
  const endpoints = await listForeignEndpoints(
    db,
    node.id,
    commits.map(({ endpoint_id }) => endpoint_id),
  )
  const views = await listForeignViews(db, node.id, commits.flatMap(viewIdsOf))
  const errors = commits.flatMap((commit, index): FieldError[] => {
    const { id, node_id, log, seq, endpoint_id } = commit
    const reject = (field: string, message: string) => [{ path: `commits.${index}.${field}`, message }]
    if (node_id !== node.id) return reject('node_id', 'must be the id of the node that reports it')
    if (id !== commitId(node_id, log, seq)) return reject('id', 'must be made of its node, log and seq')
    if (endpoints.has(endpoint_id)) return reject('endpoint_id', `must be an endpoint of the region of the node, ${node.region}`)
    if (viewIdsOf(commit).some((view) => views.has(view)))
      return reject('views', 'must be of an account with an endpoint in the region of the node')
    return []
  })
  if (errors.length > 0) throw new AppError('validation_error', summarize(errors), { errors })
}

function viewIdsOf({ views, artifacts }: SegmentCommit): readonly string[] {
  return [...views, ...Object.values(artifacts)].flatMap(({ view_id }) => view_id ?? [])
}
