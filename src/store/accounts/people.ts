/**
 * People, and the accounts that they belong to.
 *
 * Owns: memberships, and the rows of people that the library for signing in (`#auth/sign-in.ts`) reads and changes as well.
 * Law: an account that has people keeps an owner among them.
 */
import { AppError } from '#errors.ts'
import type { Membership, Person, Role } from '#model/person.ts'
import { toTime } from '../columns.ts'
import type { Db, Tx } from '../store.ts'

/** Stands for an address that is not known yet: the library needs one for each person. `.invalid` belongs to nobody (RFC 2606). */
const unknownEmailSuffix = '@people.invalid'

/** Returns null for the address of a person who has not set one. */
export function knownEmail(email: string): string | null {
  return email.endsWith(unknownEmailSuffix) ? null : email
}

export type NewPerson = {
  readonly id: string
  readonly name: string
  readonly email: string | null
  readonly is_operator: boolean
}

/** Throws conflict if somebody has this e-mail address. */
export async function insertPerson(db: Db, { id, name, email, is_operator }: NewPerson, now: number): Promise<void> {
  const at = toTime(now)
  const row = {
    id,
    name,
    email: email ?? `${id}${unknownEmailSuffix}`,
    email_verified: 0,
    image: null,
    is_operator: is_operator ? 1 : 0,
  }
  const inserted = await db
    .insertInto('people')
    .values({ ...row, created_at: at, updated_at: at })
    .onConflict((conflict) => conflict.column('email').doNothing())
    .returning('id')
    .executeTakeFirst()
  if (inserted === undefined)
    throw new AppError(
      'conflict',
      'somebody with this e-mail address exists already: sign in with it, then open the link again; if that is not you, ask for a link without an address',
    )
}

export async function hasPeople(db: Db): Promise<boolean> {
  return (await db.selectFrom('people').select('id').limit(1).executeTakeFirst()) !== undefined
}

export async function findPersonByEmail(db: Db, email: string): Promise<{ readonly id: string } | undefined> {
  return db.selectFrom('people').select('id').where('email', '=', email.toLowerCase()).executeTakeFirst()
}

/** Adds a person to an account. One who belongs to it already keeps the role. */
export async function insertMembership(
  db: Db,
  membership: { person_id: string; account_id: string; role: Role },
  now: number,
): Promise<void> {
  await db
    .insertInto('memberships')
    .values({ ...membership, created_at: now })
    .onConflict((conflict) => conflict.columns(['account_id', 'person_id']).doNothing())
    .execute()
}

/** Returns the accounts of a person, by name. */
export async function listMemberships(db: Db, person_id: string): Promise<Membership[]> {
  const rows = await db
    .selectFrom('memberships')
    .innerJoin('accounts', 'accounts.id', 'memberships.account_id')
    .select(['memberships.account_id', 'accounts.name as account_name', 'memberships.role'])
    .where('memberships.person_id', '=', person_id)
    .orderBy('accounts.name')
    .execute()
  return rows.map((row) => ({ ...row, role: row.role as Role }))
}

/** Returns the role of a person in an account, undefined for none. */
export async function findRole(db: Db, person_id: string, account_id: string): Promise<Role | undefined> {
  const row = await db
    .selectFrom('memberships')
    .select('role')
    .where(({ and }) => and({ person_id, account_id }))
    .executeTakeFirst()
  return row?.role as Role | undefined
}

/** Returns the people of an account, in the order in which they joined. */
export async function listPeople(db: Db, account_id: string): Promise<Person[]> {
  const rows = await db
    .selectFrom('memberships')
    .innerJoin('people', 'people.id', 'memberships.person_id')
    .select(({ selectFrom, ref }) => [
      'people.id',
      'people.name',
      'people.email',
      'memberships.role',
      'memberships.created_at',
      selectFrom('sessions')
        .select(({ fn }) => fn.max('sessions.updated_at').as('seen'))
        .where('sessions.person_id', '=', ref('people.id'))
        .as('last_seen_at'),
    ])
    .where('memberships.account_id', '=', account_id)
    .orderBy('memberships.created_at')
    .orderBy('people.id')
    .execute()
  return rows.map(({ id, name, email, role, created_at, last_seen_at }) => ({
    ...{ id, name, email: knownEmail(email), role: role as Role },
    ...{ joined_at: toTime(created_at), last_seen_at },
  }))
}

/** Throws not_found, and conflict if the account would lose its last owner. */
export async function changeRole(db: Tx, account_id: string, person_id: string, role: Role): Promise<void> {
  await lockOwners(db, account_id)
  const changed = await db
    .updateTable('memberships')
    .set({ role })
    .where(({ and }) => and({ account_id, person_id }))
    .returning('person_id')
    .executeTakeFirst()
  if (changed === undefined) throw notFound()
  await requireOwner(db, account_id)
}

/** Throws not_found, and conflict if the account would lose its last owner. */
export async function removeMembership(db: Tx, account_id: string, person_id: string): Promise<void> {
  await lockOwners(db, account_id)
  const removed = await db
    .deleteFrom('memberships')
    .where(({ and }) => and({ account_id, person_id }))
    .returning('person_id')
    .executeTakeFirst()
  if (removed === undefined) throw notFound()
  await requireOwner(db, account_id)
}

/** Throws forbidden unless the person owns the account, which stays so until the transaction ends. */
export async function requireOwnerRole(db: Tx, account_id: string, person_id: string): Promise<void> {
  await lockOwners(db, account_id)
  if ((await findRole(db, person_id, account_id)) !== 'owner')
    throw new AppError('forbidden', 'only an owner of the account can do this')
}

/** Removes sessions that ended before `before` (epoch ms). */
export async function removeSessionsBefore(db: Db, before: number): Promise<void> {
  await db.deleteFrom('sessions').where('expires_at', '<', toTime(before)).execute()
}

/** Removes values that were to come back before `before` (epoch ms). */
export async function removeVerificationsBefore(db: Db, before: number): Promise<void> {
  await db.deleteFrom('verifications').where('expires_at', '<', toTime(before)).execute()
}

/** No two transactions take owners away at once: each would count on the other's. */
async function lockOwners(db: Tx, account_id: string): Promise<void> {
  // An update that changes nothing: SQLite has no `for update`.
  await db
    .updateTable('accounts')
    .set(({ ref }) => ({ name: ref('name') }))
    .where('id', '=', account_id)
    .execute()
}

async function requireOwner(db: Tx, account_id: string): Promise<void> {
  const owner = await db
    .selectFrom('memberships')
    .select('person_id')
    .where(({ and }) => and({ account_id, role: 'owner' }))
    .limit(1)
    .executeTakeFirst()
  if (owner === undefined) throw new AppError('conflict', 'the account would have no owner: make somebody else an owner first')
}

function notFound(): AppError {
  return new AppError('not_found', 'nobody with this id belongs to the account')
}
