import { newApiKey } from '#auth/secrets.ts'
import { AppError } from '#errors.ts'
import type { ApiKey, CreateApiKey, CreatedApiKey } from '#model/api-key.ts'
import { newId } from '#model/id.ts'
import type { Page, PageQuery } from '#model/page.ts'
import { insertApiKey, listApiKeys, revokeApiKey } from '#store/accounts/api-keys.ts'
import { withinQuotas } from '#store/accounts/quotas.ts'
import { findRevocations } from '#store/accounts/revocations.ts'
import type { ControlContext } from '../context.ts'
import { actorOf, type Caller } from './actor.ts'

export type KeysOptions = Pick<ControlContext, 'store' | 'applyChange' | 'clock' | 'logger'> & {
  /** Whether the operator allows public keys. */
  readonly publicKeys: boolean
}

export type Keys = ReturnType<typeof keyService>

export function keyService({ store, applyChange, publicKeys, clock, logger }: KeysOptions) {
  /** Says of revoked keys which nodes have applied it. */
  const withRevocations = async (account_id: string, keys: readonly ApiKey[]): Promise<ApiKey[]> => {
    const revoked = keys.flatMap(({ id, revoked_at }) => (revoked_at === null ? [] : [id]))
    const revocations = await findRevocations(store.db, account_id, revoked, clock.now())
    return keys.map((key) => ({ ...key, revocation: revocations.get(key.id) ?? null }))
  }
  return {
    async create(caller: Caller, { name, scopes, endpoint_ids, origins }: CreateApiKey): Promise<CreatedApiKey> {
      const { account_id } = caller
      if (origins !== null && !publicKeys) {
        const message = 'public keys are not allowed here; the operator can set INLET_PUBLIC_KEYS=true'
        throw new AppError('validation_error', message, { errors: [{ path: 'public', message }] })
      }
      const { secret, prefix, hash } = newApiKey()
      const key = { id: newId(), account_id, name, prefix, hash, scopes, endpoint_ids, origins }
      const created = await applyChange((db) =>
        withinQuotas(db, account_id, ['api_keys'], () => insertApiKey(db, key, clock.now())),
      )
      logger.info({ account_id, key_id: key.id, scopes, endpoint_ids, origins, by: actorOf(caller) }, 'API key created')
      return { ...created, api_key: secret }
    },

    async list({ account_id }: Caller, page: PageQuery): Promise<Page<ApiKey>> {
      const { items, ...rest } = await listApiKeys(store.db, account_id, page)
      return { ...rest, items: await withRevocations(account_id, items) }
    },

    /** With `now` its tokens and connections end, too. */
    async revoke(caller: Caller, id: string, { now }: { readonly now: boolean }): Promise<ApiKey> {
      const { account_id } = caller
      const revoked = await applyChange((db) => revokeApiKey(db, account_id, id, { at: clock.now(), endsAccess: now }))
      logger.info({ account_id, key_id: id, now, by: actorOf(caller) }, 'API key revoked')
      const [key = revoked] = await withRevocations(account_id, [revoked])
      return key
    },
  }
}
