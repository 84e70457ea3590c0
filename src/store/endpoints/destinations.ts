/**
 * Destinations and their status.
 *
 * Law: `valid` refers to the settings that were validated. Changing any of them increments the row's revision, and the
 * result of a validation is recorded only at the revision at which it was claimed.
 */
import type { Selectable } from 'kysely'
import { AppError } from '#errors.ts'
import { must } from '#lib/assert.ts'
import {
  type AssignableDestination,
  type ChangeDestination,
  type Checksums,
  type CreateDestination,
  DestinationTarget,
  type Encryption,
  type StoredDestination,
} from '#model/destination.ts'
import { defaultEncryption, encryptionAfter } from '#model/destination-encryption.ts'
import { validationIntervalSeconds } from '#model/limits.ts'
import type { Page, PageQuery } from '#model/page.ts'
import type { ChangeTx } from '../cluster/epoch.ts'
import { touchEndpointsOfDestination } from '../cluster/section-versions.ts'
import { fromFlag, fromJsonOrNull, toTime, toTimeOrNull } from '../columns.ts'
import { translateErrors } from '../engines/database-error.ts'
import { readPage } from '../page.ts'
import type { Database } from '../schema.ts'
import type { Db, Tx } from '../store.ts'
import { noteFormerPlaces } from './former-places.ts'

type Row = Selectable<Database['destinations']> & { external_id: string; allowed_buckets: string | null }

/** A destination, with what nodes need beside it to reach its bucket. */
export type OpenableDestination = StoredDestination & Pick<DestinationTarget, 'allowed_buckets'>

/** `ref_count` is the number of endpoints that use it. */
export type StoredDestinationWithCount = OpenableDestination & { readonly ref_count: number }

const nameTaken = new AppError('conflict', 'destination name already exists')
const notFound = () => new AppError('not_found', 'no such destination')

/** Inserts a pending destination. Throws conflict if the name is taken, and validation_error if encryption and key contradict. */
export async function insertDestination(
  db: Db,
  account_id: string,
  destination: CreateDestination & { readonly id: string },
  now: number,
): Promise<OpenableDestination> {
  const values = {
    ...destination,
    ...encryptionAfter(defaultEncryption, destination),
    role_arn: destination.role_arn ?? '',
    account_id,
    path_style: fromFlag(destination.path_style),
    status: 'pending',
    revision: 1,
    created_at: now,
    updated_at: now,
  }
  await translateErrors(db.insertInto('destinations').values(values).execute(), { unique: nameTaken })
  return getDestination(db, account_id, destination.id)
}

export async function findDestination(db: Db, account_id: string, id: string): Promise<StoredDestinationWithCount | undefined> {
  const row = await select(db, account_id).where('destinations.id', '=', id).executeTakeFirst()
  return row === undefined ? undefined : toDestinationWithCount(row)
}

/** Throws not_found. */
export async function getDestination(db: Db, account_id: string, id: string): Promise<StoredDestinationWithCount> {
  const destination = await findDestination(db, account_id, id)
  if (destination === undefined) throw notFound()
  return destination
}

/** Returns a destination of any account, for a node: nodes deliver for all accounts. */
export async function findDestinationTarget(db: Db, id: string): Promise<AssignableDestination | undefined> {
  const row = await db
    .selectFrom('destinations')
    .innerJoin('accounts', 'accounts.id', 'destinations.account_id')
    .selectAll('destinations')
    .select(['accounts.external_id', 'accounts.allowed_buckets'])
    .where('destinations.id', '=', id)
    .executeTakeFirst()
  return row && { account_id: row.account_id, destination: DestinationTarget.parse(toDestination(row)) }
}

/** Returns the external ids of the accounts with a destination in this bucket. The account that was first is first. */
export async function listBucketAccounts(db: Db, bucket: string): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('destinations')
    .innerJoin('accounts', 'accounts.id', 'destinations.account_id')
    .select('accounts.external_id')
    .where('destinations.bucket', '=', bucket)
    .groupBy('accounts.external_id')
    .orderBy(({ fn }) => fn.min('destinations.created_at'))
    .orderBy('accounts.external_id')
    .execute()
  return rows.map(({ external_id }) => external_id)
}

/** Returns one page, newest first. */
export async function listDestinations(db: Db, account_id: string, page: PageQuery): Promise<Page<StoredDestinationWithCount>> {
  const newestFirst = select(db, account_id).orderBy('destinations.created_at', 'desc').orderBy('destinations.id')
  return readPage(newestFirst, page, toDestinationWithCount)
}

/**
 * Changes the given fields. Anything but a new name resets the status to pending.
 * Throws not_found, conflict if the name is taken, and validation_error if encryption and key contradict.
 */
export async function updateDestination(
  db: ChangeTx,
  account_id: string,
  id: string,
  change: ChangeDestination,
  now: number,
): Promise<OpenableDestination> {
  // Writes before comparing, to lock the row.
  const before = await db
    .updateTable('destinations')
    .set({ updated_at: now })
    .where(({ and }) => and({ account_id, id }))
    .returningAll()
    .executeTakeFirst()
  if (before === undefined) throw notFound()
  const after = {
    name: change.name ?? before.name,
    bucket: change.bucket ?? before.bucket,
    prefix: change.prefix ?? before.prefix,
    region: change.region ?? before.region,
    role_arn: change.role_arn === undefined ? before.role_arn : (change.role_arn ?? ''),
    ...encryptionAfter({ encryption: before.encryption as Encryption, kms_key_arn: before.kms_key_arn }, change),
    checksums: change.checksums ?? before.checksums,
    path_style: change.path_style === undefined ? before.path_style : fromFlag(change.path_style),
  } satisfies Record<keyof ChangeDestination, unknown>
  const { name: _, ...settings } = after
  const isRetargeted = Object.entries(settings).some(([name, value]) => value !== before[name as keyof typeof settings])
  const reset = isRetargeted ? { status: 'pending', validated_at: null, last_error: null, revision: before.revision + 1 } : {}
  if (isRetargeted) await noteFormerPlaces(db, { destination_id: id }, now)
  const update = db
    .updateTable('destinations')
    .set({ ...after, ...reset })
    .where('id', '=', id)
  await translateErrors(update.execute(), { unique: nameTaken })
  if (isRetargeted) await touchEndpointsOfDestination(db, account_id, id)
  return getDestination(db, account_id, id)
}

