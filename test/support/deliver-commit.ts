import { join } from 'node:path'
import { encodeMarker, withMarker } from '#delivery/publish/marker.ts'
import { system } from '#lib/system.ts'
import { objectKey } from '#model/artifact.ts'
import type { SegmentCommit } from '#model/commit.ts'
import type { DestinationTarget } from '#model/destination.ts'
import { DirectoryStores } from '#objects/directory.ts'

/** Writes the marker of a commit to its bucket of a directory, as a node does. Returns the commit, which lists the marker. */
export async function deliverCommit(directory: string, target: DestinationTarget, commit: SegmentCommit) {
  const { id, bucket, region, prefix } = target
  const { endpoint_id: endpointId, node_id: nodeId, log: incarnation, seq, sealed_at } = commit
  const sealedAtMicros = Date.parse(sealed_at) * 1000
  const name = { endpointId, nodeId, incarnation, seq, sealedAtMicros }
  const key = objectKey(prefix, name, { type: 'marker' })
  const file = { bytes: 10, rows: 10, sha256: 'ab' }
  const placed = {
    ...commit,
    destination: { id, bucket, region },
    artifacts: { parquet: { key: objectKey(prefix, name, { type: 'parquet' }), ...file } },
  }
  const marker = encodeMarker(placed)
  const store = new DirectoryStores({ ...system, root: join(directory, 'buckets') }).open(target)
  await store.put(key, marker, { contentType: 'application/json', metadata: {} })
  return withMarker(placed, key, marker)
}
