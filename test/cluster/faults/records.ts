/** Records that somebody changes in the zone. The status says so, and control publishes them again by itself. */
import { updateZone } from '../../../tools/services/bind.ts'
import type { Cluster, ClusterEndpoint } from '../cluster.ts'
import { nodesOf } from '../layout.ts'
import { allActive } from '../truth.ts'
import { type Fault, unnoticed } from './fault.ts'

/** Selects the endpoint that has the name. */
export type NameOf = Pick<ClusterEndpoint, 'region' | 'protocol'>

type Change = {
  readonly kind: 'delete-record' | 'wrong-record'
  readonly text: string
  readonly nameOf: NameOf
  /** Commands of nsupdate. */
  commands(name: string, cluster: Cluster): readonly string[]
  /** Expected reason in the status. */
  reason(name: string): string
}

export function deleteRecords(nameOf: NameOf): Fault {
  return changed({
    kind: 'delete-record',
    text: 'delete the records',
    nameOf,
    commands: (name) => [`delete ${name} A`, `delete ${name} AAAA`],
    reason: (name) => `the A record of ${name} is missing`,
  })
}

/** The name leads to a node of the other region, which has a certificate for other names. */
export function spoilRecord(nameOf: NameOf): Fault {
  return changed({
    kind: 'wrong-record',
    text: 'change the A record',
    nameOf,
    commands(name, cluster) {
      const [other = 'nyc-1'] = nodesOf(nameOf.region === 'fra' ? 'nyc' : 'fra')
      return [`delete ${name} A`, `add ${name} 1 A ${cluster.host(other).address}`]
    },
    reason: (name) => `the A record of ${name} is `,
  })
}

function changed({ kind, text, nameOf, commands, reason }: Change): Fault {
  const isOf = ({ region, protocol }: NameOf) => region === nameOf.region && protocol === nameOf.protocol
  return {
    ...unnoticed,
    kind,
    text: `${text} of an endpoint in ${nameOf.region} (${nameOf.protocol})`,
    // Control ends it as soon as the status has told it.
    holdMs: 0,
    hidesRecords: true,
    disturbsClients: kind === 'wrong-record',
    truth(endpoint) {
      return isOf(endpoint) ? { status: 'degraded', reasons: [reason(endpoint.ingestHost)] } : allActive()
    },
    async begin(cluster) {
      const names = cluster.endpoints.filter(isOf).map(({ ingestHost }) => ingestHost)
      await updateZone(
        cluster.services.bind.described,
        names.flatMap((name) => commands(name, cluster)),
      )
      return async () => undefined
    },
  }
}
