/** The tables of secrets, which are encrypted with the key `key_id` (`sealed-secrets.ts`). */
export type SecretTables = {
  /** Secrets of the installation. */
  secrets: { name: string; value: string; key_id: string }
  signing_keys: { kid: string; private_jwk: string; key_id: string; created_at: number }
  /** Secrets of accounts, which views name. */
  account_secrets: {
    id: string
    account_id: string
    name: string
    value: string
    key_id: string
    created_at: number
    rotated_at: number | null
  }
  /** The secrets that a version of a view names, whether they exist or not. */
  view_secrets: { view_id: string; account_id: string; name: string }
}
