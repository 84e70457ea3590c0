import type { NodeFacts } from '#store/nodes/nodes.ts'

/**
 * Returns the URL that a client of the endpoint would send to. A name may lead to a load balancer that ends TLS: then nodes report no port
 * for it, and control, which has a public address as well, shows what clients use.
 */
export function ingestUrl(
  { id, ingest_host }: { readonly id: string; readonly ingest_host: string },
  nodes: readonly Pick<NodeFacts, 'tls_ports'>[],
  { isName, baseUrl }: { readonly isName: boolean; readonly baseUrl: string },
): string {
  const ports = nodes.flatMap(({ tls_ports }) => tls_ports)
  const isSecure = isName
    ? ports.length > 0 || baseUrl.startsWith('https:')
    : ports.includes(Number(ingest_host.slice(ingest_host.lastIndexOf(':') + 1)))
  return `${isSecure ? 'https' : 'http'}://${ingest_host}/v1/ingest?endpoint=${id}`
}
