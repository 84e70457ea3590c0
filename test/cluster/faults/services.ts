/** Services that are away. */
import type { NodeName } from '../layout.ts'
import { type Fault, unnoticed } from './fault.ts'
import { asyncHeal } from './nodes.ts'

/** Delivery waits. It says so once it lags for long. */
export function cutStorage(names: readonly NodeName[]): Fault {
  return {
    ...unnoticed,
    kind: 'cut-storage',
    text: `cut ${names.join(', ')} off from the object store`,
    cutsNetwork: true,
    begin: async (cluster) => asyncHeal(names.map((name) => cluster.network.cut(cluster.host(name), cluster.host('storage')))),
  }
}

/** Clients go on with the addresses that they know. */
export function killNameServer(): Fault {
  return {
    ...unnoticed,
    kind: 'kill-dns',
    text: 'kill the name server',
    truth: { statuses: ['degraded'], reason: 'gave no answer' },
    hidesRecords: true,
    async begin({ services }) {
      await services.bind.kill()
      return () => services.bind.start()
    },
  }
}
