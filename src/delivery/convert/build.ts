/**
 * Builds the files of one sealed segment.
 *
 * Owns: the files with their kinds and checksums, and that one failing view does not fail the others. Does not own: how rows are decided
 * (records/), keys in the bucket, uploads, retries.
 * Law: the records are loaded once for all files. If the build throws, it leaves no file behind.
 */
import { Buffer } from 'node:buffer'
import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { errorCode } from '#lib/files.ts'
import type { ArtifactKind } from '#model/artifact.ts'
import type { ViewOutcome } from '#model/commit.ts'
import { keepRecords, type OutputFormat } from '#model/endpoint.ts'
import type { BoundView } from '#model/snapshot.ts'
import { buildLimits, viewTimeoutMs } from '#records/limits.ts'
import { RecordTable } from '#records/record-table.ts'
import type { Frame } from '#wal/frame.ts'
import { forEachRecord } from '#wal/records.ts'
import type { OpenSegment } from '../segments.ts'
import { buildViews, type FailedView, firstLine } from './build-views.ts'
import { type BuiltFile, compressTo, describeFile } from './built-file.ts'
import { CallerRetries } from './retry-or-park.ts'

export type BuildOptions = {
  readonly segment: Pick<OpenSegment, 'header' | 'footer' | 'bytes' | 'frames' | 'content'>
  readonly outputFormats: readonly OutputFormat[]
  /** The views that apply to this segment. */
  readonly views: readonly BoundView[]
  /** Files are written to a new directory under it. */
  readonly scratchDirectory: string
  /** Total for this conversion. Above its share, DuckDB spills to scratch space on disk. */
  readonly memoryBytes: number
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly viewTimeoutMs?: number
}

export type BuiltArtifacts = {
  readonly directory: string
  readonly files: readonly BuiltFile[]
  readonly views: readonly ViewOutcome[]
  /** Optional views that failed: they have an outcome with the error `view_failed`, and no files. */
  readonly failed: readonly FailedView<BoundView>[]
  /** Whether all files are still there. */
  isComplete(): Promise<boolean>
  /** Removes the files. */
  remove(): Promise<void>
}

/** A required view failed on the segment as a whole. The segment must not be committed without it: see view-holds.ts. */
export class RequiredViewFailed extends CallerRetries {
  override readonly name = 'RequiredViewFailed'
  readonly view: BoundView

  constructor(view: BoundView, cause: unknown) {
    // Not set as the cause, because loggers would print the error's message twice, with all its lines.
    const advice = 'delivery waits until it succeeds or is detached'
    super(`the required view ${view.name} v${view.version} failed: ${firstLine(cause)}; ${advice}`)
    this.view = view
  }
}

/** DuckDB's share of the memory. The rest is for allocations that it does not count and for the bytes being read. */
const DUCKDB_SHARE = 2 / 3

/** Throws RequiredViewFailed, the signal's reason, SegmentError, or the DuckDB error of a failed load. */
export async function buildArtifacts(options: BuildOptions): Promise<BuiltArtifacts> {
  // Someone may have removed it since the start.
  await mkdir(options.scratchDirectory, { recursive: true })
  const directory = await mkdtemp(join(options.scratchDirectory, 'build-'))
  const remove = () => rm(directory, { recursive: true, force: true })
  try {
    const built = await build(directory, options)
    const isComplete = async () => (await Promise.all(built.files.map(isThere))).every(Boolean)
    return { directory, ...built, isComplete, remove }
  } catch (error) {
    await remove()
    options.signal.throwIfAborted()
    throw error
  }
}

async function isThere({ path }: BuiltFile): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false
    throw error
  }
}

async function build(
  directory: string,
  options: BuildOptions,
): Promise<Omit<BuiltArtifacts, 'directory' | 'isComplete' | 'remove'>> {
  const { segment, outputFormats, signal, clock } = options
  const files: BuiltFile[] = []
  const rows = segment.footer.records
  if (outputFormats.includes('segments')) {
    const path = join(directory, 'segment.wal.zst')
    await compressTo(path, segment.content(), signal)
    files.push({ kind: { type: 'segment' }, rows, ...(await describeFile(path, signal)) })
  }
  const views = outputFormats.includes('parquet_views') ? options.views : []
  const recordFiles = outputFormats.flatMap(recordFilesOf)
  if (rows === 0 || (views.length === 0 && recordFiles.length === 0)) return { files, views: [], failed: [] }

  const table = await RecordTable.open({
    directory,
    memoryBytes: Math.floor(options.memoryBytes * DUCKDB_SHARE),
    segmentSeq: segment.header.seq,
    viewTimeoutMs: options.viewTimeoutMs ?? viewTimeoutMs(segment.bytes),
    signal,
  })
  try {
    await loadSegment(table, segment.frames(buildLimits.readBytes))
    const writeRecords = async (recordFiles: readonly RecordFile[]): Promise<void> => {
      for (const { kind, name, write } of recordFiles) {
        const path = join(directory, name)
        await write(table, path)
        files.push({ kind, rows, ...(await describeFile(path, signal)) })
      }
    }
    await writeRecords(recordFiles)
    const onFailure = (view: BoundView, error: unknown): void => {
      if (view.is_required) throw new RequiredViewFailed(view, error)
    }
    const built = await buildViews({ table, views, directory, signal, at: () => isoTimestamp(clock.now()), onFailure })
    if (built.failed.length > 0 && !keepRecords(outputFormats)) await writeRecords(recordFilesOf('parquet'))
    return { ...built, files: [...files, ...built.files] }
  } finally {
    table.close()
    await rm(join(directory, 'spill'), { recursive: true, force: true })
  }
}

type RecordFile = {
  readonly kind: ArtifactKind
  readonly name: string
  readonly write: (table: RecordTable, path: string) => Promise<void>
}

/** Returns the files with all loaded records that a format asks for. */
function recordFilesOf(format: OutputFormat): readonly RecordFile[] {
  switch (format) {
    case 'parquet':
      return [{ kind: { type: 'parquet' }, name: 'records.parquet', write: (table, path) => table.writeRaw(path) }]
    case 'segments':
    case 'parquet_views':
      return []
  }
}

/** Appends all records of the frames. */
export async function loadSegment(
  table: RecordTable,
  groups: AsyncIterable<readonly Frame[]> | Iterable<readonly Frame[]>,
): Promise<void> {
  for await (const frames of groups) {
    for (const frame of frames) {
      const { buffer, byteOffset, byteLength } = frame.payload
      const add = table.addFrame(frame, Buffer.from(buffer, byteOffset, byteLength))
      const bounds: number[] = []
      forEachRecord(frame, (start, end) => bounds.push(start, end))
      for (let at = 0; at < bounds.length; at += 2) {
        add(bounds[at] ?? 0, bounds[at + 1] ?? 0)
        if (table.isFull) await table.flush()
      }
    }
    await table.flush()
  }
  table.finish()
}
