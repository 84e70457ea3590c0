/**
 * Authenticates nodes and authorizes their calls.
 *
 * Owns: joining and the verification of credentials. Does not own: the rows (store/nodes/node-credentials.ts, store/nodes/join-tokens.ts).
 * Law: a credential is checked in the database at each call, so a revoked one is refused at once. A join token is used, or refused, in the
 * transaction that registers the node. A node that only repeats its join with the same token, because it lost the response, does not use it again.
 * A machine that lost its place learns of it once it is noted which commits it may not have reported.
 */
import type { Registry } from 'prom-client'
import { parseNodeCredential } from '#auth/node-credential.ts'
import { hashApiKey, secretsEqual } from '#auth/secrets.ts'
import { AppError, type Fence } from '#errors.ts'
import { batchCalls } from '#lib/batch-calls.ts'
import { isoTimestamp } from '#lib/clock.ts'
import { observableMetrics } from '#lib/metrics.ts'
import { isUuid } from '#lib/uuid.ts'
import type { JoinToken } from '#model/join-token.ts'
import type { Adopt, Join, Joined } from '#model/node-protocol.ts'
import { joinSecretPattern } from '#model/patterns.ts'
import { eventOutsideApi, insertAuditEvent } from '#store/accounts/audit-events.ts'
import { skipSeqs } from '#store/commits/commits.ts'
import type { FormerMachine } from '#store/commits/left-on-disk.ts'
import { recordLosses } from '#store/commits/losses.ts'
import { noteMissingCommits } from '#store/commits/missing-commits.ts'
import { countJoin, findJoinTokenId, lockJoinToken } from '#store/nodes/join-tokens.ts'
import { onlyDelivers } from '#store/nodes/log-holder.ts'
import {
  type CredentialRow,
  claimNodeId,
  findNodeCredential,
  forgetUnreported,
  listFormerCredentials,
  listNodeCredentials,
  replaceAdoptedCredential,
  type Unreported,
  wasInTouch,
} from '#store/nodes/node-credentials.ts'
import { registerNode } from '#store/nodes/nodes.ts'
import { transact } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import { controlLimits } from '../limits.ts'

export type NodeAccessOptions = Pick<ControlContext, 'store' | 'clock' | 'logger'> & {
  readonly registry: Registry
  /** Secret that a node of this installation presents to join, instead of a join token. */
  readonly joinSecret: string
}

/** A node whose credential was verified. */
export type NodeIdentity = { readonly id: string; readonly region: string }

/** Join token or join secret that a node presented. `token_id` is null for the join secret. */
export type JoinGrant = { readonly token_id: string | null }

export type NodeAccess = ReturnType<typeof nodeAccess>

class Refused extends Error {
  readonly reason: 'revoked' | 'taken'

  constructor(reason: 'revoked' | 'taken') {
    super(reason)
    this.reason = reason
  }
}

export function nodeAccess(options: NodeAccessOptions) {
  const { store, joinSecret, clock, logger } = options
  const { verify, verifyFormer } = credentialCheck(options)
  return {
    /** Returns what the secret opens. Throws unauthorized for one that was never known; the rest is decided when the node joins. */
    async admit(secret: string): Promise<JoinGrant> {
      if (secretsEqual(secret, joinSecret)) return { token_id: null }
      const token_id = joinSecretPattern.test(secret) ? await findJoinTokenId(store.db, hashApiKey(secret)) : undefined
      if (token_id === undefined) throw new AppError('unauthorized', 'the join secret or join token is not known')
      return { token_id }
    },

    verify,
    verifyFormer,

    /** Gives the id of a verified node another credential, for the machine that adopts its log. The one before is refused from then on. */
    async adopt({ id }: NodeIdentity, credential: string, { secret }: Adopt): Promise<void> {
      const hash = hashApiKey(parseNodeCredential(credential)?.secret ?? '')
      await transact(store, async (db) => {
        const isRepeated = await onlyDelivers(db, id)
        if (!(await replaceAdoptedCredential(db, id, [hash, hashApiKey(secret)], clock.now()))) throw notValid()
        // The adopted copy may be older than what the machine before reported. What the copy has is recovered as it is delivered.
        await recordLosses(db, id, { cause: 'node_adopted', credential_hash: hash }, clock.now())
        // The machine before may have gone on with its log, and a receipt must not name two segments. Receipts count on one skip alone.
        if (!isRepeated) await skipSeqs(db, id)
        await insertAuditEvent(db, adoptionEvent(id, clock.now()))
      })
      logger.info({ node_id: id }, 'log of the node adopted')
    },

    /** Registers a node under its id with the credential that it made. Nothing changes if it may not have the id. */
    async join({ token_id }: JoinGrant, { secret, previous_secret, ...node }: Join): Promise<Joined> {
      const { node_id, region } = node
      const hash = hashApiKey(secret)
      const previousHash = previous_secret === null ? null : hashApiKey(previous_secret)
      try {
        await transact(store, async (db) => {
          const token = token_id === null ? undefined : await lockJoinToken(db, token_id, clock.now())
          const known = await findNodeCredential(db, node_id)
          const isRepeated =
            known?.credential_hash === hash &&
            known.credential_revoked_at === null &&
            known.region === region &&
            known.join_token_id === token_id
          if (token_id !== null && !isRepeated) {
            assertOpens(token, region)
            await countJoin(db, token_id)
          }
          await registerNode(db, node, clock.now())
          const result = await claimNodeId(db, node_id, { hash, previousHash, joinTokenId: token_id })
          if (result !== 'claimed') throw new Refused(result)
          if (!isRepeated) await insertAuditEvent(db, joinEvent(token_id, node_id, clock.now()))
        })
      } catch (error) {
        if (!(error instanceof Refused)) throw error
        logger.warn({ node_id, reason: error.reason }, 'node not joined')
        return { joined: false, reason: error.reason }
      }
      logger.info({ node_id, region, join_token_id: token_id }, 'node joined')
      return { joined: true }
    },
  }
}

