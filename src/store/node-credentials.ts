/**
 * The credentials of nodes.
 *
 * Owns: the hash of each, and when an id may get another one. Does not own: verification (control/services/node-access.ts).
 * Law: an id with a credential gets another one only from a node that proves that it had the credential, or after an operator released the
 * id. The commits of a node count as known under its id, so whoever took the id over could make it drop records.
 */
import { AppError } from '#errors.ts'
import type { Db, Tx } from './store.ts'

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
  if (claimed !== undefined) return 'claimed'
  const { credential_hash } = (await findNodeCredential(db, id)) ?? {}
  return credential_hash === hash ? 'revoked' : 'taken'
}

export async function findNodeCredential(db: Db, id: string): Promise<CredentialRow | undefined> {
  return db
    .selectFrom('nodes')
    .select(['region', 'credential_hash', 'credential_revoked_at'])
    .where('id', '=', id)
    .executeTakeFirst()
}

/** Refuses the credential from now on. `release`: any node may then register under the id. Throws not_found. */
export async function revokeNodeCredential(db: Db, id: string, release: boolean, now: number): Promise<void> {
  const change = release ? { credential_hash: null, credential_revoked_at: null } : { credential_revoked_at: now }
  const { numUpdatedRows } = await db.updateTable('nodes').set(change).where('id', '=', id).executeTakeFirst()
  if (numUpdatedRows === 0n) throw new AppError('not_found', 'there is no such node')
}
