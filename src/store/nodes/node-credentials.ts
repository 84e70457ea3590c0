/**
 * The credentials of nodes.
 *
 * Owns: the hash of each, those of before, and when an id may get another one. Does not own: verification (control/fleet/node-access.ts).
 * Law: an id with a credential gets another one only from a node that proves that it had the credential, or after an operator released the
 * id. This holds for the ids of removed nodes, too, and a revoked credential stays revoked. The commits of a node count as known under its
 * id, so whoever took the id over could make it drop records.
 */
import type { Selectable } from 'kysely'
import { AppError, type Fence, isFence } from '#errors.ts'
import { inChunks } from '../chunks.ts'
import type { Database } from '../schema.ts'
import type { Db, Tx } from '../store.ts'
import { findProcess } from './nodes.ts'

/** Hashes are SHA-256, lowercase hex. */
type Claim = {
  readonly hash: string
  readonly previousHash: string | null
  /** The token that the node joins with; null for the join secret. */
  readonly joinTokenId: string | null
}

export type CredentialRow = {
  readonly region: string
  readonly credential_hash: string | null
  readonly credential_revoked_at: number | null
}

/** Gives a registered node this credential. `revoked`: it is the revoked one of the id; `taken`: the id has one that the claim does not prove. */
export async function claimNodeId(db: Tx, id: string, claim: Claim): Promise<'claimed' | 'revoked' | 'taken'> {
  const { hash, previousHash, joinTokenId } = claim
  // Before it is refused as former, so that a node whose place is taken keeps the credential that says so.
  if (await isFormer(db, id, hash)) return (await findNodeCredential(db, id))?.credential_hash == null ? 'revoked' : 'taken'
  const removed = await findRemovedCredential(db, id)
  if (removed?.credential_hash === hash && removed.credential_revoked_at !== null) return 'revoked'
  if (removed !== undefined && ![hash, previousHash].includes(removed.credential_hash)) return 'taken'
  const claimed = await db
    .updateTable('nodes')
    .set({ credential_hash: hash, credential_revoked_at: null, join_token_id: joinTokenId })
    .where('id', '=', id)
    .where(({ eb, or, and }) =>
      or([
        eb('credential_hash', 'is', null),
        and([eb('credential_hash', '=', hash), eb('credential_revoked_at', 'is', null)]),
        ...(previousHash === null || previousHash === hash ? [] : [eb('credential_hash', '=', previousHash)]),
      ]),
    )
    .returning('id')
    .executeTakeFirst()
  if (claimed !== undefined) {
    if (removed !== undefined) await forgetRemovedNode(db, id)
    return 'claimed'
  }
  const { credential_hash } = (await findNodeCredential(db, id)) ?? {}
  return credential_hash === hash ? 'revoked' : 'taken'
}