/**
 * Notes, once for each credential, that commits may be missing: while control was out of reach, the machine may have written markers, and from
 * now on it cannot report them.
 */
async function noteUnreported(
  { store, clock, logger }: Pick<ControlContext, 'store' | 'clock' | 'logger'>,
  [node_id, hash]: readonly [string, string],
  unreported: Unreported | undefined,
): Promise<void> {
  if (unreported === undefined) return
  const { region, since } = unreported
  const now = clock.now()
  const isFirst = await transact(store, async (db) => {
    if (!(await forgetUnreported(db, node_id, hash)) || wasInTouch(unreported, now)) return false
    await noteMissingCommits(db, region, since, now, { isAutomatic: true, notBefore: now + controlLimits.fencedEndsMs })
    return true
  })
  if (isFirst)
    logger.warn(
      { node_id, region, since: isoTimestamp(since) },
      'a node that lost its place is back, and may have delivered more: control reads the markers of the region in a minute',
    )
}

/** Returns functions that verify a credential. They throw unauthorized. */
function credentialCheck({ store, registry, clock, logger }: NodeAccessOptions) {
  const refused = new Map<string, number>([...Object.keys(fenceTexts), unknown].map((reason) => [reason, 0]))
  const refusals = 'calls of nodes whose credential this process refused, by reason'
  observableMetrics(registry).counters('inlet_node_calls_refused_total', refusals, 'reason', () => refused)
  const refuse = (fence?: Fence): AppError => {
    refused.set(fence ?? unknown, (refused.get(fence ?? unknown) ?? 0) + 1)
    return notValid(fence)
  }
  // Many calls share a query that begins after they arrived.
  const readCredentials = batchCalls((ids: readonly string[]) => listNodeCredentials(store.db, ids))
  const readFormer = batchCalls((ids: readonly string[]) => listFormerCredentials(store.db, ids))
  /** Returns why a credential that the node had is refused. Undefined if it never had it: a stranger learns nothing about ids. */
  const findFence = async (id: string, hash: string, stored: CredentialRow | undefined): Promise<Fence | undefined> => {
    if (isSame(hash, stored?.credential_hash)) return 'node_revoked'
    const ended = (await readFormer(id)).get(id)?.get(hash)
    await noteUnreported({ store, clock, logger }, [id, hash], ended?.unreported)
    return ended?.fence
  }
  const parse = (credential: string): { readonly id: string; readonly hash: string } => {
    const presented = parseNodeCredential(credential)
    if (presented === undefined || !isUuid(presented.node_id)) throw refuse()
    return { id: presented.node_id, hash: hashApiKey(presented.secret) }
  }
  return {
    async verify(credential: string): Promise<NodeIdentity> {
      const { id, hash } = parse(credential)
      const stored = (await readCredentials(id)).get(id)
      const isCurrent = isSame(hash, stored?.credential_hash) && stored?.credential_revoked_at === null
      if (!isCurrent) throw refuse(await findFence(id, hash, stored))
      return { id, region: stored.region }
    },

    /** Verifies that a machine had this credential until it lost its place. Nobody trusts one that was revoked. */
    async verifyFormer(credential: string): Promise<FormerMachine> {
      const { id, hash } = parse(credential)
      const ended = (await readFormer(id)).get(id)?.get(hash)
      if (ended === undefined || ended.isRevoked) throw refuse()
      return { node_id: id, region: ended.region, credential_hash: hash, isRemoved: ended.fence === 'node_removed' }
    },
  }
}

/** The reason of a refusal, in metrics, if the credential was never known. */
const unknown = 'unknown'
const fenceTexts: Readonly<Record<Fence, string>> = {
  node_removed: 'an operator removed this node',
  node_revoked: 'an operator revoked the credential of this node',
  node_adopted: 'another machine adopted the log of this node',
  node_released: 'an operator released the id of this node',
}

function notValid(fence?: Fence): AppError {
  if (fence === undefined) return new AppError('unauthorized', 'the credential of the node is not valid')
  return new AppError('unauthorized', fenceTexts[fence], { fence })
}

function isSame(hash: string, stored: string | null | undefined): boolean {
  return stored != null && secretsEqual(hash, stored)
}

/** Throws unauthorized and forbidden, with the reason: a caller that knows the secret may learn it. */
function assertOpens(token: JoinToken | undefined, region: string): void {
  if (token?.status === 'active') {
    if (token.region === null || token.region === region) return
    throw new AppError('forbidden', `the join token is for region ${token.region}, and this node is in region ${region}`)
  }
  const why =
    token === undefined
      ? 'does not exist any more'
      : token.status === 'revoked'
        ? `was revoked at ${token.revoked_at}`
        : token.status === 'expired'
          ? `expired at ${token.expires_at}`
          : `is used up: ${token.uses} of ${token.uses_max} nodes have joined with it`
  throw new AppError('unauthorized', `the join token ${why}`)
}

function adoptionEvent(node_id: string, now: number) {
  const event = { actor: `node:${node_id}`, operation: 'adoptNode', account_id: null, resource_id: node_id } as const
  return eventOutsideApi(event, now)
}

function joinEvent(token_id: string | null, node_id: string, now: number) {
  const actor = token_id === null ? 'join-secret' : (`join-token:${token_id}` as const)
  return eventOutsideApi({ actor, operation: 'joinNode', account_id: null, resource_id: node_id }, now)
}
