import type { ViewMetrics } from '../../api/view-metrics.ts'

export type Watched = { readonly shown: readonly ViewMetrics[]; readonly idle: number }

/**
 * Chooses the versions worth a look: those that processed records in the last 24 hours or hold back a delivery, and the latest of each view.
 * Versions that reject the largest share come first.
 */
export function watchedVersions(all: readonly ViewMetrics[], withIdle: boolean): Watched {
  const latest = new Map<string, number>()
  for (const { view_name, view_version } of all) latest.set(view_name, Math.max(view_version, latest.get(view_name) ?? 0))
  const isWatched = ({ view_name, view_version, aggregated: { last_24h, has_errors } }: ViewMetrics) =>
    last_24h.processed > 0 || has_errors || latest.get(view_name) === view_version
  const watched = all.filter(isWatched)
  return { shown: (withIdle ? all : watched).toSorted(byTrouble), idle: all.length - watched.length }
}

function byTrouble(one: ViewMetrics, other: ViewMetrics): number {
  const trouble = other.aggregated.error_rate_pct - one.aggregated.error_rate_pct
  if (trouble !== 0) return trouble
  return one.view_name === other.view_name ? other.view_version - one.view_version : one.view_name < other.view_name ? -1 : 1
}
