/** Chooses the address of each new connection: one that DNS names, but not the one that has just failed if there is another. */
import { isIP, type LookupFunction } from 'node:net'
import type { Random } from '../../torture/random.ts'
import type { Named } from './name-cache.ts'

export class Dialer {
  readonly #resolve: () => Promise<Named>
  readonly #random: Random
  #failed: string | undefined
  /** Address of the last connection, whether DNS named it, and its start. */
  address = ''
  isNamed = false
  startedAt = 0

  constructor(resolve: () => Promise<Named>, random: Random) {
    this.#resolve = resolve
    this.#random = random
  }

  /** In place of the resolver of the machine. Returns one address, so that no other one hides that it fails. */
  readonly lookup: LookupFunction = (_, { all = false }, done) => {
    this.#choose().then(
      (address) => (all ? done(null, [{ address, family: isIP(address) }]) : done(null, address, isIP(address))),
      (error: NodeJS.ErrnoException) => done(error, []),
    )
  }

  /** The next connection goes elsewhere. */
  avoid(): void {
    this.#failed = this.address
  }

  async #choose(): Promise<string> {
    this.startedAt = performance.now()
    this.isNamed = false
    const { addresses, isCurrent } = await this.#resolve()
    const others = addresses.filter((address) => address !== this.#failed)
    this.address = this.#random.pick(others.length > 0 ? others : addresses)
    this.isNamed = isCurrent
    this.#failed = undefined
    return this.address
  }
}
