/**
 * The marker: the commit as a JSON object in the bucket, written after every artifact that it lists. It lists all artifacts except itself.
 *
 * Law: a reader that reads only what markers list never sees part of a segment. Every listed file is looked for right before the marker is
 * written, because buckets may be emptied, or deleted and created again, while segments wait. The marker is looked for right after.
 */
import { createHash } from 'node:crypto'
import type { z } from 'zod'
import { parseJson } from '#lib/json.ts'
import { type ArtifactKind, contentTypeOf, type SegmentName } from '#model/artifact.ts'
import { type ArtifactFile, type ArtifactFiles, SegmentCommit } from '#model/commit.ts'
import type { PutOptions } from '#objects/object-store.ts'
import { TransientError } from '../convert/build/transient-error.ts'
import { allExist } from './all-exist.ts'
import type { Bucket } from './bucket.ts'
import type { ConditionalPuts } from './conditional-puts.ts'
import type { MarkerSeal } from './marker-seal.ts'
import { metadataOf } from './put-artifact.ts'

/** A marker has a few kilobytes, or some hundred with many views and long messages. A larger object is not a marker. */
export const markerBytesMax = 4 * 1024 * 1024

/** With a seal, the marker carries a signature. */
export function encodeMarker(commit: SegmentCommit, seal?: MarkerSeal): Uint8Array {
  const { manifest: _, ...artifacts } = commit.artifacts
  const content = { ...commit, artifacts }
  const signed = seal === undefined ? content : { ...content, signature: seal.sign(content) }
  return encodeContent(signed)
}

/** Encodes a marker of any kind. */
export function encodeContent(content: object, indent = 1): Uint8Array {
  return Buffer.from(`${JSON.stringify(content, null, indent)}\n`)
}

/** Returns the content of a marker of a kind, or undefined if the object in the bucket is none. */
export function decodeContent<Schema extends z.ZodType>(schema: Schema, body: Uint8Array): z.output<Schema> | undefined {
  return schema.safeParse(parseJson(Buffer.from(body).toString('utf8'))).data
}

/** Returns the commit of a marker in the bucket, or undefined if the object is not a marker. */
export function decodeMarker(key: string, body: Uint8Array): SegmentCommit | undefined {
  const commit = decodeContent(SegmentCommit, body)
  return commit && withMarker(commit, key, body)
}

/** Returns the commit with the marker itself among its artifacts, as it is reported to control. */
export function withMarker(commit: SegmentCommit, key: string, body: Uint8Array): SegmentCommit {
  const manifest = describeMarker(key, body, commit.records)
  return { ...commit, artifacts: { ...commit.artifacts, manifest } }
}

export function describeMarker(key: string, body: Uint8Array, rows: number): ArtifactFile {
  return { key, bytes: body.length, rows, sha256: createHash('sha256').update(body).digest('hex') }
}

/** Thrown if files were deleted from the bucket, or replaced, before the marker was written. They must be uploaded again. */
export class ArtifactsMissing extends TransientError {
  override readonly name = 'ArtifactsMissing'

  constructor() {
    super('files of the segment were deleted from the bucket, or replaced, before its marker was written; uploading them again')
  }
}

/** Thrown if the store accepted a marker that it does not have. */
export class MarkerMissing extends TransientError {
  override readonly name = 'MarkerMissing'

  constructor(key: string) {
    super(`the object store accepted ${key}, but does not have what was sent; trying again. Check the store`)
  }
}

/** Thrown if the bucket has another marker of the segment. */
export class MarkerExists extends TransientError {
  override readonly name = 'MarkerExists'
  readonly found: Uint8Array

  constructor(key: string, found: Uint8Array) {
    super(`the bucket has another marker of the segment, ${key}: looking whose it is`)
    this.found = found
  }
}

export type PutMarkerOptions = {
  readonly segment: SegmentName
  readonly kind: ArtifactKind
  readonly body: Uint8Array
  readonly file: ArtifactFile
  /** The files that the marker lists. */
  readonly artifacts: ArtifactFiles
  /** Puts the marker if none is there. Without it, the marker replaces one that is there. */
  readonly conditional?: ConditionalPuts | undefined
  readonly signal: AbortSignal
}

/** Writes the marker of a segment's files. */
export function putMarker(
  bucket: Bucket,
  { segment, kind, body, file, artifacts, conditional, signal }: PutMarkerOptions,
): Promise<void> {
  const { sha256, rows, view_id: id, view_version: version } = file
  const view = id === undefined || version === undefined ? {} : { view: { id, version } }
  const metadata = metadataOf(segment, kind, { sha256, rows, ...view })
  return putLast(bucket, { body, file, metadata, artifacts, conditional, signal })
}

/**
 * Writes a marker after the files that it lists, and looks whether the bucket has it: readers find nothing without it. Throws ArtifactsMissing if a
 * file is not in the bucket, and MarkerExists if another marker is.
 */
export async function putLast(
  bucket: Bucket,
  {
    body,
    file,
    metadata,
    artifacts,
    conditional,
    signal,
  }: Omit<PutMarkerOptions, 'segment' | 'kind'> & Pick<PutOptions, 'metadata'>,
): Promise<void> {
  const options = { contentType: contentTypeOf({ type: 'marker' }), metadata, attempts: 1, signal }
  // The checks and the put are one request to `bucket`, which may wait, and the put is sent once: nothing comes between them.
  const found = await bucket.request('write', async (store) => {
    if (!(await allExist(store, artifacts, signal))) return 'incomplete'
    const other = await (conditional?.put(store, file.key, body, options) ?? store.put(file.key, body, options))
    if (other !== undefined) return other
    if (!(await allExist(store, { file }, signal))) throw new MarkerMissing(file.key)
    return undefined
  })
  if (found === 'incomplete') throw new ArtifactsMissing()
  if (found !== undefined) throw new MarkerExists(file.key, found)
}
