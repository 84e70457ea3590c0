/** Totals of all nodes and accounts, for the metrics of operators. The database sums them up: there may be millions of rows. */
import { type RawBuilder, sql } from 'kysely'
import { sumOf } from '../safe-sums.ts'
import type { UndeliveredBytes } from '../series/endpoint-series.ts'
import type { Db } from '../store.ts'

const held = sql<number>`endpoint_lags.open_segments + endpoint_lags.undelivered_segments + endpoint_lags.parked_segments + endpoint_lags.quarantined_segments`

const measures = {
  open_segments: sql<number>`endpoint_lags.open_segments`,
  undelivered_segments: sql<number>`endpoint_lags.undelivered_segments + endpoint_lags.parked_segments`,
  parked_segments: sql<number>`endpoint_lags.parked_segments`,
  logs_held_by_views: sql<number>`case when endpoint_lags.failing_view_id is null then 0 else 1 end`,
  quarantined_segments: sql<number>`endpoint_lags.quarantined_segments`,
  unowned_segments: sql<number>`case when endpoints.id is null then ${held} else 0 end`,
  blocked_logs: sql<number>`case when endpoint_lags.blocked_by is null then 0 else 1 end`,
  undelivered_bytes: sql<number>`endpoint_lags.undelivered_bytes`,
  scrub_findings: sql<number>`endpoint_lags.scrub_findings`,
} as const

type Measure = keyof typeof measures

/** `oldest_sealed_at` in epoch ms; null if no segment is sealed. */
export type LagTotals = { readonly [Name in Measure]: number } & { readonly oldest_sealed_at: number | null }

export async function sumLags(db: Db): Promise<LagTotals> {
  return selectLags(db)
    .select(expressions((measure) => sql<number>`coalesce(${sumOf(measure)}, 0)`))
    .select(({ fn }) => fn.min('endpoint_lags.oldest_sealed_at').as('oldest_sealed_at'))
    .executeTakeFirstOrThrow()
}

/** Returns the numbers of the logs with the most bytes, at most `limit`. */
export async function listLargestLags(
  db: Db,
  limit: number,
): Promise<readonly (LagTotals & { readonly endpoint_id: string; readonly node_id: string })[]> {
  return selectLags(db)
    .select(['endpoint_lags.endpoint_id', 'endpoint_lags.node_id', 'endpoint_lags.oldest_sealed_at'])
    .select(expressions((measure) => measure))
    .orderBy('endpoint_lags.undelivered_bytes', 'desc')
    .orderBy('endpoint_lags.endpoint_id')
    .orderBy('endpoint_lags.node_id')
    .limit(limit)
    .execute()
}

/** Returns what all nodes hold of endpoints that are not deleted, by endpoint, in the order of their ids: those after `after` that wait for a commit. */
export async function listUndeliveredBytes(db: Db, after: string, limit: number): Promise<readonly UndeliveredBytes[]> {
  return db
    .selectFrom('endpoint_lags')
    .innerJoin('endpoints', (join) =>
      join.onRef('endpoints.id', '=', 'endpoint_lags.endpoint_id').on('endpoints.deleted_at', 'is', null),
    )
    .select('endpoint_lags.endpoint_id')
    .select(sumOf(measures.undelivered_bytes).as('bytes'))
    .where('endpoint_lags.endpoint_id', '>', after)
    .where('endpoint_lags.undelivered_bytes', '>', 0)
    .groupBy('endpoint_lags.endpoint_id')
    .orderBy('endpoint_lags.endpoint_id')
    .limit(limit)
    .execute()
}

export type NodeLag = { readonly node_id: string; readonly undelivered_bytes: number; readonly oldest_sealed_at: number | null }

/** Returns what the nodes with the most bytes hold, at most `limit` of them. */
export async function listLargestNodeLags(db: Db, limit: number): Promise<readonly NodeLag[]> {
  return db
    .selectFrom('endpoint_lags')
    .select('node_id')
    .select(sql<number>`coalesce(${sumOf(sql<number>`undelivered_bytes`)}, 0)`.as('undelivered_bytes'))
    .select(({ fn }) => fn.min('oldest_sealed_at').as('oldest_sealed_at'))
    .groupBy('node_id')
    .orderBy('undelivered_bytes', 'desc')
    .orderBy('node_id')
    .limit(limit)
    .execute()
}

function expressions(of: (measure: RawBuilder<number>) => RawBuilder<number>) {
  const names = Object.keys(measures) as Measure[]
  return names.map((name) => of(measures[name]).as(name))
}

function selectLags(db: Db) {
  return db
    .selectFrom('endpoint_lags')
    .leftJoin('endpoints', (join) =>
      join.onRef('endpoints.id', '=', 'endpoint_lags.endpoint_id').on('endpoints.deleted_at', 'is', null),
    )
}
