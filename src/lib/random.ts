import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { printUuid } from './uuid.ts'

/** Source of randomness, passed in so that a seed repeats a run. */
export interface Random {
  /** A number in [0, 1), for delays and samples. */
  readonly fraction: () => number
  /** Bytes for names, ids and secrets. Nobody can guess those of the system. */
  readonly bytes: (count: number) => Buffer
}

export const systemRandom: Random = { fraction: Math.random, bytes: randomBytes }

/** Returns a small generator (mulberry32): the same seed gives the same numbers and bytes everywhere. */
export function seededRandom(seed: number): Random {
  let state = seed | 0
  const next = () => {
    state = (state + 0x6d2b_79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
  return { fraction: () => next() / 2 ** 32, bytes: (count) => Buffer.from(Array.from({ length: count }, () => next() >>> 24)) }
}

/** Returns a UUID of version 4 (RFC 9562). */
export function randomUuid(random: Random): string {
  return printUuid(random.bytes(16), 4)
}

const nameCharacters = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** Returns ten lowercase letters and digits, which tell what one start of a process makes from what others make. */
export function newIncarnation(random: Pick<Random, 'bytes'>): string {
  return Array.from(random.bytes(10), (byte) => nameCharacters[byte % nameCharacters.length]).join('')
}
