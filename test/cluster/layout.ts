/** Addresses, ports and names in the cluster. */

export const regions = ['fra', 'nyc'] as const
export type RegionCode = (typeof regions)[number]

export const baseDomain = 'inlet.test'
/** Name of the load balancer. */
export const controlHost = `control.${baseDomain}`
export const bucket = 'cluster'
/** Second copies of what nodes acknowledge. */
export const copyBucket = 'copies'

/** The last part of the address of each host. */
export const hostNumbers = {
  balancer: 5,
  'control-1': 11,
  'control-2': 12,
  'database-1': 21,
  'database-2': 22,
  dns: 31,
  acme: 32,
  storage: 41,
  'fra-1': 51,
  'fra-2': 52,
  'nyc-1': 53,
} as const
export type HostName = keyof typeof hostNumbers
export const hostNames = Object.keys(hostNumbers) as readonly HostName[]

export const controlNames = ['control-1', 'control-2'] as const
export type ControlName = (typeof controlNames)[number]

export function otherControls(name: ControlName): readonly ControlName[] {
  return controlNames.filter((other) => other !== name)
}

export const nodeNames = ['fra-1', 'fra-2', 'nyc-1'] as const
export type NodeName = (typeof nodeNames)[number]

export function regionOf(node: NodeName): RegionCode {
  return node.startsWith('fra') ? 'fra' : 'nyc'
}

export function nodesOf(region: RegionCode): readonly NodeName[] {
  return nodeNames.filter((name) => regionOf(name) === region)
}

const isRoot = process.getuid?.() === 0

/** Only root may use the ports that clients expect. */
export const ports = {
  management: 8080,
  nodeApi: 8082,
  /** Ports of the balancer that lead to one control process, whether or not it is ready. */
  direct: { 'control-1': 8101, 'control-2': 8102 } satisfies Record<ControlName, number>,
  ...(isRoot ? { ingest: 443, mqtt: 8883, dns: 53 } : { ingest: 10_443, mqtt: 18_883, dns: 10_053 }),
} as const
