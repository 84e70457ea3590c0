/**
 * Runs one unit of a job: download, build, upload, marker.
 *
 * Owns: the order of the steps, and which failures can be retried. Does not own: the lease, the report, retries (control).
 * Law: the marker is written after every file that it lists. Keys depend on the segment and the view version alone, so a repeated unit
 * overwrites its files with the same content. A marker that lists these files stays: the unit may have been recorded with it, for another node.
 * Live delivery never waits for a unit: a unit returns its slot as soon as live delivery wants it.
 */
import { join } from 'node:path'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { digestFile } from '#lib/digest-file.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { FairSlots } from '#lib/fair-slots.ts'
import { errorCode, type Files } from '#lib/files.ts'
import { objectKey, printArtifactKind } from '#model/artifact.ts'
import type { ArtifactFile, ArtifactFiles } from '#model/commit.ts'
import type { Unit } from '#model/job-protocol.ts'
import type { ObjectStore, ObjectStores } from '#objects/object-store.ts'
import { sessionName } from '#objects/session-name.ts'
import type { UnitFiles } from '../convert/build/build-unit.ts'
import { TransientError } from '../convert/build/transient-error.ts'
import { markerKindOf, segmentOf } from '../convert/build/unit-names.ts'
import type { ConversionRunner } from '../convert/conversion-runner.ts'
import { convertUnit } from '../convert/unit-conversions.ts'
import type { Bucket } from '../publish/bucket.ts'
import type { ConditionalPutsOf } from '../publish/conditional-puts.ts'
import { MarkerExists, type PutMarkerOptions, putMarker } from '../publish/marker.ts'
import { putArtifact } from '../publish/put-artifact.ts'
import { describeUnitMarker, encodeUnitMarker, findListedMarker } from './unit-marker.ts'
import { runInScratch, type UnitEnd, type UnitScratch } from './unit-scratch.ts'

export type UnitRunOptions = UnitScratch & {
  /** For one conversion. */
  readonly memoryBytes: number
  /** Shared with live delivery. */
  readonly builds: FairSlots
  readonly runner: ConversionRunner
  readonly stores: ObjectStores
  readonly clock: Clock
}

/** Throws only the signal's reason. */
export function runUnit(
  unit: Unit,
  options: UnitRunOptions & { readonly conditionalOf: ConditionalPutsOf },
  signal: AbortSignal,
): Promise<UnitEnd> {
  return runInScratch(options, signal, async (directory) => {
    const session = sessionName({ account_id: unit.account_id, endpoint_id: unit.commit.endpoint_id })
    const store = options.stores.open({ ...unit.target, session })
    const downloading = { store, path: join(directory, 'source'), files: options.files }
    if (unit.source.first_row === undefined) await download(unit, downloading, signal)
    else await downloadMerged(unit, downloading, options.scratch, signal)
    const built = await build(unit, directory, downloading.path, options, signal)
    // Each unit reads a few rows of a merged file: to read all of it again would take longer than the unit.
    if (unit.source.first_row === undefined)
      await assertIntact([{ ...unit.source.artifact, path: downloading.path }], options.files, signal)
    return { outcome: 'done', artifacts: await deliver(unit, store, built, options, signal), view: built.outcome }
  })
}

type Downloading = { readonly store: ObjectStore; readonly path: string; readonly files: Files }

async function download({ source }: Unit, { store, path, files }: Downloading, signal: AbortSignal): Promise<void> {
  const bucket = bucketOf(store)
  const { key, bytes, sha256 } = source.artifact
  // Anyone who can write to the bucket must not be able to fill our disk.
  const facts = await bucket.request('read', () => store.head(key, signal))
  if (facts !== undefined && facts.bytes !== bytes)
    throw new Error(`${key} has changed since it was delivered: it has ${facts.bytes} bytes instead of ${bytes}`)
  const found = await bucket.request('read', () => store.getFile(key, path, signal))
  if (!found) throw new Error(`${key} is no longer in the bucket`)
  if ((await digestFile(files, path, signal)).sha256 !== sha256)
    throw new Error(`${key} has changed since it was delivered: its SHA-256 differs`)
}

