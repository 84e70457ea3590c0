/** Looks names up as resolvers do: keeps answers for their time to live, and the last ones while the name server does not respond. */
import type { Resolver } from 'node:dns/promises'

/** Addresses of a name, as a client knows them. */
export type Named = {
  readonly addresses: readonly string[]
  /** False if this is older than its time to live, and the name server did not respond. */
  readonly isCurrent: boolean
}

type Answer = { readonly addresses: readonly string[]; readonly until: number }

export class NameCache {
  readonly #resolver: Resolver
  readonly #answers = new Map<string, Answer>()

  constructor(resolver: Resolver) {
    this.#resolver = resolver
  }

  /** Returns all addresses of the name. */
  async addressesOf(name: string): Promise<Named> {
    const known = this.#answers.get(name)
    if (known !== undefined && performance.now() < known.until) return { addresses: known.addresses, isCurrent: true }
    try {
      const answer = await this.#ask(name)
      this.#answers.set(name, answer)
      return { addresses: answer.addresses, isCurrent: true }
    } catch (error) {
      if (known === undefined) throw error
      return { addresses: known.addresses, isCurrent: false }
    }
  }

  async #ask(name: string): Promise<Answer> {
    const records = (await Promise.all([this.#resolver.resolve4(name, { ttl: true }), this.#resolve6(name)])).flat()
    const ttl = Math.min(...records.map((record) => record.ttl))
    return { addresses: records.map(({ address }) => address), until: performance.now() + ttl * 1_000 }
  }

  /** Without namespaces no host has an address of IPv6. */
  async #resolve6(name: string) {
    try {
      return await this.#resolver.resolve6(name, { ttl: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENODATA') return []
      throw error
    }
  }
}
