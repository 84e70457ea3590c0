/** A canary: a later version that runs beside the version in use, on the same segments. */
import type { Binding } from '../../api/bindings.ts'
import type { ViewSeries } from '../../api/series.ts'
import type { EndpointViewMetrics, ViewCounts } from '../../api/view-metrics.ts'

export type Canary = { readonly canary: Binding; readonly others: readonly Binding[] }

/** Returns the latest version that is attached and the versions that it would replace; undefined if it is alone. */
export function findCanary(bindings: readonly Binding[], view_name: string): Canary | undefined {
  const running = bindings
    .filter((binding) => binding.view_name === view_name && binding.status === 'active')
    .toSorted((a, b) => b.view_version - a.view_version)
  const [canary, ...others] = running
  return canary === undefined || others.length === 0 ? undefined : { canary, others }
}

/** Returns the version that its rule stopped, if nothing of the view was attached or detached since. */
export function findStopped(bindings: readonly Binding[], view_name: string): Binding | undefined {
  const changedAt = ({ activated_at, deactivated_at }: Binding) => deactivated_at ?? activated_at
  const latest = bindings
    .filter((binding) => binding.view_name === view_name)
    .toSorted((a, b) => changedAt(b).localeCompare(changedAt(a)))[0]
  return latest?.stopped_reason == null ? undefined : latest
}

export type Versions = { readonly current: Binding; readonly canary: Binding }

type Bucket = ViewSeries['versions'][number]['buckets'][number]

export function bucketsOf({ versions }: ViewSeries, view_id: string): readonly Bucket[] {
  return versions.find((version) => version.view_id === view_id)?.buckets ?? []
}

export function countsOf(buckets: readonly Bucket[]): ViewCounts {
  const sum = (outcome: 'accepted' | 'dropped' | 'dlq' | 'failed') =>
    buckets.reduce((total, bucket) => total + bucket[outcome], 0)
  const counts = { accepted: sum('accepted'), dropped: sum('dropped'), dlq: sum('dlq'), failed: sum('failed') }
  return { ...counts, processed: counts.accepted + counts.dropped + counts.dlq + counts.failed }
}

/** Returns the canary's buckets since it was attached, or since it began: the same version may have been a canary before. */
export function bucketsOfCanary(series: ViewSeries, { view_id, activated_at, canary_start_ts }: Binding): readonly Bucket[] {
  const start = Date.parse(canary_start_ts ?? activated_at) - series.step_seconds * 1000
  return bucketsOf(series, view_id).filter(({ at }) => Date.parse(at) > start)
}

/** Counts both versions from the canary's first bucket on: what the other rejected before it says nothing about the choice. */
export function countBoth(
  series: ViewSeries,
  { current, canary }: Versions,
): { readonly before: ViewCounts; readonly after: ViewCounts } {
  const own = bucketsOfCanary(series, canary)
  const since = Math.min(...own.map(({ at }) => Date.parse(at)))
  return {
    before: countsOf(bucketsOf(series, current.view_id).filter(({ at }) => Date.parse(at) >= since)),
    after: countsOf(own),
  }
}

/** Returns when each bucket begins, up to the canary's last one. A share is worth a look before its bucket is over, and a gap at the end is not. */
export function timesUntilLast(series: ViewSeries, canary: Binding): readonly number[] {
  const last = bucketsOfCanary(series, canary).at(-1)
  if (last === undefined) return []
  const [start, end, stepMs] = [Date.parse(series.since), Date.parse(last.at), series.step_seconds * 1000]
  return Array.from({ length: Math.floor((end - start) / stepMs) + 1 }, (_, bucket) => start + bucket * stepMs)
}

export type Verdict = { readonly kind: 'note' | 'good' | 'warn'; readonly title: string; readonly text: string }

/** More failures than chance explains: a tenth more than before, and one record in a thousand. */
const worse = { factor: 1.1, share: 0.001 } as const

type Held = Pick<EndpointViewMetrics, 'held_since' | 'last_error_message'>

