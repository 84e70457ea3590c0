/**
 * View metrics: sums in buckets of five minutes for the last day, and lifetime sums.
 *
 * Law: a commit, and the output that a job adds to one, is counted once, in the transaction that first records it, at that time. So each
 * version counts a record once. Only `errors` also counts what has no commit yet: a required view that begins to hold a log.
 * `errors` are those that are left: neither dead letters that a re-drive took over, nor failures that a backfill made good.
 */
import { type RawBuilder, sql } from 'kysely'
import { safeSum } from '#lib/safe-sum.ts'
import { dayMs } from '#lib/time-units.ts'
import type { ViewOutcome } from '#model/commit.ts'
import {
  type EndpointViewMetrics,
  errorRatePct,
  failedCounts,
  moreRows,
  sumWindows,
  type ViewMetrics,
  type WindowCounts,
} from '#model/view-metrics.ts'
import { fromTime, toStorableText, toTime, toTimeOrNull } from '../columns.ts'
import { addTo, subtractFrom, sumOf } from '../safe-sums.ts'
import type { Database } from '../schema.ts'
import type { Db, Tx } from '../store.ts'
import { bucketStart } from './view-buckets.ts'
import { addViewQuality } from './view-quality.ts'

const counterColumns = [
  'processed',
  'accepted',
  'dropped',
  'dlq',
  'failed',
  'more_rows',
  'duplicates',
  'cast_nulls',
  'redriven',
  'errors',
] as const

/** Adds the outcomes of one new commit, or of one output that a job added, made at `now` (epoch ms). */
export async function addViewOutcomes(db: Tx, endpoint_id: string, outcomes: readonly ViewOutcome[], now: number): Promise<void> {
  if (outcomes.length === 0) return
  const additions = outcomes.map((outcome) => ({ counts: toCounts(endpoint_id, outcome), lastError: outcome.last_error }))
  await addCounts(db, additions, now)
  await addViewQuality(db, endpoint_id, outcomes, now)
}

/** A required view that began to fail on a log. */
export type ViewFailure = { readonly endpoint_id: string; readonly view_id: string; readonly message: string }

/** Counts one error for each failure. The records count once their segment is committed. */
export async function addViewFailures(db: Tx, failures: readonly ViewFailure[], now: number): Promise<void> {
  const additions = failures.map(({ endpoint_id, view_id, message }) => ({
    counts: { view_id, endpoint_id, ...failedCounts(0), more_rows: 0, duplicates: 0, cast_nulls: 0, redriven: 0, errors: 1 },
    lastError: { code: 'view_failed', message, at: toTime(now) },
  }))
  await addCounts(db, additions, now)
}

type CountedBefore = {
  readonly endpoint_id: string
  readonly view_id: string
  readonly records: number
  /** Epoch ms. Says which bucket has them. */
  readonly countedAt: number
}

/** Takes back what was counted when a view failed on a segment as a whole. */
export async function removeFailed(db: Tx, before: CountedBefore): Promise<void> {
  const { records } = before
  await change(db, before, (table) => ({
    processed: subtractFrom(sql.ref(`${table}.processed`), records),
    failed: subtractFrom(sql.ref(`${table}.failed`), records),
    errors: subtractFrom(sql.ref(`${table}.errors`), records),
  }))
}

/** Counts dead letters that a re-drive took over: they stay in `dlq`, and are no errors any more. */
export async function countRedriven(db: Tx, before: CountedBefore): Promise<void> {
  const { records } = before
  await change(db, before, (table) => ({
    redriven: addTo(sql.ref(`${table}.redriven`), sql.lit(records)),
    errors: subtractFrom(sql.ref(`${table}.errors`), records),
  }))
}

/** Changes the lifetime sums, and the bucket if it is still there. */
async function change(
  db: Tx,
  { endpoint_id, view_id, countedAt }: CountedBefore,
  set: (table: 'view_counters' | 'view_totals') => Partial<Record<(typeof counterColumns)[number], RawBuilder<number>>>,
): Promise<void> {
  await db
    .updateTable('view_counters')
    .set(set('view_counters'))
    .where(({ and }) => and({ view_id, endpoint_id }))
    .where('bucket_start', '=', bucketStart(countedAt))
    .execute()
  await db
    .updateTable('view_totals')
    .set(set('view_totals'))
    .where(({ and }) => and({ view_id, endpoint_id }))
    .execute()
}

