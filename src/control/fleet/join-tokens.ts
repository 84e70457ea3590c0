import type { X509Certificate } from 'node:crypto'
import { printJoinToken } from '#auth/join-token.ts'
import { hashApiKey, randomText } from '#auth/secrets.ts'
import { must } from '#lib/assert.ts'
import { pinOf } from '#lib/root-certificate.ts'
import { parseDurationSeconds } from '#model/duration.ts'
import { newId } from '#model/id.ts'
import type { CreatedJoinToken, CreateJoinToken, JoinToken } from '#model/join-token.ts'
import type { Page, PageQuery } from '#model/page.ts'
import { insertJoinToken, listJoinTokens, revokeJoinToken } from '#store/nodes/join-tokens.ts'
import { transact } from '#store/store.ts'
import type { ControlContext } from '../context.ts'

export type JoinTokensOptions = Pick<ControlContext, 'store' | 'clock' | 'logger'> & {
  /** Returns the root that tokens pin, if nodes would not trust the certificate of the node API by themselves. */
  readonly rootCertificate: () => X509Certificate | undefined
}

export type JoinTokens = ReturnType<typeof joinTokenService>

/** The operator's tokens for nodes to join with. */
export function joinTokenService({ store, rootCertificate, clock, logger }: JoinTokensOptions) {
  return {
    async create(settings: CreateJoinToken): Promise<CreatedJoinToken> {
      const now = clock.now()
      const { secret, token } = newJoinToken(settings, now)
      const root = rootCertificate()
      const created = await transact(store, (db) => insertJoinToken(db, token, now))
      logger.info({ join_token_id: token.id, region: token.region, uses_max: token.uses_max }, 'join token created')
      const join_token = printJoinToken(secret, root && pinOf(root))
      return { ...created, join_token, root_sha256: root?.fingerprint256 ?? null }
    },

    list(page: PageQuery): Promise<Page<JoinToken>> {
      return listJoinTokens(store.db, page, clock.now())
    },

    /** Nodes that joined with it keep their credentials. Throws not_found. */
    async revoke(id: string): Promise<JoinToken> {
      const revoked = await transact(store, (db) => revokeJoinToken(db, id, clock.now()))
      logger.notice({ join_token_id: id }, 'join token revoked')
      return revoked
    },
  }
}

/** Returns a token to store, and its secret, which is `ing_join_` and 32 random base62 characters. */
export function newJoinToken({ ttl, ...settings }: CreateJoinToken, now: number) {
  const secret = `ing_join_${randomText(32)}`
  const expires_at = now + must(parseDurationSeconds(ttl), 'a duration') * 1000
  return { secret, token: { id: newId(), ...settings, hash: hashApiKey(secret), expires_at } }
}
