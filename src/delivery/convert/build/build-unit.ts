/**
 * Builds the files of one unit: Parquet and DLQ of one view version, from a file that was downloaded from the bucket.
 *
 * Law: rows are decided by the code of live delivery, `buildViews`. DLQ rows of a re-drive keep their original index in the segment.
 */
import { join } from 'node:path'
import { MiB } from '#lib/bytes.ts'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import type { Files } from '#lib/files.ts'
import { scanSegment } from '#log/local/read/segment-scan.ts'
import type { ViewOutcome } from '#model/commit.ts'
import { fromSentView } from '#model/definition.ts'
import type { Unit } from '#model/job-protocol.ts'
import { partitionLimits, segmentLimits } from '#model/limits.ts'
import { extractRows } from '#records/extract-rows.ts'
import { buildLimits, spillBytesMax } from '#records/limits.ts'
import { RecordTable } from '#records/record-table.ts'
import { readStoredRecords, type StoredRecord } from '#records/stored-records.ts'
import { loadSegment } from './build.ts'
import { buildViews } from './build-views.ts'
import { type BuiltFile, describeFile } from './built-file.ts'
import { UnitViewFailed } from './failures.ts'
import { readDlqRows, withOriginalIndexes } from './read-dlq.ts'
import { kindOf } from './unit-names.ts'

/** Payload bytes per batch that is read from Parquet or a DLQ file. */
const readBytes = 4 * MiB

export type BuildUnitOptions = {
  readonly unit: Unit
  /** The downloaded file. */
  readonly sourcePath: string
  /** Where files are written. */
  readonly directory: string
  readonly memoryBytes: number
  readonly viewTimeoutMs: number
  /** Called before each step, as in a live build. */
  readonly report?: (views: readonly number[]) => void
  readonly files: Files
  readonly clock: Clock
  readonly signal: AbortSignal
}

export type UnitFiles = { readonly files: readonly BuiltFile[]; readonly outcome: ViewOutcome }

/** DuckDB's shares of the memory. As in a live build, it does not count all its allocations. A second instance reads Parquet. */
const TABLE_SHARE = 2 / 3
const READER_SHARE = 1 / 3

export async function buildUnit(options: BuildUnitOptions): Promise<UnitFiles> {
  const { unit, directory, memoryBytes, viewTimeoutMs, clock, signal, report = () => undefined } = options
  report([])
  const table = await RecordTable.open({
    directory,
    memoryBytes: Math.floor(memoryBytes * TABLE_SHARE),
    // The source is compressed, so its size does not tell how much its records take.
    spillBytesMax: spillBytesMax({ bytes: segmentLimits.bytesMax, records: unit.source.artifact.rows }),
    segmentSeq: unit.commit.seq,
    viewTimeoutMs,
    clock,
    signal,
  })
  try {
    const indexes = await load(table, options)
    const { id: view_id, ...rest } = fromSentView(unit.view)
    const onFailure = (_: unknown, error: unknown): void => {
      throw new UnitViewFailed(error, table.recordCount)
    }
    const at = () => isoTimestamp(clock.now())
    const { files, views } = await buildViews({
      ...{ table, views: [{ view_id, ...rest }], directory, partitionsMax: partitionLimits.perView },
      ...{ signal, at, report, onFailure },
    })
    const [outcome] = views
    const { rows } = unit.source.artifact
    if (outcome?.processed !== rows)
      throw new Error(`record count mismatch: read ${outcome?.processed} of ${rows} delivered records`)
    const own = files.map((file) => ({ ...file, kind: kindOf(unit, file.kind) }))
    if (indexes === undefined) return { files: own, outcome }
    return { files: await Promise.all(own.map((file) => reindexed(file, indexes, signal))), outcome }
  } finally {
    table.close()
  }
}

/** Loads the records. Returns the index of each record in its segment, or undefined if that equals its index in the table. */
async function load(table: RecordTable, options: BuildUnitOptions): Promise<readonly number[] | undefined> {
  const { unit, memoryBytes, files, signal } = options
  const sourcePath = await ownRows(options)
  switch (unit.source.kind) {
    case 'segment': {
      const scan = await scanSegment(files, sourcePath)
      try {
        await loadSegment(table, scan.frames(buildLimits.readBytes))
      } finally {
        await scan.close()
      }
      return undefined
    }
    case 'parquet': {
      const records = readStoredRecords({
        path: sourcePath,
        memoryBytes: Math.floor(memoryBytes * READER_SHARE),
        batchBytes: readBytes,
        signal,
      })
      for await (const batch of records) {
        for (const record of batch) add(table, record)
        table.flush()
      }
      table.finish()
      return undefined
    }
    case 'dlq': {
      const indexes: number[] = []
      let bytes = 0
      for await (const record of readDlqRows(sourcePath, signal)) {
        add(table, record)
        indexes.push(record.recordIndex)
        bytes += record.payload.byteLength
        if (bytes < readBytes) continue
        table.flush()
        bytes = 0
      }
      table.finish()
      return indexes
    }
  }
}

/** Returns the path of the downloaded file, or of a copy of those of its rows that are of the segment. */
async function ownRows({ unit: { source }, sourcePath, directory, memoryBytes, signal }: BuildUnitOptions): Promise<string> {
  const { first_row: firstRow, artifact } = source
  if (firstRow === undefined) return sourcePath
  const to = join(directory, 'own-rows.parquet')
  await extractRows({
    ...{ from: sourcePath, to, firstRow, rows: artifact.rows, signal },
    memoryBytes: Math.floor(memoryBytes * READER_SHARE),
  })
  return to
}

function add(table: RecordTable, record: StoredRecord): void {
  table.addFrame(record, record.payload).add(0, record.payload.byteLength)
}

async function reindexed(file: BuiltFile, indexes: readonly number[], signal: AbortSignal): Promise<BuiltFile> {
  if (file.kind.type !== 'dlq') return file
  const path = `${file.path}.reindexed`
  await withOriginalIndexes(file.path, path, indexes, signal)
  return { ...file, ...(await describeFile(path, signal)) }
}
