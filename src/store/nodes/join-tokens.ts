/**
 * Join tokens.
 *
 * Owns: the rows, and counting the nodes that joined with each. Does not own: who may join (control/fleet/node-access.ts).
 * Law: joins with one token run one after another (`lockJoinToken`), so no more nodes than allowed ever join with it.
 */
import { AppError } from '#errors.ts'
import type { JoinToken, JoinTokenStatus } from '#model/join-token.ts'
import type { Page, PageQuery } from '#model/page.ts'
import { toTime, toTimeOrNull } from '../columns.ts'
import { readPage } from '../page.ts'
import type { Database } from '../schema.ts'
import type { Db, Tx } from '../store.ts'

export type NewStoredJoinToken = {
  readonly id: string
  readonly name: string
  /** Null: nodes of every region. */
  readonly region: string | null
  /** SHA-256 of the secret, lowercase hex. The secret itself is never stored. */
  readonly hash: string
  /** Null: any number. */
  readonly uses_max: number | null
  /** Epoch ms. */
  readonly expires_at: number
}

export async function insertJoinToken(db: Db, token: NewStoredJoinToken, now: number): Promise<JoinToken> {
  const row = { ...token, uses: 0, created_at: now, revoked_at: null }
  await db.insertInto('join_tokens').values(row).execute()
  return toJoinToken(row, now)
}

/** Returns one page, newest first, also of those that nobody can use any more. */
export async function listJoinTokens(db: Db, page: PageQuery, now: number): Promise<Page<JoinToken>> {
  const tokens = db.selectFrom('join_tokens').selectAll().orderBy('created_at', 'desc').orderBy('id')
  return readPage(tokens, page, (row) => toJoinToken(row, now))
}

/** Returns the id of the token with this secret, whether or not it can still be used. */
export async function findJoinTokenId(db: Db, hash: string): Promise<string | undefined> {
  return (await db.selectFrom('join_tokens').select('id').where('hash', '=', hash).executeTakeFirst())?.id
}

/** Returns the token, which no other transaction changes until the end of this one. */
export async function lockJoinToken(db: Tx, id: string, now: number): Promise<JoinToken | undefined> {
  // An update that changes nothing: SQLite has no `for update`.
  const row = await db
    .updateTable('join_tokens')
    .set(({ ref }) => ({ uses: ref('uses') }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()
  return row && toJoinToken(row, now)
}

/** Counts a node that joined. The caller has locked the token. */
export async function countJoin(db: Tx, id: string): Promise<void> {
  await db
    .updateTable('join_tokens')
    .set(({ eb }) => ({ uses: eb('uses', '+', 1) }))
    .where('id', '=', id)
    .execute()
}

/** Revokes permanently. A token that is already revoked keeps its time. Throws not_found. */
export async function revokeJoinToken(db: Db, id: string, now: number): Promise<JoinToken> {
  const row = await db
    .updateTable('join_tokens')
    .set(({ fn, val }) => ({ revoked_at: fn.coalesce('revoked_at', val(now)) }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()
  if (row === undefined) throw new AppError('not_found', 'no such join token')
  return toJoinToken(row, now)
}

/** Removes tokens that expired before `before` (epoch ms). */
export async function removeJoinTokensExpiredBefore(db: Db, before: number): Promise<void> {
  await db.deleteFrom('join_tokens').where('expires_at', '<', before).execute()
}

function statusOf({ revoked_at, expires_at, uses, uses_max }: Database['join_tokens'], now: number): JoinTokenStatus {
  if (revoked_at !== null) return 'revoked'
  if (expires_at <= now) return 'expired'
  return uses_max !== null && uses >= uses_max ? 'used_up' : 'active'
}

function toJoinToken(row: Database['join_tokens'], now: number): JoinToken {
  const { id, name, region, uses, uses_max, created_at, expires_at, revoked_at } = row
  return {
    ...{ id, name, region, status: statusOf(row, now), uses, uses_max },
    ...{ created_at: toTime(created_at), expires_at: toTime(expires_at), revoked_at: toTimeOrNull(revoked_at) },
  }
}
