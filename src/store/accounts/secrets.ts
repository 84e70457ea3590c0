/**
 * Secrets of accounts, and which versions of views name them.
 *
 * Law: a published version names only secrets that exist. Whoever publishes locks them, and so does whoever deletes one.
 */
import type { Selectable } from 'kysely'
import { AppError } from '#errors.ts'
import type { Keyring } from '#lib/keyring.ts'
import { secretLimits } from '#model/limits.ts'
import type { Page, PageQuery } from '#model/page.ts'
import type { Secret, SecretValues } from '#model/secret.ts'
import type { ChangeTx } from '../cluster/epoch.ts'
import { touchViewsOfSecret } from '../cluster/section-versions.ts'
import { toTime, toTimeOrNull } from '../columns.ts'
import { translateErrors } from '../engines/database-error.ts'
import { countRows, readPage } from '../page.ts'
import type { Database } from '../schema.ts'
import { placeOf } from '../sealed-secrets.ts'
import type { Db, Tx } from '../store.ts'

/** `value` is in base64. */
export type NewSecret = { readonly id: string; readonly account_id: string; readonly name: string; readonly value: string }

type Row = Selectable<Database['account_secrets']>

const notFound = () => new AppError('not_found', 'no such secret')

/** Throws conflict if the account has one of this name, or as many as it may. */
export async function insertSecret(
  db: Tx,
  keyring: Keyring,
  { id, account_id, name, value }: NewSecret,
  now: number,
): Promise<Secret> {
  const { key_id, text } = keyring.seal(value, placeOf('account_secrets', id))
  const row = { id, account_id, name, value: text, key_id, created_at: now, rotated_at: null }
  // Changes nothing, but locks the row in both databases: another request may create one as well.
  await db
    .updateTable('accounts')
    .set(({ ref }) => ({ weight: ref('weight') }))
    .where('id', '=', account_id)
    .execute()
  const { perAccountMax } = secretLimits
  if ((await countRows(ofAccount(db, account_id))) >= perAccountMax)
    throw new AppError('conflict', `the account has ${perAccountMax} secrets, which is the most: delete one that no view needs`)
  await translateErrors(db.insertInto('account_secrets').values(row).execute(), {
    unique: new AppError('conflict', 'the account has a secret of this name: give it a new value by rotating it'),
  })
  return toSecret(row, [])
}

/** Returns a page of them by name. */
export async function listSecrets(db: Db, account_id: string, page: PageQuery): Promise<Page<Secret>> {
  const users = await listUsers(db, account_id)
  return readPage(ofAccount(db, account_id).selectAll().orderBy('name'), page, (row) => toSecret(row, users.get(row.name)))
}

export async function listSecretNames(db: Db, account_id: string): Promise<readonly string[]> {
  const rows = await ofAccount(db, account_id).select('name').orderBy('name').execute()
  return rows.map(({ name }) => name)
}

/** Returns the values of all secrets of an account. */
export async function readSecretValues(db: Db, keyring: Keyring, account_id: string): Promise<SecretValues> {
  return toValues(await ofAccount(db, account_id).select(['id', 'name', 'value', 'key_id']).execute(), keyring)
}

/** Returns the values that a version of a view needs, as far as they exist. */
export async function readValuesOfView(db: Db, keyring: Keyring, view_id: string): Promise<SecretValues> {
  const rows = await selectValuesOfViews(db).where('view_secrets.view_id', '=', view_id).execute()
  return toValues(rows, keyring)
}

/** Selects the secrets that versions of views need. */
export function selectValuesOfViews(db: Db) {
  return db
    .selectFrom('view_secrets')
    .innerJoin('account_secrets', (join) =>
      join
        .onRef('account_secrets.account_id', '=', 'view_secrets.account_id')
        .onRef('account_secrets.name', '=', 'view_secrets.name'),
    )
    .select(['view_secrets.view_id', 'account_secrets.id', 'account_secrets.name'])
    .select(['account_secrets.value', 'account_secrets.key_id'])
}

export function toValues(rows: readonly Pick<Row, 'id' | 'name' | 'value' | 'key_id'>[], keyring: Keyring): SecretValues {
  const values = rows.map(({ id, name, value: text, key_id }) => [
    name,
    keyring.open({ key_id, text }, placeOf('account_secrets', id)),
  ])
  return Object.fromEntries(values)
}