/** Says in words whether the canary does as well as the version in use. */
export function judgeCanary(
  current: ViewCounts,
  canary: ViewCounts,
  held: Held | undefined,
  /** Undefined while one of the versions has no rows to compare columns by. */
  differences: readonly ColumnDifference[] | undefined,
): Verdict {
  if (held?.held_since != null) {
    return {
      kind: 'warn',
      title: 'The canary holds back the delivery',
      text: held.last_error_message ?? 'It fails and is required.',
    }
  }
  if (canary.processed === 0) {
    return {
      kind: 'note',
      title: 'No figures yet',
      text: 'The canary has not processed a segment. The next commit brings its figures.',
    }
  }
  if (current.processed === 0) {
    const text = 'The version in use has processed nothing since the canary began, so there is nothing to compare it with.'
    return { kind: 'note', title: 'Not enough data to compare', text }
  }
  const before = rejectedShare(current) ?? 0
  const now = rejectedShare(canary) ?? 0
  if (now > before * worse.factor + worse.share) {
    const text = 'It sends more records to the dead letters, or fails on more. Look at their reasons before you promote it.'
    return { kind: 'warn', title: 'The canary does worse', text }
  }
  if (differences?.some(({ isWorse }) => isWorse)) {
    const text = 'It rejects no larger share of the records, but has NULL where the version in use has values, or lacks a column.'
    return { kind: 'warn', title: 'The canary loses values', text }
  }
  const rejects = 'It rejects no larger share of the records than the version in use'
  if (differences === undefined) {
    const text = `${rejects}. Columns are compared once both versions have accepted rows in the last 24 hours.`
    return { kind: 'note', title: 'Not enough data to compare the columns', text }
  }
  return { kind: 'good', title: 'The canary does as well', text: `${rejects}, and its columns are no emptier.` }
}

/** Returns the share of records that got no row although no filter dropped them; null without records. */
export function rejectedShare({ dlq, failed, processed }: ViewCounts): number | null {
  return processed === 0 ? null : (dlq + failed) / processed
}

/** `isWorse`: values that the version in use has are not there. */
export type ColumnDifference = { readonly name: string; readonly difference: string; readonly isWorse: boolean }

/** Percentage points of NULLs by which a column must differ to be worth a look. */
const nullsDifferPct = 5

/** Returns the columns that are new, gone, of another type, or NULL much more or less often; undefined if not both have rows. */
export function compareColumns(
  current: EndpointViewMetrics | undefined,
  canary: EndpointViewMetrics | undefined,
): readonly ColumnDifference[] | undefined {
  if (!current?.columns?.length || !canary?.columns?.length) return undefined
  // Columns without rows are NULL in 0 %, which looks like columns that are always filled.
  if (current.last_24h.accepted === 0 || canary.last_24h.accepted === 0) return undefined
  const before = new Map(current.columns.map((column) => [column.name, column]))
  const after = new Map(canary.columns.map((column) => [column.name, column]))
  const gone = [...before.keys()].filter((name) => !after.has(name)).map((name) => ({ name, difference: 'gone', isWorse: true }))
  const changed = [...after.values()].flatMap(({ name, type, last_24h }) => {
    const old = before.get(name)
    if (old === undefined) return [{ name, difference: `new, NULL in ${last_24h.null_rate_pct} %`, isWorse: false }]
    const nulls = [old.last_24h.null_rate_pct, last_24h.null_rate_pct] as const
    const isOtherType = old.type !== type
    const isEmptier = nulls[1] - nulls[0] > nullsDifferPct
    const parts = [
      ...(isOtherType ? [`${type} instead of ${old.type}`] : []),
      ...(isEmptier || nulls[0] - nulls[1] > nullsDifferPct ? [`NULL in ${nulls[1]} % instead of ${nulls[0]} %`] : []),
    ]
    return parts.length === 0 ? [] : [{ name, difference: parts.join(', '), isWorse: isEmptier }]
  })
  return [...changed, ...gone]
}
