import type { ArtifactFiles } from '#model/commit.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { unlessReadDenied } from './bucket.ts'

/**
 * Returns whether each of the files is in the bucket now: all bytes of it, and the same ones as far as the store knows their SHA-256. If the role
 * may not read, the store's response to each put is trusted.
 */
export async function allExist(store: ObjectStore, artifacts: ArtifactFiles, signal: AbortSignal): Promise<boolean> {
  const found = await Promise.all(
    Object.values(artifacts).map(async (file) => {
      const facts = await unlessReadDenied(() => store.head(file.key, signal), file)
      return facts?.bytes === file.bytes && (facts.sha256 ?? file.sha256) === file.sha256
    }),
  )
  return found.every((isComplete) => isComplete)
}
