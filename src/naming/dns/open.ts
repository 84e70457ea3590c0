/** Opens the DNS provider that the configuration names. */
import type { Clock } from '#lib/clock.ts'
import type { ListenAddress } from '#lib/option-types.ts'
import type { DnsProvider } from './provider.ts'
import type { TsigKey } from './tsig.ts'

/** The part of the configuration that says where records are published. */
export type DnsConfig = {
  readonly dnsProvider: 'static' | 'rfc2136' | 'route53' | null
  readonly dnsServer: ListenAddress | null
  readonly dnsTsigName: string
  readonly dnsTsigAlgorithm: TsigKey['algorithm']
  readonly dnsTsigSecret: string | null
  readonly dnsRoute53ZoneId: string | null
}

/** Returns undefined if Inlet publishes nothing. Libraries are loaded on demand: most installations need none. */
export async function openDnsProvider(config: DnsConfig, clock: Clock): Promise<DnsProvider | undefined> {
  const { dnsProvider, dnsServer: server, dnsTsigName: name, dnsTsigAlgorithm: algorithm, dnsTsigSecret: secret } = config
  if (dnsProvider === 'rfc2136' && server !== null && secret !== null) {
    const { Rfc2136Provider } = await import('./rfc2136.ts')
    return new Rfc2136Provider({ server, key: { name, algorithm, secret }, clock })
  }
  if (dnsProvider === 'route53' && config.dnsRoute53ZoneId !== null) {
    const { Route53Provider } = await import('./route53.ts')
    return new Route53Provider({ zoneId: config.dnsRoute53ZoneId, clock })
  }
  return undefined
}
