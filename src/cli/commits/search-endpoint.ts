/**
 * Reads the markers of nodes that lost their place, in the places where one endpoint delivered, and records those that nobody reported.
 *
 * Law: each place is listed once. Only markers of these nodes without a commit are read, and of what was rejected only a count and the first is
 * kept: the customer may store anything in the bucket. Additions and compactions are for a rebuild.
 */
import type { SearchEndpoint, SearchedEndpoint } from '#control/upkeep/losses-in-buckets.ts'
import { countNoun } from '#lib/count-noun.ts'
import { errorMessage } from '#lib/error-message.ts'
import { dayMs } from '#lib/time-units.ts'
import { type MarkerName, markerFolder, parseMarkerName } from '#model/artifact.ts'
import { ObjectStoreError } from '#objects/store-error.ts'
import { hasCommitsIn, listDeliveryFolders, type MarkerFolder } from '#store/commits/marker-folders.ts'
import { batchMarkers, type Entry, type RebuildOptions, rebuildBatch, type Tally } from './rebuild.ts'

/** A machine that was cut off for longer before its loss may have delivered to places that changed before: these are not read. */
const placesMs = 30 * dayMs

type Options = Parameters<SearchEndpoint>[0]

export const searchEndpoint: SearchEndpoint = async (options) => {
  const { store, endpoint, signal } = options
  const { folders, gone } = await listDeliveryFolders(store.db, endpoint, endpoint.nodes.keys(), endpoint.since - placesMs)
  const found: Found = { tally: { recorded: 0, known: 0, expired: 0, rejected: 0 }, firstRejected: undefined }
  const unread: string[] = []
  const empty: string[] = []
  for (const folder of folders) {
    const { id, bucket } = folder.target
    const known = options.unreadable.get(id)
    if (known !== undefined) {
      unread.push(known)
      continue
    }
    try {
      const markers = await searchFolder(folder, options, found)
      if (markers === 0 && (await hasCommitsIn(store.db, folder))) empty.push(describeEmpty(bucket))
    } catch (error) {
      // The next leader reads what this process did not.
      signal.throwIfAborted()
      const problem = describeUnreadable(bucket, error, options)
      options.unreadable.set(id, problem)
      unread.push(problem)
    }
  }
  const doubts = [...gone.map(({ bucket, prefix }) => describeGone(bucket, prefix)), ...describeRejected(found)]
  return {
    recorded: found.tally.recorded,
    unread: [...new Set(unread)],
    empty: [...new Set(empty)],
    doubts,
  } satisfies SearchedEndpoint
}

type Found = { readonly tally: Tally; firstRejected: string | undefined }

/** Returns how many markers of any node the folder has. */
async function searchFolder(
  folder: MarkerFolder,
  { store, stores, clock, keptMs, endpoint, signal, deadline }: Options,
  found: Found,
): Promise<number> {
  const bucket = stores.open(folder.target)
  const until = AbortSignal.any([signal, deadline])
  const options: RebuildOptions = {
    ...{ store, now: () => clock.now(), keptMs, dryRun: false, signal: until },
    onProgress: () => until.throwIfAborted(),
    onRejected: (key, reason) => {
      found.firstRejected ??= `${folder.target.bucket}/${key}: ${reason}`
    },
  }
  const expired = clock.now() - keptMs - dayMs
  let markers = 0
  let batch: Entry[] = []
  for await (const { key, bytes } of bucket.list(markerFolder(folder.target.prefix, folder.endpoint_id), until)) {
    until.throwIfAborted()
    const marker = parseMarkerName(key)
    if (marker === undefined) continue
    markers += 1
    if (marker.isAddition || !mayBeLost(marker, endpoint.nodes, expired)) continue
    batch.push({ key, bytes, commitId: marker.commitId, isAddition: false })
    if (batch.length < batchMarkers) continue
    await rebuildBatch(bucket, folder, batch, found.tally, options)
    batch = []
  }
  await rebuildBatch(bucket, folder, batch, found.tally, options)
  return markers
}

/** A commit that the node had reported before its loss is known, unless it is older than commits are kept. */
function mayBeLost({ nodeId, seq, dayStartMs }: MarkerName, nodes: ReadonlyMap<string, number>, expired: number): boolean {
  const first = nodes.get(nodeId)
  return first !== undefined && (seq >= first || dayStartMs >= expired)
}

function describeUnreadable(bucket: string, error: unknown, { deadline, logger }: Options): string {
  if (deadline.aborted) return `bucket ${bucket} cannot be read: it took too long`
  if (error instanceof ObjectStoreError) return `bucket ${bucket} cannot be read: ${error.message}`
  logger.warn({ bucket, error: errorMessage(error) }, 'bucket cannot be read')
  return `bucket ${bucket} cannot be read`
}

function describeEmpty(bucket: string): string {
  return `bucket ${bucket} has no marker of the endpoint, which delivered there: its disk is not mounted, or the markers were removed`
}

function describeGone(bucket: string, prefix: string): string {
  const place = prefix === '' ? `bucket ${bucket}` : `bucket ${bucket} under ${prefix}/`
  return `the endpoint delivered to ${place} before, and no destination has that bucket any more: create one, and control looks there`
}

function describeRejected({ tally: { rejected }, firstRejected }: Found): readonly string[] {
  if (firstRejected === undefined) return []
  return [`${countNoun(rejected, 'marker')} not accepted, such as ${firstRejected} (inlet commits rebuild --dry-run shows all)`]
}
