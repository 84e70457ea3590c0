/**
 * Finds seqs of this node that no commit and no file has.
 *
 * Law: a gap is no proof of a loss. A seq is also skipped if an append failed or a process died before the first frame was durable, and if a
 * person discarded the segment. But a segment that was removed before its delivery leaves nothing else.
 */
import type { SegmentSource } from '#log/segment-source.ts'

/** Seqs from one to the other, both included. */
export type SeqGap = { readonly endpoint_id: string; readonly from: number; readonly to: number }

/** Segments of a log on the disk of the node. */
export type LocalSeqs = { readonly seqs: readonly number[]; readonly highWater: number | undefined }

export class CommittedSeqs {
  #ranges: [from: number, to: number][] = []

  /** Cheap if seqs come in order. */
  add(seq: number): void {
    const last = this.#ranges.at(-1)
    if (last !== undefined && (seq === last[1] + 1 || seq === last[1])) last[1] = seq
    else this.#ranges.push([seq, seq])
  }

  /** Returns the gaps behind the lowest seq that was added. */
  gaps(endpoint_id: string, { seqs, highWater }: LocalSeqs): readonly SeqGap[] {
    const [first] = this.#ranges.map(([from]) => from).toSorted((a, b) => a - b)
    if (first === undefined) return []
    const gaps: SeqGap[] = []
    let next = first
    const ranges = [...this.#ranges, ...seqs.map((seq) => [seq, seq] as const)].toSorted((a, b) => a[0] - b[0])
    for (const [from, to] of highWater === undefined ? ranges : [...ranges, [highWater + 1, highWater + 1] as const]) {
      if (from > next) gaps.push({ endpoint_id, from: next, to: from - 1 })
      next = Math.max(next, to + 1)
    }
    return gaps
  }
}

export async function readLocalSeqs(
  segments: Pick<SegmentSource, 'readLog' | 'highestSeq'>,
  logName: string,
): Promise<LocalSeqs> {
  const listing = await segments.readLog(logName).catch(() => undefined)
  return { seqs: (listing?.segments ?? []).map(({ seq }) => seq), highWater: (await segments.highestSeq(logName)).seq }
}
