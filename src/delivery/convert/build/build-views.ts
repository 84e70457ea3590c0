import { readdir, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { ViewOutcome } from '#model/commit.ts'
import type { BoundView } from '#model/snapshot.ts'
import { failedCounts } from '#model/view-metrics.ts'
import type { DecidedView, ExtractedViews } from '#records/extracted-views.ts'
import type { KeysFile } from '#records/read-keys.ts'
import type { RecordTable } from '#records/record-table.ts'
import { isTooExpensive, TooExpensive } from '#records/too-expensive.ts'
import { compileView } from '#views/compile.ts'
import type { NamedView } from '#views/compiled-view.ts'
import { type BuiltFile, describeFile } from './built-file.ts'
import { firstLine } from './failures.ts'
import { isTransient } from './transient-error.ts'

/** A view version that is built. */
export type ViewToBuild = Pick<BoundView, 'view_id' | 'name' | 'version' | 'definition' | 'secrets'> & {
  /** Whether rows are compared with those of earlier segments. */
  readonly hasWindow?: boolean
}

export type WindowedView = BoundView & Pick<ViewToBuild, 'hasWindow'>

/** Returns a byte for each key of a view, of 16 bytes: 1 if an earlier segment wrote it. Throws a transient error. */
export type FindKeys = (viewId: string, keys: Uint8Array) => Promise<Uint8Array>

export type FailedView<View extends ViewToBuild> = { readonly view: View; readonly error: unknown }

/** Plan for the views of a segment, from earlier attempts at them. */
export type ViewPlan = {
  /** Do not build several views at once: the process ended while it did. */
  readonly isApart: boolean
  /** Positions of views that are built after the others, because they were too expensive before. */
  readonly last?: readonly number[] | undefined
  /** Views that are not built again. */
  readonly built?: readonly BuiltView[]
  /** Views that are not tried again, by position. */
  readonly failed: readonly ViewBlame[]
}

/** Result of a view once the build has ended its work on it. Its files stay as they are. */
export type BuiltView = ViewFiles & { readonly view: number }
type ViewFiles = {
  readonly files: readonly BuiltFile[]
  readonly outcome: ViewOutcome
  /** If the view has a window, and wrote a row with a key. */
  readonly keys?: KeysFile
}
export type SettledView = { readonly built: BuiltView } | { readonly failed: ViewBlame }

export type ViewBlame = { readonly view: number; readonly reason: string; readonly isTooExpensive: boolean }

type ViewsRequest<View extends ViewToBuild> = {
  readonly table: RecordTable
  readonly views: readonly View[]
  readonly plan?: ViewPlan | undefined
  readonly directory: string
  /** Files of the accepted rows of each view, at most. */
  readonly partitionsMax: number
  readonly signal: AbortSignal
  /** Returns the time now. */
  readonly at: () => string
  /** Called before each step, with the positions of the views that it works on, and with each view that is settled. */
  readonly report: (views: readonly number[], settled?: SettledView) => void
  /** For views with a window. */
  readonly findKeys?: FindKeys | undefined
  /** Throws to abort the whole build. */
  readonly onFailure: (view: View, error: unknown) => void
}

type BuildResult<View extends ViewToBuild> = {
  readonly files: readonly BuiltFile[]
  readonly views: readonly ViewOutcome[]
  readonly failed: readonly FailedView<View>[]
  readonly keys: readonly KeysFile[]
}

/** Builds all views at once, so that they share the parse. If that fails, builds one by one, so that each fails alone. */
export async function buildViews<View extends ViewToBuild>(request: ViewsRequest<View>): Promise<BuildResult<View>> {
  const { table, views, plan, signal, at, report, onFailure } = request
  const ready: { readonly position: number; readonly view: View; readonly named: NamedView }[] = []
  const failed: FailedView<View>[] = []
  const fail = (position: number, view: View, error: unknown): void => {
    signal.throwIfAborted()
    // A fault of the node must not leave an optional view out of the commit for ever.
    if (isTransient(error)) throw error
    onFailure(view, error)
    failed.push({ view, error })
    if (plan?.failed.some((known) => known.view === position) === true) return
    report([], { failed: { view: position, reason: firstLine(error), isTooExpensive: isTooExpensive(error) } })
  }
  const { built: known = [], last = [] } = plan ?? {}
  for (const [position, view] of views.entries()) {
    if (known.some((built) => built.view === position)) continue
    const blame = plan?.failed.find((known) => known.view === position)
    try {
      if (blame !== undefined) throw new (blame.isTooExpensive ? TooExpensive : Error)(blame.reason)
      const { name, version, secrets = {} } = view
      report([position])
      ready.push({ position, view, named: { name, version, compiled: await compileView(view.definition), secrets } })
    } catch (error) {
      fail(position, view, error)
    }
  }
  ready.sort((a, b) => Number(last.includes(a.position)) - Number(last.includes(b.position)))
  const isTogether = ready.length > 1 && plan?.isApart !== true
  if (isTogether) report(ready.map(({ position }) => position))
  const together = isTogether ? await attempt(() => table.extract(ready.map(({ named }) => named))) : undefined
  signal.throwIfAborted()
  const files = known.flatMap((built) => built.files)
  const outcomes = known.map(({ outcome }) => outcome)
  const keys = known.flatMap((built) => built.keys ?? [])
  for (const [index, { position, view, named }] of ready.entries()) {
    try {
      const step = () => report([position])
      step()
      const built =
        together === undefined
          ? await buildView(request, view, await table.extract([named]), 0, step)
          : await buildView(request, view, together, index, step)
      files.push(...built.files)
      outcomes.push(built.outcome)
      if (built.keys !== undefined) keys.push(built.keys)
      report([], { built: { view: position, ...built } })
    } catch (error) {
      await removeFiles(request, view)
      fail(position, view, error)
    }
  }
  const failedOutcomes = failed.map(({ view, error }) => failedOutcome(view, table.recordCount, error, at()))
  return { files, views: [...outcomes, ...failedOutcomes], failed, keys }
}

async function buildView(
  request: Omit<ViewsRequest<never>, 'views' | 'onFailure'>,
  toBuild: ViewToBuild,
  extracted: ExtractedViews,
  index: number,
  step: () => void,
): Promise<ViewFiles> {
  const { signal, at, table } = request
  const { name, version, hasWindow = false } = toBuild
  const view = { id: toBuild.view_id, version }
  const path = pathOf(request, toBuild, 'parquet')
  const keysPath = pathOf(request, toBuild, 'keys')
  const { findKeys } = request
  const keys = hasWindow && findKeys && { path: keysPath, find: (keys: Uint8Array) => findKeys(toBuild.view_id, keys) }
  const decided = await table.writeAccepted(extracted, index, path, request.partitionsMax, keys || undefined)
  const { counts } = decided
  const hasKeys = hasWindow && counts.rows + counts.duplicates > 0
  const files: BuiltFile[] = []
  if (counts.rows === 0) await rm(path, { force: true })
  for (const { path, rows, partition } of decided.files) {
    const kind = { type: 'view', name, version, ...(partition && { partition }) } as const
    files.push({ kind, rows, view, ...(await describeFile(path, signal)) })
  }
  if (counts.dlq > 0) {
    const path = pathOf(request, toBuild, 'ndjson.gz')
    step()
    await table.writeDlq(decided, path)
    const described = await describeFile(path, signal)
    files.push({ kind: { type: 'dlq', name, version }, rows: counts.dlq, view, ...described })
  }
  const outcome = outcomeOf(toBuild, decided, at())
  return { files, outcome, ...(hasKeys && { keys: { of: toBuild.view_id, path: keysPath } }) }
}

/** Removes what an attempt at a view has left. */
async function removeFiles(request: { readonly directory: string }, view: ViewToBuild): Promise<void> {
  const own = basename(pathOf(request, view, ''))
  for (const name of await readdir(request.directory))
    if (name.startsWith(own)) await rm(join(request.directory, name), { recursive: true, force: true })
}

function pathOf({ directory }: { readonly directory: string }, { name, version }: ViewToBuild, suffix: string): string {
  return join(directory, `${name}-v${version}.${suffix}`)
}

function outcomeOf(
  { view_id, name, version, definition }: ViewToBuild,
  { counts, quality }: DecidedView,
  at: string,
): ViewOutcome {
  const { processed, accepted, dropped, dlq, rows, duplicates, castNulls, errors, lastError } = counts
  return {
    view_id,
    view_name: name,
    view_version: version,
    processed,
    accepted,
    dropped,
    dlq,
    failed: 0,
    ...(definition.expand !== undefined && { rows }),
    ...(duplicates > 0 && { duplicates }),
    cast_nulls: castNulls,
    errors: { ...errors },
    last_error: lastError === undefined ? null : { ...lastError, at },
    quality,
  }
}

function failedOutcome({ view_id, name, version }: ViewToBuild, records: number, error: unknown, at: string): ViewOutcome {
  return {
    view_id,
    view_name: name,
    view_version: version,
    ...failedCounts(records),
    cast_nulls: 0,
    errors: { view_failed: records },
    last_error: { code: isTooExpensive(error) ? 'too_expensive' : 'view_failed', message: firstLine(error), at },
  }
}

/** Returns undefined if the work fails. */
async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch {
    return undefined
  }
}
