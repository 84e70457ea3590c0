import type { NodeFacts } from '#store/nodes/nodes.ts'
import { checkLimits } from './limits.ts'

export type TlsAddress = { readonly node_id: string; readonly address: string; readonly port: number }

/** Returns where clients find TLS on a node, each once. Not more than a few, so that no node uses up the time of others. */
export function tlsAddressesOf({ id, ipv4, ipv6, tls_ports }: NodeFacts): readonly TlsAddress[] {
  const max = checkLimits.nodeAddressesMax
  const ports = [...new Set(tls_ports)]
  const addresses = [...new Set([...ipv4, ...ipv6])].slice(0, max)
  return addresses.flatMap((address) => ports.map((port) => ({ node_id: id, address, port }))).slice(0, max)
}
