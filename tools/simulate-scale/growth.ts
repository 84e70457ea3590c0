/** How large the tables become: bytes of a row with its indexes, rows of a day, and what housekeeping leaves of a long history. */
import { sql } from 'kysely'
import { runHousekeeping } from '../../src/control/upkeep/housekeeping.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { timeOrderedUuid } from '../../src/lib/uuid.ts'
import { type SeriesStep, seriesLimits } from '../../src/model/limits.ts'
import { stepSeconds } from '../../src/model/series.ts'
import { rowMs } from '../../src/store/series/endpoint-series.ts'
import { type Db, type Store, transact } from '../../src/store/store.ts'
import type { Gauge } from './gauge.ts'
import type { Installation, Scale } from './installation.ts'
import { round, size, type Tables } from './tables.ts'

const dayMs = 86_400_000
const commitsKeptDays = 400
/** The history reaches back so far, evenly. */
const historyDays = 500
const countersKeptHours = 26
const auditRows = 50_000

type Table =
  | 'commits'
  | 'dlq_files'
  | 'view_counters'
  | 'view_quality'
  | 'endpoint_series'
  | 'view_series'
  | 'committed_seqs'
  | 'account_usage'
  | 'endpoint_lags'
  | 'audit_events'

export async function measureGrowth(
  { store }: Installation,
  gauge: Gauge,
  { scale, history, tables }: { readonly scale: Scale; readonly history: number; readonly tables: Tables },
): Promise<void> {
  const rowBytes = await fill(store, history)
  addGrowth(scale, rowBytes, tables)
  const counted: readonly Table[] = ['commits', 'dlq_files', 'view_counters', 'view_quality']
  const before = await countRows(store.db, counted)
  const auditTrail = { prune: async () => undefined }
  const options = { store, auditTrail, commitsKeptMs: commitsKeptDays * dayMs, clock: systemClock }
  const cost = await gauge.measure(() => runHousekeeping(options, new AbortController().signal))
  const after = await countRows(store.db, counted)
  const removed = counted.map((table) => (before.get(table) ?? 0) - (after.get(table) ?? 0))
  const all = removed.reduce((sum, rows) => sum + rows, 0)
  tables.add(
    'housekeeping',
    ['table', 'rows before', 'removed', 'left'],
    counted.map((table, index) => [
      table,
      round(before.get(table) ?? 0),
      round(removed[index] ?? 0),
      round(after.get(table) ?? 0),
    ]),
  )
  tables.add(
    'cost of housekeeping',
    ['rows removed', 'a second', 'CPU ms of Postgres for 1 000 rows', 'WAL for 1 000 rows'],
    [[round(all), round(all / cost.seconds), round((cost.databaseCpuMs / all) * 1000), size((cost.walBytes / all) * 1000)]],
  )
}

/** Copies the rows that the reports made into a history, so that sizes are those of full tables. Returns the bytes of a row. */
function fill(store: Store, history: number): Promise<ReadonlyMap<Table, number>> {
  return transact(store, async (db) => {
    await sql`set local statement_timeout = 0`.execute(db)
    return fillWithin(db, history)
  })
}

async function fillWithin(db: Db, history: number): Promise<ReadonlyMap<Table, number>> {
  const made = (await countRows(db, ['commits'])).get('commits') ?? 0
  if (made === 0) throw new Error('no commits were made')
  const copies = Math.ceil(history / made)
  const shiftMs = Math.floor((historyDays * dayMs) / copies)
  const older = sql`generate_series(1, ${sql.lit(copies)}) as copy`
  const id = (commit: string) => sql`${sql.ref(`${commit}`)} || '-' || lpad(copy::text, 6, '0')`
  await sql`insert into commits
    select ${id('commits.id')}, endpoint_id, node_id, log, seq, records, wal_bytes, duration_ms, sealed_at - copy::bigint * ${sql.lit(shiftMs)},
      uploaded_at - copy::bigint * ${sql.lit(shiftMs)}, destination_id, bucket, region, artifacts, records_damaged, applied_views
    from commits, ${older}`.execute(db)
  await sql`insert into dlq_files
    select ${id('dlq_files.commit_id')}, view_id, endpoint_id, segment_seq, destination_id, s3_bucket, s3_key, region, bytes, rows,
      created_at - copy::bigint * ${sql.lit(shiftMs)}
    from dlq_files, ${older}`.execute(db)
  const buckets = sql`generate_series(1, ${sql.lit(Math.ceil((copies * countersKeptHours * 12) / historyDays))}) as copy`
  const bucket = sql`bucket_start - copy::bigint * 1800000`
  await sql`insert into view_counters
    select view_id, endpoint_id, ${bucket}, processed, accepted, dropped, dlq, cast_nulls, errors, failed
    from view_counters, ${buckets} on conflict do nothing`.execute(db)
  await sql`insert into view_quality select view_id, endpoint_id, ${bucket}, quality
    from view_quality, ${buckets} where bucket_start > 0 on conflict do nothing`.execute(db)
  await sql`insert into audit_events (id, at, account_id, actor, address, operation, resource_id, result, status, request_id, unrecorded)
    select ${sql.lit(timeOrderedUuid(Date.now()).slice(0, 24))} || lpad(to_hex(copy), 12, '0'), 1, (select id from accounts limit 1),
      gen_random_uuid()::text, '192.0.2.17', 'changeEndpoint', gen_random_uuid()::text, 'succeeded', 200, gen_random_uuid()::text, 0
    from generate_series(1, ${sql.lit(auditRows)}) as copy`.execute(db)
  await sql`analyze`.execute(db)
  const names: readonly Table[] = [
    ...(['commits', 'dlq_files', 'view_counters', 'view_quality', 'endpoint_series', 'view_series'] as const),
    ...(['committed_seqs', 'account_usage', 'endpoint_lags', 'audit_events'] as const),
  ]
  const counts = await countRows(db, names)
  const bytes = new Map<Table, number>()
  for (const name of names) {
    const { rows } = await sql<{ bytes: string }>`select pg_total_relation_size(${name})::text as bytes`.execute(db)
    bytes.set(name, Number(rows[0]?.bytes) / Math.max(1, counts.get(name) ?? 0))
  }
  return bytes
}

