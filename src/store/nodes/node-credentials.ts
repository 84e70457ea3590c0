/**
 * The credentials of nodes.
 *
 * Owns: the hash of each, those of before, and when an id may get another one. Does not own: verification (control/fleet/node-access.ts).
 * Law: an id with a credential gets another one only from a node that proves that it had the credential, or after an operator released the
 * id. This holds for the ids of removed nodes, too, and a revoked credential stays revoked. The commits of a node count as known under its
 * id, so whoever took the id over could make it drop records.
 */
import { expressionBuilder, type Selectable } from 'kysely'
import { AppError, type Fence, isFence } from '#errors.ts'
import { nodeLimits } from '#model/limits.ts'
import { inChunks } from '../chunks.ts'
import { skipSeqs } from '../commits/commits.ts'
import { renameMachine, returnMachine } from '../commits/loss-rows.ts'
import type { Database } from '../schema.ts'
import type { Db, Tx } from '../store.ts'
import { findProcess, lockNode } from './nodes.ts'
import { revokeTaken } from './take-overs.ts'

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
  readonly registered_at: number
}

/** Gives a registered node this credential. `revoked`: it is the revoked one of the id; `taken`: the id has one that the claim does not prove. */
export async function claimNodeId(db: Tx, id: string, claim: Claim): Promise<'claimed' | 'revoked' | 'taken'> {
  const { hash, previousHash, joinTokenId } = claim
  // Before it is refused as former, so that a node whose place is taken keeps the credential that says so.
  if (await isReplaced(db, id, hash)) return (await findNodeCredential(db, id))?.credential_hash == null ? 'revoked' : 'taken'
  const removed = await findRemovedCredential(db, id)
  if (removed?.credential_hash === hash && removed.revoked_at !== null) return 'revoked'
  if (removed !== undefined && ![hash, previousHash].includes(removed.credential_hash)) return 'taken'
  const before = await findNodeCredential(db, id)
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
  if (claimed === undefined) return before?.credential_hash === hash ? 'revoked' : 'taken'
  // It has proven that it had the one before.
  const proven = removed?.credential_hash ?? before?.credential_hash ?? hash
  if (proven !== hash) await renameMachine(db, id, proven, hash)
  else if (removed === undefined && before?.credential_hash === null && previousHash !== null)
    await returnMachine(db, id, previousHash, hash)
  if (removed !== undefined) {
    await endRemoval(db, removed)
    // Its disk may be an older copy, and a receipt must not name two segments.
    await skipSeqs(db, id)
  }
  // Another machine may have the revoked one: it must learn that it lost its place.
  const revoked_at = before?.credential_revoked_at ?? null
  if (before !== undefined && revoked_at !== null)
    await rememberEnd(db, id, before, { fence: 'node_revoked', revoked_at }, revoked_at)
  return 'claimed'
}

