/**
 * Tries what copies need of a store: what it has answered is there, and of several puts of one name one is taken.
 *
 * Owns: what is tried, and what each result means for copies. Does not own: what follows from it.
 * Law: it leaves nothing behind, unless the store does not remove.
 */
import { Buffer } from 'node:buffer'
import { errorMessage } from '#lib/error-message.ts'
import type { Random } from '#lib/random.ts'
import type { ObjectStore } from '#objects/object-store.ts'

/** `needed`: without it no copy counts. `fence`: a second fence, beside the reads. */
export type StoreFinding = { readonly step: string; readonly kind: 'needed' | 'fence'; readonly problem: string | null }

export type StoreCheckOptions = {
  readonly store: ObjectStore
  /** Where it may write, with a slash at its end, or empty. */
  readonly folder: string
  readonly random: Random
  readonly signal: AbortSignal
  /** Rounds in which several puts of one name are sent at once. 0: none. */
  readonly rounds?: number
}

const put = { contentType: 'application/octet-stream', metadata: {} }
const putsAtOnce = 8

/** Throws if the store takes no put at all. */
export async function checkCopyStore(options: StoreCheckOptions): Promise<readonly StoreFinding[]> {
  const { store, folder, random, rounds = 0 } = options
  const name = `${folder}check-${random.bytes(8).toString('hex')}`
  const check = new StoreCheck(options, name)
  try {
    return [
      { step: 'a put is read', kind: 'needed', problem: await check.isRead('first') },
      await check.run('a put that replaces is read', 'needed', () => check.isRead('second')),
      await check.run('a put is listed', 'needed', () => check.isListed()),
      await check.run('a put with If-None-Match is refused if the name is taken', 'fence', () => check.isRefused()),
      await check.run('what is removed is gone', 'needed', () => check.isGone()),
      ...(rounds === 0
        ? []
        : [await check.run('of several such puts at once one is taken', 'fence', () => check.isWonOnce(rounds))]),
    ]
  } finally {
    await store.remove(name).catch(() => undefined)
  }
}

class StoreCheck {
  readonly #options: StoreCheckOptions
  readonly #name: string
  #body = Buffer.alloc(0)

  constructor(options: StoreCheckOptions, name: string) {
    this.#options = options
    this.#name = name
  }

  /** `act` returns what is wrong; null for nothing. */
  async run(step: string, kind: StoreFinding['kind'], act: () => Promise<string | null>): Promise<StoreFinding> {
    try {
      return { step, kind, problem: await act() }
    } catch (error) {
      return { step, kind, problem: errorMessage(error) }
    }
  }

  async isRead(text: string): Promise<string | null> {
    const { store, signal } = this.#options
    this.#body = Buffer.from(text)
    await store.put(this.#name, this.#body, { ...put, signal })
    const read = await store.get(this.#name, signal)
    if (read === undefined) return 'it is missing right after the put'
    return this.#body.equals(read) ? null : 'another content is read right after the put'
  }

  async isListed(): Promise<string | null> {
    const { store, signal } = this.#options
    for await (const { key } of store.list(this.#name, signal)) if (key === this.#name) return null
    return 'it is not in the list right after the put'
  }

  async isRefused(): Promise<string | null> {
    const { store, signal } = this.#options
    const isTaken = await store.putIfAbsent(this.#name, Buffer.from('third'), { ...put, signal })
    return isTaken ? 'it replaced the object' : null
  }

  async isGone(): Promise<string | null> {
    const { store, signal } = this.#options
    await store.remove(this.#name, signal)
    return (await store.head(this.#name, signal)) === undefined ? null : 'it is there right after the removal'
  }

  /** A name that was removed is tried again: a store may remember it. */
  async isWonOnce(rounds: number): Promise<string | null> {
    const { store, signal } = this.#options
    for (let round = 0; round < rounds; round += 1) {
      const bodies = Array.from({ length: putsAtOnce }, (_, number) => Buffer.from(`writer ${number}`))
      const taken = await Promise.all(bodies.map((body) => store.putIfAbsent(this.#name, body, { ...put, attempts: 1, signal })))
      const winners = bodies.filter((_, number) => taken[number])
      const [winner] = winners
      if (winner === undefined || winners.length > 1) return `${winners.length} of ${putsAtOnce} were taken`
      const read = await store.get(this.#name, signal)
      if (read === undefined || !winner.equals(read)) return 'another one is read than the one that was taken'
      await store.remove(this.#name, signal)
    }
    return null
  }
}
