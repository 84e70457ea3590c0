import type { Clock } from '#lib/clock.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Logger } from '#lib/telemetry.ts'
import { jobLimits } from '#model/limits.ts'
import { removeUsageBefore } from '#store/account-usage.ts'
import { removeJobsFinishedBefore } from '#store/jobs.ts'
import type { Store } from '#store/store.ts'
import { removeViewCountersBefore } from '#store/view-counters.ts'
import { controlLimits } from '../limits.ts'
import type { AuditTrail } from './audit-trail.ts'

export type HousekeepingOptions = {
  readonly store: Store
  readonly auditTrail: AuditTrail
  readonly clock: Clock
  readonly logger: Logger
}

/** Removes expired view counters, old jobs, counters of past days and old audit events periodically. */
export function createHousekeeping({ store, auditTrail, clock, logger }: HousekeepingOptions): Periodic {
  return new Periodic({
    name: 'housekeeping',
    intervalMs: controlLimits.housekeepingIntervalMs,
    run: async () => {
      await removeViewCountersBefore(store.db, clock.now() - controlLimits.viewCountersKeptMs)
      await removeJobsFinishedBefore(store.db, clock.now() - jobLimits.keptMs)
      await removeUsageBefore(store.db, clock.now())
      await auditTrail.prune()
    },
    failure: 'housekeeping failed',
    clock,
    logger,
  })
}
