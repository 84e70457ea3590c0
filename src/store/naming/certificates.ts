/** Certificates that control issued, with the state of their renewal. */
import { fingerprintOf } from '#lib/fingerprint.ts'
import type { Keyring } from '#lib/keyring.ts'
import type { IssuedCertificate } from '#model/node-protocol.ts'
import type { ChangeTx } from '../cluster/epoch.ts'
import { touchInstallation } from '../cluster/section-versions.ts'
import { toStorableText, toTimeOrNull } from '../columns.ts'
import { placeOf } from '../sealed-secrets.ts'
import { type Db, type Store, transact } from '../store.ts'

export type CertificateState = {
  readonly name: string
  /** Null before the first certificate, as is every field about it. */
  readonly issuer: string | null
  readonly fingerprint: string | null
  readonly not_before: string | null
  readonly not_after: string | null
  /** When to order the next one (epoch ms). */
  readonly due_at: number
  /** Failed orders since the last certificate. */
  readonly failures: number
  readonly last_error: string | null
}

export async function listCertificates(db: Db): Promise<readonly CertificateState[]> {
  const rows = await db
    .selectFrom('certificates')
    .select(['name', 'issuer', 'fingerprint', 'not_before', 'not_after', 'due_at', 'failures', 'last_error'])
    .orderBy('name')
    .execute()
  return rows.map((row) => ({ ...row, not_before: toTimeOrNull(row.not_before), not_after: toTimeOrNull(row.not_after) }))
}

/** Returns why the last order of each certificate failed, by name, as long as none succeeded since. */
export async function listFailedOrders(db: Db): Promise<ReadonlyMap<string, string>> {
  const rows = await db.selectFrom('certificates').select(['name', 'last_error']).where('last_error', 'is not', null).execute()
  return new Map(rows.map(({ name, last_error }) => [name, last_error ?? '']))
}

/** Returns the newest certificate of this name with its key, or undefined if there is none yet. */
export async function findCertificate(db: Db, keyring: Keyring, name: string): Promise<IssuedCertificate | undefined> {
  const row = await db
    .selectFrom('certificates')
    .select(['chain', 'private_key', 'key_id', 'fingerprint'])
    .where('name', '=', name)
    .executeTakeFirst()
  if (row?.chain == null || row.private_key === null || row.key_id === null || row.fingerprint === null) return undefined
  const { chain, private_key: text, key_id, fingerprint } = row
  return { fingerprint, chain, key: keyring.open({ key_id, text }, placeOf('certificates', name)) }
}

export async function findFingerprint(db: Db, name: string): Promise<string | null> {
  const row = await db.selectFrom('certificates').select('fingerprint').where('name', '=', name).executeTakeFirst()
  return row?.fingerprint ?? null
}

export type NewCertificate = {
  readonly name: string
  readonly issuer: string
  readonly chain: string
  readonly key: string
  readonly not_before: number
  readonly not_after: number
  readonly due_at: number
}

/** Replaces the certificate of this name. Nodes learn of it with their next configuration. */
export async function recordCertificate(db: ChangeTx, keyring: Keyring, issued: NewCertificate): Promise<void> {
  const { name, key, ...rest } = issued
  const { key_id, text } = keyring.seal(key, placeOf('certificates', name))
  const row = {
    ...rest,
    private_key: text,
    key_id,
    fingerprint: fingerprintOf(issued.chain),
    failures: 0,
    last_error: null,
  }
  await db
    .insertInto('certificates')
    .values({ name, ...row })
    .onConflict((conflict) => conflict.column('name').doUpdateSet(row))
    .execute()
  await touchInstallation(db)
}

/** Leaves the present certificate as it is. */
export async function recordOrderFailure(
  db: Db,
  { name, due_at, error }: { readonly name: string; readonly due_at: number; readonly error: string },
): Promise<void> {
  const last_error = toStorableText(error)
  await db
    .insertInto('certificates')
    .values({ name, due_at, failures: 1, last_error })
    .onConflict((conflict) =>
      conflict.column('name').doUpdateSet(({ eb }) => ({ due_at, last_error, failures: eb('certificates.failures', '+', 1) })),
    )
    .execute()
}

export async function removeCertificate(db: Db, name: string): Promise<void> {
  await db.deleteFrom('certificates').where('name', '=', name).execute()
}

/** Lets control order the certificate now, whatever failed before. Returns false if there is none of this name. */
export function requestCertificate(store: Store, name: string): Promise<boolean> {
  return transact(store, async (db) => {
    const update = db.updateTable('certificates').set({ due_at: 0 }).where('name', '=', name)
    return (await update.executeTakeFirstOrThrow()).numUpdatedRows > 0n
  })
}

/** Returns the root of the development CA in PEM: the chains of its certificates end with it. Undefined before the first. */
export async function findRoot(db: Db): Promise<string | undefined> {
  const row = await db
    .selectFrom('certificates')
    .select('chain')
    .where('issuer', 'like', 'development %')
    .orderBy('not_before', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.chain?.slice(row.chain.lastIndexOf('-----BEGIN'))
}
