/**
 * Time series of endpoints: records that nodes accepted and refused, bytes that waited, and records that were delivered.
 *
 * Law: a report of a node is added once, in the transaction that first records it, and so is a commit. Nodes and commits add to the same
 * rows, so a row is written only if nobody changed it since it was read.
 */
import { sql } from 'kysely'
import { binOf } from '#lib/duration-histogram.ts'
import type { SegmentCommit } from '#model/commit.ts'
import type { SeriesStep } from '#model/limits.ts'
import type { SeriesReport } from '#model/node-protocol.ts'
import {
  addEndpointCounts,
  bucketsOf,
  type EndpointBucket,
  type EndpointCounts,
  type SeriesWindow,
  stepSeconds,
  toEndpointBucket,
} from '#model/series.ts'
import { inChunks } from '../chunks.ts'
import { listOwnEndpoints } from '../cluster/node-scope.ts'
import { fromJson, fromTime, toTime } from '../columns.ts'
import type { Db, Tx } from '../store.ts'

type Addition = { readonly endpoint_id: string; readonly at: number; readonly counts: Partial<EndpointCounts> }

/**
 * Adds what a node counted, unless this report was recorded before. Skips endpoints that are not of the regions that the node serves, and
 * times that are too far away.
 */
export async function recordSeriesReport(db: Tx, { node_id, run, number, items }: SeriesReport, now: number): Promise<void> {
  if (!(await isNewReport(db, { node_id, run, number }))) return
  const own = await listOwnEndpoints(db, node_id, [...new Set(items.map(({ endpoint_id }) => endpoint_id))])
  const additions = items.flatMap(({ endpoint_id, at, ...counts }): Addition[] => {
    const time = fromTime(at)
    return own.has(endpoint_id) && time <= now + clockSkewMsMax ? [{ endpoint_id, at: Math.min(time, now), counts }] : []
  })
  await add(db, additions, now)
}

/** Adds a new commit that was made at `uploadedAt` (epoch ms). */
export async function addCommitToSeries(db: Tx, commit: SegmentCommit, uploadedAt: number): Promise<void> {
  // The clock of the node may be ahead.
  const lagMs = Math.max(0, uploadedAt - fromTime(commit.sealed_at))
  const counts = {
    commits: 1,
    committed_records: commit.records,
    committed_after: { [binOf(lagMs)]: 1 },
    committed_after_ms_max: lagMs,
  }
  await add(db, [{ endpoint_id: commit.endpoint_id, at: uploadedAt, counts }], uploadedAt)
}

export type UndeliveredBytes = { readonly endpoint_id: string; readonly bytes: number }

/** Adds what nodes held at `now` (epoch ms) that no commit had. */
export async function addUndeliveredToSeries(db: Tx, samples: readonly UndeliveredBytes[], now: number): Promise<void> {
  const additions = samples.map(({ endpoint_id, bytes }) => ({ endpoint_id, at: now, counts: { undelivered_bytes_max: bytes } }))
  await add(db, additions, now)
}

/** Returns the buckets of an endpoint in which something happened, in the order of time. The caller checks the account. */
export async function listEndpointBuckets(
  db: Db,
  endpoint_id: string,
  { step, stepMs, sinceMs }: SeriesWindow,
): Promise<EndpointBucket[]> {
  const rows = await db
    .selectFrom('endpoint_series')
    .select(['bucket_start', 'counts'])
    .where(({ and }) => and({ endpoint_id, step }))
    .where('bucket_start', '>', sinceMs - rowMs(step))
    .orderBy('bucket_start')
    .execute()
  return rows.flatMap(({ bucket_start, counts }) =>
    Object.entries(fromJson<Slots>(counts)).flatMap(([slot, some]) => {
      const start = bucket_start + Number(slot) * stepMs
      return start < sinceMs ? [] : [toEndpointBucket(toTime(start), addEndpointCounts([some]))]
    }),
  )
}

/** Returns how much time a row is about. Rows of a minute have its short buckets as well, so that a report writes few rows. */
export function rowMs(step: SeriesStep): number {
  return Math.max(60, stepSeconds[step]) * 1000
}

/** A node whose clock is ahead by more is not believed. */
const clockSkewMsMax = 60_000