type Addition = {
  readonly counts: Counts & { readonly view_id: string; readonly endpoint_id: string }
  readonly lastError: ViewOutcome['last_error']
}

async function addCounts(db: Tx, additions: readonly Addition[], now: number): Promise<void> {
  await db
    .insertInto('view_counters')
    .values(additions.map(({ counts }) => ({ ...counts, bucket_start: bucketStart(now) })))
    .onConflict((conflict) => conflict.columns(['view_id', 'endpoint_id', 'bucket_start']).doUpdateSet(sums('view_counters')))
    .execute()
  await db
    .insertInto('view_totals')
    .values(additions.map(({ counts, lastError }) => ({ ...counts, ...toLastError(lastError), updated_at: now })))
    .onConflict((conflict) =>
      conflict.columns(['view_id', 'endpoint_id']).doUpdateSet({
        ...sums('view_totals'),
        last_error_at: later('last_error_at'),
        last_error_code: later('last_error_code'),
        last_error_message: later('last_error_message'),
        updated_at: sql<number>`case when excluded.updated_at > view_totals.updated_at then excluded.updated_at else view_totals.updated_at end`,
      }),
    )
    .execute()
}

/** Returns metrics of one view version, by endpoint and in sum. The window is the 288 buckets up to now. The caller checks the view. */
export async function getViewMetrics(db: Db, account_id: string, view_id: string, now: number): Promise<ViewMetrics> {
  const found = await readViewMetrics(db, account_id, [view_id], now)
  return found.get(view_id) ?? noViewMetrics()
}

/** Like `getViewMetrics`, of several versions, by id. Those that processed nothing yet are left out. */
export async function readViewMetrics(
  db: Db,
  account_id: string,
  view_ids: readonly string[],
  now: number,
): Promise<ReadonlyMap<string, ViewMetrics>> {
  if (view_ids.length === 0) return new Map()
  const recent = await db
    .selectFrom('view_counters')
    .select(['view_id', 'endpoint_id'])
    .select(counterColumns.map((name) => sumOf(sql.ref(name)).as(name)))
    .where('view_id', 'in', view_ids)
    .where('bucket_start', '>', now - dayMs)
    .groupBy(['view_id', 'endpoint_id'])
    .execute()
  const rows = await db
    .selectFrom('view_totals')
    .innerJoin('endpoints', 'endpoints.id', 'view_totals.endpoint_id')
    .selectAll('view_totals')
    .select('endpoints.name as endpoint_name')
    .where('endpoints.account_id', '=', account_id)
    .where('view_totals.view_id', 'in', view_ids)
    .orderBy('endpoints.created_at', 'desc')
    .orderBy('endpoints.id')
    .execute()
  const held = await db
    .selectFrom('endpoint_lags')
    .select(({ fn }) => ['failing_view_id', 'endpoint_id', fn.min('failing_since').as('since')])
    .where('failing_view_id', 'in', view_ids)
    .groupBy(['failing_view_id', 'endpoint_id'])
    .execute()
  const recentByPair = new Map(recent.map((row) => [pairOf(row.view_id, row.endpoint_id), row]))
  const heldSince = new Map(held.map((row) => [pairOf(row.failing_view_id, row.endpoint_id), toTimeOrNull(row.since)]))
  const byView = Map.groupBy(rows, ({ view_id }) => view_id)
  return new Map(
    [...byView].map(([view_id, ofView]) => {
      const endpoints = ofView.map((row) => {
        const pair = pairOf(view_id, row.endpoint_id)
        return toMetrics(row, recentByPair.get(pair), heldSince.get(pair) ?? null)
      })
      return [view_id, aggregate(endpoints)]
    }),
  )
}

function pairOf(view_id: string | null, endpoint_id: string): string {
  return `${view_id} ${endpoint_id}`
}

/** The metrics of a version that processed nothing yet. */
export function noViewMetrics(): ViewMetrics {
  return aggregate([])
}

