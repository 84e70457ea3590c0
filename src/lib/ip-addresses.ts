/** Kinds of IP addresses. The supervisor loads this too, so it uses no library. */
import { BlockList, isIP } from 'node:net'

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

function isIn(list: BlockList, address: string): boolean {
  const version = isIP(address)
  return version !== 0 && list.check(address, version === 4 ? 'ipv4' : 'ipv6')
}