/** Throws not_found, and conflict while an endpoint uses it. */
export async function removeDestination(db: Db, account_id: string, id: string): Promise<void> {
  const removal = db.deleteFrom('destinations').where('account_id', '=', account_id).where('id', '=', id)
  const { numDeletedRows } = await translateErrors(removal.executeTakeFirstOrThrow(), {
    reference: new AppError('conflict', 'one or more endpoints still reference this destination'),
  })
  if (numDeletedRows === 0n) throw notFound()
}

/** The settings to validate, and their revision. */
export type ValidationClaim = { readonly destination: OpenableDestination; readonly revision: number }

/**
 * Claims the validation of a destination. One caller can do so every 30 seconds.
 * Throws not_found, and too_many_requests with the seconds to wait.
 */
export async function claimValidation(db: Tx, account_id: string, id: string, now: number): Promise<ValidationClaim> {
  const freeBefore = now - validationIntervalSeconds * 1000
  // Ignores a claim that lies further in the future: it comes from a clock that was far ahead.
  const futureAfter = now + validationIntervalSeconds * 1000
  const claimed = await db
    .updateTable('destinations')
    .set({ validation_claimed_at: now })
    .where(({ and }) => and({ account_id, id }))
    .where(({ eb, or }) => {
      const isBefore = [eb('validation_claimed_at', 'is', null), eb('validation_claimed_at', '<=', freeBefore)]
      return or([...isBefore, eb('validation_claimed_at', '>', futureAfter)])
    })
    .returning('revision')
    .executeTakeFirst()
  const destination = await getDestination(db, account_id, id)
  if (claimed !== undefined) return { destination, revision: claimed.revision }
  const { validation_claimed_at } = await db
    .selectFrom('destinations')
    .select('validation_claimed_at')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const waitMs = must(validation_claimed_at, 'the time of the other claim') - freeBefore
  throw new AppError('too_many_requests', `a destination can be validated once every ${validationIntervalSeconds} seconds`, {
    // With clock skew, or after waiting for the row, the other claim may be in our future.
    retryAfterSeconds: Math.min(validationIntervalSeconds, Math.max(1, Math.ceil(waitMs / 1000))),
  })
}

/**
 * Records the result of a validation: null makes the destination valid, a message makes it pending and becomes `last_error`.
 * Returns false, and records nothing, if the settings changed in the meantime or the destination is gone.
 */
export async function recordValidation(
  db: Db,
  account_id: string,
  id: string,
  outcome: { readonly revision: number; readonly error: string | null },
  now: number,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('destinations')
    .set(
      outcome.error === null
        ? { status: 'valid', validated_at: now, last_error: null, updated_at: now }
        : { status: 'pending', validated_at: null, last_error: outcome.error, updated_at: now },
    )
    .where(({ and }) => and({ account_id, id, revision: outcome.revision }))
    .executeTakeFirstOrThrow()
  return numUpdatedRows === 1n
}

function select(db: Db, account_id: string) {
  return db
    .selectFrom('destinations')
    .innerJoin('accounts', 'accounts.id', 'destinations.account_id')
    .selectAll('destinations')
    .select(['accounts.external_id', 'accounts.allowed_buckets'])
    .select(({ selectFrom }) =>
      selectFrom('endpoints')
        .whereRef('endpoints.account_id', '=', 'destinations.account_id')
        .whereRef('endpoints.destination_id', '=', 'destinations.id')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .as('ref_count'),
    )
    .where('destinations.account_id', '=', account_id)
}

function toDestinationWithCount(row: Row & { ref_count: number | null }): StoredDestinationWithCount {
  return { ...toDestination(row), ref_count: row.ref_count ?? 0 }
}

function toDestination(row: Row): OpenableDestination {
  return {
    id: row.id,
    name: row.name,
    bucket: row.bucket,
    prefix: row.prefix,
    region: row.region,
    ...toAccess(row),
    status: row.status === 'valid' ? 'valid' : 'pending',
    validated_at: toTimeOrNull(row.validated_at),
    last_error: row.last_error,
    created_at: toTime(row.created_at),
    updated_at: toTime(row.updated_at),
  }
}

type AccessColumns = Pick<
  Row,
  'role_arn' | 'external_id' | 'allowed_buckets' | 'encryption' | 'kms_key_arn' | 'checksums' | 'path_style'
>

/** Returns what a bucket is reached with. */
export function toAccess({ role_arn, encryption, checksums, path_style, allowed_buckets, ...row }: AccessColumns) {
  return {
    role_arn: role_arn === '' ? null : role_arn,
    external_id: row.external_id,
    allowed_buckets: fromJsonOrNull<string[]>(allowed_buckets) ?? [],
    encryption: encryption as Encryption,
    kms_key_arn: row.kms_key_arn,
    checksums: checksums as Checksums,
    path_style: path_style === 1,
  }
}
