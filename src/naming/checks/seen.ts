/** Reads what the leader saw of the names and certificates of endpoints. */

import type { EndpointFacts } from '#store/endpoints/endpoints.ts'
import { type CertificateCheck, listCertificateChecks } from '#store/naming/certificate-checks.ts'
import { listFailedOrders } from '#store/naming/certificates.ts'
import type { DnsCheck } from '#store/naming/dns-checks.ts'
import type { NodeFacts } from '#store/nodes/nodes.ts'
import type { Db } from '#store/store.ts'
import { wildcardOf } from '../certificates/issuer.ts'
import { WantedAddresses } from '../dns/wanted.ts'
import { endpointName } from '../ingest-host.ts'
import { allAddressesOf } from './dns-reasons.ts'
import type { NamingFacts } from './naming.ts'

/** Publisher of the records: nobody, Inlet, or the operator, who names all nodes of a region, whether or not they are healthy. */
export type DnsKeeper = 'nobody' | 'inlet' | 'operator'

export type Naming = { readonly baseDomain: string | null; readonly dnsKeeper: DnsKeeper }

/** Last checks of the nodes of some regions. */
export type Seen = {
  /** By node id. */
  readonly certificateChecks: ReadonlyMap<string, readonly CertificateCheck[]>
  /** By the name of the certificate. */
  readonly failedOrders: ReadonlyMap<string, string>
  readonly wantedAddresses: WantedAddresses
}

/** `serving` are the nodes that serve the endpoints that they know. */
export async function readSeen(db: Db, nodes: readonly NodeFacts[], serving: readonly NodeFacts[]): Promise<Seen> {
  const secureNodes = nodes.flatMap(({ id, tls_ports }) => (tls_ports.length === 0 ? [] : [id]))
  return {
    certificateChecks: Map.groupBy(await listCertificateChecks(db, secureNodes), ({ node_id }) => node_id),
    failedOrders: secureNodes.length === 0 ? new Map() : await listFailedOrders(db),
    wantedAddresses: new WantedAddresses(serving),
  }
}

/** Returns what is known of the name of one endpoint. `present` are the nodes of its region. */
export function namingOf(
  endpoint: EndpointFacts,
  { baseDomain, dnsKeeper }: Naming,
  { certificateChecks, failedOrders, wantedAddresses }: Seen,
  present: readonly NodeFacts[],
  check: DnsCheck | undefined,
): NamingFacts {
  if (baseDomain === null) return { host: null, dns: null, certificateChecks, failedOrder: null }
  const failedOrder = failedOrders.get(wildcardOf(endpoint.region, baseDomain)) ?? null
  const seen = { host: endpointName(endpoint, baseDomain), certificateChecks, failedOrder }
  if (dnsKeeper === 'nobody') return { ...seen, dns: null }
  const wanted = wantedAddresses.of(endpoint) ?? { A: [], AAAA: [] }
  const allowed = dnsKeeper === 'operator' ? allAddressesOf(present) : wanted
  return { ...seen, dns: { expected: { wanted, allowed }, check } }
}
