/**
 * Takes one unit of a job to its end: download, build, upload, marker.
 *
 * Owns: the steps, and what their failures mean. Does not own: the lease, the report, trying again.
 * Law: the marker is put after every artifact that it lists. Names come from the segment and the view version alone, so a unit that
 * is done again overwrites itself. Live delivery never waits for it: it gives its slot back as soon as somebody wants it.
 */
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Files } from '#lib/files.ts'
import type { Semaphore } from '#lib/semaphore.ts'
import { contentTypeOf, objectKey, printArtifactKind } from '#model/artifact.ts'
import type { ArtifactFile, ViewOutcome } from '#model/commit.ts'
import type { Unit, UnitReport } from '#model/job-protocol.ts'
import { jobLimits } from '#model/limits.ts'
import type { ObjectStore, ObjectStores } from '#objects/object-store.ts'
import { sessionName } from '#objects/session-name.ts'
import { firstLine } from '../artifacts/build-views.ts'
import { type BuiltFile, describeFile } from '../artifacts/file.ts'
import { areThere } from '../marker-check.ts'
import { metadataOf } from '../uploader.ts'
import { buildUnit } from './build-unit.ts'
import { encodeUnitMarker } from './unit-marker.ts'
import { kindOf, markerKindOf, segmentOf } from './unit-names.ts'

export type UnitRunOptions = {
  readonly scratch: string
  /** Of one conversion. */
  readonly memoryBytes: number
  /** Those of live delivery. */
  readonly builds: Semaphore
  readonly stores: ObjectStores
  readonly files: Files
  readonly clock: Clock
}

type NamesOfLease = 'lease_id' | 'job_id' | 'commit_id'
export type UnitEnd = UnitReport extends infer Report ? (Report extends unknown ? Omit<Report, NamesOfLease> : never) : never

type Built = { readonly files: readonly BuiltFile[]; readonly outcome: ViewOutcome }

/** Throws only when the signal aborts. */
export async function runUnit(unit: Unit, options: UnitRunOptions, signal: AbortSignal): Promise<UnitEnd> {
  const directory = await mkdtemp(join(options.scratch, 'job-'))
  try {
    const session = sessionName({ account_id: unit.account_id, endpoint_id: unit.commit.endpoint_id })
    const store = options.stores.open({ ...unit.target, session })
    const sourcePath = join(directory, 'source')
    await download(unit, store, sourcePath, signal)
    const built = await build(unit, directory, sourcePath, options, signal)
    return { outcome: 'done', artifacts: await upload(unit, store, built, options.clock, signal), view: built.outcome }
  } catch (error) {
    signal.throwIfAborted()
    const reason = firstLine(error).slice(0, jobLimits.reasonCharsMax)
    return { outcome: mayPassByItself(error) ? 'retry' : 'failed', reason }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** The bucket did not do what was asked: it may be back soon. */
class BucketError extends Error {
  override readonly name = 'BucketError'
}

async function download({ source }: Unit, store: ObjectStore, path: string, signal: AbortSignal): Promise<void> {
  const { key, bytes, sha256 } = source.artifact
  // The bucket is its owner's, and the disk that it is copied to is ours.
  const size = await inBucket(store.size(key, signal))
  if (size !== undefined && size !== bytes)
    throw new Error(`${key} is not what was delivered: it has ${size} bytes, not ${bytes}`)
  const found = await inBucket(store.getFile(key, path, signal))
  if (!found) throw new Error(`${key} is not in the bucket any more`)
  if ((await describeFile(path, signal)).sha256 !== sha256)
    throw new Error(`${key} is not what was delivered: its SHA-256 differs`)
}

async function build(
  unit: Unit,
  directory: string,
  sourcePath: string,
  { memoryBytes, builds, files, clock }: UnitRunOptions,
  signal: AbortSignal,
): Promise<Built> {
  for (;;) {
    using slot = await builds.borrow(signal)
    const made = await mkdtemp(join(directory, 'build-'))
    const either = AbortSignal.any([signal, slot.wanted])
    try {
      return await buildUnit({ unit, sourcePath, directory: made, memoryBytes, files, clock, signal: either })
    } catch (error) {
      signal.throwIfAborted()
      if (!slot.wanted.aborted) throw error
      await rm(made, { recursive: true, force: true })
    }
  }
}

async function upload(
  unit: Unit,
  store: ObjectStore,
  { files, outcome }: Built,
  clock: Clock,
  signal: AbortSignal,
): Promise<Record<string, ArtifactFile>> {
  const segment = segmentOf(unit)
  const { prefix } = unit.target
  const ofView = { view_id: unit.view.id, view_version: unit.view.version }
  const artifacts: Record<string, ArtifactFile> = {}
  for (const file of files) {
    const { path, bytes, rows, sha256 } = file
    const kind = kindOf(unit, file.kind)
    const key = objectKey(prefix, segment, kind)
    const contentType = contentTypeOf(kind)
    const metadata = metadataOf(segment, kind, { ...file, view: unit.view })
    await inBucket(store.putFile(key, path, { contentType, metadata, sha256, signal }))
    artifacts[printArtifactKind(kind)] = { key, bytes, rows, sha256, ...ofView }
  }
  if (!(await inBucket(areThere(store, artifacts, signal))))
    throw new BucketError('files are gone from the bucket that were just written')
  const marker = encodeUnitMarker(unit, artifacts, outcome, isoTimestamp(clock.now()))
  const sha256 = createHash('sha256').update(marker).digest('hex')
  const kind = markerKindOf(unit)
  const key = objectKey(prefix, segment, kind)
  const described = { key, bytes: marker.length, rows: outcome.processed, sha256, ...ofView }
  const metadata = metadataOf(segment, kind, { ...described, view: unit.view })
  await inBucket(store.put(key, marker, { contentType: contentTypeOf(kind), metadata, signal }))
  return { ...artifacts, [printArtifactKind(kind)]: described }
}

async function inBucket<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw new BucketError(errorMessage(error), { cause: error })
  }
}

function mayPassByItself(error: unknown): boolean {
  if (error instanceof BucketError) return true
  return /ENOSPC|EDQUOT|EMFILE|No space left|Too many open files/i.test(errorMessage(error))
}
