/** Kinds of IP addresses. The supervisor loads this too, so it uses no library. */
import { BlockList, isIP, SocketAddress } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

const unspecified = new BlockList()
unspecified.addSubnet('0.0.0.0', 8)
unspecified.addAddress('::', 'ipv6')

const multicast = new BlockList()
multicast.addSubnet('224.0.0.0', 4)
multicast.addSubnet('ff00::', 8, 'ipv6')

const broadcast = new BlockList()
broadcast.addAddress('255.255.255.255')

const mapped = new BlockList()
mapped.addSubnet('::ffff:0:0', 96, 'ipv6')

/** Whether only this machine reaches the host. Names other than `localhost` may change. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || isIn(loopback, host)
}

/** Whether only this machine reaches the URL. */
export function isLoopbackUrl(url: string): boolean {
  return isLoopback(new URL(url).hostname.replace(/^\[|\]$/g, ''))
}

/** Says why no client can connect to an address: for example `a multicast address`. Undefined if one may be able to. */
export function findAddressFault(address: string): string | undefined {
  // In IPv6 notation, an IPv4 address would be published as something that no client connects to.
  if (isIP(address) === 6 && isIn(mapped, address)) return 'an IPv4 address in the notation of IPv6'
  if (isIn(unspecified, address)) return 'an unspecified address'
  if (isIn(multicast, address)) return 'a multicast address'
  return isIn(broadcast, address) ? 'a broadcast address' : undefined
}

/** Returns the address in its short form, without a zone, and an IPv4 address in the notation of IPv6 as IPv4. Undefined if it is none. */
export function shortAddress(text: string): string | undefined {
  const zoneAt = text.indexOf('%')
  const address = zoneAt === -1 ? text : text.slice(0, zoneAt)
  const version = isIP(address)
  if (version === 0) return undefined
  if (version === 4) return address
  const short = new SocketAddress({ address, family: 'ipv6' }).address
  return short.startsWith(mappedPrefix) && isIP(short.slice(mappedPrefix.length)) === 4 ? short.slice(mappedPrefix.length) : short
}

const mappedPrefix = '::ffff:'

/** Returns the network of an address that `shortAddress` returned: the last octet of IPv4, or the last 80 bits of IPv6, are zero. */
export function maskAddress(address: string): string {
  if (isIP(address) === 4) return `${address.slice(0, address.lastIndexOf('.'))}.0`
  const [left = '', right] = address.split('::')
  const groups = left === '' ? [] : left.split(':')
  const tail = right === undefined || right === '' ? [] : right.split(':')
  // One group for each 16 bits, but an IPv4 address at the end takes two.
  const zeros = right === undefined ? 0 : IPV6_GROUPS - groups.length - tail.length - (address.includes('.') ? 1 : 0)
  const network = [...groups, ...new Array<string>(zeros).fill('0'), ...tail].slice(0, IPV6_NETWORK_GROUPS)
  while (network.at(-1) === '0') network.pop()
  return `${network.join(':')}::`
}

const IPV6_GROUPS = 8
const IPV6_NETWORK_GROUPS = 3

/** Addresses and networks such as `10.0.0.0/8`, separated by commas. */
export class Networks {
  readonly #list = new BlockList()

  constructor(text: string) {
    for (const part of text.split(',')) {
      const [address = '', bits] = part.trim().split('/')
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
      if (bits === undefined) this.#list.addAddress(address, family)
      else this.#list.addSubnet(address, Number(bits), family)
    }
  }

  has(address: string): boolean {
    return isIn(this.#list, address)
  }
}

function isIn(list: BlockList, address: string): boolean {
  const version = isIP(address)
  return version !== 0 && list.check(address, version === 4 ? 'ipv4' : 'ipv6')
}
