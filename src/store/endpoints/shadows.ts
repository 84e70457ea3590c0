/**
 * Shadows: definitions that nodes run on the segments of an endpoint to count their outcome.
 *
 * Law: a shadow has the definition as it was when it started, whatever becomes of the draft. The figures of a draft at an endpoint are those
 * of its last shadow there, and the figures of a published version are of its definition.
 */
import { AppError } from '#errors.ts'
import { shadowLimits } from '#model/limits.ts'
import { mayNeedSecrets } from '#model/secret.ts'
import type { Shadow } from '#model/shadow.ts'
import type { ChangeTx } from '../cluster/epoch.ts'
import { touchEndpoint } from '../cluster/section-versions.ts'
import { toTime } from '../columns.ts'
import { translateErrors } from '../engines/database-error.ts'
import { countRows } from '../page.ts'
import { removeViewFigures } from '../series/view-figures.ts'
import type { Db } from '../store.ts'
import { getEndpoint } from './endpoints.ts'
import { findView } from './views.ts'

export type NewShadow = Pick<Shadow, 'id' | 'endpoint_id' | 'view_id' | 'started_by'>

/** Throws not_found for the endpoint, conflict if it is draining, has enough shadows, or has this one or the view attached, and validation_error for the view. */
export async function insertShadow(db: ChangeTx, account_id: string, shadow: NewShadow, now: number): Promise<Shadow> {
  const { id, endpoint_id, view_id, started_by } = shadow
  const { desired_state } = await getEndpoint(db, account_id, endpoint_id)
  if (desired_state === 'draining') throw new AppError('conflict', 'the endpoint is being deleted')
  const view = await findView(db, account_id, view_id)
  if (view === undefined || view.status === 'archived') {
    const message = view === undefined ? 'is not a view of this account' : 'is a view that is archived'
    throw new AppError('validation_error', `view_id: ${message}`, { errors: [{ path: 'view_id', message }] })
  }
  if (mayNeedSecrets(view.definition)) {
    const message = 'is a view that hashes with secrets, which shadows do not have: attach it as a canary'
    throw new AppError('validation_error', `view_id: ${message}`, { errors: [{ path: 'view_id', message }] })
  }
  const attached = db.selectFrom('bindings').where(({ and }) => and({ endpoint_id, view_id }))
  if ((await countRows(attached.where('deactivated_at', 'is', null))) > 0)
    throw new AppError('conflict', 'the version is attached to the endpoint, which counts its records already: shadow a draft')
  const running = await countRows(db.selectFrom('shadows').where('endpoint_id', '=', endpoint_id))
  if (running >= shadowLimits.perEndpointMax)
    throw new AppError('conflict', `an endpoint has at most ${shadowLimits.perEndpointMax} shadows: end one of them first`)
  const definition = JSON.stringify(view.definition)
  const row = { id, account_id, endpoint_id, view_id, definition, started_at: now, started_by }
  await translateErrors(db.insertInto('shadows').values(row).execute(), {
    unique: new AppError('conflict', 'the view shadows this endpoint already'),
  })
  // Earlier figures may be of another definition. A version that is published has none that are.
  if (view.status === 'draft') await removeViewFigures(db, view_id, [endpoint_id])
  await touchEndpoint(db, endpoint_id)
  const [made] = await listShadows(db, account_id, endpoint_id)
  if (made === undefined) throw new Error('the shadow was not inserted')
  return made
}

/** Returns the shadows of an endpoint, the latest first. The caller checks that the endpoint exists. */
export async function listShadows(db: Db, account_id: string, endpoint_id: string): Promise<Shadow[]> {
  const rows = await db
    .selectFrom('shadows')
    .innerJoin('views', 'views.id', 'shadows.view_id')
    .innerJoin('endpoints', 'endpoints.id', 'shadows.endpoint_id')
    .select(['shadows.id', 'shadows.endpoint_id', 'endpoints.name as endpoint_name', 'shadows.view_id'])
    .select(['views.name as view_name', 'views.version as view_version', 'shadows.started_at', 'shadows.started_by'])
    .where(({ and }) => and({ 'shadows.account_id': account_id, 'shadows.endpoint_id': endpoint_id }))
    .orderBy('shadows.started_at', 'desc')
    .orderBy('shadows.id', 'desc')
    .execute()
  return rows.map(({ started_at, ...row }) => ({ ...row, started_at: toTime(started_at) }))
}

/** Throws not_found. */
export async function removeShadow(db: ChangeTx, account_id: string, endpoint_id: string, id: string): Promise<void> {
  const removed = await db
    .deleteFrom('shadows')
    .where(({ and }) => and({ account_id, endpoint_id, id }))
    .returning('id')
    .executeTakeFirst()
  if (removed === undefined) throw new AppError('not_found', 'no such shadow')
  await touchEndpoint(db, endpoint_id)
}
