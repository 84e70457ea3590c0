/**
 * Secrets in the database, encrypted with a key that is not in it.
 *
 * Owns: which columns are encrypted, and encrypting them again after the key has changed. Does not own: the keys (`lib/keyring.ts`).
 * Law: once `sealSecrets` has returned, every secret in the database opens with the first key of the keyring.
 */
import { sql } from 'kysely'
import type { Keyring } from '#lib/keyring.ts'
import { type Db, type Store, transact } from './store.ts'

/** Every column that holds a secret. Keys of accounts and nodes are stored as hashes. */
const columns = [
  { table: 'secrets', id: 'name', column: 'value' },
  { table: 'account_secrets', id: 'id', column: 'value' },
  { table: 'signing_keys', id: 'kid', column: 'private_jwk' },
  { table: 'certificates', id: 'name', column: 'private_key' },
] as const

type SecretColumn = (typeof columns)[number]
/** `key_id` is null while the text is plain, in a database from before encryption. */
type Row = { readonly id: string; readonly text: string; readonly key_id: string | null }

/** Names the secret of a row. It is encrypted together with its name. */
export function placeOf(table: SecretColumn['table'], id: string): string {
  return `${table}/${id}`
}

/** Returns the id of a key that some secret is encrypted with, or undefined if there is none. */
export async function findKeyInUse(db: Db): Promise<string | undefined> {
  for (const column of columns) {
    const found = (await readSecrets(db, column)).find(({ key_id }) => key_id !== null)
    if (found?.key_id) return found.key_id
  }
  return undefined
}

/** Checks that every secret opens, and changes nothing. Throws UserError. */
export async function openSecrets(db: Db, keyring: Keyring): Promise<void> {
  for (const column of columns)
    for (const { id, text, key_id } of await readSecrets(db, column))
      if (key_id !== null) keyring.open({ key_id, text }, placeOf(column.table, id))
}

/** Checks that every secret opens, encrypts those that are plain or have an older key, and returns their number. Throws UserError. */
export async function sealSecrets(store: Store, keyring: Keyring): Promise<number> {
  return transact(store, async (db) => {
    let sealed = 0
    for (const column of columns) {
      for (const { id, text, key_id } of await readSecrets(db, column)) {
        const place = placeOf(column.table, id)
        const secret = key_id === null ? text : keyring.open({ key_id, text }, place)
        if (key_id === keyring.keyId) continue
        await updateSecret(db, column, { id, ...keyring.seal(secret, place) })
        sealed += 1
      }
    }
    return sealed
  })
}

async function readSecrets(db: Db, { table, id, column }: SecretColumn): Promise<readonly Row[]> {
  const query = sql<Row>`select ${sql.ref(id)} as id, ${sql.ref(column)} as text, key_id from ${sql.table(table)} where ${sql.ref(column)} is not null`
  return (await query.execute(db)).rows
}

async function updateSecret(db: Db, { table, id: idColumn, column }: SecretColumn, { id, text, key_id }: Row): Promise<void> {
  await sql`update ${sql.table(table)} set ${sql.ref(column)} = ${text}, key_id = ${key_id} where ${sql.ref(idColumn)} = ${id}`.execute(
    db,
  )
}
