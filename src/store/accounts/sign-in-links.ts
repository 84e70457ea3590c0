/**
 * One-time links into the console.
 *
 * Owns: the rows. Law: a link is used once (`claimSignInLink` is one statement), and not after its end.
 */
import { AppError } from '#errors.ts'
import type { Invitation, Role } from '#model/person.ts'
import { fromFlag, toTime } from '../columns.ts'
import type { Database } from '../schema.ts'
import type { Db } from '../store.ts'

export type NewSignInLink = {
  readonly id: string
  /** SHA-256 of the secret, lowercase hex. */
  readonly hash: string
  /** Person who signs in; null for somebody new. */
  readonly person_id: string | null
  readonly email: string | null
  /** The account to join, with the role; null for none. */
  readonly account_id: string | null
  readonly role: Role | null
  readonly makes_operator: boolean
  readonly created_by: string
  /** Epoch ms. */
  readonly expires_at: number
}

export type SignInLink = Pick<
  NewSignInLink,
  'id' | 'person_id' | 'email' | 'account_id' | 'role' | 'makes_operator' | 'created_by'
>

export async function insertSignInLink(db: Db, link: NewSignInLink, now: number): Promise<void> {
  const row = { ...link, makes_operator: fromFlag(link.makes_operator), created_at: now, used_at: null }
  await db.insertInto('sign_in_links').values(row).execute()
}

/** Uses the link up. Returns undefined if it cannot be used any more. */
export async function claimSignInLink(db: Db, hash: string, now: number): Promise<SignInLink | undefined> {
  const row = await db
    .updateTable('sign_in_links')
    .set({ used_at: now })
    .where('hash', '=', hash)
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .returningAll()
    .executeTakeFirst()
  return row && toLink(row)
}

/** Returns the accounts that somebody can still join with an invitation to this e-mail address. */
export async function listInvitedAccounts(db: Db, email: string, now: number): Promise<{ readonly status: string }[]> {
  return db
    .selectFrom('sign_in_links')
    .innerJoin('accounts', 'accounts.id', 'sign_in_links.account_id')
    .select('accounts.status')
    .distinct()
    .where('sign_in_links.email', '=', email.toLowerCase())
    .where('makes_operator', '=', 0)
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .execute()
}

/** Uses up all invitations to an e-mail address, and returns them. Those into suspended accounts wait. */
export async function claimInvitationsTo(db: Db, email: string, now: number): Promise<SignInLink[]> {
  const rows = await db
    .updateTable('sign_in_links')
    .set({ used_at: now })
    .where('email', '=', email.toLowerCase())
    .where('account_id', 'in', db.selectFrom('accounts').select('id').where('status', '=', 'active'))
    .where('makes_operator', '=', 0)
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .returningAll()
    .execute()
  return rows.map(toLink)
}

/** Returns the links with which somebody can still join the account, newest first. */
export async function listInvitations(db: Db, account_id: string, now: number): Promise<Invitation[]> {
  const rows = await db
    .selectFrom('sign_in_links')
    .selectAll()
    .where('account_id', '=', account_id)
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute()
  return rows.map(({ id, email, role, created_by, created_at, expires_at }) => ({
    ...{ id, email, role: role as Role, created_by },
    ...{ created_at: toTime(created_at), expires_at: toTime(expires_at) },
  }))
}

/** Throws not_found, also for a link that was used. */
export async function removeInvitation(db: Db, account_id: string, id: string): Promise<void> {
  const removed = await db
    .deleteFrom('sign_in_links')
    .where(({ and }) => and({ id, account_id }))
    .where('used_at', 'is', null)
    .returning('id')
    .executeTakeFirst()
  if (removed === undefined) throw new AppError('not_found', 'no such invitation')
}

/** Removes the unused links into an account that somebody made: who no longer owns it must not let others in. */
export async function removeInvitationsBy(db: Db, account_id: string, created_by: string): Promise<void> {
  const made = db.deleteFrom('sign_in_links').where('account_id', '=', account_id).where('created_by', '=', created_by)
  await made.where('used_at', 'is', null).execute()
}

/** Removes the unused links that somebody made. */
export async function removeLinksBy(db: Db, created_by: string): Promise<void> {
  await db.deleteFrom('sign_in_links').where('created_by', '=', created_by).where('used_at', 'is', null).execute()
}

/** Removes links that ended before `before` (epoch ms), used or not. */
export async function removeSignInLinksBefore(db: Db, before: number): Promise<void> {
  await db.deleteFrom('sign_in_links').where('expires_at', '<', before).execute()
}

function toLink({ id, person_id, email, account_id, role, makes_operator, created_by }: Database['sign_in_links']): SignInLink {
  return { ...{ id, person_id, email, account_id, created_by }, role: role as Role | null, makes_operator: makes_operator === 1 }
}
