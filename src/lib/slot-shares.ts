/**
 * Decides between those that compete for slots: tenants, and the members of one tenant.
 *
 * Law: whoever holds the least for its weight goes first, so a slot never moves back and forth. Between equals, the one that used the least
 * lately goes first, so nobody waits forever.
 */

/** After this time, use counts half. */
const halfLifeMs = 30_000
const decayPerMs = Math.LN2 / halfLifeMs
/** Use of fewer slot-milliseconds is forgotten. */
const forgottenBelow = 1

export class SlotShare {
  weight: number
  /** Slots that it has or will get next, without those that it was asked to return. */
  held = 0
  /** Tasks that wait for a slot. */
  waiting = 0
  /** Slots in which its work is still running. */
  #occupied = 0
  #used = 0
  #usedAt = 0

  constructor(weight: number) {
    this.weight = weight
  }

  /** Returns the slot time that it used lately, by weight. */
  usedAt(now: number): number {
    const kept = Math.exp(-decayPerMs * (now - this.#usedAt))
    return (this.#used * kept + (this.#occupied * (1 - kept)) / decayPerMs) / this.weight
  }

  occupy(slots: 1 | -1, now: number): void {
    this.#used = this.usedAt(now) * this.weight
    this.#usedAt = now
    this.#occupied += slots
  }

  canBeForgotten(now: number): boolean {
    return this.held === 0 && this.waiting === 0 && this.#occupied === 0 && this.usedAt(now) < forgottenBelow
  }
}

/** Returns who gets a free slot, without those that would have to return it at once. Undefined if nobody waits. */
export function nextShare<Share extends SlotShare>(shares: Iterable<Share>, now: number): Share | undefined {
  const waiting = [...shares].filter((share) => share.waiting > 0)
  const lowest = Math.min(...waiting.map(withOneMore))
  return leastBy(
    waiting.filter(({ held, weight }) => held / weight < lowest),
    (share) => share.usedAt(now),
  )
}

/**
 * Returns one that holds more than its share while another waits: even after a slot has moved, the second holds no more for its weight. The
 * first keeps at least one slot.
 */
export function findImbalance<Share extends SlotShare>(
  shares: Iterable<Share>,
): { readonly from: Share; readonly to: Share } | undefined {
  const all = [...shares]
  const from = leastBy(all, (share) => -withOneLess(share))
  const to = leastBy(
    all.filter((share) => share !== from && share.waiting > 0),
    withOneMore,
  )
  return from !== undefined && to !== undefined && withOneMore(to) <= withOneLess(from) ? { from, to } : undefined
}

/** Returns the one that used the most lately, of those that may return a slot, and the one that used the least, of those that wait without one. */
export function findLead<Share extends SlotShare>(
  shares: Iterable<Share>,
  now: number,
  mayReturn: (share: Share) => boolean,
): { readonly from: Share; readonly to: Share; readonly ms: number } | undefined {
  const all = [...shares]
  const from = leastBy(all.filter(mayReturn), (share) => -share.usedAt(now))
  const to = leastBy(
    all.filter(({ held, waiting }) => held === 0 && waiting > 0),
    (share) => share.usedAt(now),
  )
  return from !== undefined && to !== undefined ? { from, to, ms: from.usedAt(now) - to.usedAt(now) } : undefined
}

function withOneMore({ held, weight }: SlotShare): number {
  return (held + 1) / weight
}

function withOneLess({ held, weight }: SlotShare): number {
  return (held - 1) / weight
}

function leastBy<Item>(items: readonly Item[], measure: (item: Item) => number): Item | undefined {
  let least: Item | undefined
  let leastMeasured = Number.POSITIVE_INFINITY
  for (const item of items) {
    const measured = measure(item)
    if (measured >= leastMeasured) continue
    least = item
    leastMeasured = measured
  }
  return least
}
