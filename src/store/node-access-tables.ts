/** Tables of what nodes present to join, and of the credentials that they had before. Part of schema.ts. */
export type NodeAccessTables = {
  /** The id of a removed node belongs to the machine that has its credential. */
  removed_nodes: { id: string; credential_hash: string; credential_revoked_at: number | null; removed_at: number }
  /** SHA-256 of the secrets that nodes had before their logs were adopted, or their ids released. */
  adopted_credentials: {
    node_id: string
    credential_hash: string
    /** When it lost its place, one way or the other. */
    adopted_at: number
    fence: string
    /** Null: adopted under an earlier release, or released after a removal. */
    region: string | null
    /** The machine may have delivered since then what it could not report. Null once that is noted. */
    unreported_since: number | null
  }
  join_tokens: {
    id: string
    name: string
    /** Null: nodes of every region. */
    region: string | null
    /** SHA-256 of its secret. */
    hash: string
    /** Null: any number. */
    uses_max: number | null
    /** Nodes that joined with it. */
    uses: number
    created_at: number
    expires_at: number
    revoked_at: number | null
  }
}
