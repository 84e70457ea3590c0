/** The table of losses (commits/losses.ts, commits/left-on-disk.ts). */
export type LossTables = {
  /** Acknowledged and not delivered when the node lost its place. `segments_missing` have no commit yet, or one with fewer records. */
  losses: {
    id: string
    account_id: string
    endpoint_id: string
    node_id: string
    /** As it was when the node was removed. */
    node_name: string | null
    /** SHA-256 of the secret that the machine had; null: unknown. */
    credential_hash: string | null
    region: string
    /** A `LossCause`. */
    cause: string
    first_seq: number | null
    last_seq: number | null
    segments: number
    segments_missing: number
    /** How many of the missing ones have a seq that is not known. */
    segments_unknown: number
    /** `LossRun`s (src/store/commits/loss-runs.ts) of those whose seqs are known, as JSON. */
    runs: string
    records: number | null
    bytes: number
    records_recovered: number
    bytes_recovered: number
    reported_at: number
    recorded_at: number
    recovered_at: number | null
    confirmed_at: number | null
    confirmed_by: string | null
    /** When control had looked for it in the buckets; null: not since it was recorded, or became more. */
    searched_at: number | null
    /** Says what the last search left in doubt. */
    search_problem: string | null
  }
}
