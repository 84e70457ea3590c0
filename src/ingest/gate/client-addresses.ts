import type { IncomingHttpHeaders } from 'node:http'
import { Networks, shortAddress } from '#lib/ip-addresses.ts'

/** Where a connection comes from. */
export interface Remote {
  /** The other end of the connection: the client, or a proxy in front of it. */
  readonly address: string | undefined
  /** `X-Forwarded-For` of the request, which anybody can send: empty if it has none. Undefined for a connection without headers. */
  readonly forwardedFor?: string | undefined
}

/** A request that names more proxies was not sent by ours. */
const hopsMax = 32

/** A connection keeps the header as long as it is open. */
const forwardedForCharsMax = 2048

/** Returns what the proxies in front of this node say. Only the end of a long header, which is what they appended, is kept. */
export function forwardedForOf({ 'x-forwarded-for': header = '' }: IncomingHttpHeaders): string {
  const forwardedFor = Array.isArray(header) ? header.join() : header
  if (forwardedFor.length <= forwardedForCharsMax) return forwardedFor
  const end = forwardedFor.slice(-forwardedForCharsMax)
  // The first part is cut, and no address.
  return `cut${end.slice(Math.max(0, end.indexOf(',')))}`
}

/** Finds the addresses of clients, behind proxies that the operator trusts. */
export class ClientAddresses {
  readonly #proxies: Networks | undefined

  /** `trusted`: addresses and networks, separated by commas. */
  constructor(trusted: string | null) {
    this.#proxies = trusted === null ? undefined : new Networks(trusted)
  }

  /**
   * Returns the address of the client: the last one that no trusted proxy has. Undefined if the connection is closed, if a proxy names nothing, or
   * something that is no address.
   */
  find({ address, forwardedFor }: Remote): string | undefined {
    let found = shortAddress(address ?? '')
    if (forwardedFor === undefined) return found
    let end = forwardedFor.length
    let isNamed = false
    for (let hops = 0; end > 0 && found !== undefined && this.#proxies?.has(found) === true; hops += 1) {
      if (hops === hopsMax) return undefined
      // Each proxy appends the address that it sees, so only those behind a trusted one are true.
      const comma = forwardedFor.lastIndexOf(',', end - 1)
      const named = forwardedFor.slice(comma + 1, end).trim()
      end = comma
      if (named === '') continue
      found = shortAddress(withoutPort(named))
      isNamed = true
    }
    // The address of a proxy is not that of a client.
    return !isNamed && found !== undefined && this.#proxies?.has(found) === true ? undefined : found
  }
}

/** Some proxies append the port: `192.0.2.1:5000`, `[2001:db8::1]:5000`. */
function withoutPort(named: string): string {
  const [, inBrackets, ipv4] = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/.exec(named) ?? []
  return inBrackets ?? ipv4 ?? named
}
