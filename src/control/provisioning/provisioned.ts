/** Notes when an endpoint was first served under its name: before, it is `deploying`, and afterwards whatever is missing degrades it. */
import type { Clock } from '#lib/clock.ts'
import { listUnprovisionedEndpoints, markProvisioned } from '#store/endpoints.ts'
import type { Store } from '#store/store.ts'
import { checkLimits } from './checks/limits.ts'
import type { Provisioner } from './provisioner.ts'

export type ProvisionedOptions = { readonly store: Store; readonly provisioner: Provisioner; readonly clock: Clock }

export async function noteProvisioned({ store, provisioner, clock }: ProvisionedOptions): Promise<void> {
  const endpoints = await listUnprovisionedEndpoints(store.db, checkLimits.unprovisionedMax)
  if (endpoints.length === 0) return
  const states = await provisioner.computeStates(endpoints)
  const served = [...states].flatMap(([id, { status }]) => (status === 'active' || status === 'degraded' ? [id] : []))
  await markProvisioned(store.db, served, clock.now())
}