async function countRows(db: Db, names: readonly Table[]): Promise<ReadonlyMap<Table, number>> {
  const counts = new Map<Table, number>()
  for (const name of names) {
    const { rows } = await sql<{ rows: string }>`select count(*)::text as rows from ${sql.table(name)}`.execute(db)
    counts.set(name, Number(rows[0]?.rows))
  }
  return counts
}

/** Rows that something makes which happens every `everySeconds`, if a row is about so much time: in a day, and as many as are kept. */
function seriesRows(
  everySeconds: number,
  rowMsOf: (step: SeriesStep) => number,
): { readonly aDay: number; readonly kept: number } {
  const steps = Object.keys(stepSeconds) as SeriesStep[]
  const rows = (step: SeriesStep, ms: number) => ms / Math.max(rowMsOf(step), everySeconds * 1000)
  const sum = (msOf: (step: SeriesStep) => number) => steps.reduce((all, step) => all + rows(step, msOf(step)), 0)
  return { aDay: sum(() => dayMs), kept: sum((step) => seriesLimits.keptMs[step]) }
}

/** Each endpoint receives all the time and delivers a segment a minute through one view; a tenth of the segments have dead letters. */
function addGrowth({ nodes, accounts, endpoints, regions }: Scale, rowBytes: ReadonlyMap<Table, number>, tables: Tables): void {
  const commitsADay = endpoints * 1440
  const buckets = countersKeptHours * 12
  const perNode = (nodes / regions) * endpoints
  const [received, delivered] = [seriesRows(10, rowMs), seriesRows(60, (step) => stepSeconds[step] * 1000)]
  const rows: readonly (readonly [Table, number | null, string, number])[] = [
    ['commits', commitsADay, `${commitsKeptDays} days (\`INLET_COMMITS_KEPT_DAYS\`)`, commitsADay * commitsKeptDays],
    ['dlq_files', commitsADay / 10, 'as long as their commit', (commitsADay / 10) * commitsKeptDays],
    ['view_counters', endpoints * 288, `${countersKeptHours} hours`, endpoints * buckets],
    ['view_quality', endpoints * 288, `${countersKeptHours} hours`, endpoints * (buckets + 1)],
    ['endpoint_series', endpoints * received.aDay, '1 hour to 30 days, by length', endpoints * received.kept],
    ['view_series', endpoints * delivered.aDay, '1 hour to 30 days, by length', endpoints * delivered.kept],
    ['committed_seqs', null, 'while the node reports', perNode],
    ['account_usage', (nodes / regions) * accounts, '2 days', (nodes / regions) * accounts * 2],
    ['endpoint_lags', null, 'while the node has the log', perNode],
    ['audit_events', accounts * 10, '365 days (`INLET_AUDIT_KEPT_DAYS`), 110 000 of an account', accounts * 10 * 365],
  ]
  tables.add(
    'growth',
    ['table', 'bytes of a row', 'rows a day', 'size of a year', 'kept', 'rows at most', 'size at most'],
    rows.map(([name, aDay, kept, most]) => {
      const bytes = rowBytes.get(name) ?? 0
      const year = aDay === null ? '–' : size(aDay * 365 * bytes)
      return [`\`${name}\``, round(bytes), aDay === null ? '–' : round(aDay), year, kept, round(most), size(most * bytes)]
    }),
  )
}
