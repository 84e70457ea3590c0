/**
 * Canaries: versions that are attached beside another version of their view, with a rule that stops them.
 *
 * Law: a canary is stopped only while another version is attached, in one transaction, so that no segment is left without a version.
 */
import { sql } from 'kysely'
import { type CanaryRule, readCanaryRule, type VersionFigures } from '#model/canary-rule.ts'
import { addQualities, type QualitySum } from '#model/view-quality.ts'
import { eventOutsideApi, insertAuditEvent } from '../accounts/audit-events.ts'
import type { ChangeTx } from '../cluster/epoch.ts'
import { runningEpoch, touchEndpoint } from '../cluster/section-versions.ts'
import { fromJson } from '../columns.ts'
import { sumOf } from '../safe-sums.ts'
import { bucketStart } from '../series/view-buckets.ts'
import type { Db } from '../store.ts'

export type Canary = {
  readonly id: string
  readonly account_id: string
  readonly endpoint_id: string
  readonly view_id: string
  readonly view_name: string
  readonly version: number
  readonly rule: CanaryRule
  /** When it began, in epoch ms. */
  readonly since: number
}

export type Version = Pick<Canary, 'view_id' | 'version'>

/** Returns attached canaries of all accounts that have begun: those with an id above `after`, in order. */
export async function listCanaries(db: Db, now: number, after: string, limit: number): Promise<readonly Canary[]> {
  const rows = await db
    .selectFrom('bindings')
    .innerJoin('views', 'views.id', 'bindings.view_id')
    .select(['bindings.id', 'bindings.account_id', 'bindings.endpoint_id', 'bindings.view_id', 'bindings.canary_rule'])
    .select(['bindings.activated_at', 'bindings.canary_start_ts', 'views.name as view_name', 'views.version'])
    .where('bindings.canary_rule', 'is not', null)
    .where('bindings.deactivated_at', 'is', null)
    .where(({ eb, or }) => or([eb('bindings.canary_start_ts', 'is', null), eb('bindings.canary_start_ts', '<=', now)]))
    .where('bindings.id', '>', after)
    .orderBy('bindings.id')
    .limit(limit)
    .$narrowType<{ canary_rule: string }>()
    .execute()
  return rows.map(({ canary_rule, activated_at, canary_start_ts, ...row }) => ({
    ...row,
    rule: readCanaryRule(canary_rule),
    since: Math.max(activated_at, canary_start_ts ?? 0),
  }))
}

/** Returns the newest version that was attached before the canary and still is; undefined if it is alone. */
export function findVersionBeside(db: Db, { id, endpoint_id, view_name, since }: Canary): Promise<Version | undefined> {
  return db
    .selectFrom('bindings')
    .innerJoin('views', 'views.id', 'bindings.view_id')
    .select(['bindings.view_id', 'views.version'])
    .where(({ and }) => and({ 'bindings.endpoint_id': endpoint_id, 'views.name': view_name }))
    .where('bindings.deactivated_at', 'is', null)
    .where('bindings.id', '!=', id)
    .where('bindings.activated_at', '<=', since)
    .where(({ eb, or }) => or([eb('bindings.canary_start_ts', 'is', null), eb('bindings.canary_start_ts', '<', since)]))
    .orderBy('views.version', 'desc')
    .limit(1)
    .executeTakeFirst()
}

/** Returns what a version did on the endpoint from a time on. */
export async function readFigures(
  db: Db,
  { endpoint_id }: Pick<Canary, 'endpoint_id'>,
  { view_id, version }: Version,
  since: number,
): Promise<VersionFigures> {
  const from = bucketStart(since)
  const names = ['processed', 'accepted', 'dlq', 'failed'] as const
  const counts = await db
    .selectFrom('view_counters')
    .select(names.map((name) => sumOf(sql.ref(name)).as(name)))
    .where(({ and }) => and({ view_id, endpoint_id }))
    .where('bucket_start', '>=', from)
    .executeTakeFirstOrThrow()
  const rows = await db
    .selectFrom('view_quality')
    .select('quality')
    .where(({ and }) => and({ view_id, endpoint_id }))
    .where('bucket_start', '>=', from)
    .execute()
  const { columns } = addQualities(rows.map(({ quality }) => fromJson<QualitySum>(quality)))
  const [processed, accepted, dlq, failed] = names.map((name) => Number(counts[name] ?? 0))
  return { version, processed: processed ?? 0, accepted: accepted ?? 0, dlq: dlq ?? 0, failed: failed ?? 0, columns }
}

/** Detaches a canary, with an event of the audit trail. Returns whether it did: somebody may have decided before. */
export async function stopCanary(db: ChangeTx, canary: Canary, reason: string, now: number): Promise<boolean> {
  const { id, account_id, endpoint_id } = canary
  // Locks the endpoint's bindings against whoever detaches the other version.
  await db
    .updateTable('bindings')
    .set({ is_required: sql`is_required` })
    .where('endpoint_id', '=', endpoint_id)
    .where('deactivated_at', 'is', null)
    .execute()
  if ((await findVersionBeside(db, canary)) === undefined) return false
  const stopped = await db
    .updateTable('bindings')
    .set({ deactivated_at: now, unsettled_epoch: runningEpoch, stopped_reason: reason })
    .where('id', '=', id)
    .where('deactivated_at', 'is', null)
    .returning('id')
    .executeTakeFirst()
  if (stopped === undefined) return false
  await touchEndpoint(db, endpoint_id)
  const event = { actor: 'inlet', operation: 'stopCanary', account_id, resource_id: id } as const
  await insertAuditEvent(db, eventOutsideApi(event, now))
  return true
}
