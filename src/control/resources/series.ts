import { type Clock, isoTimestamp } from '#lib/clock.ts'
import type { Principal } from '#model/principal.ts'
import { type EndpointSeries, type SeriesQuery, type SeriesWindow, seriesWindow, type ViewSeries } from '#model/series.ts'
import { assertEverExisted } from '#store/endpoints/endpoints.ts'
import { getView } from '#store/endpoints/views.ts'
import { listEndpointBuckets } from '#store/series/endpoint-series.ts'
import { listVersionSeries } from '#store/series/view-series.ts'
import type { Store } from '#store/store.ts'

export type SeriesOptions = { readonly store: Store; readonly clock: Clock }

export type Series = ReturnType<typeof seriesService>

/** Time series of endpoints and views. */
export function seriesService({ store: { db }, clock }: SeriesOptions) {
  return {
    /** Throws not_found. A deleted endpoint keeps its series. */
    async ofEndpoint({ account_id }: Principal, endpoint_id: string, query: SeriesQuery): Promise<EndpointSeries> {
      await assertEverExisted(db, account_id, endpoint_id)
      const now = clock.now()
      const window = seriesWindow(query, now)
      return { endpoint_id, ...describe(window, now), buckets: await listEndpointBuckets(db, endpoint_id, window) }
    },

    /** Returns all versions of the view beside each other: a canary and the version that it may replace. Throws not_found. */
    async ofView(
      { account_id }: Principal,
      id: string,
      { endpoint_id = null, ...query }: SeriesQuery & { readonly endpoint_id?: string | null | undefined },
    ): Promise<ViewSeries> {
      const { name } = await getView(db, account_id, id)
      if (endpoint_id !== null) await assertEverExisted(db, account_id, endpoint_id)
      const now = clock.now()
      const window = seriesWindow(query, now)
      const versions = await listVersionSeries(db, { account_id, name, endpoint_id }, window)
      return { view_name: name, endpoint_id, ...describe(window, now), versions }
    },
  }
}

function describe({ sinceMs, stepMs }: SeriesWindow, now: number) {
  return { since: isoTimestamp(sinceMs), until: isoTimestamp(now), step_seconds: stepMs / 1000 }
}
