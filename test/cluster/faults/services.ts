/** Services that are away. */
import type { NodeName } from '../layout.ts'
import { cutWay, textOfCut, type Way } from './cut.ts'
import { type Fault, unnoticed } from './fault.ts'
import { asyncHeal } from './nodes.ts'

/** Delivery waits. It says so once it lags for long. */
export function cutStorage(names: readonly NodeName[], way: Way = 'both'): Fault {
  return {
    ...unnoticed,
    kind: 'cut-storage',
    text: textOfCut(names.join(', '), 'the object store', way),
    cutsNetwork: true,
    parts: { breaks: ['storage'], needs: [] },
    begin: async (cluster) =>
      asyncHeal(names.map((name) => cutWay(cluster.network, cluster.host(name), cluster.host('storage'), way))),
  }
}

/** Clients go on with the addresses that they know. */
const nameServerAway = {
  ...unnoticed,
  hidesRecords: true,
  parts: { breaks: ['dns'], needs: [] },
  truth: () => ({ status: 'degraded', reasons: ['gave no answer'] }),
} satisfies Partial<Fault>

export function killNameServer(): Fault {
  return {
    ...nameServerAway,
    kind: 'kill-dns',
    text: 'kill the name server',
    async begin({ services }) {
      await services.bind.kill()
      return () => services.bind.start()
    },
  }
}

/** Questions and updates reach it, and get no answer. */
export function pauseNameServer(): Fault {
  return {
    ...nameServerAway,
    kind: 'pause-dns',
    text: 'stop the name server without ending it',
    async begin({ services }) {
      services.bind.pause()
      return async () => services.bind.resume()
    },
  }
}
