/** Notices that an endpoint is served under its name although nobody reads its status: whatever is missing later degrades it. */
import { listUnprovisionedEndpoints } from '#store/endpoints/endpoints.ts'
import type { Store } from '#store/store.ts'
import { checkLimits } from '#naming/checks/limits.ts'
import type { Provisioner } from '../status/provisioner.ts'

export type ProvisionedOptions = { readonly store: Store; readonly provisioner: Pick<Provisioner, 'computeStates'> }

export async function noteProvisioned({ store, provisioner }: ProvisionedOptions): Promise<void> {
  const endpoints = await listUnprovisionedEndpoints(store.db, checkLimits.unprovisionedMax)
  if (endpoints.length > 0) await provisioner.computeStates(endpoints)
}
