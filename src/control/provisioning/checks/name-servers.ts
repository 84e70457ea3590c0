/**
 * Asks the name servers of a zone, and no cache, what a name leads to.
 *
 * Owns: finding them by the NS records of the zone. Does not own: when to ask, what the answer should be.
 */
import { lookup, Resolver } from 'node:dns/promises'
import { isIPv6 } from 'node:net'
import type { Clock } from '#lib/clock.ts'
import type { ListenAddress } from '#lib/option-types.ts'
import type { NameServerAnswer } from '#store/dns-checks.ts'
import { checkLimits } from './limits.ts'

export type NameServersOptions = {
  /** The server that is asked for NS records; all others have its port. Null: the resolvers of this machine are asked. */
  readonly begin: ListenAddress | null
  readonly clock: Clock
}

const dnsPort = 53

type Found = { readonly addresses: Promise<readonly string[]>; readonly atMs: number }

const lookUpOptions = { timeout: checkLimits.lookUpTimeoutMs, tries: checkLimits.lookUpAttempts }

/** Errors that mean that there is no such record. */
const absent: ReadonlySet<string> = new Set(['ENODATA', 'ENOTFOUND'])
const explanations: Readonly<Record<string, string>> = {
  ETIMEOUT: 'no response',
  ECONNREFUSED: 'nothing listens there',
  EREFUSED: 'it refused the question',
  ESERVFAIL: 'it reported a server failure',
}

export class NameServers {
  readonly #options: NameServersOptions
  #beginning: Promise<Resolver> | undefined
  readonly #byAddress = new Map<string, Resolver>()
  /** By domain. */
  readonly #found = new Map<string, Found>()

  constructor(options: NameServersOptions) {
    this.#options = options
  }

  /** Asks every name server of the zone that the name is in. Never rejects. */
  async ask(name: string): Promise<readonly NameServerAnswer[]> {
    const domain = name.slice(name.indexOf('.') + 1)
    try {
      const servers = await this.#serversOf(domain)
      return await Promise.all(servers.map((server) => this.#askOne(server, name)))
    } catch (error) {
      return [{ server: `of ${domain}`, A: [], AAAA: [], error: `it cannot be found: ${explain(error)}` }]
    }
  }

  /** Ends all look-ups: they fail. */
  async cancel(): Promise<void> {
    for (const resolver of this.#byAddress.values()) resolver.cancel()
    const beginning = await this.#beginning
    beginning?.cancel()
  }

  async #askOne(server: string, name: string): Promise<NameServerAnswer> {
    const resolver = this.#byAddress.get(server) ?? new Resolver(lookUpOptions)
    try {
      if (!this.#byAddress.has(server)) resolver.setServers([server])
      this.#byAddress.set(server, resolver)
      const [ipv4, ipv6] = await Promise.all([valuesOf(resolver.resolve4(name)), valuesOf(resolver.resolve6(name))])
      return { server, A: ipv4.toSorted(), AAAA: ipv6.toSorted(), error: null }
    } catch (error) {
      return { server, A: [], AAAA: [], error: explain(error) }
    }
  }

  /** Servers that were found before are used while the NS records cannot be read. */
  #serversOf(domain: string): Promise<readonly string[]> {
    const atMs = this.#options.clock.monotonic()
    const known = this.#found.get(domain)
    if (known !== undefined && atMs - known.atMs < checkLimits.serversKeptMs) return known.addresses
    const addresses = this.#findServers(domain).catch((error: unknown) => {
      if (known !== undefined) return known.addresses
      this.#found.delete(domain)
      throw error
    })
    this.#found.set(domain, { addresses, atMs })
    return addresses
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
    const resolver = new Resolver(lookUpOptions)
    if (begin !== null) resolver.setServers([withPort((await lookup(begin.host)).address, begin.port)])
    return resolver
  }
}

/** As in `192.0.2.53`, or `127.0.0.1:5353` for another port than that of DNS. */
function withPort(address: string, port: number): string {
  if (port === dnsPort) return address
  return isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`
}

async function valuesOf(looking: Promise<readonly string[]>): Promise<readonly string[]> {
  try {
    return await looking
  } catch (error) {
    if (absent.has(codeOf(error))) return []
    throw error
  }
}

function explain(error: unknown): string {
  const code = codeOf(error)
  return explanations[code] ?? (code === '' ? String((error as Error).message) : code)
}

function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException).code ?? '')
}
