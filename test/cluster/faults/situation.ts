/** Expectations while several faults last. Faults are combined only if neither breaks what the other breaks or needs. */
import type { Cluster, ClusterEndpoint } from '../cluster.ts'
import { type ControlName, controlNames, type NodeName, nodeNames, nodesOf } from '../layout.ts'
import type { Truth } from '../truth.ts'
import type { Fault } from './fault.ts'

export function canOverlap({ parts: one }: Fault, { parts: other }: Fault): boolean {
  if (one === undefined || other === undefined) return false
  return (
    !one.breaks.some((part) => other.breaks.includes(part) || other.needs.includes(part)) &&
    !other.breaks.some((part) => one.needs.includes(part))
  )
}

/** Returns the nodes of which control hears. */
export function heardNodes(faults: readonly Fault[]): readonly NodeName[] {
  return nodeNames.filter((name) => faults.every(({ missing }) => !missing.includes(name)))
}

/** Returns the nodes of the region that serve, as control sees it. */
export function servingNodes(faults: readonly Fault[], { region }: ClusterEndpoint): readonly NodeName[] {
  return heardNodes(faults).filter((name) => nodesOf(region).includes(name))
}

/** Returns the control processes that must tell the truth. */
export function tellingControls(faults: readonly Fault[]): readonly ControlName[] {
  return controlNames.filter((name) => faults.every(({ controls }) => controls.includes(name)))
}

/** Whether the zone has what it should: without a control process nobody changes it. */
export function hasRightRecords(faults: readonly Fault[]): boolean {
  return tellingControls(faults).length > 0 && faults.every(({ hidesRecords }) => hidesRecords !== true)
}

/** Whether clients of the endpoint have to wait until a fault ends. */
export function stopsClients(faults: readonly Fault[], endpoint: ClusterEndpoint): boolean {
  return losesClients(faults, endpoint) && servingNodes(faults, endpoint).length === 0
}

/** Whether clients of the endpoint may notice it, and have to try again. */
export function mayBeNoticed(faults: readonly Fault[], endpoint: ClusterEndpoint): boolean {
  return losesClients(faults, endpoint) || faults.some(({ disturbsClients }) => disturbsClients === true)
}

function losesClients(faults: readonly Fault[], { region }: ClusterEndpoint): boolean {
  return faults.some(({ stopsServing, missing }) => stopsServing && missing.some((name) => nodesOf(region).includes(name)))
}

export function truthUnder(faults: readonly Fault[], cluster: Cluster): (endpoint: ClusterEndpoint) => Truth {
  return (endpoint) => {
    const serving = servingNodes(faults, endpoint)
    const missing = nodesOf(endpoint.region).filter((name) => !serving.includes(name))
    const reasons = missing.map((name) => cluster.nodeId(name))
    if (serving.length === 0) return { status: 'failed', reasons }
    const others = faults.flatMap((fault) => fault.truth?.(endpoint, cluster) ?? [])
    const isActive = missing.length === 0 && others.every(({ status }) => status === 'active')
    return { status: isActive ? 'active' : 'degraded', reasons: [...reasons, ...others.flatMap((truth) => truth.reasons)] }
  }
}
