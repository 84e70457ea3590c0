/** A bucket with the Parquet files of three segments of one day, and a unit that merges them. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeFile } from '#delivery/convert/build/built-file.ts'
import { compactionMarkerKey, objectKey } from '#model/artifact.ts'
import { commitId } from '#model/commit.ts'
import { newId } from '#model/id.ts'
import { aCompactionUnit } from './compaction.ts'
import { aDestination } from './delivery-node.ts'
import type { Marker } from './markers.ts'
import { queryRows } from './parquet.ts'
import { newDoubleBucket } from './s3/target.ts'

const kind = 'parquet'
const sealed_at = '2026-11-20T08:00:00.000Z'

export const parquetPut = { contentType: 'application/vnd.apache.parquet', metadata: {} }

export async function bucketToCompact() {
  const at = await newDoubleBucket()
  const [endpointId, nodeId, log] = [newId(), newId(), 'abcdefghij']
  const directory = await mkdtemp(join(tmpdir(), 'inlet-to-compact-'))
  const markers: Marker[] = []
  try {
    for (let seq = 0; seq < 3; seq += 1) {
      const path = join(directory, `${seq}.parquet`)
      await queryRows(`COPY (SELECT ${seq} AS n, unnest(range(4)) AS row) TO '${path}' (FORMAT parquet)`)
      const { bytes, sha256 } = await describeFile(path, new AbortController().signal)
      const name = { endpointId, nodeId, incarnation: log, seq, sealedAtMicros: Date.parse(sealed_at) * 1000 }
      const key = objectKey('in', name, { type: kind })
      await at.store.putFile(key, path, parquetPut)
      markers.push({
        id: commitId(nodeId, log, seq),
        sealed_at,
        artifacts: { [kind]: { key, bytes, sha256, rows: 4 } },
      } as unknown as Marker)
    }
  } finally {
    await rm(directory, { recursive: true })
  }
  const target = { ...aDestination('lake'), ...at.target, allowed_buckets: [], prefix: 'in' }
  const unit = aCompactionUnit(markers, { endpointId, kind, target })
  return {
    ...at,
    target,
    unit,
    keys: markers.map(({ artifacts }) => artifacts[kind]?.key ?? ''),
    marker: compactionMarkerKey({ prefix: 'in', endpointId, date: '2026-11-20' }, unit.compaction.id),
  }
}
