import { isoTimestamp } from '#lib/clock.ts'
import { type ArtifactKind, contentTypeOf, objectKey, printArtifactKind, type SegmentName } from '#model/artifact.ts'
import type { ArtifactFile } from '#model/commit.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import type { BuiltFile } from '../convert/build/built-file.ts'

export type PutArtifactOptions = {
  /** The destination's prefix. */
  readonly prefix: string
  readonly segment: SegmentName
  readonly file: BuiltFile
  readonly signal: AbortSignal
}

/** Uploads one file. Returns its entry in a commit: the printed kind, and the file as stored in the bucket. */
export async function putArtifact(
  store: ObjectStore,
  { prefix, segment, file, signal }: PutArtifactOptions,
): Promise<readonly [string, ArtifactFile]> {
  const { kind, path, bytes, rows, sha256, view } = file
  const key = objectKey(prefix, segment, kind)
  const metadata = metadataOf(segment, kind, file)
  await store.putFile(key, path, { contentType: contentTypeOf(kind), metadata, sha256, signal })
  const ofView = view === undefined ? {} : { view_id: view.id, view_version: view.version }
  return [printArtifactKind(kind), { key, bytes, rows, sha256, ...ofView }]
}

/**
 * Returns the user metadata of an object, which identifies it without its marker. S3 allows 2 KB in US-ASCII; this is far less.
 */
export function metadataOf(
  segment: SegmentName,
  kind: ArtifactKind,
  { sha256, rows, view }: Pick<BuiltFile, 'sha256' | 'rows' | 'view'>,
): Readonly<Record<string, string>> {
  return {
    kind: printArtifactKind(kind),
    sha256,
    rows: String(rows),
    'endpoint-id': segment.endpointId,
    'node-id': segment.nodeId,
    log: segment.incarnation,
    seq: String(segment.seq),
    'sealed-at': isoTimestamp(Math.floor(segment.sealedAtMicros / 1000)),
    ...(view === undefined ? {} : { 'view-id': view.id, 'view-version': String(view.version) }),
  }
}
