import type { Cluster, ClusterEndpoint } from '../cluster.ts'
import { type ControlName, controlNames, type NodeName, nodesOf } from '../layout.ts'
import type { Truth } from '../truth.ts'

export const faultKinds = [
  'kill-node',
  'kill-region',
  'pause-node',
  'cut-node',
  'isolate-node',
  'restart-nodes',
  'lose-node',
  'kill-control',
  'cut-control',
  'restart-database',
  'fail-over',
  'cut-storage',
  'kill-dns',
  'pause-dns',
  'delete-record',
  'wrong-record',
  'renew-certificates',
  'stop-acme',
  'expired-certificate',
  'wrong-certificate',
  'clock',
  'clock-renewal',
] as const
export type FaultKind = (typeof faultKinds)[number]

/** Something that happens to the cluster, and what must be true meanwhile. */
export type Fault = {
  readonly kind: FaultKind
  readonly text: string
  /** Whether it needs namespaces. */
  readonly cutsNetwork?: boolean
  readonly movesClock?: boolean
  /** Begins it and returns what ends it. That resolves once its programs run again. */
  begin(cluster: Cluster): Promise<() => Promise<void>>
  /** How long it lasts beyond the time in which the truth must be told. */
  readonly holdMs: number
  /** Nodes of which control does not hear. */
  readonly missing: readonly NodeName[]
  /** Whether clients do not reach these either. */
  readonly stopsServing: boolean
  /** Control processes that must tell the truth while it lasts. */
  readonly controls: readonly ControlName[]
  /** Whether the zone cannot be read, or is wrong, while it lasts. */
  readonly hidesRecords?: boolean
  /** Whether DNS leads clients to what they cannot use. */
  readonly misleadsClients?: boolean
  /** In place of what follows from the missing nodes. */
  truth?(endpoint: ClusterEndpoint, cluster: Cluster): Truth
  /** Finds out, while it lasts, whatever else must be true. */
  check?(cluster: Cluster): Promise<readonly string[]>
}

/** What most faults have in common. */
export const unnoticed = { holdMs: 5_000, missing: [], stopsServing: false, controls: controlNames } as const

/** Returns the nodes of the region that serve. */
export function servingNodes({ missing }: Fault, { region }: ClusterEndpoint): readonly NodeName[] {
  return nodesOf(region).filter((name) => !missing.includes(name))
}

/** Whether clients of the endpoint have to wait until the fault ends. */
export function stopsClients(fault: Fault, endpoint: ClusterEndpoint): boolean {
  return fault.stopsServing && servingNodes(fault, endpoint).length === 0
}

export function truthUnder(fault: Fault, cluster: Cluster): (endpoint: ClusterEndpoint) => Truth {
  return (endpoint) => {
    if (fault.truth !== undefined) return fault.truth(endpoint, cluster)
    const [missing] = fault.missing.filter((name) => nodesOf(endpoint.region).includes(name))
    if (missing === undefined) return { statuses: ['active'] }
    const isAlone = servingNodes(fault, endpoint).length === 0
    return { statuses: isAlone ? ['failed'] : ['degraded'], reason: cluster.nodeId(missing) }
  }
}
