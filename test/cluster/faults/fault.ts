import type { Cluster, ClusterEndpoint } from '../cluster.ts'
import { type ControlName, controlNames, type NodeName } from '../layout.ts'
import type { Truth } from '../truth.ts'

export const faultKinds = [
  'kill-node',
  'kill-region',
  'pause-node',
  'cut-node',
  'isolate-node',
  'restart-nodes',
  'rolling-restart',
  'lose-node',
  'lose-disk',
  'lose-copied',
  'thaw-node',
  'adopt-copy',
  'kill-control',
  'cut-control',
  'no-control',
  'restart-database',
  'fail-over',
  'old-primary',
  'cut-storage',
  'cut-one-way',
  'bad-link',
  'kill-dns',
  'pause-dns',
  'delete-record',
  'wrong-record',
  'renew-certificates',
  'stop-acme',
  'expired-certificate',
  'wrong-certificate',
  'clock',
  'skewed-clocks',
  'clock-renewal',
] as const
export type FaultKind = (typeof faultKinds)[number]

/** Part of the cluster that a fault can break. `standby` is the second database. */
export type Part = ControlName | NodeName | 'database' | 'standby' | 'dns' | 'storage'

/** Something that happens to the cluster, and what must be true meanwhile. */
export type Fault = {
  readonly kind: FaultKind
  readonly text: string
  /** Whether it needs namespaces. */
  readonly cutsNetwork?: boolean
  readonly movesClock?: boolean
  readonly worsensLink?: boolean
  /** Parts that do not work while it lasts, and parts that it needs to be reported and to end. If missing, it never overlaps. */
  readonly parts?: { readonly breaks: readonly Part[]; readonly needs: readonly Part[] }
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
  /** Whether clients may notice it although nodes serve: DNS leads to what they cannot use, or packets get lost. */
  readonly disturbsClients?: boolean
  /** Whether it begins with the restart of a node, of which the status tells first. */
  readonly beginsByRestart?: boolean
  /** Within which time all endpoints are active after it, if nodes have to report what they delivered meanwhile. */
  readonly catchUpMs?: number
  /** Expected status beside the consequences of missing nodes. */
  truth?(endpoint: ClusterEndpoint, cluster: Cluster): Truth
  /** Finds out, while it lasts, whatever else must be true. */
  check?(cluster: Cluster): Promise<readonly string[]>
  /** The same once it has ended, and all endpoints are active again. */
  checkAfter?(cluster: Cluster): Promise<readonly string[]>
}

/** Defaults of most faults. */
export const unnoticed = { holdMs: 5_000, missing: [], stopsServing: false, controls: controlNames } as const
