/** Notes when every node has applied a revocation, also in the audit trail. */
import type { Registry } from 'prom-client'
import { observableMetrics } from '#lib/metrics.ts'
import { Periodic } from '#lib/periodic.ts'
import { describeRevocation, type KeyHolder } from '#model/revocation.ts'
import {
  countRunningRevocations,
  listKeyHolders,
  listRunningRevocations,
  noteRevocationApplied,
} from '#store/accounts/revocations.ts'
import { transact } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import { controlLimits } from '../limits.ts'

export type RevocationsOptions = Pick<ControlContext, 'store' | 'leadership' | 'clock' | 'logger'> & {
  readonly registry: Registry
}

export function createRevocationNotes({ registry, ...options }: RevocationsOptions): Periodic {
  const { store, leadership, clock, logger } = options
  observableMetrics(registry).gauges(
    'inlet_revocations_waiting',
    'revoked keys that some node may still accept, because it has not applied the revocation',
    'kind',
    async () => [['key', await countRunningRevocations(store.db)]],
  )
  return new Periodic({
    name: 'revocations',
    intervalMs: controlLimits.revocationCheckMs,
    run: leadership.whileLeading(() => noteRevocations(options)),
    failure: 'check of revocations failed',
    recovery: 'check of revocations restored',
    clock,
    logger,
  })
}

export async function noteRevocations({
  store,
  clock,
  logger,
}: Omit<RevocationsOptions, 'leadership' | 'registry'>): Promise<void> {
  const holders = new Map<string, readonly KeyHolder[]>()
  for (const running of await listRunningRevocations(store.db, controlLimits.revocationsAtOnce)) {
    const { id, account_id, epoch } = running
    const known = holders.get(account_id) ?? (await listKeyHolders(store.db, account_id))
    holders.set(account_id, known)
    const { applied_nodes, nodes } = describeRevocation(epoch, known, clock.now())
    if (applied_nodes < nodes) continue
    if (await transact(store, (db) => noteRevocationApplied(db, running, clock.now())))
      logger.info({ account_id, key_id: id, nodes }, 'revocation applied on all nodes')
  }
}
