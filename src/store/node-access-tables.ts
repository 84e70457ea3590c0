/** Tables of what nodes present to join, and of the credentials that they had before. Part of schema.ts. */
export type NodeAccessTables = {
  /** SHA-256 of the secrets that nodes had until they lost their place. The id of a removed node belongs to the machine that has its credential. */
  former_credentials: {
    node_id: string
    credential_hash: string
    ended_at: number
    fence: string
    /** Null: adopted or removed under an earlier release. */
    region: string | null
    /** The machine may have delivered since then what it could not report. Null once that is noted. */
    unreported_since: number | null
    /** When it was revoked, before its node was removed, released or replaced. */
    revoked_at: number | null
  }
  /** Nodes that are lost, or may be, with the node that should take them over, or has; until they are removed or released. */
  take_overs: {
    node_id: string
    by_node_id: string
    /** When the node that should take it over last said that it is at it, or got to be the one that should. */
    seen_at: number
    /** The node that has the place of the lost one. Null: none has, so the lost one has it as soon as it is heard of again. */
    holder_node_id: string | null
    /** When the takeover ended: all is delivered, or needs a person. */
    ended_at: number | null
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
