/**
 * The order in which names are looked up.
 *
 * Owns: the pace. Does not own: the look-ups.
 * Law: every name has its turn in each round, and no tick gets more names than are allowed. A round takes a few seconds, evenly spread,
 * unless there are more names than that. Names that were never served are looked up in every tick, so that an endpoint is active soon.
 */
import type { Clock } from '#lib/clock.ts'
import { countEndpoints } from '#store/endpoints/endpoints.ts'
import { type EndpointToLookUp, listEndpointsToLookUp, listUnservedToLookUp } from '#store/naming/dns-checks.ts'
import type { Db } from '#store/store.ts'
import { checkLimits } from './limits.ts'

export type NameRoundOptions = {
  /** In one tick. */
  readonly namesMax: number
  readonly clock: Pick<Clock, 'monotonic'>
}

export class NameRound {
  readonly #options: NameRoundOptions
  #beganMs = Number.NEGATIVE_INFINITY
  /** The last endpoint that had its turn in this round; null between rounds. */
  #afterId: string | null = null
  #share = 0

  constructor(options: NameRoundOptions) {
    this.#options = options
  }

  /** Returns the endpoints of one tick, each once. */
  async next(db: Db): Promise<readonly EndpointToLookUp[]> {
    const { namesMax } = this.#options
    const unserved = await listUnservedToLookUp(db, Math.min(checkLimits.unservedMax, Math.floor(namesMax / 2)))
    const others = await this.#takeShare(db, namesMax - unserved.length)
    return [...new Map([...unserved, ...others].map((endpoint) => [endpoint.id, endpoint])).values()]
  }

  async #takeShare(db: Db, max: number): Promise<readonly EndpointToLookUp[]> {
    if (this.#afterId === null && !(await this.#begin(db))) return []
    const limit = Math.min(this.#share, max)
    const endpoints = await listEndpointsToLookUp(db, this.#afterId ?? '', limit)
    this.#afterId = endpoints.length < limit ? null : (endpoints.at(-1)?.id ?? null)
    return endpoints
  }

  async #begin(db: Db): Promise<boolean> {
    const nowMs = this.#options.clock.monotonic()
    if (nowMs - this.#beganMs < checkLimits.dueMs) return false
    this.#beganMs = nowMs
    // One more, so that the last share is not full: that ends the round.
    this.#share = Math.max(checkLimits.namesMin, Math.ceil(((await countEndpoints(db)) + 1) / checkLimits.roundTicks))
    return true
  }
}