/** Replaces the value, in base64. Nodes get the new one. Throws not_found. */
export async function rotateSecret(
  db: ChangeTx,
  keyring: Keyring,
  account_id: string,
  id: string,
  change: { readonly value: string; readonly now: number },
): Promise<Secret> {
  const { key_id, text } = keyring.seal(change.value, placeOf('account_secrets', id))
  const row = await db
    .updateTable('account_secrets')
    .set({ value: text, key_id, rotated_at: change.now })
    .where(({ and }) => and({ account_id, id }))
    .returningAll()
    .executeTakeFirst()
  if (row === undefined) throw notFound()
  await touchViewsOfSecret(db, account_id, row.name)
  return toSecret(row, (await listUsers(db, account_id, row.name)).get(row.name))
}

/** Throws not_found, and conflict while a version needs it that is published, or for which a node may still have segments. */
export async function removeSecret(db: Tx, account_id: string, id: string): Promise<void> {
  const locked = await db
    .updateTable('account_secrets')
    .set(({ ref }) => ({ name: ref('name') }))
    .where(({ and }) => and({ account_id, id }))
    .returning('name')
    .executeTakeFirst()
  if (locked === undefined) throw notFound()
  const needing = await db
    .selectFrom('view_secrets')
    .innerJoin('views', 'views.id', 'view_secrets.view_id')
    .select(['views.name', 'views.version', 'views.status'])
    .where('view_secrets.account_id', '=', account_id)
    .where('view_secrets.name', '=', locked.name)
    .where(({ or, eb, exists, selectFrom }) =>
      or([
        eb('views.status', '=', 'published'),
        exists(
          selectFrom('bindings')
            .select('bindings.id')
            .whereRef('bindings.view_id', '=', 'views.id')
            .where(({ or, eb }) => or([eb('deactivated_at', 'is', null), eb('unsettled_epoch', 'is not', null)])),
        ),
      ]),
    )
    .orderBy('views.name')
    .orderBy('views.version')
    .limit(secretLimits.usedByMax)
    .execute()
  if (needing.length > 0) {
    const versions = needing.map(({ name, version }) => `${name} (version ${version})`).join(', ')
    const remedy = needing.some(({ status }) => status === 'published')
      ? 'archive these versions first'
      : 'nodes may still have segments for these versions: try again once they are delivered'
    throw new AppError('conflict', `the secret is named by ${versions}: ${remedy}`)
  }
  await db.deleteFrom('account_secrets').where('id', '=', id).execute()
}

/** Notes which secrets a version names. */
export async function setSecretsOfView(db: Tx, account_id: string, view_id: string, names: readonly string[]): Promise<void> {
  await db.deleteFrom('view_secrets').where('view_id', '=', view_id).execute()
  const values = names.map((name) => ({ view_id, account_id, name }))
  if (values.length > 0) await db.insertInto('view_secrets').values(values).execute()
}

export async function listSecretsOfView(db: Db, view_id: string): Promise<readonly string[]> {
  const rows = await db.selectFrom('view_secrets').select('name').where('view_id', '=', view_id).orderBy('name').execute()
  return rows.map(({ name }) => name)
}

/** Keeps the secrets of a version from being deleted until the transaction ends. Throws validation_error if one is gone. */
export async function lockSecrets(db: Tx, account_id: string, view_id: string): Promise<void> {
  const names = await listSecretsOfView(db, view_id)
  if (names.length === 0) return
  const rows = await db
    .updateTable('account_secrets')
    .set(({ ref }) => ({ name: ref('name') }))
    .where('account_id', '=', account_id)
    .where('name', 'in', names)
    .returning('name')
    .execute()
  const missing = names.find((name) => !rows.some((row) => row.name === name))
  if (missing === undefined) return
  throw new AppError(
    'validation_error',
    `the secret ${JSON.stringify(missing)} was deleted: create it again, or change the draft`,
  )
}

/** Returns the names of views by the secret that they need, of all secrets or one. */
async function listUsers(db: Db, account_id: string, secret?: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const users = db
    .selectFrom('view_secrets')
    .innerJoin('views', 'views.id', 'view_secrets.view_id')
    .select(['view_secrets.name as secret', 'views.name as view'])
    .distinct()
    .where('view_secrets.account_id', '=', account_id)
    .where('views.status', '!=', 'archived')
    .orderBy('view')
  const rows = await (secret === undefined ? users : users.where('view_secrets.name', '=', secret)).execute()
  const bySecret = Map.groupBy(rows, (row) => row.secret)
  return new Map([...bySecret].map(([name, of]) => [name, of.map(({ view }) => view)]))
}

function ofAccount(db: Db, account_id: string) {
  return db.selectFrom('account_secrets').where('account_id', '=', account_id)
}

function toSecret({ id, name, created_at, rotated_at }: Row, used_by: readonly string[] = []): Secret {
  return {
    ...{ id, name, created_at: toTime(created_at), rotated_at: toTimeOrNull(rotated_at) },
    used_by: used_by.slice(0, secretLimits.usedByMax),
  }
}
