import { effectiveQuotas } from '#model/quota.ts'
import { key } from './keys.ts'
import { at, type Examples, ids, page } from './shared.ts'

const { endpoints, views, view_versions, api_keys, bytes_per_day, records_per_second } = effectiveQuotas({})

const quotaUse = {
  account_id: ids.account,
  weight: 1,
  quotas: {
    endpoints: { limit: endpoints, used: 3 },
    views: { limit: views, used: 2 },
    view_versions: { limit: view_versions, used: 7 },
    api_keys: { limit: api_keys, used: 4 },
    bytes_per_day: { limit: bytes_per_day, used: 1_254_000_000, resets_at: '2026-11-21T00:00:00.000Z' },
    records_per_second: { limit: records_per_second, used: 310 },
  },
}

const account = {
  ...{ id: ids.account, name: 'acme', status: 'active', weight: 1, quotas: effectiveQuotas({}), allowed_buckets: null },
  created_at: at,
}

const first_key = {
  ...key,
  name: 'first key',
  scopes: ['ingest', 'metrics', 'admin'],
  endpoint_ids: null,
  public: false,
  origins: null,
  last_used_at: null,
  api_key: 'ing_live_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY',
}

export const accountsExamples: Examples = {
  createAccount: { request: { name: 'acme' }, response: { ...account, first_key } },
  listAccounts: { response: page(account) },
  getAccount: { response: account },
  changeAccount: { request: { status: 'suspended' }, response: { ...account, status: 'suspended' } },
  getAccountQuotas: { response: quotaUse },
  getQuotas: { response: quotaUse },
}
