/**
 * Removes temporary files that a kill left in the directory of a node, where two processes write.
 *
 * Law: each process removes only those of files that it alone writes, and calls this while it holds its lock. The id and the credential are
 * created by whichever process comes first: ingest removes their leftovers once both exist, and `readOrCreate` copes with that.
 */
import { basename, dirname } from 'node:path'
import { type Files, removeLeftovers } from '#lib/files.ts'

export type NodePaths = {
  readonly nodeId: string
  readonly walNodeId: string
  readonly deliverySnapshot: string
  readonly deliveryBlocked: string
  readonly markerKey: string
  readonly scrubState: string
}

export async function removeNodeLeftovers(
  files: Files,
  { nodeId, walNodeId, ...paths }: NodePaths,
  process: 'ingest' | 'delivery',
): Promise<void> {
  const ofDelivery = [paths.deliverySnapshot, paths.deliveryBlocked, paths.markerKey, paths.scrubState].map((path) =>
    basename(path),
  )
  await removeLeftovers(files, dirname(nodeId), (name) => ofDelivery.includes(name) === (process === 'delivery'))
  if (process === 'ingest') await removeLeftovers(files, dirname(walNodeId), (name) => name === basename(walNodeId))
}
