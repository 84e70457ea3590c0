/**
 * One name server, or resolver.
 *
 * Law: a server that does not respond delays nobody: after some timeouts in a row its silence is the answer about each name, and one
 * look-up at a time finds out when it responds again.
 */
import { Resolver } from 'node:dns/promises'
import type { NameServerAnswer } from '#store/naming/dns-checks.ts'
import { checkLimits } from './limits.ts'

/** Errors that mean that there is no such record. */
const absent: ReadonlySet<string> = new Set(['ENODATA', 'ENOTFOUND'])
const noResponse = 'no response'
const explanations: Readonly<Record<string, string>> = {
  ETIMEOUT: noResponse,
  ECONNREFUSED: 'nothing listens there',
  EREFUSED: 'it refused the question',
  ESERVFAIL: 'it reported a server failure',
}

export class NameServer {
  readonly #address: string
  readonly #resolver: Resolver
  #timeouts = 0
  #isProbing = false

  /** As in `192.0.2.53`, or `127.0.0.1:5353` for another port than that of DNS. */
  constructor(address: string) {
    this.#address = address
    this.#resolver = newResolver()
    this.#resolver.setServers([address])
  }

  /** Never rejects. */
  async ask(name: string): Promise<NameServerAnswer> {
    if (this.#timeouts < checkLimits.timeoutsMax) return this.#lookUp(name)
    if (!this.#isProbing) void this.#probe(name)
    return this.#failed(noResponse)
  }

  /** Ends all look-ups: they fail. */
  cancel(): void {
    this.#resolver.cancel()
  }

  async #probe(name: string): Promise<void> {
    this.#isProbing = true
    await this.#lookUp(name)
    this.#isProbing = false
  }

  async #lookUp(name: string): Promise<NameServerAnswer> {
    try {
      const looking = [valuesOf(this.#resolver.resolve4(name)), valuesOf(this.#resolver.resolve6(name))] as const
      const [ipv4, ipv6] = await Promise.all(looking)
      this.#timeouts = 0
      return { server: this.#address, A: ipv4.toSorted(), AAAA: ipv6.toSorted(), error: null }
    } catch (error) {
      const explanation = explainDnsError(error)
      this.#timeouts = explanation === noResponse ? this.#timeouts + 1 : 0
      return this.#failed(explanation)
    }
  }

  #failed(error: string): NameServerAnswer {
    return { server: this.#address, A: [], AAAA: [], error }
  }
}

export function newResolver(): Resolver {
  return new Resolver({
    timeout: checkLimits.lookUpTimeoutMs,
    maxTimeout: checkLimits.lookUpTimeoutMs,
    tries: checkLimits.lookUpAttempts,
  })
}

/** Returns nothing if there is no such record. */
export async function valuesOf(looking: Promise<readonly string[]>): Promise<readonly string[]> {
  try {
    return await looking
  } catch (error) {
    if (absent.has(codeOf(error))) return []
    throw error
  }
}

export function explainDnsError(error: unknown): string {
  const code = codeOf(error)
  return explanations[code] ?? (code === '' ? String((error as Error).message) : code)
}

function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException).code ?? '')
}
