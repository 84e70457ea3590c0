/** `host` is the `ingest_host` of the endpoint. */
type IngestTarget = { readonly host: string; readonly endpointId: string }

/** An endpoint with a name of its own is served with TLS. A host with a port is the address of a node, where the query names the endpoint. */
export function ingestAddressOf({ host, endpointId }: IngestTarget) {
  const [, name = host, port] = /^(.*?)(?::(\d+))?$/.exec(host) ?? []
  const isNamed = port === undefined
  const path = isNamed ? '/v1/ingest' : `/v1/ingest?endpoint=${endpointId}`
  return { name, port: port ?? '443', isNamed, path, url: `${isNamed ? 'https' : 'http'}://${host}${path}` }
}
