import { z } from 'zod'
import { safeSum } from '#lib/safe-sum.ts'
import { ReportedCount } from './reported-count.ts'
import { SegmentSeq } from './segment-seq.ts'

/** Segments of one log that a node holds. There is one for each seq from the first to the last, unless there are fewer. */
export const HeldSegments = z.object({
  first_seq: SegmentSeq,
  last_seq: SegmentSeq,
  segments: ReportedCount,
  /** Null if one of them cannot be counted. */
  records: ReportedCount.nullable(),
  bytes: ReportedCount,
})
export type HeldSegments = z.infer<typeof HeldSegments>

export function isInOrder({ first_seq, last_seq }: HeldSegments): boolean {
  return first_seq <= last_seq
}

/** A heartbeat has so many of one log at most. */
export const heldMax = 50

/** Returns at most `max`, in order of their seqs: the closest neighbours together. */
export function joinHeld<Held extends HeldSegments>(
  held: readonly Held[],
  max: number,
  join: (one: Held, next: Held) => Held = joinTwo,
): readonly Held[] {
  if (held.length <= max) return held
  const gaps = held.slice(1).map(({ first_seq }, at) => ({ at: at + 1, seqs: first_seq - (held[at]?.last_seq ?? 0) }))
  const closed = new Set(
    gaps
      .toSorted((a, b) => a.seqs - b.seqs)
      .slice(0, held.length - max)
      .map(({ at }) => at),
  )
  const joined: Held[] = []
  for (const [at, each] of held.entries()) {
    const before = joined.at(-1)
    if (before === undefined || !closed.has(at)) joined.push(each)
    else joined[joined.length - 1] = join(before, each)
  }
  return joined
}

export function joinTwo<Held extends HeldSegments>(one: Held, next: Held): Held {
  return {
    ...one,
    last_seq: Math.max(one.last_seq, next.last_seq),
    segments: safeSum([one.segments, next.segments]),
    records: one.records === null || next.records === null ? null : safeSum([one.records, next.records]),
    bytes: safeSum([one.bytes, next.bytes]),
  }
}
