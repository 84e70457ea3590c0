import { sql } from 'kysely'
import { AppError } from '#errors.ts'
import { type AttachView, type Binding, ruleOf } from '#model/binding.ts'
import { readCanaryRule } from '#model/canary-rule.ts'
import { bindingLimits } from '#model/limits.ts'
import type { Page, PageQuery } from '#model/page.ts'
import type { View } from '#model/view.ts'
import type { ChangeTx } from '../cluster/epoch.ts'
import { runningEpoch, touchEndpoint, touchViewUnlessNeeded } from '../cluster/section-versions.ts'
import { fromFlag, fromJson, fromTimeOrNull, toTime, toTimeOrNull } from '../columns.ts'
import { translateErrors } from '../engines/database-error.ts'
import { countRows, readPage } from '../page.ts'
import type { Database } from '../schema.ts'
import type { Db } from '../store.ts'
import { getEndpoint } from './endpoints.ts'
import { findView } from './views.ts'

export type NewBinding = AttachView & { readonly id: string; readonly endpoint_id: string; readonly activated_by: string }

/**
 * Attaches a view.
 * Throws not_found for the endpoint, conflict if it is draining or nodes still need too many detached views of it, validation_error if the
 * view is missing or not published, and view_already_attached. A shadow of the view at the endpoint ends.
 */
export async function insertBinding(db: ChangeTx, account_id: string, binding: NewBinding, now: number): Promise<Binding> {
  const { id, endpoint_id, view_id, is_required, activated_by, canary_start_ts } = binding
  const { desired_state, region } = await getEndpoint(db, account_id, endpoint_id)
  if (desired_state === 'draining') throw new AppError('conflict', 'the endpoint is being deleted')
  await refuseIfUnsettled(db, endpoint_id)
  const rule = ruleOf(binding)
  // Locks the row: a concurrent archive either finishes first or sees the new binding.
  const view = await db
    .updateTable('views')
    .set({ status: sql`status` })
    .where(({ and }) => and({ account_id, id: view_id, status: 'published' }))
    .returning('id')
    .executeTakeFirst()
  if (view === undefined) throw await explainNotAttachable(db, account_id, view_id)
  const row = {
    ...{ id, account_id, endpoint_id, view_id, activated_by },
    is_required: fromFlag(is_required),
    activated_at: now,
    deactivated_at: null,
    canary_start_ts: fromTimeOrNull(canary_start_ts),
    canary_rule: rule === null ? null : JSON.stringify(rule),
    stopped_reason: null,
    unsettled_epoch: null,
  }
  await touchViewUnlessNeeded(db, view_id, region)
  await translateErrors(db.insertInto('bindings').values(row).execute(), {
    unique: new AppError('view_already_attached', 'the view is already attached to this endpoint'),
  })
  // It would count each record once more.
  await db
    .deleteFrom('shadows')
    .where(({ and }) => and({ endpoint_id, view_id }))
    .execute()
  await touchEndpoint(db, endpoint_id)
  return toBinding(await select(db).where('bindings.id', '=', id).executeTakeFirstOrThrow())
}

/** Returns the bindings of one endpoint, active and detached, newest first. The caller checks that the endpoint exists. */
export async function listBindings(db: Db, account_id: string, endpoint_id: string): Promise<readonly Binding[]> {
  return (await selectNewestFirst(db, account_id, endpoint_id).execute()).map(toBinding)
}

/** Like `listBindings`, but one page. */
export async function listBindingPage(db: Db, account_id: string, endpoint_id: string, page: PageQuery): Promise<Page<Binding>> {
  return readPage(selectNewestFirst(db, account_id, endpoint_id), page, toBinding)
}

/** Returns those of the endpoints that have a view attached. */
export async function findEndpointsWithViews(db: Db, endpoint_ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (endpoint_ids.length === 0) return new Set()
  const rows = await db
    .selectFrom('bindings')
    .select('endpoint_id')
    .distinct()
    .where('endpoint_id', 'in', endpoint_ids)
    .where('deactivated_at', 'is', null)
    .execute()
  return new Set(rows.map(({ endpoint_id }) => endpoint_id))
}

/** Returns the versions that are attached to an endpoint. */
export async function listAttachedViews(
  db: Db,
  endpoint_id: string,
): Promise<readonly Pick<View, 'name' | 'version' | 'definition'>[]> {
  const rows = await db
    .selectFrom('bindings')
    .innerJoin('views', 'views.id', 'bindings.view_id')
    .select(['views.name', 'views.version', 'views.definition'])
    .where('bindings.endpoint_id', '=', endpoint_id)
    .where('bindings.deactivated_at', 'is', null)
    .orderBy('views.name')
    .orderBy('views.version')
    .execute()
  return rows.map(({ definition, ...view }) => ({ ...view, definition: fromJson(definition) }))
}

