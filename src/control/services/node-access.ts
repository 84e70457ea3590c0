/**
 * Which node calls, and what it may do.
 *
 * Owns: joining, verification and revocation of credentials. Does not own: the rows (store/node-credentials.ts).
 * Law: a credential is checked in the database at each call, so a revoked one is refused at once.
 */
import { parseNodeCredential } from '#auth/node-credential.ts'
import { hashApiKey, secretsEqual } from '#auth/secrets.ts'
import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Join, Joined } from '#model/node-protocol.ts'
import { claimNodeId, findNodeCredential, revokeNodeCredential } from '#store/node-credentials.ts'
import { registerNode } from '#store/nodes.ts'
import { type Store, transact } from '#store/store.ts'

export type NodeAccessOptions = {
  readonly store: Store
  /** What a node presents to register. */
  readonly joinSecret: string
  readonly clock: Clock
  readonly logger: Logger
}

/** A node whose credential was verified. */
export type NodeIdentity = { readonly id: string; readonly region: string }

export type NodeAccess = ReturnType<typeof nodeAccess>

class Refused extends Error {
  readonly reason: 'revoked' | 'taken'

  constructor(reason: 'revoked' | 'taken') {
    super(reason)
    this.reason = reason
  }
}

export function nodeAccess({ store, joinSecret, clock, logger }: NodeAccessOptions) {
  return {
    /** Compares in constant time. */
    isJoinSecret: (secret: string): boolean => secretsEqual(secret, joinSecret),

    /** Throws unauthorized. */
    async verify(credential: string): Promise<NodeIdentity> {
      const presented = parseNodeCredential(credential)
      const stored = presented && (await findNodeCredential(store.db, presented.node_id))
      if (stored?.credential_hash == null || stored.credential_revoked_at !== null) throw notValid()
      if (!secretsEqual(hashApiKey(presented?.secret ?? ''), stored.credential_hash)) throw notValid()
      return { id: presented?.node_id ?? '', region: stored.region }
    },

    /** Registers a node under its id with the credential that it made. Nothing changes if it may not have the id. */
    async join({ secret, previous_secret, ...node }: Join): Promise<Joined> {
      const claim = { hash: hashApiKey(secret), previousHash: previous_secret === null ? null : hashApiKey(previous_secret) }
      try {
        await transact(store, async (db) => {
          await registerNode(db, node, clock.now())
          const result = await claimNodeId(db, node.node_id, claim)
          if (result !== 'claimed') throw new Refused(result)
        })
      } catch (error) {
        if (!(error instanceof Refused)) throw error
        logger.warn({ node_id: node.node_id, reason: error.reason }, 'node not joined')
        return { joined: false, reason: error.reason }
      }
      logger.info({ node_id: node.node_id, region: node.region }, 'node joined')
      return { joined: true }
    },

    /** Throws not_found. */
    async revoke(node_id: string, release: boolean): Promise<void> {
      await transact(store, (db) => revokeNodeCredential(db, node_id, release, clock.now()))
      logger.notice({ node_id, release }, 'node credential revoked')
    },
  }
}

function notValid(): AppError {
  return new AppError('unauthorized', 'the credential of the node is not valid')
}
