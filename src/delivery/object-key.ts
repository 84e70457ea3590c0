import { isoTimestamp } from '#lib/clock.ts'
import { commitId } from '#model/commit.ts'

/** What an object's name is made of: the segment's own facts and the destination's prefix, nothing else, so a retry overwrites itself. */
export type SegmentName = {
  /** The destination's prefix, normalised: no slash at either end, or empty. */
  readonly prefix: string
  readonly endpointId: string
  readonly nodeId: string
  /** The incarnation of the log. */
  readonly log: string
  readonly seq: number
  /** From the segment's footer. */
  readonly sealedAtMicros: number
}

/**
 * The key of an artifact of a kind: `segment`, `parquet`, `views/<name>/v<version>`, `dlq/<name>/v<version>`, or `manifest`,
 * the marker.
 */
export function objectKey(segment: SegmentName, kind: string): string {
  const { folder, extension } = layout(kind)
  const date = isoTimestamp(segment.sealedAtMicros / 1000).slice(0, 10)
  const name = commitId(segment.nodeId, segment.log, segment.seq)
  return [
    ...(segment.prefix === '' ? [] : [segment.prefix]),
    segment.endpointId,
    folder,
    `dt=${date}`,
    `${name}.${extension}`,
  ].join('/')
}

function layout(kind: string): { folder: string; extension: string } {
  if (kind === 'segment') return { folder: 'segments', extension: 'wal.zst' }
  if (kind === 'parquet') return { folder: 'parquet', extension: 'parquet' }
  if (kind === 'manifest') return { folder: 'commits', extension: 'json' }
  if (kind.startsWith('views/')) return { folder: kind, extension: 'parquet' }
  if (kind.startsWith('dlq/')) return { folder: kind, extension: 'ndjson.gz' }
  throw new Error(`no such kind of artifact: ${kind}`)
}