type Downloaded = { readonly path: string; readonly key: string; readonly sha256: string }

/** A bit may flip on this disk after the check of a download. Parquet has no checksum that would show it there. */
export async function assertIntact(downloads: readonly Downloaded[], files: Files, signal: AbortSignal): Promise<void> {
  for (const { path, key, sha256 } of downloads)
    if ((await digestFile(files, path, signal)).sha256 !== sha256)
      throw new TransientError(`the copy of ${key} on this node was damaged while it was read`)
}

/** Units that follow each other read rows of the same merged file. The last one is kept, so that it is downloaded once. */
async function downloadMerged(unit: Unit, downloading: Downloading, scratch: string, signal: AbortSignal): Promise<void> {
  const { path, files } = downloading
  const folder = join(scratch, 'merged')
  const kept = join(folder, unit.source.artifact.sha256)
  try {
    await files.link(kept, path)
    return
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
  await download(unit, downloading, signal)
  // Another unit may do the same at the same time. Then each has its own copy.
  await files.removeTree(folder)
  await files.makeDirectory(folder)
  await files.link(path, kept).catch(() => undefined)
}

function build(
  unit: Unit,
  directory: string,
  sourcePath: string,
  { memoryBytes, builds, runner }: UnitRunOptions,
  signal: AbortSignal,
): Promise<UnitFiles> {
  const owner = { tenant: unit.account_id, member: unit.commit.endpoint_id, weight: 1 }
  return builds.run(owner, { priority: 'low', signal }, (signal) =>
    convertUnit(runner, { unit, sourcePath, directory, memoryBytes, signal }),
  )
}

/** Runs the upload and marker stages of live delivery, but without its upload slots, which are reserved for live delivery. */
async function deliver(
  unit: Unit,
  store: ObjectStore,
  { files, outcome }: UnitFiles,
  { clock, conditionalOf }: { readonly clock: Clock; readonly conditionalOf: ConditionalPutsOf },
  signal: AbortSignal,
): Promise<ArtifactFiles> {
  const bucket = bucketOf(store)
  const segment = segmentOf(unit)
  const { prefix } = unit.target
  const entries: (readonly [string, ArtifactFile])[] = []
  for (const file of files) {
    entries.push(await bucket.request('write', () => putArtifact(store, { prefix, segment, file, signal })))
  }
  const artifacts = Object.fromEntries(entries)
  const kind = markerKindOf(unit)
  const body = encodeUnitMarker(unit, artifacts, outcome, isoTimestamp(clock.now()))
  const file = describeUnitMarker(objectKey(prefix, segment, kind), body, outcome)
  const conditional = conditionalOf(unit.target)
  const stored = await putUnlessListed(bucket, { segment, kind, body, file, artifacts, conditional, signal })
  return { ...artifacts, [printArtifactKind(kind)]: stored }
}

/**
 * Writes the marker, unless the bucket has one that lists the same files. Returns the one that it has then. So a node that stood still, and whose
 * lease ended meanwhile, changes nothing that another one has reported.
 */
async function putUnlessListed(bucket: Bucket, marker: PutMarkerOptions): Promise<ArtifactFile> {
  try {
    await putMarker(bucket, marker)
    return marker.file
  } catch (error) {
    if (!(error instanceof MarkerExists)) throw error
    const listed = findListedMarker(marker, error.found)
    if (listed === undefined) await putMarker(bucket, { ...marker, conditional: undefined })
    return listed ?? marker.file
  }
}

/** A temporary failure of the store. Control retries the unit. */
class BucketError extends TransientError {
  override readonly name = 'BucketError'
}

export function bucketOf(store: ObjectStore): Bucket {
  return {
    async request(_, send) {
      try {
        return await send(store)
      } catch (error) {
        throw new BucketError(errorMessage(error), { cause: error })
      }
    },
  }
}
