/** Law of views with a window: of the rows with one key that a node delivers for an endpoint, one is written within the window. */
import { printArtifactKind } from '#model/artifact.ts'
import type { ViewOutcome } from '#model/commit.ts'
import { parseDurationSeconds } from '#model/duration.ts'
import { decidedAs, firstOfKeys, hasWindow, keyOf } from './view-rows.ts'

/** A commit, with its records and the files that have its rows now, by kind. */
export type Delivered = {
  readonly id: string
  readonly node_id: string
  readonly endpoint_id: string
  readonly sealed_at: string
  readonly views: readonly ViewOutcome[]
  readonly records: readonly string[]
  readonly rowsOf: (kind: string) => readonly string[]
}

/** `commits` are in their order. Without a steady clock only the rows that must be there are known. */
export function wrongWindows(commits: readonly Delivered[], window: string, isClockSteady: boolean): readonly string[] {
  const windowMs = (parseDurationSeconds(window) ?? 0) * 1_000
  const logs = new Map<string, { newestMs: number; readonly writtenAt: Map<number, number> }>()
  return commits.flatMap(({ id, node_id, endpoint_id, sealed_at, views, records, rowsOf }) =>
    views
      .filter((view) => hasWindow({ name: view.view_name, version: view.view_version }))
      .flatMap((outcome) => {
        const { view_id, view_name: name, view_version: version, window_seconds } = outcome
        const view = { name, version }
        const place = `${node_id} ${endpoint_id} ${view_id}`
        const log = logs.get(place) ?? { newestMs: 0, writtenAt: new Map() }
        logs.set(place, log)
        const atMs = Math.max(log.newestMs, Date.parse(sealed_at))
        log.newestMs = atMs
        const known = (withinMs: number) =>
          new Set([...log.writtenAt].flatMap(([key, writtenMs]) => (writtenMs > atMs - withinMs ? [key] : [])))
        const accepted = decidedAs('accepted', view, records)
        const rows = rowsOf(printArtifactKind({ type: 'view', ...view }))
        const missing = firstOfKeys(accepted, new Set([...log.writtenAt.keys(), ...rows.map(keyOf)]))
        const wanted = firstOfKeys(accepted, known(windowMs))
        const isShort = window_seconds !== undefined
        const again = rows.filter((row) => known(isShort ? window_seconds * 1_000 : windowMs).has(keyOf(row)))
        for (const row of rows) log.writtenAt.set(keyOf(row), atMs)
        return [
          ...(firstOfKeys(rows, new Set()).length === rows.length ? [] : [`${id}: ${name} has a key twice`]),
          ...missing.map((row) => `${id}: ${name} has no row for the key of ${row}, and no commit before has one`),
          ...(isClockSteady ? again.map((row) => `${id}: ${name} has ${row}, and its key is in the window`) : []),
          ...(isClockSteady && !isShort && wanted.join('\n') !== rows.join('\n') ? [`${id}: other rows of ${name}`] : []),
          ...(outcome.accepted === rows.length ? [] : [`${id}: ${name} counts ${outcome.accepted} rows, and has ${rows.length}`]),
        ]
      }),
  )
}
