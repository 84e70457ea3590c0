import type { HostName } from '../layout.ts'
import type { LinkQuality } from '../network/network.ts'
import { type Fault, unnoticed } from './fault.ts'

/** The link of a host is slow and loses packets. Everything goes on, a little later. */
export function worsenLink(name: HostName, quality: LinkQuality): Fault {
  const { kilobitsPerSecond, lossPercent } = quality
  return {
    ...unnoticed,
    kind: 'bad-link',
    text: `let the link of ${name} have ${kilobitsPerSecond} kbit/s, and lose ${lossPercent} % of its packets`,
    cutsNetwork: true,
    worsensLink: true,
    // A connection may fail that loses a packet several times.
    disturbsClients: true,
    holdMs: 20_000,
    async begin({ network, hosts }) {
      const host = hosts.get(name)
      const heal = host && network.worsen(host, quality)
      return async () => heal?.()
    },
  }
}
