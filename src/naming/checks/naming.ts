/**
 * Requirements of clients beside healthy nodes: a name that leads to them, and certificates for it.
 *
 * Owns: whether an endpoint is provisioned, by what was last seen. Does not own: looking, publishing, the status.
 */
import { namedId } from '#lib/named-id.ts'
import type { CertificateCheck } from '#store/naming/certificate-checks.ts'
import type { DnsCheck } from '#store/naming/dns-checks.ts'
import type { NodeFacts } from '#store/nodes/nodes.ts'
import { addressesOf } from '../dns/wanted.ts'
import { judgeCertificates } from './certificate-reasons.ts'
import { type ExpectedRecords, listDnsReasons } from './dns-reasons.ts'

export type NamingFacts = {
  /** The name of the endpoint; null if clients use the address of a node. */
  readonly host: string | null
  /** Null if nobody keeps records for Inlet. */
  readonly dns: { readonly expected: ExpectedRecords; readonly check: DnsCheck | undefined } | null
  /** By node id. */
  readonly certificateChecks: ReadonlyMap<string, readonly CertificateCheck[]>
  /** Why no certificate could be had for the nodes of the region lately; null if one could, or if nobody tried. */
  readonly failedOrder: string | null
}

export type Naming = {
  readonly reasons: readonly string[]
  /** Whether clients find a node that serves the endpoint, and can connect to it. */
  readonly isProvisioned: boolean
}

/** `serving` is not empty. */
export function judgeNaming(serving: readonly NodeFacts[], facts: NamingFacts, nowMs: number): Naming {
  const { host, dns, certificateChecks, failedOrder } = facts
  const certificates = serving.map((node) => judgeCertificates(node, certificateChecks.get(node.id) ?? [], host, nowMs))
  const dnsReasons = host === null || dns === null ? [] : listDnsReasons(host, dns.expected, dns.check, nowMs)
  const unreachable = host === null || dns === null ? [] : serving.filter((node) => addressesOf(node).length === 0)
  const certificateReasons = certificates.flatMap(({ reasons }) => reasons)
  // Until clients are about to notice there is time for other attempts.
  const orderReasons = certificateReasons.length === 0 ? [] : listOrderReasons(failedOrder)
  return {
    reasons: [...dnsReasons, ...unreachable.map(explainUnreachable), ...certificateReasons, ...orderReasons],
    isProvisioned:
      dnsReasons.length === 0 && unreachable.length < serving.length && certificates.some(({ isUsable }) => isUsable),
  }
}

function explainUnreachable({ id, name, ipv4, ipv6 }: NodeFacts): string {
  const reported = [...ipv4, ...ipv6]
  const found = reported.length === 0 ? 'no address for DNS' : `only loopback addresses for DNS (${reported.join(', ')})`
  return `node ${namedId(id, name)} reports ${found}: set INLET_NODE_ADDRESSES on it`
}

export function listOrderReasons(failedOrder: string | null): readonly string[] {
  return failedOrder === null ? [] : [`the last order of a certificate failed: ${failedOrder}`]
}

/** Says whether being served by a node is not all that the endpoint needs. */
export function needsNaming({ dns }: NamingFacts, nodes: readonly NodeFacts[]): boolean {
  return dns !== null || nodes.some(({ tls_ports }) => tls_ports.length > 0)
}
