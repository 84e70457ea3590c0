import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ViewOutcome } from '#model/commit.ts'
import type { BoundView } from '#model/snapshot.ts'
import type { DecidedView, ExtractedViews, RecordTable } from '#records/record-table.ts'
import { compileView } from '#views/compile.ts'
import type { NamedView } from '#views/compiled-view.ts'
import { type BuiltFile, describeFile } from './file.ts'

export type FailedView = { readonly view: BoundView; readonly error: unknown }

type ViewsRequest = {
  readonly table: RecordTable
  readonly views: readonly BoundView[]
  readonly directory: string
  readonly signal: AbortSignal
  /** The time now. */
  readonly at: () => string
  /** Throws to give the whole build up. */
  readonly onFailure: (view: BoundView, error: unknown) => void
}

type BuiltViews = {
  readonly files: readonly BuiltFile[]
  readonly views: readonly ViewOutcome[]
  readonly failed: readonly FailedView[]
}

/** All views at once, so that they share the parse; if that fails, one by one, so that each fails alone. */
export async function buildViews(request: ViewsRequest): Promise<BuiltViews> {
  const { table, views, signal, at, onFailure } = request
  const ready: { readonly bound: BoundView; readonly named: NamedView }[] = []
  const failed: FailedView[] = []
  const fail = (view: BoundView, error: unknown): void => {
    signal.throwIfAborted()
    onFailure(view, error)
    failed.push({ view, error })
  }
  for (const bound of views) {
    try {
      const { name, version } = bound
      ready.push({ bound, named: { name, version, compiled: await compileView(bound.definition) } })
    } catch (error) {
      fail(bound, error)
    }
  }
  const together = await attempt(() => table.extract(ready.map(({ named }) => named)))
  signal.throwIfAborted()
  const files: BuiltFile[] = []
  const outcomes: ViewOutcome[] = []
  for (const [index, { bound, named }] of ready.entries()) {
    try {
      const extracted = 'value' in together ? together.value : await table.extract([named])
      const built = await buildView(request, bound, extracted, 'value' in together ? index : 0)
      files.push(...built.files)
      outcomes.push(built.outcome)
    } catch (error) {
      await rm(pathOf(request, bound, 'parquet'), { force: true })
      await rm(pathOf(request, bound, 'ndjson.gz'), { force: true })
      fail(bound, error)
    }
  }
  return { files, views: [...outcomes, ...failed.map(({ view, error }) => failedOutcome(view, error, at()))], failed }
}

async function buildView(
  request: ViewsRequest,
  bound: BoundView,
  extracted: ExtractedViews,
  index: number,
): Promise<{ readonly files: readonly BuiltFile[]; readonly outcome: ViewOutcome }> {
  const { table, signal, at } = request
  const { name, version } = bound
  const view = { id: bound.view_id, version }
  const path = pathOf(request, bound, 'parquet')
  const decided = await table.writeAccepted(extracted, index, path)
  const { counts } = decided
  const files: BuiltFile[] = []
  if (counts.accepted === 0) await rm(path, { force: true })
  else {
    const described = await describeFile(path, signal)
    files.push({ kind: { type: 'view', name, version }, rows: counts.accepted, view, ...described })
  }
  if (counts.dlq > 0) {
    const path = pathOf(request, bound, 'ndjson.gz')
    await table.writeDlq(decided, path)
    const described = await describeFile(path, signal)
    files.push({ kind: { type: 'dlq', name, version }, rows: counts.dlq, view, ...described })
  }
  return { files, outcome: outcomeOf(bound, decided, at()) }
}

function pathOf({ directory }: ViewsRequest, { name, version }: BoundView, suffix: string): string {
  return join(directory, `${name}-v${version}.${suffix}`)
}

function outcomeOf({ view_id, name, version }: BoundView, { counts, quality }: DecidedView, at: string): ViewOutcome {
  const { processed, accepted, dropped, dlq, castNulls, errors, lastError } = counts
  return {
    view_id,
    view_name: name,
    view_version: version,
    processed,
    accepted,
    dropped,
    dlq,
    cast_nulls: castNulls,
    errors: { ...errors },
    last_error: lastError === undefined ? null : { ...lastError, at },
    quality,
  }
}

function failedOutcome({ view_id, name, version }: BoundView, error: unknown, at: string): ViewOutcome {
  return {
    view_id,
    view_name: name,
    view_version: version,
    processed: 0,
    accepted: 0,
    dropped: 0,
    dlq: 0,
    cast_nulls: 0,
    errors: { view_failed: 1 },
    last_error: { code: 'view_failed', message: firstLine(error), at },
  }
}

async function attempt<T>(work: () => Promise<T>): Promise<{ readonly value: T } | { readonly error: unknown }> {
  try {
    return { value: await work() }
  } catch (error) {
    return { error }
  }
}

/** What went wrong, without DuckDB's excerpts of the statement. */
export function firstLine(error: unknown): string {
  const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
  return line
}
