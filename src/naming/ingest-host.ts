export type HostOptions = {
  /** Null if endpoints are reached at the node's own address. */
  readonly baseDomain: string | null
  /** `host:port` to return while no node of the region is known. */
  readonly ingestAddressDefault: string
}

/** Returns the host that clients send to: `<label>.<region>.<base domain>`, or the address of a node of the region. */
export function ingestHost(
  endpoint: { readonly label: string; readonly region: string },
  nodes: readonly { readonly ingest_address: string }[],
  { baseDomain, ingestAddressDefault }: HostOptions,
): string {
  if (baseDomain !== null) return endpointName(endpoint, baseDomain)
  return nodes[0]?.ingest_address ?? ingestAddressDefault
}

/** Returns the name of an endpoint in DNS. */
export function endpointName({ label, region }: { readonly label: string; readonly region: string }, baseDomain: string): string {
  return `${label}.${region}.${baseDomain}`
}
