/** The table of API keys (accounts/api-keys.ts). */
export type KeyTables = {
  api_keys: {
    id: string
    account_id: string
    name: string
    prefix: string
    hash: string
    scopes: string
    /** JSON of the ids; null for all endpoints of the account. */
    endpoint_ids: string | null
    /** JSON of the origins of a public key; null for other keys. */
    origins: string | null
    created_at: number
    /** The beginning of a minute. */
    last_used_at: number | null
    revoked_at: number | null
    /** When its tokens and connections were ended at once. */
    access_ended_at: number | null
    /** Epoch of the last revocation, and when every node had applied it. */
    revocation_epoch: number | null
    revocation_applied_at: number | null
  }
}