/** Returns the credentials of these nodes by their ids. */
export async function listNodeCredentials(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, CredentialRow>> {
  const found = new Map<string, CredentialRow>()
  for (const some of inChunks([...new Set(ids)])) {
    const rows = await db
      .selectFrom('nodes')
      .select(['id', 'region', 'credential_hash', 'credential_revoked_at'])
      .where('id', 'in', some)
      .execute()
    for (const { id, ...row } of rows) found.set(id, row)
  }
  return found
}

/** Returns the credential, and the token that the node joined with; null for the join secret. */
export async function findNodeCredential(
  db: Db,
  id: string,
): Promise<(CredentialRow & { readonly join_token_id: string | null }) | undefined> {
  return db
    .selectFrom('nodes')
    .select(['region', 'credential_hash', 'credential_revoked_at', 'join_token_id'])
    .where('id', '=', id)
    .executeTakeFirst()
}

/** Gives the id of a node another credential, because its log is on another machine now. Returns false if `hash` is not the one in use. */
export async function replaceAdoptedCredential(
  db: Tx,
  id: string,
  hashes: readonly [string, string],
  now: number,
): Promise<boolean> {
  const [credential_hash, newHash] = hashes
  const node = await db
    .updateTable('nodes')
    .set({ credential_hash: newHash })
    .where('id', '=', id)
    .where('credential_hash', '=', credential_hash)
    .where('credential_revoked_at', 'is', null)
    .returning('region')
    .executeTakeFirst()
  if (node === undefined) return false
  await rememberCredential(db, { node_id: id, credential_hash, region: node.region, fence: 'node_adopted' }, now)
  return true
}

type FormerCredential = Selectable<Database['adopted_credentials']>

/** Remembers a credential that opens nothing from now on. The machine that has it may have delivered more since its last report. */
async function rememberCredential(
  db: Tx,
  credential: Pick<FormerCredential, 'node_id' | 'credential_hash' | 'region'> & { readonly fence: Fence },
  now: number,
): Promise<void> {
  const { last_seen_at: unreported_since = 0 } = (await findProcess(db, credential.node_id, 'delivery')) ?? {}
  const { region, fence } = credential
  const since = { region, fence, adopted_at: now, unreported_since }
  // It is there if an adoption replaced it before, and its machine got the id back after a release.
  await db
    .insertInto('adopted_credentials')
    .values({ ...credential, ...since })
    .onConflict((conflict) => conflict.columns(['node_id', 'credential_hash']).doUpdateSet(since))
    .execute()
}

async function isFormer(db: Db, node_id: string, credential_hash: string): Promise<boolean> {
  const former = db.selectFrom('adopted_credentials').select('node_id').where('node_id', '=', node_id)
  return (await former.where('credential_hash', '=', credential_hash).executeTakeFirst()) !== undefined
}

/** Where and since when (epoch ms) a machine may have delivered what it could not report, because its log was adopted. */
export type Unreported = { readonly region: string; readonly since: number }

/** Forgets what this machine may not have reported. Returns false if another caller did. */
export async function forgetUnreported(db: Tx, node_id: string, credential_hash: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('adopted_credentials')
    .set({ unreported_since: null })
    .where((eb) => eb.and({ node_id, credential_hash }))
    .where('unreported_since', 'is not', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

export type ReplacedCredential = {
  readonly region: string | null
  readonly fence: Fence | undefined
  readonly unreported: Unreported | undefined
}

/** Hashes of credentials that a node had: before its log was adopted or its id released, with what was not reported, or when it was removed. */
export type FormerCredentials = {
  readonly replaced: ReadonlyMap<string, ReplacedCredential>
  readonly removed: string | undefined
}

/** Returns the former credentials of these ids, whether or not they are those of a node. */
export async function listFormerCredentials(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, FormerCredentials>> {
  const found = new Map<string, FormerCredentials>()
  for (const some of inChunks([...new Set(ids)])) {
    const replaced = await db.selectFrom('adopted_credentials').selectAll().where('node_id', 'in', some).execute()
    const removed = await db.selectFrom('removed_nodes').select(['id', 'credential_hash']).where('id', 'in', some).execute()
    const removedHashes = new Map(removed.map(({ id, credential_hash }) => [id, credential_hash]))
    const replacedHashes = Map.groupBy(replaced, ({ node_id }) => node_id)
    for (const id of some) {
      const own = (replacedHashes.get(id) ?? []).map(
        ({ credential_hash, fence, ...row }) =>
          [
            credential_hash,
            { region: row.region, fence: isFence(fence) ? fence : undefined, unreported: unreportedOf(row) },
          ] as const,
      )
      found.set(id, { replaced: new Map(own), removed: removedHashes.get(id) })
    }
  }
  return found
}

function unreportedOf({
  region,
  unreported_since: since,
}: Pick<FormerCredential, 'region' | 'unreported_since'>): Unreported | undefined {
  return region === null || since === null ? undefined : { region, since }
}

/** Returns the credential of a node that was removed. */
async function findRemovedCredential(db: Db, id: string) {
  return db
    .selectFrom('removed_nodes')
    .select(['credential_hash', 'credential_revoked_at'])
    .where('id', '=', id)
    .executeTakeFirst()
}

/** Refuses the credential from now on. Throws not_found. */
export async function revokeNodeCredential(db: Db, id: string, now: number): Promise<void> {
  const revoked = db.updateTable('nodes').set({ credential_revoked_at: now }).where('id', '=', id)
  if ((await revoked.executeTakeFirst()).numUpdatedRows === 0n) throw noSuchNode()
}

/** Lets any node register under the id, also if its node was removed. The machine that has its credential is told so. Throws not_found. */
export async function releaseNodeCredential(db: Tx, id: string, now: number): Promise<void> {
  const node = await findNodeCredential(db, id)
  const removed = await findRemovedCredential(db, id)
  if (node === undefined && removed === undefined) throw noSuchNode()
  const released = { credential_hash: null, credential_revoked_at: null }
  await db.updateTable('nodes').set(released).where('id', '=', id).execute()
  await forgetRemovedNode(db, id)
  const credential_hash = node?.credential_hash ?? removed?.credential_hash
  if (credential_hash == null) return
  await rememberCredential(db, { node_id: id, credential_hash, region: node?.region ?? null, fence: 'node_released' }, now)
}

function noSuchNode(): AppError {
  return new AppError('not_found', 'there is no such node')
}

/** Removes a node with everything that it reported. Its id stays with whoever has its credential. */
export async function deleteNode(db: Tx, id: string, now: number): Promise<void> {
  const removed = await db
    .deleteFrom('nodes')
    .where('id', '=', id)
    .returning(['credential_hash', 'credential_revoked_at'])
    .executeTakeFirst()
  if (removed?.credential_hash == null) return
  const { credential_hash, credential_revoked_at } = removed
  await db.insertInto('removed_nodes').values({ id, credential_hash, credential_revoked_at, removed_at: now }).execute()
}

async function forgetRemovedNode(db: Db, id: string): Promise<void> {
  await db.deleteFrom('removed_nodes').where('id', '=', id).execute()
}
