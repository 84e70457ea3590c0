/**
 * Runs one unit of a compaction: download, merge, upload, marker.
 *
 * Owns: the order of the steps. Does not own: which files become one and in which order (control), the lease, retries.
 * Law: the marker is written after its file, which no other marker may list. The sources stay as they are. The new file has its content in
 * its name, so a unit that is repeated, or run by two nodes, changes no file that a marker lists.
 */
import { join } from 'node:path'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { digestFile } from '#lib/digest-file.ts'
import type { Files } from '#lib/files.ts'
import { Semaphore } from '#lib/semaphore.ts'
import {
  type ArtifactKind,
  compactedKey,
  compactionMarkerKey,
  contentTypeOf,
  type EndpointFolder,
  isCompactedKey,
  keyOfListed,
  parseArtifactKind,
} from '#model/artifact.ts'
import type { ArtifactFile } from '#model/commit.ts'
import type { CompactionUnit } from '#model/job-protocol.ts'
import { sessionName } from '#objects/session-name.ts'
import type { BuiltFile } from '../convert/build/built-file.ts'
import { mergeFiles } from '../convert/unit-conversions.ts'
import { allExist } from '../publish/all-exist.ts'
import { type Bucket, unlessReadDenied } from '../publish/bucket.ts'
import { describeMarker, putLast } from '../publish/marker.ts'
import { decodeCompactionMarker, encodeCompactionMarker, listsAllSources } from './compaction-marker.ts'
import { jobWorkerLimits } from './limits.ts'
import { assertIntact, bucketOf, type UnitRunOptions } from './unit-run.ts'
import { runInScratch, type UnitEnd } from './unit-scratch.ts'

/** Throws only the signal's reason. */
export function runCompaction(unit: CompactionUnit, options: UnitRunOptions, signal: AbortSignal): Promise<UnitEnd> {
  return runInScratch(options, signal, async (directory) => {
    const kind = parseArtifactKind(unit.compaction.kind)
    if (kind === undefined) throw new Error(`this node does not know files of the kind ${unit.compaction.kind}`)
    const session = sessionName({ account_id: unit.account_id, endpoint_id: unit.compaction.endpoint_id })
    const store = options.stores.open({ ...unit.target, session })
    const bucket = bucketOf(store)
    const merging = { unit, kind, folder: folderOf(unit), bucket, signal }
    const published = await findPublished(merging)
    if (published !== undefined) return { outcome: 'compacted', file: published }
    const sources = await download(merging, directory, options.files)
    const built = await merge(merging, sources, directory, options)
    await assertIntact(sources, options.files, signal)
    return { outcome: 'compacted', file: await publish(merging, built, options.clock) }
  })
}

type Merging = {
  readonly unit: CompactionUnit
  readonly kind: ArtifactKind
  readonly folder: EndpointFolder
  readonly bucket: Bucket
  readonly signal: AbortSignal
}

function folderOf({ compaction: { endpoint_id, date }, target: { prefix } }: CompactionUnit): EndpointFolder {
  return { prefix, endpointId: endpoint_id, date }
}

/**
 * Returns the file of an earlier attempt whose marker is in the bucket: another one would stand beside it, if this release writes other bytes.
 * Throws if a marker of another compaction has one of the sources: then the database was restored from a copy that is older than that marker.
 */
async function findPublished({ unit, kind, folder, bucket, signal }: Merging): Promise<ArtifactFile | undefined> {
  const { id, kind: of, sources } = unit.compaction
  const own = new Set(sources.map((source) => source.id))
  return bucket.request('read', (store) =>
    unlessReadDenied(async () => {
      let published: ArtifactFile | undefined
      for await (const { key } of store.list(compactionMarkerKey(folder), signal)) {
        const body = await store.get(key, signal)
        const marker = body && decodeCompactionMarker(body)
        if (marker === undefined) continue
        const { compacted } = marker
        if (key === compactionMarkerKey(folder, id)) {
          const file = describe(unit, compacted.key, compacted)
          const isOwn =
            listsAllSources(marker, unit.compaction) && isCompactedKey(file.key, folder, kind, { id, sha256: file.sha256 })
          if (isOwn && (await allExist(store, { file }, signal))) published = file
        } else if (compacted.kind === of && compacted.sources.some((source) => own.has(source.id))) {
          throw new Error(`${key} has merged some of these files, and the database does not know it: run inlet commits rebuild`)
        }
      }
      return published
    }, undefined),
  )
}

