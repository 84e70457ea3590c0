/**
 * Records what machines say that lost their place: what is on their disks and nowhere else.
 *
 * Owns: how often such a machine may report. Does not own: what a report changes (store/commits/left-on-disk.ts).
 * Law: what one machine says costs no more than a report each ten minutes, beyond what a large disk needs at first. A report may have control
 * search buckets and tell accounts, and whoever has the credential of a removed node may send one.
 */
import { LRUCache } from 'lru-cache'
import { AppError } from '#errors.ts'
import type { LeftOnDisk, LeftRecorded } from '#model/left-on-disk.ts'
import { type FormerMachine, recordLeftOnDisk } from '#store/commits/left-on-disk.ts'
import { transact } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import { controlLimits } from '../limits.ts'

export type LeftOnDisks = ReturnType<typeof leftOnDiskService>

export function leftOnDiskService({ store, clock, logger }: Pick<ControlContext, 'store' | 'clock' | 'logger'>) {
  const { leftReportsMax, leftReportMs, rateLimitedCallersMax } = controlLimits
  /** By credential: the monotonic time at which all of its reports are paid for. */
  const paidAt = new LRUCache<string, number>({ max: rateLimitedCallersMax })
  /** Throws too_many_requests. */
  const admit = ({ credential_hash }: FormerMachine) => {
    const now = clock.monotonic()
    const at = Math.max(now, paidAt.get(credential_hash) ?? 0) + leftReportMs
    const waitMs = at - now - leftReportsMax * leftReportMs
    if (waitMs > 0)
      throw new AppError('too_many_requests', 'a machine that lost its place reports its disk too often', {
        retryAfterSeconds: Math.ceil(waitMs / 1_000),
      })
    paidAt.set(credential_hash, at)
  }
  return {
    async record(machine: FormerMachine, { segments }: LeftOnDisk): Promise<LeftRecorded> {
      admit(machine)
      const losses = await transact(store, (db) => recordLeftOnDisk(db, machine, segments, clock.now()))
      const { node_id } = machine
      if (losses > 0) logger.warn({ node_id, losses }, 'a node that lost its place has records that were not delivered')
      return { losses }
    },
  }
}
