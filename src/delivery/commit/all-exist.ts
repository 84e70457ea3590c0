import type { ArtifactFiles } from '#model/commit.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { unlessReadDenied } from '../bucket.ts'

/**
 * Returns whether every file that a marker is to list is in the bucket now, in full. If the role may not read, the store's response to
 * each put is trusted.
 */
export async function allExist(store: ObjectStore, artifacts: ArtifactFiles, signal: AbortSignal): Promise<boolean> {
  const sizes = await Promise.all(
    Object.values(artifacts).map(async ({ key, bytes }) => {
      const found = await unlessReadDenied(() => store.size(key, signal), bytes)
      return found === bytes
    }),
  )
  return sizes.every((isComplete) => isComplete)
}