/** Returns the endpoints that a version of the view is attached to, those that delivered last first. */
export async function listEndpointsOfLineage(
  db: Db,
  account_id: string,
  view_name: string,
  limit: number,
): Promise<readonly { readonly id: string; readonly name: string }[]> {
  return db
    .selectFrom('views')
    .innerJoin('bindings', 'bindings.view_id', 'views.id')
    .innerJoin('endpoints', 'endpoints.id', 'bindings.endpoint_id')
    .leftJoin('commit_heads', 'commit_heads.endpoint_id', 'endpoints.id')
    .select(['endpoints.id', 'endpoints.name'])
    .where(({ and }) => and({ 'views.account_id': account_id, 'views.name': view_name }))
    .where('bindings.deactivated_at', 'is', null)
    .groupBy(['endpoints.id', 'endpoints.name', 'commit_heads.uploaded_at'])
    .orderBy(sql`coalesce(commit_heads.uploaded_at, 0)`, 'desc')
    .orderBy('endpoints.id')
    .limit(limit)
    .execute()
}

/** Detaches a view. It still applies to segments that were sealed before. Throws not_found, also if it is already detached. */
export async function detachBinding(
  db: ChangeTx,
  account_id: string,
  endpoint_id: string,
  id: string,
  now: number,
): Promise<void> {
  const detached = await db
    .updateTable('bindings')
    .set({ deactivated_at: now, unsettled_epoch: runningEpoch })
    .where(({ and }) => and({ account_id, endpoint_id, id }))
    .where('deactivated_at', 'is', null)
    .returning('id')
    .executeTakeFirst()
  if (detached === undefined) throw new AppError('not_found', 'no such active binding')
  await touchEndpoint(db, endpoint_id)
}

/** Bounds what nodes are sent: each detached view stays in their configuration until it is settled. */
async function refuseIfUnsettled(db: Db, endpoint_id: string): Promise<void> {
  const detached = db.selectFrom('bindings').where('endpoint_id', '=', endpoint_id)
  const unsettled = await countRows(detached.where('unsettled_epoch', 'is not', null))
  if (unsettled < bindingLimits.unsettledMax) return
  throw new AppError(
    'conflict',
    `nodes may still need ${unsettled} detached views of this endpoint, for segments that were sealed before: wait until these are delivered; a node that is silent must be started (the operator sees it in GET /v1/nodes)`,
  )
}

async function explainNotAttachable(db: Db, account_id: string, view_id: string): Promise<AppError> {
  const view = await findView(db, account_id, view_id)
  const message = view === undefined ? 'is not a view of this account' : `is a view that is ${view.status}`
  return new AppError('validation_error', 'only a published view can be attached', { errors: [{ path: 'view_id', message }] })
}

function select(db: Db) {
  return db
    .selectFrom('bindings')
    .innerJoin('views', 'views.id', 'bindings.view_id')
    .innerJoin('endpoints', 'endpoints.id', 'bindings.endpoint_id')
    .selectAll('bindings')
    .select(['views.name as view_name', 'views.version as view_version'])
    .select('endpoints.name as endpoint_name')
}

function selectNewestFirst(db: Db, account_id: string, endpoint_id: string) {
  return select(db)
    .where(({ and }) => and({ 'bindings.account_id': account_id, 'bindings.endpoint_id': endpoint_id }))
    .orderBy('bindings.activated_at', 'desc')
    .orderBy('bindings.id')
}

type Row = Database['bindings'] & { view_name: string; view_version: number; endpoint_name: string }

function toBinding(row: Row): Binding {
  return {
    id: row.id,
    endpoint_id: row.endpoint_id,
    endpoint_name: row.endpoint_name,
    view_id: row.view_id,
    view_name: row.view_name,
    view_version: row.view_version,
    is_required: row.is_required === 1,
    activated_at: toTime(row.activated_at),
    activated_by: row.activated_by,
    deactivated_at: toTimeOrNull(row.deactivated_at),
    canary_start_ts: toTimeOrNull(row.canary_start_ts),
    canary_rule: row.canary_rule === null ? null : readCanaryRule(row.canary_rule),
    stopped_reason: row.stopped_reason,
    status: row.deactivated_at === null ? 'active' : 'detached',
  }
}
