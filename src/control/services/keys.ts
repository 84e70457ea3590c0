import { newApiKey } from '#auth/secrets.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { ApiKey, CreateApiKey, CreatedApiKey, Principal } from '#model/api-key.ts'
import { newId } from '#model/id.ts'
import type { Page, PageQuery } from '#model/page.ts'
import { insertApiKey, listApiKeyPage, revokeApiKey } from '#store/api-keys.ts'
import { withinQuotas } from '#store/quotas.ts'
import type { Store } from '#store/store.ts'
import type { ApplyChange } from './changes.ts'

export type KeysOptions = {
  readonly store: Store
  readonly applyChange: ApplyChange
  readonly clock: Clock
  readonly logger: Logger
}

export type Keys = ReturnType<typeof keyService>

export function keyService({ store, applyChange, clock, logger }: KeysOptions) {
  return {
    async create({ account_id, key_id: by }: Principal, { name, scopes }: CreateApiKey): Promise<CreatedApiKey> {
      const { secret, prefix, hash } = newApiKey()
      const key = { id: newId(), account_id, name, prefix, hash, scopes }
      const created = await applyChange((db) =>
        withinQuotas(db, account_id, ['api_keys'], () => insertApiKey(db, key, clock.now())),
      )
      logger.info({ account_id, key_id: key.id, scopes, by }, 'API key created')
      return { ...created, api_key: secret }
    },

    list({ account_id }: Principal, page: PageQuery): Promise<Page<ApiKey>> {
      return listApiKeyPage(store.db, account_id, page)
    },

    async revoke({ account_id, key_id: by }: Principal, id: string): Promise<ApiKey> {
      const revoked = await applyChange((db) => revokeApiKey(db, account_id, id, clock.now()))
      logger.info({ account_id, key_id: id, by }, 'API key revoked')
      return revoked
    },
  }
}