/** Returns the credentials of these nodes by their ids. */
export async function listNodeCredentials(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, CredentialRow>> {
  const found = new Map<string, CredentialRow>()
  for (const some of inChunks([...new Set(ids)])) {
    const rows = await db
      .selectFrom('nodes')
      .select(['id', 'region', 'credential_hash', 'credential_revoked_at', 'registered_at'])
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
    .select(['region', 'credential_hash', 'credential_revoked_at', 'registered_at', 'join_token_id'])
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
    .returning(['region', 'registered_at'])
    .executeTakeFirst()
  if (node === undefined) return false
  await rememberEnd(db, id, { ...node, credential_hash }, { fence: 'node_adopted', revoked_at: null }, now)
  return true
}

/** Gives the id of a node whose machine is lost another credential, whatever it had before. */
export async function replaceLostCredential(db: Tx, id: string, credential_hash: string, now: number): Promise<void> {
  const before = await findNodeCredential(db, id)
  await db.updateTable('nodes').set({ credential_hash, credential_revoked_at: null }).where('id', '=', id).execute()
  if (before === undefined) return
  await rememberEnd(db, id, before, { fence: 'node_adopted', revoked_at: before.credential_revoked_at }, now)
}

type FormerCredential = Selectable<Database['former_credentials']>
type Credential = Pick<CredentialRow, 'region' | 'credential_hash' | 'registered_at'>
type End = { readonly fence: Fence; readonly revoked_at: number | null }

/** Remembers a credential that opens nothing from now on. The machine that has it may deliver more than it has reported. */
async function rememberEnd(db: Tx, node_id: string, node: Credential, end: End, now: number): Promise<void> {
  const { region, credential_hash, registered_at } = node
  if (credential_hash === null) return
  const unreported_since = (await findProcess(db, node_id, 'delivery'))?.last_seen_at ?? registered_at
  const ended = { ...end, region, ended_at: now, unreported_since }
  // It is there if an adoption replaced it before, and its machine got the id back after a release.
  await db
    .insertInto('former_credentials')
    .values({ node_id, credential_hash, ...ended })
    .onConflict((conflict) => conflict.columns(['node_id', 'credential_hash']).doUpdateSet(ended))
    .execute()
}

/** Whether another machine has, or may get, the place of the one with this credential. */
async function isReplaced(db: Db, node_id: string, credential_hash: string): Promise<boolean> {
  const former = db.selectFrom('former_credentials').select('fence').where('node_id', '=', node_id)
  const found = await former.where('credential_hash', '=', credential_hash).executeTakeFirst()
  return found !== undefined && found.fence !== removedFence
}

/** Where and since when (epoch ms) a machine may have delivered what it could not report, and when and why it lost its place. */
export type Unreported = { readonly region: string; readonly since: number; readonly endedAt: number; readonly fence: Fence }

/**
 * Whether a machine that is refused the first time was in touch with control until then, and ends at once. What it delivered in these seconds is
 * still on its disk: it says so, and control looks for that alone.
 */
export function wasInTouch({ since, endedAt, fence }: Unreported, now: number): boolean {
  const silentMs = Math.max(endedAt - since, now - endedAt)
  return fence === removedFence && silentMs <= nodeLimits.healthySeconds * 1_000
}

/** Forgets what this machine may not have reported. Returns false if another caller did. */
export async function forgetUnreported(db: Tx, node_id: string, credential_hash: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('former_credentials')
    .set({ unreported_since: null })
    .where((eb) => eb.and({ node_id, credential_hash }))
    .where('unreported_since', 'is not', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Why a credential opens nothing any more, and what its machine may not have reported. */
export type EndedCredential = {
  readonly region: string | null
  readonly fence: Fence | undefined
  readonly isRevoked: boolean
  readonly unreported: Unreported | undefined
}

/** Returns the credentials that these ids had before, by id and hash, whether or not they are those of a node. */
export async function listFormerCredentials(
  db: Db,
  ids: readonly string[],
): Promise<ReadonlyMap<string, ReadonlyMap<string, EndedCredential>>> {
  const found = new Map<string, ReadonlyMap<string, EndedCredential>>()
  for (const some of inChunks([...new Set(ids)])) {
    const rows = await db.selectFrom('former_credentials').selectAll().where('node_id', 'in', some).execute()
    for (const [id, own] of Map.groupBy(rows, ({ node_id }) => node_id))
      found.set(id, new Map(own.map((row) => [row.credential_hash, toEnded(row)])))
  }
  return found
}

function toEnded({ region, revoked_at, unreported_since: since, ended_at, ...row }: FormerCredential): EndedCredential {
  const fence = isFence(row.fence) ? row.fence : undefined
  const isKnown = region !== null && since !== null && fence !== undefined
  const unreported = isKnown ? { region, since, endedAt: ended_at, fence } : undefined
  return { region, fence, isRevoked: revoked_at !== null, unreported }
}

const removedFence: Fence = 'node_removed'

/** Returns the credential of a node that was removed. */
export async function findRemovedCredential(db: Db, node_id: string): Promise<FormerCredential | undefined> {
  const removed = db.selectFrom('former_credentials').selectAll()
  return removed.where((eb) => eb.and({ node_id, fence: removedFence })).executeTakeFirst()
}

/**
 * Refuses the credential from now on. If the id has none, because its node was removed or its id released, nobody believes any more what the
 * machines say that had one. Throws not_found.
 */
export async function revokeNodeCredential(db: Tx, id: string, now: number): Promise<void> {
  await lockNode(db, id)
  await revokeTaken(db, id, now)
  const node = await findNodeCredential(db, id)
  if (node !== undefined && node.credential_hash !== null) {
    await db.updateTable('nodes').set({ credential_revoked_at: now }).where('id', '=', id).execute()
    return
  }
  const { numUpdatedRows } = await db
    .updateTable('former_credentials')
    .set(({ fn, val }) => ({ revoked_at: fn.coalesce('revoked_at', val(now)) }))
    .where('node_id', '=', id)
    .executeTakeFirst()
  if (node === undefined && numUpdatedRows === 0n) throw noSuchNode()
}

/** Lets any node register under the id, also if its node was removed. The machine that has its credential is told so. Throws not_found. */
export async function releaseNodeCredential(db: Tx, id: string, now: number): Promise<void> {
  await revokeTaken(db, id, now)
  const fence: Fence = 'node_released'
  const ofRemoved = { node_id: id, fence: removedFence }
  const released = await db
    .updateTable('former_credentials')
    .set({ fence })
    .where((eb) => eb.and(ofRemoved))
    .executeTakeFirst()
  const node = await findNodeCredential(db, id)
  if (node === undefined && released.numUpdatedRows === 0n) throw noSuchNode()
  await db.updateTable('nodes').set({ credential_hash: null, credential_revoked_at: null }).where('id', '=', id).execute()
  if (node !== undefined) await rememberEnd(db, id, node, { fence, revoked_at: node.credential_revoked_at }, now)
}

function noSuchNode(): AppError {
  return new AppError('not_found', 'there is no such node')
}

/** Removes a node with everything that it reported. Its id stays with whoever has its credential. */
export async function deleteNode(db: Tx, id: string, now: number): Promise<void> {
  await revokeTaken(db, id, now)
  const node = await findNodeCredential(db, id)
  // Before its reports are gone.
  if (node !== undefined) await rememberEnd(db, id, node, { fence: removedFence, revoked_at: node.credential_revoked_at }, now)
  await db.deleteFrom('nodes').where('id', '=', id).execute()
}

/** A removed node is back. Its credential opens again, unless it was revoked. */
async function endRemoval(db: Db, { node_id, credential_hash, revoked_at }: FormerCredential): Promise<void> {
  const revoked: Fence = 'node_revoked'
  const own = expressionBuilder<Database, 'former_credentials'>().and({ node_id, credential_hash })
  if (revoked_at === null) await db.deleteFrom('former_credentials').where(own).execute()
  else await db.updateTable('former_credentials').set({ fence: revoked }).where(own).execute()
}
