/** The addresses of this node that it reports to control, for DNS. */
import { isIPv4, isIPv6 } from 'node:net'
import { isLoopback, isLoopbackUrl } from '#lib/ip-addresses.ts'
import type { ListenAddress } from '#lib/option-types.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Register } from '#model/node-protocol.ts'

/** The part of the configuration that the addresses follow from. */
export type AddressSettings = {
  /** Null if control is on this machine. */
  readonly controlUrl: string | null
  readonly ingestListen: ListenAddress
  readonly advertiseAddresses: readonly string[]
  /** Null if this process is not told who publishes names. */
  readonly dnsProvider: string | null
}

/**
 * Leaves out loopback addresses, which lead each client to itself, unless everything is on this machine: control, and those that reach the
 * listener.
 */
export function reportedAddresses(
  { controlUrl, ingestListen, advertiseAddresses, dnsProvider }: AddressSettings,
  logger: Pick<Logger, 'warn'>,
): Pick<Register, 'ipv4' | 'ipv6'> {
  const isElsewhere = controlUrl !== null && !isLoopbackUrl(controlUrl)
  const isLocal = !isElsewhere && isLoopback(ingestListen.host)
  const loopback = advertiseAddresses.filter(isLoopback)
  const reported = isLocal ? advertiseAddresses : advertiseAddresses.filter((address) => !isLoopback(address))
  if (loopback.length > 0 && (isElsewhere || dnsProvider !== null)) {
    const effect = isLocal ? 'clients on other machines do not reach this node' : 'not reported to control'
    logger.warn({ loopback }, `loopback addresses for DNS: ${effect}; set INLET_NODE_ADDRESSES to addresses that clients reach`)
  }
  return { ipv4: reported.filter(isIPv4), ipv6: reported.filter(isIPv6) }
}
