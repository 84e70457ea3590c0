/**
 * Asks the name servers of a zone, and no cache, what a name leads to.
 *
 * Owns: finding them by the NS records of the zone. Does not own: when to ask, what the answer should be.
 * Law: nobody waits for the NS records of a zone whose servers were found before.
 */
import { lookup, type Resolver } from 'node:dns/promises'
import { isIPv6 } from 'node:net'
import type { Clock } from '#lib/clock.ts'
import type { ListenAddress } from '#lib/option-types.ts'
import type { NameServerAnswer } from '#store/naming/dns-checks.ts'
import { checkLimits } from './limits.ts'
import { explainDnsError, NameServer, newResolver, valuesOf } from './name-server.ts'

export type NameServersOptions = {
  /** The server that is asked for NS records; all others have its port. Null: the resolvers of this machine are asked. */
  readonly begin: ListenAddress | null
  readonly clock: Clock
}

const dnsPort = 53

type Found = {
  readonly addresses: Promise<readonly string[]>
  /** When to look for them again, by the monotonic clock. */
  readonly dueMs: number
}

export class NameServers {
  readonly #options: NameServersOptions
  #beginning: Promise<Resolver> | undefined
  readonly #byAddress = new Map<string, NameServer>()
  /** By domain. */
  readonly #found = new Map<string, Found>()

  constructor(options: NameServersOptions) {
    this.#options = options
  }

  /** Asks every name server of the zone that the name is in. Never rejects. */
  async ask(name: string): Promise<readonly NameServerAnswer[]> {
    const domain = name.slice(name.indexOf('.') + 1)
    try {
      const addresses = await this.#serversOf(domain)
      return await Promise.all(addresses.map((address) => this.#serverAt(address).ask(name)))
    } catch (error) {
      return [{ server: `of ${domain}`, A: [], AAAA: [], error: `it cannot be found: ${explainDnsError(error)}` }]
    }
  }

  /** Ends all look-ups: they fail. */
  async cancel(): Promise<void> {
    for (const server of this.#byAddress.values()) server.cancel()
    const beginning = await this.#beginning
    beginning?.cancel()
  }

  #serverAt(address: string): NameServer {
    const server = this.#byAddress.get(address) ?? new NameServer(address)
    this.#byAddress.set(address, server)
    return server
  }

  #serversOf(domain: string): Promise<readonly string[]> {
    const found = this.#found.get(domain)
    const isDue = found === undefined || this.#options.clock.monotonic() >= found.dueMs
    return isDue ? this.#refresh(domain, found?.addresses) : found.addresses
  }

  /** Servers that were found before are used meanwhile, and also if no others are found. */
  #refresh(domain: string, before: Promise<readonly string[]> | undefined): Promise<readonly string[]> {
    const looking = this.#findServers(domain)
    const current = before ?? looking
    this.#found.set(domain, { addresses: current, dueMs: Number.POSITIVE_INFINITY })
    const keep = (addresses: Promise<readonly string[]>, forMs: number) => {
      // Callers that await it handle a failure.
      addresses.catch(() => undefined)
      this.#found.set(domain, { addresses, dueMs: this.#options.clock.monotonic() + forMs })
    }
    looking.then(
      () => keep(looking, checkLimits.serversKeptMs),
      () =>
        keep(
          current.catch(() => looking),
          checkLimits.serversRetryMs,
        ),
    )
    return current
  }

  /** The zone may begin at a parent of the domain. */
  async #findServers(domain: string): Promise<readonly string[]> {
    const resolver = await this.#begin()
    for (let zone = domain; zone !== ''; zone = zone.split('.').slice(1).join('.')) {
      const names = (await valuesOf(resolver.resolveNs(zone))).slice(0, checkLimits.serversMax)
      if (names.length === 0) continue
      const addresses = (await Promise.all(names.map((name) => this.#addressOf(resolver, name)))).flat()
      if (addresses.length > 0) return addresses
      throw new Error(`no addresses of ${names.join(', ')}`)
    }
    throw new Error(`no NS records for ${domain} or a domain above it`)
  }

  /** One address is enough: all addresses of a name server are the same server. */
  async #addressOf(resolver: Resolver, name: string): Promise<readonly string[]> {
    const port = this.#options.begin?.port ?? dnsPort
    const [address] = [...(await valuesOf(resolver.resolve4(name))), ...(await valuesOf(resolver.resolve6(name)))]
    return address === undefined ? [] : [withPort(address, port)]
  }

  #begin(): Promise<Resolver> {
    this.#beginning ??= this.#openBeginning().catch((error: unknown) => {
      this.#beginning = undefined
      throw error
    })
    return this.#beginning
  }

  async #openBeginning(): Promise<Resolver> {
    const { begin } = this.#options
    const resolver = newResolver()
    if (begin !== null) resolver.setServers([withPort((await lookup(begin.host)).address, begin.port)])
    return resolver
  }
}

/** As in `192.0.2.53`, or `127.0.0.1:5353` for another port than that of DNS. */
function withPort(address: string, port: number): string {
  if (port === dnsPort) return address
  return isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`
}
