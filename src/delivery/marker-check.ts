import type { Artifacts, SegmentCommit } from '#model/commit.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { isReadDenied } from '#objects/store-error.ts'
import { objectKey, type SegmentName } from './object-key.ts'

/** A marker is a few kilobytes, with many views and long messages some hundred. What is larger is none. */
export const markerBytesMax = 4 * 1024 * 1024

/**
 * What a marker lists that no node of ours would have written for this segment into this bucket; undefined where there is nothing.
 * The bucket is the customer's: anything may lie there under any name.
 */
export function whatIsForeign(
  { destination, artifacts }: Pick<SegmentCommit, 'destination' | 'artifacts'>,
  name: SegmentName,
  bucket: string,
): string | undefined {
  if (destination.bucket !== bucket) return `it is of another bucket, ${destination.bucket}`
  for (const [kind, { key }] of Object.entries(artifacts)) {
    if (!isManifest(kind) && key !== keyOf(name, kind)) return `it lists what no node writes: ${key}`
  }
  const ofDlq = Object.entries(artifacts).flatMap(([kind, { view_id }]) => (kind.startsWith('dlq/') ? [view_id] : []))
  return new Set(ofDlq).size < ofDlq.length ? 'it lists a view twice' : undefined
}

const isManifest = (kind: string): boolean => kind === 'manifest' || kind.startsWith('manifest/')

/** Where a node puts a file of that kind; undefined where there is no such kind. */
function keyOf(name: SegmentName, kind: string): string | undefined {
  const [, live = kind, part] = /^(.*)\/(redrive-v\d+)$/.exec(kind) ?? []
  if (!/^(segment|parquet|(views|dlq)\/[a-z][a-z0-9_]*\/v\d+)$/.test(live)) return undefined
  const key = objectKey(name, live)
  return part === undefined ? key : key.replace(/\.(parquet|ndjson\.gz)$/, `.${part}.$1`)
}

/** Whether all that a marker is to list is in the bucket now. Where that may not be looked at, what the store said of each put counts. */
export async function areThere(store: ObjectStore, artifacts: Artifacts, signal: AbortSignal): Promise<boolean> {
  const sizes = await Promise.all(
    Object.values(artifacts).map(async ({ key, bytes }) => {
      const found = await unlessReadDenied(() => store.size(key, signal), bytes)
      return found === bytes
    }),
  )
  return sizes.every((isWhole) => isWhole)
}

/** What is read, or `otherwise` where the role may not read. */
export async function unlessReadDenied<T>(read: () => Promise<T>, otherwise: T): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (!isReadDenied(error)) throw error
    return otherwise
  }
}