/** Reports of one start of a node arrive in order, and one may arrive twice. */
async function isNewReport(db: Tx, { node_id, run, number }: Omit<SeriesReport, 'items'>): Promise<boolean> {
  const recorded = await db
    .insertInto('series_reports')
    .values({ node_id, run, number })
    .onConflict((conflict) =>
      conflict
        .column('node_id')
        .doUpdateSet({ run, number })
        .where(({ eb, or }) => or([eb('series_reports.run', '!=', run), eb('series_reports.number', '<', number)])),
    )
    .returning('node_id')
    .executeTakeFirst()
  return recorded !== undefined
}

/** The buckets of a row, by their number in it. Counts that are zero are left out. */
type Slots = Readonly<Record<string, Partial<EndpointCounts>>>

type Key = { readonly endpoint_id: string; readonly step: SeriesStep; readonly bucket_start: number }
/** Counts to add to a row, by bucket. */
type RowAddition = Key & { readonly slots: Map<number, Partial<EndpointCounts>[]> }

async function add(db: Tx, additions: readonly Addition[], now: number): Promise<void> {
  const added = new Map<string, RowAddition>()
  for (const { endpoint_id, at, counts } of additions)
    for (const { step, bucketStart } of bucketsOf(at, now)) {
      const bucket_start = Math.floor(bucketStart / rowMs(step)) * rowMs(step)
      const key = { endpoint_id, step, bucket_start }
      const name = nameOf(key)
      const row = added.get(name) ?? { ...key, slots: new Map<number, Partial<EndpointCounts>[]>() }
      added.set(name, row)
      const slot = (bucketStart - bucket_start) / (stepSeconds[step] * 1000)
      const parts = row.slots.get(slot)
      if (parts === undefined) row.slots.set(slot, [counts])
      else parts.push(counts)
    }
  // Always in the same order: transactions that write rows of each other would deadlock.
  const ordered = [...added].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row)
  for (const some of inChunks(ordered)) {
    // A row that another transaction changed meanwhile is locked by the attempt to write it, so a second one succeeds.
    for (let left = some; left.length > 0; ) left = await addToUnchanged(db, left)
  }
}

/** Adds to rows, and returns those of them that another transaction changed after they were read here. */
async function addToUnchanged(db: Tx, rows: readonly RowAddition[]): Promise<readonly RowAddition[]> {
  const stored = new Map((await readRows(db, rows)).map((row) => [nameOf(row), row]))
  const sums = rows.map(({ slots, ...key }) => {
    const { counts, writes } = stored.get(nameOf(key)) ?? { counts: '{}', writes: 0 }
    return { ...key, counts: JSON.stringify(addToSlots(fromJson(counts), slots)), writes: writes + 1 }
  })
  const written = await db
    .insertInto('endpoint_series')
    .values(sums)
    .onConflict((conflict) =>
      conflict
        .columns(['endpoint_id', 'step', 'bucket_start'])
        .doUpdateSet(({ ref }) => ({ counts: ref('excluded.counts'), writes: ref('excluded.writes') }))
        .where(sql<boolean>`endpoint_series.writes = excluded.writes - 1`),
    )
    .returning(['endpoint_id', 'step', 'bucket_start'])
    .execute()
  if (written.length === rows.length) return []
  const names = new Set(written.map(nameOf))
  return rows.filter((row) => !names.has(nameOf(row)))
}

/** Returns the rows of these keys, and some more. A list of keys would do, but Postgres scans all rows for one before it has statistics. */
async function readRows(db: Tx, keys: readonly Key[]) {
  const distinct = <T>(of: (key: Key) => T) => [...new Set(keys.map(of))]
  return db
    .selectFrom('endpoint_series')
    .selectAll()
    .where(
      'endpoint_id',
      'in',
      distinct(({ endpoint_id }) => endpoint_id),
    )
    .where(
      'step',
      'in',
      distinct(({ step }) => step),
    )
    .where(
      'bucket_start',
      'in',
      distinct(({ bucket_start }) => bucket_start),
    )
    .execute()
}

function addToSlots(stored: Slots, added: RowAddition['slots']): Slots {
  const sums = [...added].map(([slot, parts]) => [slot, withoutZeros(addEndpointCounts([stored[slot] ?? {}, ...parts]))] as const)
  return { ...stored, ...Object.fromEntries(sums) }
}

function withoutZeros(counts: EndpointCounts): Partial<EndpointCounts> {
  const isSet = (value: number | object) => (typeof value === 'number' ? value !== 0 : Object.keys(value).length > 0)
  return Object.fromEntries(Object.entries(counts).filter(([, value]) => isSet(value)))
}

function nameOf({ endpoint_id, step, bucket_start }: Omit<Key, 'step'> & { readonly step: string }): string {
  return `${endpoint_id} ${step} ${bucket_start}`
}
