import type { ArtifactFile } from '#model/commit.ts'
import { CompactionMarker } from '#model/compaction.ts'
import type { CompactionUnit } from '#model/job-protocol.ts'
import { decodeContent, encodeContent } from '../publish/marker.ts'

export function encodeCompactionMarker(
  { compaction, target }: CompactionUnit,
  file: ArtifactFile,
  compacted_at: string,
): Uint8Array {
  const { id, endpoint_id, kind, sources } = compaction
  const marker: CompactionMarker = {
    ...{ id, endpoint_id, compacted_at },
    destination: { id: target.id, bucket: target.bucket, region: target.region },
    artifacts: {},
    compacted: { kind, ...file, sources: sources.map(({ id, first_row, rows }) => ({ id, first_row, rows })) },
  }
  // It may list ten thousand sources.
  return encodeContent(marker, 0)
}

/** Returns the content of a marker in the bucket, or undefined if the object is not the marker of a compaction. */
export function decodeCompactionMarker(body: Uint8Array): CompactionMarker | undefined {
  return decodeContent(CompactionMarker, body)
}

/** Whether the marker says that all rows of the sources are where they were planned to be. */
export function listsAllSources({ compacted }: CompactionMarker, { kind, sources }: CompactionUnit['compaction']): boolean {
  const listed = new Map(compacted.sources.map((source) => [source.id, source]))
  const isListed = sources.every(({ id, first_row, rows }) => {
    const found = listed.get(id)
    return found?.first_row === first_row && found.rows === rows
  })
  return compacted.kind === kind && isListed
}
