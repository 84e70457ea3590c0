/**
 * Removes rows of the database that are older than they are kept.
 *
 * Owns: what is removed after which time, and that each table has its turn. Does not own: the statements (store/).
 * Law: each statement removes a bounded number of rows, so that none runs into the timeout of statements, however long this did not run.
 */
import { Periodic } from '#lib/periodic.ts'
import { jobLimits, joinTokenLimits } from '#model/limits.ts'
import { removeUsageBefore } from '#store/accounts/account-usage.ts'
import { removeSessionsBefore, removeVerificationsBefore } from '#store/accounts/people.ts'
import { removeSignInLinksBefore } from '#store/accounts/sign-in-links.ts'
import {
  findCommittingNode,
  listCommittedEndpoints,
  removeCommitsBefore,
  removeCommittedSeqs,
} from '#store/commits/commit-retention.ts'
import { removeLossesEndedBefore } from '#store/commits/losses.ts'
import { removePlacesReplacedBefore } from '#store/endpoints/former-places.ts'
import { removeCompactionsBefore } from '#store/jobs/compactions.ts'
import { removeJobFinishedBefore } from '#store/jobs/jobs.ts'
import { removeJoinTokensExpiredBefore } from '#store/nodes/join-tokens.ts'
import { seriesRemovals } from '#store/series/series-retention.ts'
import { removeViewCountersBefore } from '#store/series/view-counters.ts'
import { removeViewQualityBefore } from '#store/series/view-quality.ts'
import type { Db } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import { controlLimits } from '../limits.ts'
import type { AuditTrail } from '../resources/audit-trail.ts'
import { removeAll } from '../resources/batches.ts'

export type HousekeepingOptions = Pick<ControlContext, 'store' | 'leadership' | 'clock' | 'logger'> & {
  readonly auditTrail: Pick<AuditTrail, 'prune'>
  /** How long commits are kept, with their DLQ files. */
  readonly commitsKeptMs: number
}

/** Removes what is too old, from time to time. */
export function createHousekeeping(options: HousekeepingOptions): Periodic {
  const { leadership, clock, logger } = options
  return new Periodic({
    name: 'housekeeping',
    intervalMs: controlLimits.housekeepingIntervalMs,
    run: leadership.whileLeading((signal) => runHousekeeping(options, signal)),
    failure: 'housekeeping failed',
    clock,
    logger,
  })
}

/** Throws the errors of all steps at the end: a table that fails must not keep the others from being cleaned. */
export async function runHousekeeping(
  { store: { db }, auditTrail, commitsKeptMs, clock }: Omit<HousekeepingOptions, 'leadership' | 'logger'>,
  signal: AbortSignal,
): Promise<void> {
  const now = clock.now()
  const limit = controlLimits.rowsRemovedAtOnce
  const steps: readonly (() => Promise<void>)[] = [
    () => removeAll(() => removeViewCountersBefore(db, now - controlLimits.viewCountersKeptMs), signal),
    () => removeAll(() => removeViewQualityBefore(db, now - controlLimits.viewCountersKeptMs), signal),
    ...seriesRemovals(db, now).map((removeBatch) => () => removeAll(removeBatch, signal)),
    () => removeAll(() => removeJobFinishedBefore(db, now - jobLimits.keptMs, limit), signal),
    () => removeAll(() => removeUsageBefore(db, now), signal),
    () => removeJoinTokensExpiredBefore(db, now - joinTokenLimits.keptMs),
    () => removeSignInLinksBefore(db, now),
    () => removeSessionsBefore(db, now),
    () => removeVerificationsBefore(db, now),
    () => removeCommits(db, now - commitsKeptMs, signal),
    () => removeAll(() => removeCompactionsBefore(db, now - commitsKeptMs, controlLimits.compactionsRemovedAtOnce), signal),
    () => removeLossesEndedBefore(db, now - commitsKeptMs),
    () => removePlacesReplacedBefore(db, now - commitsKeptMs),
    () => removeSeqsOfGoneNodes(db, now - commitsKeptMs, signal),
    () => auditTrail.prune(signal),
  ]
  const errors: unknown[] = []
  for (const step of steps) {
    try {
      await step()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors.length === 1 ? errors[0] : new AggregateError(errors)
}

async function removeCommits(db: Db, before: number, signal: AbortSignal): Promise<void> {
  const limit = controlLimits.rowsRemovedAtOnce
  for (let after = ''; ; ) {
    const endpoints = await listCommittedEndpoints(db, after, limit)
    for (const endpoint of endpoints) await removeAll(() => removeCommitsBefore(db, endpoint, before, limit), signal)
    const last = endpoints.at(-1)
    if (last === undefined || signal.aborted) return
    after = last
  }
}

/** A node that committed nothing for so long reports none of these segments again. */
async function removeSeqsOfGoneNodes(db: Db, before: number, signal: AbortSignal): Promise<void> {
  for (let after = ''; ; ) {
    const node = await findCommittingNode(db, after, before)
    if (node === undefined || signal.aborted) return
    if (node.isGone) await removeAll(() => removeCommittedSeqs(db, node.id, controlLimits.rowsRemovedAtOnce), signal)
    after = node.id
  }
}
