/** Tables of the definitions that endpoints have: a part of the schema (schema.ts). */
export type BindingTables = {
  bindings: {
    id: string
    account_id: string
    endpoint_id: string
    view_id: string
    is_required: number
    activated_at: number
    activated_by: string
    deactivated_at: number | null
    canary_start_ts: number | null
    /** JSON of the rule by which it is stopped; null if nothing stops it. */
    canary_rule: string | null
    /** Why its rule detached it; null if that did not happen. */
    stopped_reason: string | null
    /** The epoch of the change that detached it, while a node may hold a segment that was sealed before; null otherwise. */
    unsettled_epoch: number | null
  }
  shadows: {
    id: string
    account_id: string
    endpoint_id: string
    view_id: string
    /** As it was when the shadow started. */
    definition: string
    started_at: number
    started_by: string
  }
}
