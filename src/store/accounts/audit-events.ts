/**
 * The audit trail: who tried to change what, and what came of it.
 *
 * Law: an event is written in the transaction of its change (`store.ts`, `withCompanion`), so no change is without one.
 */
import { isUuid, lowestUuidAt, timeOrderedUuid } from '#lib/uuid.ts'
import type { AuditActor, AuditEvent, AuditEventPage, AuditEventQuery, AuditResult } from '#model/audit-event.ts'
import { fromTime, toTime } from '../columns.ts'
import type { Database } from '../schema.ts'
import type { Db } from '../store.ts'
import { idOfActor, listNames } from './names.ts'

export type NewAuditEvent = Omit<AuditEvent, 'at' | 'actor' | 'actor_name' | 'resource_name'> & {
  readonly at: number
  readonly actor: AuditActor
}

type Change = Pick<NewAuditEvent, 'actor' | 'operation' | 'account_id' | 'resource_id'>

/** Returns the event of a change that succeeded, made by a command or a start. */
export function eventOutsideApi({ actor, operation, account_id, resource_id }: Change, now: number): NewAuditEvent {
  return {
    ...{ id: timeOrderedUuid(now), at: now, account_id: idOrNull(account_id), actor, address: null, operation },
    ...{ resource_id: idOrNull(resource_id), result: 'succeeded', status: null, error: null, request_id: null, unrecorded: 0 },
  }
}

/** A command may name anything. Only ids are recorded. */
function idOrNull(text: string | null): string | null {
  return text !== null && isUuid(text) ? text.toLowerCase() : null
}

/** Does nothing if the event exists: a call may make several transactions. */
export async function insertAuditEvent(db: Db, event: NewAuditEvent): Promise<void> {
  await db
    .insertInto('audit_events')
    .values(event)
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
}

/** Records what came of a call, whether or not its event exists. */
export async function upsertAuditEvent(db: Db, event: NewAuditEvent): Promise<void> {
  const { account_id, resource_id, result, status, error, unrecorded } = event
  await db
    .insertInto('audit_events')
    .values(event)
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ account_id, resource_id, result, status, error, unrecorded }))
    .execute()
}

/** Returns one page, newest first: of an account, or of the whole installation if `account_id` is undefined. */
export async function listAuditEvents(
  db: Db,
  account_id: string | undefined,
  { limit, before, operation, result, since }: AuditEventQuery,
): Promise<AuditEventPage> {
  let events = db
    .selectFrom('audit_events')
    .selectAll()
    .orderBy('id', 'desc')
    .limit(limit + 1)
  if (account_id !== undefined) events = events.where('account_id', '=', account_id)
  if (before !== undefined) events = events.where('id', '<', before)
  if (operation !== undefined) events = events.where('operation', '=', operation)
  if (result !== undefined) events = events.where('result', '=', result)
  if (since !== undefined) events = events.where('id', '>=', lowestUuidAt(fromTime(since)))
  const rows = await events.execute()
  const items = await withNames(db, account_id, rows.slice(0, limit))
  return { items, next_cursor: rows.length > limit ? (items.at(-1)?.id ?? null) : null }
}

/** Removes at most `limit` events from before `before` (epoch ms). Returns their number. */
export async function removeAuditEventsBefore(db: Db, before: number, limit: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('audit_events')
    .where('id', 'in', ({ selectFrom }) =>
      selectFrom('audit_events').select('id').where('id', '<', lowestUuidAt(before)).orderBy('id').limit(limit),
    )
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

/** Removes the oldest events with this result that an account has beyond `max`, at most `limit`. Returns their number. */
export async function removeAuditEventsBeyond(
  db: Db,
  account_id: string | null,
  { result, max, limit }: { readonly result: AuditResult; readonly max: number; readonly limit: number },
): Promise<number> {
  const ofAccount = db
    .selectFrom('audit_events')
    .select('id')
    .where('account_id', account_id === null ? 'is' : '=', account_id)
    .where('result', '=', result)
  const newest = await ofAccount.orderBy('id', 'desc').offset(max).limit(1).executeTakeFirst()
  if (newest === undefined) return 0
  const { numDeletedRows } = await db
    .deleteFrom('audit_events')
    .where('id', 'in', ofAccount.where('id', '<=', newest.id).orderBy('id').limit(limit))
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

/** Returns the accounts that have events, and null for events of no account. */
export async function listAuditedAccounts(db: Db): Promise<readonly (string | null)[]> {
  const rows = await db.selectFrom('accounts').select('id').orderBy('id').execute()
  return [null, ...rows.map(({ id }) => id)]
}

/** Names are read and not stored: they change, and a failed call may have named what is not its own. */
async function withNames(
  db: Db,
  account_id: string | undefined,
  rows: readonly Database['audit_events'][],
): Promise<AuditEvent[]> {
  const ids = rows.flatMap(({ actor, resource_id }) => [idOfActor(actor) ?? [], resource_id ?? []].flat())
  // Somebody may have left since. What was done in the account, or to it, was done by or to its own people.
  const people = rows.flatMap(({ actor, result, resource_id }) =>
    result === 'succeeded' ? [idOfActor(actor) ?? [], resource_id ?? []].flat() : [],
  )
  const names = await listNames(db, account_id, { ids, people })
  return rows.map(({ at, result, ...row }) => ({
    ...row,
    at: toTime(at),
    result: result as AuditResult,
    actor_name: names.get(idOfActor(row.actor) ?? '') ?? null,
    resource_name: names.get(row.resource_id ?? '') ?? null,
  }))
}
