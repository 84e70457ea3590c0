/**
 * Flips one bit in a segment file or in a commit that waits for control.
 *
 * Law: before the flip the ledger learns which requests it may cost: the one whose bytes it hits, and where it hits between two, both. A bit
 * in a commit costs nothing: it is made again from the marker.
 */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { recordsIn } from '../ledger.ts'
import type { Fault } from '../plan.ts'
import { Random } from '../random.ts'
import type { Rig } from '../rig.ts'
import { findSegments, findWaitingCommits } from '../segments.ts'
import type { Heal } from './heal.ts'

const suffixes = { 'open segment': '.open', 'sealed segment': '.wal' } as const

export function flip({ what, seed }: Extract<Fault, { kind: 'flip' }>, rig: Rig): Heal {
  const random = new Random(seed)
  const candidates =
    what === 'outbox entry' ? findWaitingCommits(rig.data) : findSegments(rig.wal).filter((path) => path.endsWith(suffixes[what]))
  if (candidates.length === 0) {
    rig.note(`no ${what} to flip a bit in`)
    return undefined
  }
  const path = random.pick(candidates)
  const bytes = readIfThere(path)
  if (bytes === undefined || bytes.length === 0) return undefined
  const offset = random.between(0, bytes.length - 1)
  const hit = requestsAt(bytes, offset)
  rig.ledger.noteDamage(hit, { reason: `bit flip at byte ${offset} of ${path}`, isSealed: what === 'sealed segment' })
  if (!flipBit(path, offset, (bytes[offset] ?? 0) ^ (1 << random.between(0, 7)))) return undefined
  rig.note(`flipped a bit at byte ${offset} of ${bytes.length} in ${path}, which may cost ${hit.length} requests`)
  return undefined
}

/** Returns the requests whose bytes lie at the offset, or on both sides of it. */
export function requestsAt(bytes: Buffer, offset: number): readonly number[] {
  let before: number | undefined
  for (const { id, at } of recordsIn(bytes.toString('latin1'))) {
    if (at > offset) return before === undefined ? [id] : [...new Set([before, id])]
    before = id
  }
  return before === undefined ? [] : [before]
}

/** Returns false if the file is gone. */
function flipBit(path: string, offset: number, byte: number): boolean {
  try {
    const descriptor = openSync(path, 'r+')
    writeSync(descriptor, Uint8Array.of(byte), 0, 1, offset)
    closeSync(descriptor)
    return true
  } catch {
    return false
  }
}

function readIfThere(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch {
    return undefined
  }
}
