import { at, type Examples, ids, page } from './shared.ts'

export const key = {
  id: ids.key,
  name: 'warehouse loader',
  prefix: 'ing_live_aB3d',
  scopes: ['ingest', 'metrics'],
  endpoint_ids: [ids.endpoint],
  public: false,
  origins: null,
  created_at: at,
  last_used_at: '2026-11-20T08:15:00.000Z',
  revoked_at: null,
  access_ended_at: null,
  revocation: null,
}

const revocation = {
  summary: `applied on 2 of 3 nodes; node fra-1 (${ids.node}) has been out of reach for 40 s`,
  ...{ applied_nodes: 2, nodes: 3, applied_at: null },
  waiting: [{ node_id: ids.node, node_name: 'fra-1', region: 'fra', out_of_reach_seconds: 40 }],
}

export const keysExamples: Examples = {
  exchangeToken: {
    request: { api_key: 'ing_live_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY', scope: 'admin', ttl: '15m' },
    response: { access_token: 'eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.…', token_type: 'Bearer', expires_in: 900 },
  },
  createKey: {
    request: { name: 'warehouse loader', scopes: ['ingest', 'metrics'], endpoint_ids: [ids.endpoint] },
    response: { ...key, last_used_at: null, api_key: 'ing_live_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY' },
  },
  listKeys: { response: page(key) },
  revokeKey: { response: { ...key, revoked_at: at, revocation } },
}
