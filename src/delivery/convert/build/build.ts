/**
 * Builds the files of one sealed segment.
 *
 * Owns: the files with their kinds and checksums, and that one failing view does not fail the others. Does not own: how rows are decided
 * (records/), the directory, keys in the bucket, uploads, retries.
 * Law: the records are loaded once for all files.
 */
import { Buffer } from 'node:buffer'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import type { Frame } from '#log/frame.ts'
import { forEachRecord, lineBlocks } from '#log/records.ts'
import type { SegmentReader } from '#log/segment-source.ts'
import type { ArtifactKind } from '#model/artifact.ts'
import type { ViewOutcome } from '#model/commit.ts'
import { keepRecords, type OutputFormat } from '#model/endpoint.ts'
import { partitionLimits } from '#model/limits.ts'
import type { BoundView } from '#model/snapshot.ts'
import { buildLimits, spillBytesMax } from '#records/limits.ts'
import type { KeysFile } from '#records/read-keys.ts'
import type { RecordDatabase } from '#records/record-database.ts'
import { runLimits } from '#records/record-runs.ts'
import { RecordTable } from '#records/record-table.ts'
import { buildViews, type FailedView, type FindKeys, type SettledView, type ViewPlan, type WindowedView } from './build-views.ts'
import { type BuiltFile, compressTo, describeFile } from './built-file.ts'
import { RequiredViewFailed } from './failures.ts'

export type BuildOptions = {
  readonly segment: Pick<SegmentReader, 'header' | 'footer' | 'bytes' | 'frames' | 'reread' | 'content'>
  readonly outputFormats: readonly OutputFormat[]
  /** The views that apply to this segment. */
  readonly views: readonly WindowedView[]
  readonly plan?: ViewPlan
  /** Where the files are written. */
  readonly directory: string
  /** Total for this conversion. Above its share, DuckDB spills to scratch space on disk. */
  readonly memoryBytes: number
  readonly viewTimeoutMs: number
  /** Used instead of a new one, without space to spill to. */
  readonly database?: RecordDatabase
  /** Called before each step, with the positions of the views that it works on: none, if it works on the records. Also with each view that is settled. */
  readonly report?: (views: readonly number[], settled?: SettledView) => void
  readonly findKeys?: FindKeys
  readonly signal: AbortSignal
  readonly clock: Clock
}

export type SegmentFiles = {
  readonly files: readonly BuiltFile[]
  readonly views: readonly ViewOutcome[]
  /** Optional views that failed: they have an outcome with the error `view_failed`, and no files. */
  readonly failed: readonly FailedView<BoundView>[]
  /** Keys of the rows of views with a window. */
  readonly keys?: readonly KeysFile[]
}

/** DuckDB's share of the memory. The rest is for allocations that it does not count and for the bytes being read. */
const DUCKDB_SHARE = 2 / 3

/** Returns how much of the memory of a conversion DuckDB gets. */
export function duckdbBytes(memoryBytes: number): number {
  return Math.floor(memoryBytes * DUCKDB_SHARE)
}

/** Throws RequiredViewFailed, the signal's reason, SegmentError, or the DuckDB error of a failed load. */
export async function buildFiles(options: BuildOptions): Promise<SegmentFiles> {
  const { segment, outputFormats, directory, signal, clock, plan, findKeys, report = () => undefined } = options
  const files: BuiltFile[] = []
  const rows = segment.footer.records
  report([])
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
    memoryBytes: duckdbBytes(options.memoryBytes),
    spillBytesMax: spillBytesMax({ bytes: segment.bytes, records: rows }),
    segmentSeq: segment.header.seq,
    reread: segment.reread,
    viewTimeoutMs: options.viewTimeoutMs,
    clock,
    signal,
    database: options.database,
  })
  try {
    await loadSegment(table, segment.frames(buildLimits.readBytes))
    const writeRecords = async (recordFiles: readonly RecordFile[]): Promise<void> => {
      for (const { kind, name, write } of recordFiles) {
        report([])
        const path = join(directory, name)
        await write(table, path)
        files.push({ kind, rows, ...(await describeFile(path, signal)) })
      }
    }
    await writeRecords(recordFiles)
    const onFailure = (view: BoundView, error: unknown): void => {
      if (view.is_required) throw new RequiredViewFailed(view, error)
    }
    const at = () => isoTimestamp(clock.now())
    const partitionsMax = partitionsOfEach(views)
    const built = await buildViews({
      ...{ table, views, plan, directory, partitionsMax, findKeys, signal, at, report, onFailure },
    })
    if (built.failed.length > 0 && !keepRecords(outputFormats)) await writeRecords(recordFilesOf('parquet'))
    return { ...built, files: [...files, ...built.files] }
  } finally {
    table.close()
    await rm(join(directory, 'spill'), { recursive: true, force: true })
  }
}

/** Returns how many partitions each of the views may have in a segment: a commit lists all of their files. */
export function partitionsOfEach(views: readonly Pick<BoundView, 'definition'>[]): number {
  const partitioned = views.filter(({ definition }) => definition.partition_by !== undefined).length
  const { perView, perSegment } = partitionLimits
  return Math.max(1, Math.min(perView, Math.floor(perSegment / Math.max(1, partitioned))))
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
      const records = table.addFrame(frame, Buffer.from(buffer, byteOffset, byteLength))
      const blocks = frame.layout === 'lines' && records.isText ? lineBlocks(frame.payload, runLimits) : undefined
      if (blocks === undefined) forEachRecord(frame, records.add)
      else for (const block of blocks) records.addLines(block)
    }
    table.flush()
  }
  table.finish()
}
