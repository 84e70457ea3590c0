/**
 * Compares two definitions over copies of raw Parquet, within bounds.
 *
 * Law: it reads each record once. It ends with what it has: at a bound, the report says which. Only a definition that is too slow for the first
 * records gets no report.
 */
import { StatementTimeout } from '#duckdb/database.ts'
import { MiB } from '#lib/bytes.ts'
import type { Clock } from '#lib/clock.ts'
import type { Definition } from '#model/definition.ts'
import type { SecretValues } from '#model/secret.ts'
import type { ComparedEndpoint, ComparedSide, ReadingBound, UnreadFiles, ViewComparison } from '#model/view-comparison.ts'
import { RecordDatabase } from '#records/record-database.ts'
import { compileView } from '#views/compile.ts'
import { onDefinition, toMicroseconds, tooSlowToCompare } from './failed-preview.ts'
import { RecordComparison } from './record-comparison.ts'
import { type PlacedRecord, readStoredBatches, type StoredFile, type UnreadableFile } from './stored-batches.ts'

/** Memory of DuckDB: as much as a conversion has by default. */
const memoryBytes = 128 * MiB

/** Fields of a side that are no counts. */
type AboutSide = Pick<ComparedSide, 'view_id' | 'version' | 'dedupe_within'>
type Side = Pick<ComparedSide, 'view_id' | 'version'> & { readonly definition: Definition }

/** Two definitions, and files that are all in one directory, the newest first. The rest is passed on into the report. */
export type CompareTask = Pick<ViewComparison, 'view_name' | 'since' | 'records_stored'> & {
  readonly before: Side
  readonly after: Side
  /** Secrets that the definitions may name. */
  readonly secrets: SecretValues
  readonly files: readonly StoredFile[]
  readonly endpoints: readonly Omit<ComparedEndpoint, 'records_read'>[]
  /** Files that are not there, by reason. */
  readonly unread_files: readonly UnreadFiles[]
  /** Why the files are not all that there is. */
  readonly bounded_by: readonly ReadingBound[]
}

export type CompareOptions = {
  readonly clock: Clock
  readonly timeoutMs: number
  readonly recordsMax: number
  readonly rowsMax: number
  /** No further batch is begun after this time. */
  readonly readingMs: number
}

/** Throws validation_error for a definition that does not compile or is too expensive, and UnreadableFile. */
export async function compareStored(
  { before, after, secrets, files, endpoints, unread_files, bounded_by, ...about }: CompareTask,
  { clock, timeoutMs, recordsMax, rowsMax, readingMs }: CompareOptions,
): Promise<ViewComparison> {
  const startedAt = clock.monotonic()
  const elapsedMs = () => clock.monotonic() - startedAt
  const leftMs = () => Math.max(1, timeoutMs - elapsedMs())
  const compiled = { before: await compileView(before.definition), after: await compileView(after.definition) }
  const database = await RecordDatabase.open({ directories: [], memoryBytes })
  try {
    const comparison = new RecordComparison({
      ...compiled,
      ...{ secrets, database },
      statement: () => ({ timeoutMs: leftMs() }),
    })
    const bounds = new Set(bounded_by)
    const take = async (batch: readonly PlacedRecord[]) => {
      const room = recordsMax - comparison.records
      const isLate = comparison.records > 0 && elapsedMs() > readingMs
      const hasRoom = comparison.rows < rowsMax
      if (batch.length > room) bounds.add('records')
      if (isLate) bounds.add('time')
      if (!hasRoom) bounds.add('rows')
      if (hasRoom && !isLate) await comparison.add(batch.slice(0, room))
      return hasRoom && !isLate && batch.length <= room
    }
    const damaged: UnreadableFile[] = []
    const onUnreadable = (error: UnreadableFile) => damaged.push(error)
    await readStoredBatches(files, leftMs, { take, onUnreadable }).catch((error: unknown) => {
      if (!(error instanceof StatementTimeout)) throw tooExpensive(error)
      if (comparison.records === 0) throw tooSlowToCompare(timeoutMs)
      bounds.add('time')
    })
    const [firstDamaged] = damaged
    if (firstDamaged !== undefined && comparison.records === 0 && bounds.size === 0) throw firstDamaged
    const unread = [...unread_files, ...(damaged.length === 0 ? [] : [{ reason: 'damaged', files: damaged.length } as const])]
    if (unread.length > 0) bounds.add('unread_files')
    const { before: countedBefore, after: countedAfter, ...differences } = comparison.report()
    return {
      ...about,
      records_read: comparison.records,
      is_complete: bounds.size === 0,
      bounded_by: [...bounds],
      unread_files: unread,
      endpoints: endpoints.map((endpoint) => ({ ...endpoint, records_read: comparison.recordsOf(endpoint.endpoint_id) })),
      ...differences,
      before: { ...aboutSide(before), ...countedBefore },
      after: { ...aboutSide(after), ...countedAfter },
      duration_ms: toMicroseconds(elapsedMs()),
    }
  } finally {
    database.close()
  }
}

function aboutSide({ view_id, version, definition }: Side): AboutSide {
  return { view_id, version, dedupe_within: definition.dedupe_within ?? null }
}

function tooExpensive(error: unknown) {
  // After the first line DuckDB quotes the statement.
  const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
  return onDefinition(`the records cannot be compared: ${line}`)
}
