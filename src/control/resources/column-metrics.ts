import { safeSum } from '#lib/safe-sum.ts'
import type { Definition } from '#model/definition.ts'
import { parseType, printType } from '#model/types/column-type.ts'
import { type ColumnDetail, type ColumnWindow, percentOf, type ViewMetrics } from '#model/view-metrics.ts'
import { addQualities, type QualitySum } from '#model/view-quality.ts'
import { getViewQuality, type QualityWindows } from '#store/series/view-quality.ts'
import type { Store } from '#store/store.ts'

/** Adds column metrics and unmapped paths. Reads one endpoint at a time: one day of an endpoint may be megabytes. */
export async function addColumnMetrics(
  store: Store,
  view_id: string,
  definition: Definition,
  { endpoints, aggregated }: ViewMetrics,
  now: number,
): Promise<ViewMetrics> {
  const detailed: ViewMetrics['endpoints'] = []
  const all: QualityWindows[] = []
  for (const endpoint of endpoints) {
    const windows = await getViewQuality(store.db, view_id, endpoint.endpoint_id, now)
    all.push(windows)
    detailed.push({ ...endpoint, ...toColumnDetail(definition, windows) })
  }
  const summed = {
    last_24h: addQualities(all.map(({ last_24h }) => last_24h)),
    all_time: addQualities(all.map(({ all_time }) => all_time)),
  }
  return { endpoints: detailed, aggregated: { ...aggregated, ...toColumnDetail(definition, summed) } }
}

function toColumnDetail({ columns }: Definition, { last_24h, all_time }: QualityWindows): ColumnDetail {
  const { sampled_records } = last_24h
  return {
    columns: columns.map(({ name, type, hidden = false }) => ({
      name,
      type: printType(parseType(type)),
      hidden,
      last_24h: toColumnWindow(name, last_24h),
      all_time: toColumnWindow(name, all_time),
    })),
    unmapped_paths: last_24h.unmapped.map(({ path, types, records, last_seen_at }) => ({
      ...{ path, types, records, sampled_records },
      seen_pct: percentOf(records, sampled_records),
      last_seen_at,
    })),
  }
}

const emptyWindow = { values: 0, nulls: 0, cast_nulls: 0, cast_dlq: 0, missing: 0, min: null, max: null }

function toColumnWindow(column: string, { columns }: QualitySum): ColumnWindow {
  const { values, nulls, cast_nulls, cast_dlq, missing, min, max } = columns.find(({ name }) => name === column) ?? emptyWindow
  return {
    ...{ values, nulls, null_rate_pct: percentOf(nulls, values + nulls) },
    ...{ cast_failures: safeSum([cast_nulls, cast_dlq]), cast_nulls, cast_dlq, missing },
    ...{ min, max },
  }
}
