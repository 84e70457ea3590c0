/** Sessions of people. The library for signing in (`#auth/sign-in.ts`) makes and extends them. */
import { AppError } from '#errors.ts'
import { toTime } from '../columns.ts'
import type { Db } from '../store.ts'

/** A session without its token, which never leaves the database but as a cookie. */
export type StoredSession = {
  readonly id: string
  readonly address: string | null
  readonly user_agent: string | null
  readonly created_at: string
  readonly last_seen_at: string
  readonly expires_at: string
}

/** Returns the sessions of a person that have not ended, the last seen first. */
export async function listSessions(db: Db, person_id: string, now: number): Promise<StoredSession[]> {
  const rows = await db
    .selectFrom('sessions')
    .select(['id', 'ip_address', 'user_agent', 'created_at', 'updated_at', 'expires_at'])
    .where('person_id', '=', person_id)
    .where('expires_at', '>', toTime(now))
    .orderBy('updated_at', 'desc')
    .orderBy('id')
    .execute()
  return rows.map(({ ip_address, updated_at, ...row }) => ({ ...row, address: ip_address || null, last_seen_at: updated_at }))
}

/** Throws not_found, also for a session of somebody else. */
export async function removeSession(db: Db, person_id: string, id: string): Promise<void> {
  const mine = db.deleteFrom('sessions').where('id', '=', id).where('person_id', '=', person_id)
  if ((await mine.returning('id').executeTakeFirst()) === undefined) throw new AppError('not_found', 'you have no such session')
}

export async function removeOtherSessions(db: Db, person_id: string, kept: string): Promise<void> {
  await db.deleteFrom('sessions').where('person_id', '=', person_id).where('id', '!=', kept).execute()
}
