import type { Buffer } from 'node:buffer'

/**
 * Finds where a digest is in a file, by its first eight bytes: open addressing, twelve bytes a slot.
 *
 * Law: it may return places of other digests, never miss one that was added. Digests are random, so they need no further hashing.
 */
const LOAD_MAX = 0.7
const SLOTS_MIN = 64
const NEVER = 0

export class DigestIndex {
  #size = 0
  #mask = SLOTS_MIN - 1
  /** The place plus 1, or 0 for a free slot. */
  #places = new Uint32Array(SLOTS_MIN)
  /** Two numbers of the digest for each slot. */
  #tags = new Uint32Array(2 * SLOTS_MIN)

  /** Memory that it takes. */
  get bytes(): number {
    return this.#places.byteLength + this.#tags.byteLength
  }

  add(digest: Buffer, place: number): void {
    if (this.#size + 1 > LOAD_MAX * this.#places.length) this.#grow()
    this.#put(digest.readUInt32LE(0), digest.readUInt32LE(4), place + 1)
    this.#size += 1
  }

  *find(digest: Buffer): Generator<number> {
    const first = digest.readUInt32LE(0)
    const second = digest.readUInt32LE(4)
    for (let slot = first & this.#mask; this.#places[slot] !== NEVER; slot = (slot + 1) & this.#mask) {
      if (this.#tags[2 * slot] === first && this.#tags[2 * slot + 1] === second) yield (this.#places[slot] ?? 1) - 1
    }
  }

  #put(first: number, second: number, place: number): void {
    let slot = first & this.#mask
    while (this.#places[slot] !== NEVER) slot = (slot + 1) & this.#mask
    this.#places[slot] = place
    this.#tags[2 * slot] = first
    this.#tags[2 * slot + 1] = second
  }

  #grow(): void {
    const [places, tags] = [this.#places, this.#tags]
    this.#places = new Uint32Array(2 * places.length)
    this.#tags = new Uint32Array(2 * tags.length)
    this.#mask = 2 * places.length - 1
    for (const [slot, place] of places.entries()) {
      if (place !== NEVER) this.#put(tags[2 * slot] ?? 0, tags[2 * slot + 1] ?? 0, place)
    }
  }
}
