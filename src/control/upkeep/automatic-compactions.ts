/**
 * Starts the compactions of endpoints that compact by themselves.
 *
 * Owns: when a job is started. Does not own: what it merges (store/jobs/compaction-jobs.ts), the work, which nodes do.
 * Law: an endpoint is done with its closed periods once nothing is left to merge, so whoever leads next continues. An endpoint has one unfinished
 * compaction at most, and an account a few, so that it does not keep nodes from the jobs of others.
 */
import { AppError } from '#errors.ts'
import { errorMessage } from '#lib/error-message.ts'
import { Periodic } from '#lib/periodic.ts'
import { compactionLimits } from '#model/limits.ts'
import { type DueEndpoint, startAutomaticCompaction } from '#store/jobs/compaction-jobs.ts'
import { countCompactionJobs, listDueEndpoints, setCompactedUntil, wasCanceledSince } from '#store/jobs/due-compactions.ts'
import { transact } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import { controlLimits } from '../limits.ts'

export type AutomaticCompactionsOptions = Pick<ControlContext, 'store' | 'leadership' | 'clock' | 'logger'>

export function createAutomaticCompactions(options: AutomaticCompactionsOptions): Periodic {
  const { leadership, clock, logger } = options
  return new Periodic({
    name: 'automatic compactions',
    intervalMs: controlLimits.compactionCheckMs,
    runAtStart: true,
    run: leadership.whileLeading((signal) => startDueCompactions(options, signal)),
    failure: 'automatic compactions failed',
    clock,
    logger,
  })
}

export async function startDueCompactions(
  { store, clock, logger }: Omit<AutomaticCompactionsOptions, 'leadership'>,
  signal: AbortSignal,
): Promise<void> {
  for (let after: string | undefined = ''; after !== undefined; ) {
    const { due, next } = await listDueEndpoints(store.db, clock.now(), after, controlLimits.compactionEndpointsAtOnce)
    for (const endpoint of due) {
      if (signal.aborted) return
      try {
        await compact(endpoint)
      } catch (error) {
        // Somebody started one in the meantime, or commits may be missing.
        if (error instanceof AppError && error.code === 'conflict') continue
        // One endpoint must not keep the others from being compacted.
        logger.warn({ endpoint_id: endpoint.id, reason: errorMessage(error) }, 'automatic compaction failed to start')
      }
    }
    after = next
  }

  async function compact(endpoint: DueEndpoint): Promise<void> {
    const { id, account_id, compaction, end } = endpoint
    const closedAt = end + compactionLimits.marginMs[compaction.period]
    if ((await countCompactionJobs(store.db, account_id)) >= compactionLimits.automaticPerAccountMax) return
    const job = (await wasCanceledSince(store.db, id, closedAt))
      ? undefined
      : await startAutomaticCompaction(store, endpoint, clock.now())
    if (job === undefined) await transact(store, (db) => setCompactedUntil(db, endpoint))
    else logger.info({ endpoint_id: id, job_id: job.id, files: job.segments.total }, 'automatic compaction started')
  }
}
