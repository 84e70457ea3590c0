/**
 * Computes the addresses that the names of endpoints should have: those of the nodes that serve them.
 *
 * Law: no name loses its last addresses for want of a healthy node. The set from before is more useful than none (last-addresses.ts).
 */
import { createHash } from 'node:crypto'
import { SocketAddress } from 'node:net'
import { isLoopback } from '#lib/ip-addresses.ts'
import type { NamedEndpoint } from '#store/naming/dns-records.ts'
import type { NodeFacts } from '#store/nodes/nodes.ts'
import { dnsLimits } from './limits.ts'

/** Sorted, in the form in which DNS servers return them. */
export type Addresses = { readonly A: readonly string[]; readonly AAAA: readonly string[] }

type Endpoint = Pick<NamedEndpoint, 'id' | 'region' | 'since_epoch'>

/** Computes the addresses of many endpoints. */
export class WantedAddresses {
  readonly #regions = new Map<string, Region>()

  /** `serving` are the nodes that serve the endpoints that they know. */
  constructor(serving: readonly NodeFacts[]) {
    for (const [region, nodes] of Map.groupBy(serving, (node) => node.region)) {
      this.#regions.set(region, { nodes, knownToAll: Math.min(...nodes.map(appliedEpoch)), rings: ringsOf(nodes) })
    }
  }

  /** Returns the addresses that the endpoint should have, or undefined if no node serves it: then they stay as they are. */
  of({ id, region, since_epoch }: Endpoint): Addresses | undefined {
    const found = this.#regions.get(region)
    if (found === undefined) return undefined
    const { nodes, knownToAll } = found
    const rings = since_epoch <= knownToAll ? found.rings : ringsOf(nodes.filter((node) => appliedEpoch(node) >= since_epoch))
    const addresses = { A: rings.A.pick(id), AAAA: rings.AAAA.pick(id) }
    return addresses.A.length + addresses.AAAA.length === 0 ? undefined : addresses
  }
}

type Region = {
  readonly nodes: readonly NodeFacts[]
  /** Every node knows the endpoints that were created up to this epoch. */
  readonly knownToAll: number
  readonly rings: Rings
}

const appliedEpoch = ({ ingest }: NodeFacts): number => ingest?.applied_epoch ?? -1

type Rings = { readonly A: AddressRing; readonly AAAA: AddressRing }

function ringsOf(nodes: readonly NodeFacts[]): Rings {
  return {
    A: new AddressRing(nodes.flatMap((node) => publicAddressesOf(node).A)),
    AAAA: new AddressRing(nodes.flatMap((node) => publicAddressesOf(node).AAAA)),
  }
}

/**
 * The addresses of one type. If there are more than a name may have, each endpoint gets those that follow its own place on a ring: load
 * spreads over all, and a node that comes or goes changes only the endpoints near it.
 */
class AddressRing {
  readonly #sorted: readonly string[]
  /** Empty if every endpoint gets all. */
  readonly #ring: readonly { readonly place: string; readonly address: string }[]

  constructor(addresses: readonly string[]) {
    // Nodes on one machine share its addresses.
    this.#sorted = [...new Set(addresses)].toSorted()
    const places = this.#sorted.length <= dnsLimits.addressesMax ? [] : this.#sorted
    this.#ring = places.map((address) => ({ place: placeOf(address), address })).toSorted((a, b) => (a.place < b.place ? -1 : 1))
  }

  /** Returns the addresses for an endpoint. */
  pick(endpointId: string): readonly string[] {
    if (this.#ring.length === 0) return this.#sorted
    const place = placeOf(endpointId)
    const start = this.#ring.findIndex((each) => each.place >= place)
    const from = Math.max(0, start)
    return [...this.#ring.slice(from), ...this.#ring.slice(0, from)]
      .slice(0, dnsLimits.addressesMax)
      .map(({ address }) => address)
      .toSorted()
  }
}

function placeOf(text: string): string {
  return createHash('sha1').update(text).digest('hex')
}

type ReportedAddresses = Pick<NodeFacts, 'ipv4' | 'ipv6' | 'ingest_address'>

/** Returns what may be published of a node. Loopback addresses only if it listens there: for others they are a mistake. */
export function publicAddressesOf({ ipv4, ipv6, ingest_address }: ReportedAddresses): Addresses {
  const isLocal = isLoopback(ingest_address.slice(0, ingest_address.lastIndexOf(':')).replace(/^\[|\]$/g, ''))
  const isPublic = (address: string) => isLocal || !isLoopback(address)
  return { A: ipv4.filter(isPublic), AAAA: ipv6.filter(isPublic).map(canonicalIpv6) }
}

/** The same of both types. */
export function addressesOf(node: ReportedAddresses): readonly string[] {
  const { A, AAAA } = publicAddressesOf(node)
  return [...A, ...AAAA]
}

export function canonicalIpv6(address: string): string {
  return new SocketAddress({ address, family: 'ipv6' }).address
}
