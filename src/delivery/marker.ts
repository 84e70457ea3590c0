import { createHash } from 'node:crypto'
import { parseJson } from '#lib/json.ts'
import { type ArtifactFile, SegmentCommit } from '#model/commit.ts'

/**
 * The marker: the commit as a JSON object in the bucket, written after every artifact that it lists. It lists all but itself.
 * A reader that reads only what markers list never sees half a segment.
 */
export function encodeMarker(commit: SegmentCommit): Uint8Array {
  const { manifest: _, ...artifacts } = commit.artifacts
  return Buffer.from(`${JSON.stringify({ ...commit, artifacts }, null, 1)}\n`)
}

/** The commit that a marker in the bucket tells of, or undefined where it is none of ours. */
export function decodeMarker(key: string, bytes: Uint8Array): SegmentCommit | undefined {
  const parsed = SegmentCommit.safeParse(parseJson(Buffer.from(bytes).toString('utf8')))
  return parsed.success ? withManifest(parsed.data, key, bytes) : undefined
}

/** The commit with the marker itself among its artifacts, as it is reported to control. */
export function withManifest(commit: SegmentCommit, key: string, bytes: Uint8Array): SegmentCommit {
  const manifest: ArtifactFile = {
    key,
    bytes: bytes.length,
    rows: commit.records,
    sha256: createHash('sha256').update(bytes).digest('hex'),
  }
  return { ...commit, artifacts: { ...commit.artifacts, manifest } }
}
