/**
 * Records commits that the database lacks: it lost them in a failover to a standby that was behind, or an adopted machine made them.
 *
 * Owns: when that is tried. Does not own: who finds out (fleet/node-reports.ts, fleet/node-access.ts), and reading the buckets, which the
 * composition passes in.
 * Law: only where nothing but commits is in doubt. Where more is, an operator decides. What was not read stays noted.
 */
import type { Clock } from '#lib/clock.ts'
import { Periodic } from '#lib/periodic.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import type { MarkerFolder } from '#store/commits/marker-folders.ts'
import {
  accountsOf,
  clearMissingCommits,
  listAutomaticCommits,
  type MissingCommits,
  narrowMissingCommits,
} from '#store/commits/missing-commits.ts'
import type { Store } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import { controlLimits } from '../limits.ts'

export type RegionToRebuild = {
  readonly store: Store
  readonly stores: ObjectStores
  readonly clock: Clock
  readonly region: string
  /** Whether commits of a folder may be missing. */
  readonly concerns: (folder: Pick<MarkerFolder, 'account_id' | 'endpoint_id'>) => boolean
  /** How long commits are kept. */
  readonly keptMs: number
  readonly signal: AbortSignal
}

export type RebuiltRegion = {
  readonly recorded: number
  /** Names, for the operator, what was not read or not accepted. */
  readonly problems: readonly string[]
  /** Accounts with a bucket that was not read. */
  readonly unread: readonly string[]
}

/** Records every commit again whose marker is in a bucket and that the database does not have. */
export type RebuildRegion = (options: RegionToRebuild) => Promise<RebuiltRegion>

export type LostCommitsOptions = Pick<ControlContext, 'store' | 'leadership' | 'clock' | 'logger'> &
  Pick<RegionToRebuild, 'stores' | 'keptMs'> & { readonly rebuild: RebuildRegion }

export function createCommitRecovery(options: LostCommitsOptions): Periodic {
  const { leadership, clock, logger } = options
  const pauses = new Map<string, Pause>()
  return new Periodic({
    name: 'recovery of commits',
    intervalMs: controlLimits.lostCommitsCheckMs,
    run: leadership.whileLeading((signal) => recoverCommits(options, pauses, signal)),
    failure: 'recovery of commits failed',
    recovery: 'recovery of commits restored',
    clock,
    logger,
  })
}

/** When a region is tried again, by the monotonic clock, and how long it waited for that. */
type Pause = { readonly until: number; readonly ms: number }

async function recoverCommits(
  options: Omit<LostCommitsOptions, 'leadership'>,
  pauses: Map<string, Pause>,
  signal: AbortSignal,
): Promise<void> {
  const { store, clock } = options
  const missing = await listAutomaticCommits(store.db, clock.now())
  // A region keeps its pause after a success: a node that claims more again and again must not have its buckets read all the time.
  for (const [region, { until }] of pauses)
    if (clock.monotonic() >= until && !missing.some((each) => each.region === region)) pauses.delete(region)
  for (const each of missing) {
    const { until = 0, ms = 0 } = pauses.get(each.region) ?? {}
    if (signal.aborted || clock.monotonic() < until) continue
    const { recoveryDelayMsMin, recoveryDelayMsMax } = controlLimits
    const next = Math.min(recoveryDelayMsMax, Math.max(recoveryDelayMsMin, ms * 2))
    // Before the attempt: one that throws must not be repeated at once either.
    pauses.set(each.region, { until: clock.monotonic() + next, ms: next })
    await recoverRegion(options, each, signal)
  }
}

async function recoverRegion(
  { store, stores, rebuild, keptMs, clock, logger }: Omit<LostCommitsOptions, 'leadership'>,
  missing: MissingCommits,
  signal: AbortSignal,
): Promise<void> {
  const { region } = missing
  const accounts = accountsOf(missing)
  const concerns: RegionToRebuild['concerns'] = ({ account_id }) => accounts?.includes(account_id) ?? true
  const { recorded, problems, unread } = await rebuild({ store, stores, clock, region, concerns, keptMs, signal })
  if (unread.length === 0) {
    await clearMissingCommits(store.db, [missing])
    logger.notice({ region, recorded, rejected: problems.slice(0, controlLimits.problemsLogged) }, 'lost commits recorded again')
    return
  }
  await narrowMissingCommits(store.db, [missing], unread)
  logger.error(
    {
      region,
      recorded,
      accounts: unread.slice(0, controlLimits.problemsLogged),
      problems: problems.slice(0, controlLimits.problemsLogged),
      remedy: 'inlet commits rebuild',
    },
    'lost commits not recorded: a bucket cannot be read',
  )
}