/** Removes the counters of the oldest bucket, if it began before `before` (epoch ms). Returns their number. Lifetime sums stay. */
export async function removeViewCountersBefore(db: Db, before: number): Promise<number> {
  const oldest = await db.selectFrom('view_counters').select('bucket_start').orderBy('bucket_start').limit(1).executeTakeFirst()
  if (oldest === undefined || oldest.bucket_start >= before) return 0
  const { numDeletedRows } = await db
    .deleteFrom('view_counters')
    .where('bucket_start', '=', oldest.bucket_start)
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

function toCounts(endpoint_id: string, outcome: ViewOutcome) {
  const { view_id, processed, accepted, dropped, dlq, failed, duplicates = 0, cast_nulls } = outcome
  const errors = safeSum(Object.values(outcome.errors))
  const counts = {
    processed,
    accepted,
    dropped,
    dlq,
    failed,
    more_rows: moreRows(outcome),
    duplicates,
    cast_nulls,
    redriven: 0,
    errors,
  }
  return { view_id, endpoint_id, ...counts }
}

function toLastError(last_error: ViewOutcome['last_error']) {
  return {
    last_error_at: last_error === null ? null : fromTime(last_error.at),
    last_error_code: last_error === null ? null : toStorableText(last_error.code),
    last_error_message: last_error === null ? null : toStorableText(last_error.message),
  }
}

/** For an upsert: the value of the later error. A restored commit may be older than the row. */
function later<Name extends 'last_error_at' | 'last_error_code' | 'last_error_message'>(name: Name) {
  const [old, added] = [sql.ref(`view_totals.${name}`), sql.ref(`excluded.${name}`)]
  return sql<Database['view_totals'][Name]>`case
    when excluded.last_error_at is null then ${old}
    when view_totals.last_error_at is null or excluded.updated_at >= view_totals.updated_at then ${added}
    else ${old} end`
}

/** For an upsert: the sum of the row and the added value. */
function sums(table: 'view_counters' | 'view_totals') {
  const sum = (name: (typeof counterColumns)[number]) => addTo(sql.ref(`${table}.${name}`), sql.ref(`excluded.${name}`))
  return {
    processed: sum('processed'),
    accepted: sum('accepted'),
    dropped: sum('dropped'),
    dlq: sum('dlq'),
    failed: sum('failed'),
    more_rows: sum('more_rows'),
    duplicates: sum('duplicates'),
    cast_nulls: sum('cast_nulls'),
    redriven: sum('redriven'),
    errors: sum('errors'),
  }
}

type Counts = Pick<Database['view_totals'], (typeof counterColumns)[number]>
type Row = Database['view_totals'] & { endpoint_name: string }

function withRows(counts: Counts): WindowCounts {
  return { ...counts, rows: safeSum([counts.accepted, counts.more_rows]) }
}

function toMetrics(row: Row, recent: Counts | undefined, held_since: string | null): EndpointViewMetrics {
  const last_24h = sumWindows(recent === undefined ? [] : [withRows(recent)])
  const errors = recent?.errors ?? 0
  return {
    endpoint_id: row.endpoint_id,
    endpoint_name: row.endpoint_name,
    last_24h,
    all_time: sumWindows([withRows(row)]),
    error_rate_pct: errorRatePct(last_24h, held_since !== null),
    has_errors: errors > 0 || held_since !== null,
    error_count_24h: errors,
    total_error_count: row.errors,
    last_error_at: toTimeOrNull(row.last_error_at),
    last_error_code: row.last_error_code,
    last_error_message: row.last_error_message,
    last_updated_at: toTime(row.updated_at),
    held_since,
  }
}

function aggregate(endpoints: readonly EndpointViewMetrics[]): ViewMetrics {
  const last_24h = sumWindows(endpoints.map((endpoint) => endpoint.last_24h))
  const errors = safeSum(endpoints.map(({ error_count_24h }) => error_count_24h))
  return {
    endpoints: [...endpoints],
    aggregated: {
      last_24h,
      all_time: sumWindows(endpoints.map((endpoint) => endpoint.all_time)),
      error_rate_pct: errorRatePct(
        last_24h,
        endpoints.some(({ held_since }) => held_since !== null),
      ),
      has_errors: endpoints.some(({ has_errors }) => has_errors),
      total_error_count_24h: errors,
    },
  }
}
