type EndpointAddress = { readonly id: string; readonly ingest_host: string; readonly ingest_url: string }

type IngestTarget = {
  /** `ingest_host` of the endpoint. */
  readonly host: string
  /** Whether nodes speak TLS there. */
  readonly isSecure: boolean
  readonly endpointId: string
}

export function ingestTargetOf({ id, ingest_host, ingest_url }: EndpointAddress): IngestTarget {
  return { host: ingest_host, isSecure: ingest_url.startsWith('https:'), endpointId: id }
}

/** An endpoint with a name of its own is served with TLS. A host with a port is the address of a node, where the query names the endpoint. */
export function ingestAddressOf(target: IngestTarget) {
  const { host, endpointId } = target
  const [, name = host, port] = /^(.*?)(?::(\d+))?$/.exec(host) ?? []
  const isNamed = port === undefined
  const isSecure = isNamed || target.isSecure
  const path = isNamed ? '/v1/ingest' : `/v1/ingest?endpoint=${endpointId}`
  return { name, port: port ?? '443', isNamed, isSecure, path, url: `${isSecure ? 'https' : 'http'}://${host}${path}` }
}