function describe(
  { compaction: { view } }: CompactionUnit,
  key: string,
  { bytes, rows, sha256 }: Pick<ArtifactFile, 'bytes' | 'rows' | 'sha256'>,
): ArtifactFile {
  return { key, bytes, rows, sha256, ...(view === null ? {} : { view_id: view.id, view_version: view.version }) }
}

type Downloaded = { readonly path: string; readonly rows: number; readonly key: string; readonly sha256: string }

async function download(
  { unit, kind, folder, bucket, signal }: Merging,
  directory: string,
  files: Files,
): Promise<readonly Downloaded[]> {
  const { sources } = unit.compaction
  const slots = new Semaphore(jobWorkerLimits.downloadsParallel)
  const failed = new AbortController()
  const ended = AbortSignal.any([signal, failed.signal])
  const attempts = sources.map(async ({ id, rows, bytes, sha256 }, index) => {
    using _slot = await slots.acquire(1, ended)
    const path = join(directory, `${index}.parquet`)
    const key = keyOfListed(folder, id, kind)
    try {
      // Anyone who can write to the bucket must not be able to fill our disk.
      const found = await bucket.request('read', (store) => store.getFile(key, path, ended, bytes))
      if (!found) throw new Error(`${key} is no longer in the bucket`)
      if ((await digestFile(files, path, ended)).sha256 !== sha256)
        throw new Error(`${key} has changed since it was delivered: its SHA-256 differs`)
      return { path, rows, key, sha256 }
    } catch (error) {
      failed.abort(error)
      throw error
    }
  })
  const settled = await Promise.allSettled(attempts)
  if (failed.signal.aborted) throw failed.signal.reason
  return settled.map((attempt) => {
    if (attempt.status === 'rejected') throw attempt.reason
    return attempt.value
  })
}

function merge(
  { unit, kind, signal }: Merging,
  sources: readonly Downloaded[],
  directory: string,
  { memoryBytes, builds, runner }: UnitRunOptions,
): Promise<BuiltFile> {
  const owner = { tenant: unit.account_id, member: unit.compaction.endpoint_id, weight: 1 }
  return builds.run(owner, { priority: 'low', signal }, (signal) =>
    mergeFiles(runner, { sources, kind, directory, memoryBytes, signal }),
  )
}

async function publish({ unit, kind, folder, bucket, signal }: Merging, built: BuiltFile, clock: Clock): Promise<ArtifactFile> {
  const { id } = unit.compaction
  const { path, sha256 } = built
  const file = describe(unit, compactedKey(folder, kind, { id, sha256 }), built)
  await bucket.request('write', (store) =>
    store.putFile(file.key, path, { contentType: contentTypeOf(kind), metadata: metadataOf(unit, file), sha256, signal }),
  )
  const key = compactionMarkerKey(folder, id)
  const body = encodeCompactionMarker(unit, file, isoTimestamp(clock.now()))
  const marker = describeMarker(key, body, file.rows)
  await putLast(bucket, { body, file: marker, metadata: metadataOf(unit, marker), artifacts: { file }, signal })
  return file
}

function metadataOf(
  { compaction }: CompactionUnit,
  { sha256, rows }: Pick<ArtifactFile, 'sha256' | 'rows'>,
): Readonly<Record<string, string>> {
  const { id, kind, endpoint_id, view } = compaction
  const ofView: Record<string, string> = view === null ? {} : { 'view-id': view.id, 'view-version': String(view.version) }
  return { kind, sha256, rows: String(rows), 'endpoint-id': endpoint_id, 'compaction-id': id, ...ofView }
}
