import { AppError } from '#errors.ts'
import type { ApiKey, RevokedKey, Scope } from '#model/api-key.ts'
import { tokenLimits } from '#model/limits.ts'
import type { Page, PageQuery } from '#model/page.ts'
import type { ChangeTx } from '../cluster/epoch.ts'
import { runningEpoch, touchKey } from '../cluster/section-versions.ts'
import { fromJson, fromJsonOrNull, toJsonOrNull, toTime, toTimeOrNull } from '../columns.ts'
import { translateErrors } from '../engines/database-error.ts'
import { readPage } from '../page.ts'
import type { Database } from '../schema.ts'
import type { Db } from '../store.ts'

export type NewStoredApiKey = {
  readonly id: string
  readonly account_id: string
  readonly name: string
  readonly prefix: string
  /** SHA-256 of the secret, lowercase hex. The secret itself is never stored. */
  readonly hash: string
  readonly scopes: readonly Scope[]
  /** The only endpoints that the key is for; null for all of the account. */
  readonly endpoint_ids: readonly string[] | null
  /** The only origins that a public key may send from; null for other keys. */
  readonly origins: readonly string[] | null
}

/** An API key with the fields that authentication needs. `revocation` is null: `findRevocations` has it. */
export type StoredApiKey = ApiKey & { readonly account_id: string; readonly hash: string }

/** Throws conflict if the key already exists, and validation_error for an endpoint that the account does not have. */
export async function insertApiKey(db: ChangeTx, key: NewStoredApiKey, now: number): Promise<StoredApiKey> {
  const { scopes, endpoint_ids, origins } = key
  if (endpoint_ids !== null) await requireOwnEndpoints(db, key.account_id, endpoint_ids)
  const row = {
    ...key,
    scopes: JSON.stringify(scopes),
    endpoint_ids: toJsonOrNull(endpoint_ids),
    origins: toJsonOrNull(origins),
    created_at: now,
    last_used_at: null,
    revoked_at: null,
    access_ended_at: null,
    revocation_epoch: null,
    revocation_applied_at: null,
  }
  await translateErrors(db.insertInto('api_keys').values(row).execute(), {
    unique: new AppError('conflict', 'this API key already exists'),
  })
  await touchKey(db, key.account_id, key.id)
  return toStoredApiKey(row)
}

export async function findApiKeyByHash(db: Db, hash: string): Promise<StoredApiKey | undefined> {
  const row = await db.selectFrom('api_keys').selectAll().where('hash', '=', hash).executeTakeFirst()
  return row === undefined ? undefined : toStoredApiKey(row)
}

/** Returns a page of the keys of an account, newest first, including revoked ones. */
export async function listApiKeys(db: Db, account_id: string, page: PageQuery): Promise<Page<ApiKey>> {
  const keys = db.selectFrom('api_keys').where('account_id', '=', account_id)
  return readPage(keys.selectAll().orderBy('created_at', 'desc').orderBy('id'), page, toApiKey)
}

export type Revocation = {
  /** In epoch ms. */
  readonly at: number
  /** Whether its tokens and connections end at once, too. */
  readonly endsAccess: boolean
}

/** Revokes permanently. A key that is already revoked keeps its times; its access may be ended later. Throws not_found. */
export async function revokeApiKey(db: ChangeTx, account_id: string, id: string, revocation: Revocation): Promise<ApiKey> {
  const { at, endsAccess } = revocation
  await db
    .updateTable('api_keys')
    .set({ revocation_epoch: runningEpoch, revocation_applied_at: null })
    .where(({ and }) => and({ account_id, id }))
    // One that changes nothing is as far as it was.
    .where(endsAccess ? 'access_ended_at' : 'revoked_at', 'is', null)
    .execute()
  const row = await db
    .updateTable('api_keys')
    .set(({ fn, val }) => ({
      revoked_at: fn.coalesce('revoked_at', val(at)),
      ...(endsAccess ? { access_ended_at: fn.coalesce('access_ended_at', val(at)) } : {}),
    }))
    .where(({ and }) => and({ account_id, id }))
    .returningAll()
    .executeTakeFirst()
  if (row === undefined) throw new AppError('not_found', 'no such API key')
  await touchKey(db, account_id, id)
  return toApiKey(row)
}

/** Returns the key if it is revoked. */
export async function findRevokedKey(db: Db, id: string): Promise<RevokedKey | undefined> {
  const [revoked] = await selectRevoked(db).where('id', '=', id).execute()
  return revoked === undefined ? undefined : toRevokedKey(revoked)
}

/** Returns the keys revoked at `since` (epoch ms) or later. */
export async function listApiKeysRevokedSince(db: Db, since: number): Promise<readonly RevokedKey[]> {
  return (await selectRevoked(db).where('revoked_at', '>=', since).orderBy('revoked_at').execute()).map(toRevokedKey)
}

function selectRevoked(db: Db) {
  return db.selectFrom('api_keys').select(['id', 'revoked_at', 'access_ended_at']).where('revoked_at', 'is not', null)
}

export function toRevokedKey({
  id,
  revoked_at,
  access_ended_at,
}: Pick<Row, 'id' | 'revoked_at' | 'access_ended_at'>): RevokedKey {
  const ends = access_ended_at !== null || revoked_at === null
  return { id, tokens_until: ends ? null : toTime(revoked_at + tokenLimits.afterRevocationSecondsMax * 1000) }
}

async function requireOwnEndpoints(db: Db, account_id: string, ids: readonly string[]): Promise<void> {
  const rows = await db
    .selectFrom('endpoints')
    .select('id')
    .where('account_id', '=', account_id)
    .where('id', 'in', ids)
    .where('deleted_at', 'is', null)
    .execute()
  const own = new Set(rows.map(({ id }) => id))
  const foreign = ids.find((id) => !own.has(id))
  if (foreign === undefined) return
  throw new AppError('validation_error', `the account has no endpoint ${foreign}`, {
    errors: [{ path: 'endpoint_ids', message: `${foreign} is not an endpoint of this account` }],
  })
}

type Row = Database['api_keys']

function toApiKey(row: Row): ApiKey {
  const { id, name, prefix, scopes, endpoint_ids, origins, created_at, last_used_at, revoked_at, access_ended_at } = row
  return {
    ...{ id, name, prefix },
    scopes: fromJson(scopes),
    endpoint_ids: fromJsonOrNull(endpoint_ids),
    public: origins !== null,
    origins: fromJsonOrNull(origins),
    created_at: toTime(created_at),
    last_used_at: toTimeOrNull(last_used_at),
    revoked_at: toTimeOrNull(revoked_at),
    access_ended_at: toTimeOrNull(access_ended_at),
    revocation: null,
  }
}

function toStoredApiKey(row: Row): StoredApiKey {
  return { ...toApiKey(row), account_id: row.account_id, hash: row.hash }
}
