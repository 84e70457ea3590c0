/**
 * Decides how long the addresses of a name stay while no node serves the endpoint.
 *
 * Law: an address stays only while a node with a valid credential reports it. Any other address may belong to an attacker by now.
 */
import type { DnsRecord, NamedEndpoint } from '#store/naming/dns-records.ts'
import type { NodeFacts } from '#store/nodes/nodes.ts'
import { type Addresses, addressesOf, WantedAddresses } from './wanted.ts'

export class LastAddresses {
  /** By region. */
  readonly #reported: ReadonlyMap<string, ReadonlySet<string>>
  readonly #known: WantedAddresses

  /** `trusted` are the nodes whose credential is valid, whether or not they are healthy. */
  constructor(trusted: readonly NodeFacts[]) {
    const byRegion = [...Map.groupBy(trusted, ({ region }) => region)]
    this.#reported = new Map(byRegion.map(([region, nodes]) => [region, new Set(nodes.flatMap(addressesOf))]))
    this.#known = new WantedAddresses(trusted)
  }

  /** Returns the addresses that the endpoint should have instead of those in its records, or undefined if these may stay. */
  replacing(records: readonly DnsRecord[], endpoint: NamedEndpoint): Addresses | undefined {
    const reported = this.#reported.get(endpoint.region) ?? new Set()
    // Until an attempt is confirmed, the zone may have either set.
    const found = records.flatMap(({ published, sent }) => [...(published ?? []), ...(sent ?? [])])
    if (found.every((address) => reported.has(address))) return undefined
    const kept = (wanted: DnsRecord['type']) =>
      records
        .flatMap(({ type, published, sent }) => (type === wanted ? (sent ?? published ?? []) : []))
        .filter((a) => reported.has(a))
    const last = { A: kept('A'), AAAA: kept('AAAA') }
    if (last.A.length + last.AAAA.length > 0) return last
    // A node that starts with another address is not healthy yet. Resolvers would remember an empty name for longer than that takes.
    return this.#known.of(endpoint) ?? last
  }
}
