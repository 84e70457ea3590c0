import { isoTimestamp } from '#lib/clock.ts'
import type { SegmentRef, SegmentSource } from '#log/segment-source.ts'
import { commitId } from '#model/commit.ts'
import type { SegmentFacts } from './delivery-run.ts'

export type FactsOptions = {
  readonly segments: SegmentSource
  readonly nodeId: string
  /** Id of the adoption of the log, if there was one. */
  readonly adoption?: string | undefined
}

/** Throws SegmentError if the segment is damaged. */
export async function readFacts({ segments, nodeId, adoption }: FactsOptions, segment: SegmentRef): Promise<SegmentFacts> {
  const { logName, incarnation, seq } = segment
  const reader = await segments.open(segment)
  try {
    const { firstReceivedAtMicros, sealedAtMicros, records, damagedRecords } = reader.footer
    return {
      id: commitId(nodeId, incarnation, seq),
      name: { endpointId: logName, nodeId, incarnation, seq, sealedAtMicros, adoption },
      records,
      recordsDamaged: damagedRecords,
      walBytes: reader.bytes,
      firstReceivedAt: isoTimestamp(Math.floor(firstReceivedAtMicros / 1000)),
      sealedAt: isoTimestamp(Math.floor(sealedAtMicros / 1000)),
    }
  } finally {
    await reader.close()
  }
}
