import type { NodeFacts } from '#store/nodes.ts'

export type TlsAddress = { readonly node_id: string; readonly address: string; readonly port: number }

/** Returns where clients find TLS on a node. */
export function tlsAddressesOf({ id, ipv4, ipv6, tls_ports }: NodeFacts): readonly TlsAddress[] {
  return [...ipv4, ...ipv6].flatMap((address) => tls_ports.map((port) => ({ node_id: id, address, port })))
}
