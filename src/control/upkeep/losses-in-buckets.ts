/**
 * Looks in the buckets for what a new loss names: a machine that lost its place may have delivered more than it reported, and never come back.
 *
 * Owns: when that is tried. Does not own: reading the buckets, which the composition passes in, and how a commit recovers a loss (the store).
 * Law: each loss is looked for once with success. A bucket that cannot be read keeps back the losses of its account alone.
 */
import { Periodic } from '#lib/periodic.ts'
import { findMissing, listMissingCommits } from '#store/commits/missing-commits.ts'
import { listUnsearchedLosses, noteSearched, type UnsearchedLoss } from '#store/commits/unsearched-losses.ts'
import { controlLimits } from '../limits.ts'
import type { LostCommitsOptions } from './lost-commits.ts'

export function createLossSearch(options: LostCommitsOptions): Periodic {
  const { leadership, clock, logger } = options
  const pauses = new Map<string, Pause>()
  return new Periodic({
    name: 'search for losses in buckets',
    intervalMs: controlLimits.lostCommitsCheckMs,
    run: leadership.whileLeading((signal) => searchLosses(options, pauses, signal)),
    failure: 'search for losses in buckets failed',
    recovery: 'search for losses in buckets restored',
    clock,
    logger,
  })
}

/** When an account is tried again, by the monotonic clock, and how long it waited for that. */
type Pause = { readonly until: number; readonly ms: number }

async function searchLosses(
  options: Omit<LostCommitsOptions, 'leadership'>,
  pauses: Map<string, Pause>,
  signal: AbortSignal,
): Promise<void> {
  const { store, clock } = options
  const waiting = pauses.entries().filter(([, { until }]) => clock.monotonic() < until)
  const losses = await listUnsearchedLosses(store.db, {
    // By then the machine has ended its work.
    before: clock.now() - controlLimits.fencedEndsMs,
    notOf: [...waiting.map(([account_id]) => account_id)],
    limit: controlLimits.lossesSearchedMax,
  })
  if (losses.length === 0) return
  const missing = await listMissingCommits(store.db)
  // Where more is in doubt, an operator decides.
  for (const [region, some] of Map.groupBy(losses, (loss) => loss.region))
    if (findMissing(missing, region)?.isAutomatic !== false) await searchRegion(options, pauses, region, some, signal)
}

async function searchRegion(
  { store, stores, rebuild, keptMs, clock, logger }: Omit<LostCommitsOptions, 'leadership'>,
  pauses: Map<string, Pause>,
  region: string,
  losses: readonly UnsearchedLoss[],
  signal: AbortSignal,
): Promise<void> {
  const concerned = new Set(losses.map(({ endpoint_id }) => endpoint_id))
  const concerns = ({ endpoint_id }: { readonly endpoint_id: string }) => concerned.has(endpoint_id)
  const { recorded, problems, unread } = await rebuild({ store, stores, clock, region, concerns, keptMs, signal })
  const searched = losses.filter(({ account_id }) => !unread.includes(account_id))
  await noteSearched(store.db, searched, clock.now())
  for (const { account_id } of searched) pauses.delete(account_id)
  const { recoveryDelayMsMin, recoveryDelayMsMax } = controlLimits
  for (const account_id of unread) {
    const ms = Math.min(recoveryDelayMsMax, Math.max(recoveryDelayMsMin, (pauses.get(account_id)?.ms ?? 0) * 2))
    pauses.set(account_id, { until: clock.monotonic() + ms, ms })
  }
  if (recorded > 0) logger.notice({ region, recorded }, 'commits found in buckets that a lost node had not reported')
  if (unread.length > 0)
    logger.warn(
      {
        region,
        accounts: unread.slice(0, controlLimits.problemsLogged),
        problems: problems.slice(0, controlLimits.problemsLogged),
      },
      'losses not looked for in buckets: one cannot be read; tried again',
    )
}
