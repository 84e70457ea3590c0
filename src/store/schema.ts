/**
 * The tables, the same in both databases.
 *
 * Law: only types that SQLite and Postgres return alike. Ids and JSON are text, times are whole milliseconds since 1970, booleans
 * are 0 or 1. JSON is text on Postgres too: jsonb rejects the character U+0000, which a definition may contain.
 */
import type { ColumnType } from 'kysely'
import type { BindingTables } from './binding-tables.ts'
import type { KeyTables } from './key-tables.ts'
import type { LossTables } from './loss-tables.ts'
import type { NodeAccessTables } from './node-access-tables.ts'
import type { SecretTables } from './secret-tables.ts'

type OtherTables = BindingTables & KeyTables & LossTables & NodeAccessTables & SecretTables

export type Database = OtherTables & {
  schema_migrations: { version: number; name: string; applied_at: number }
  /** `version` is a random id of the last change. */
  /** `generation` is when the database was last said to be the right one (epoch ms); 0 for never. */
  epoch: { id: number; value: number; version: string; database_id: string; generation: number }
  missing_commits: {
    region: string
    since: number
    noted_at: number
    /** Whether control records them again by itself. */
    automatic: ColumnType<number, number | undefined>
    /** Markers may still be written until then, so none is taken for the last. */
    not_before: ColumnType<number, number | undefined>
    /** JSON: ids of the accounts whose commits may be missing, because a bucket of theirs could not be read. Null: all. */
    accounts: ColumnType<string | null, string | null | undefined>
  }
  /** One row: how many leaders control has had. */
  leader: { id: number; term: number }
  snapshot_sections: { region: string; section: string; version: string }
  accounts: {
    id: string
    name: string
    external_id: string
    status: string
    /** Share of the account where accounts compete, in proportion to other weights. */
    weight: number
    /** JSON of the quotas that the operator set; null for none. */
    quotas: string | null
    /** JSON of the buckets that the operator allows; null for none. */
    allowed_buckets: string | null
    created_at: number
  }
  /** Usage that a node counted on a UTC day. `run` is one start of its ingest, which counts from 0. Empty: sum of older ones. */
  account_usage: {
    day: string
    account_id: string
    node_id: string
    run: string
    bytes: number
    records: number
    records_per_second: number
    reported_at: number
  }
  /** People, sessions, ways to sign in, verifications and passkeys are tables of better-auth: times are ISO 8601 text, as it stores them. */
  people: {
    id: string
    name: string
    /** Ends with `unknownEmailSuffix` until the person has set one: the library needs one. */
    email: string
    email_verified: number
    image: string | null
    is_operator: number
    created_at: string
    updated_at: string
  }
  sessions: {
    id: string
    token: string
    person_id: string
    ip_address: string | null
    user_agent: string | null
    expires_at: string
    created_at: string
    updated_at: string
  }
  verifications: { id: string; identifier: string; value: string; expires_at: string; created_at: string; updated_at: string }
  memberships: { person_id: string; account_id: string; role: string; created_at: number }
  /** One-time links: into the console, or also into an account. The secret is never stored. */
  sign_in_links: {
    id: string
    hash: string
    /** Person who signs in with it; null for a new one. */
    person_id: string | null
    email: string | null
    account_id: string | null
    role: string | null
    makes_operator: number
    created_by: string
    created_at: number
    expires_at: number
    used_at: number | null
  }
  /** Issued certificates. `private_key` is encrypted like those of `SecretTables`. Nothing but `due_at` and the failures is set before the first. */
  certificates: {
    /** Name that it is for: `*.<region>.<base domain>`, or the host of control. */
    name: string
    issuer: string | null
    chain: string | null
    private_key: string | null
    key_id: string | null
    fingerprint: string | null
    not_before: number | null
    not_after: number | null
    /** When to order the next one. */
    due_at: number
    /** Failed orders since the last certificate. */
    failures: number
    last_error: string | null
  }
  /** `id` is ordered by time. */
  audit_events: {
    id: string
    at: number
    account_id: string | null
    actor: string
    address: string | null
    operation: string
    resource_id: string | null
    result: string
    status: number | null
    error: string | null
    request_id: string | null
    unrecorded: number
  }
  destinations: {
    id: string
    account_id: string
    name: string
    bucket: string
    prefix: string
    region: string
    /** Empty for none. */
    role_arn: string
    encryption: string
    kms_key_arn: string | null
    checksums: string
    path_style: number
    status: string
    validated_at: number | null
    last_error: string | null
    /** Incremented by every change of a setting that validation depends on. */
    revision: number
    validation_claimed_at: number | null
    created_at: number
    updated_at: number
  }
  endpoints: {
    id: string
    account_id: string
    region: string
    label: string
    /** Unique in the account among endpoints that are not deleted. The label, unless the account gave another. */
    name: string
    desired_state: string
    segment_bytes: number | null
    segment_max_age_seconds: number | null
    output_formats: string | null
    mqtt_config: string | null
    /** How it merges small files by itself. */
    compaction: string | null
    /** Files sealed before were merged, or had nothing to be merged with. */
    compacted_until: number | null
    /** JSON of the names; null for none. Also `kept_fields`. */
    kept_headers: string | null
    kept_fields: string | null
    /** Where a record is before it is acknowledged; null for the default. */
    copies: number | null
    destination_id: string | null
    since_epoch: number
    /** When draining started. */
    draining_at: number | null
    /** The epoch of the change that started draining. */
    draining_epoch: number | null
    /** Deleted for its account. The row stays, because commits, DLQ files and metrics refer to it. */
    deleted_at: number | null
    created_at: number
    /** When it was first served under its name. */
    provisioned_at: number | null
  }
  /** Where endpoints delivered before: endpoints/former-places.ts. */
  former_places: {
    endpoint_id: string
    destination_id: string
    bucket: string
    prefix: string
    /** Region of the bucket. */
    region: string
    replaced_at: number
  }
  views: {
    id: string
    account_id: string
    name: string
    version: number
    definition: string
    format: string
    status: string
    description: string
    tags: string
    created_by: string
    created_at: number
    published_at: number | null
  }
  view_tags: { view_id: string; tag: string }
  nodes: {
    id: string
    /** Null until an operator gives one. */
    name: string | null
    region: string
    ipv4: string
    ipv6: string
    ingest_address: string
    /** JSON of the ports where clients find TLS. */
    tls_ports: string
    registered_at: number
    /** Version of Inlet that it runs. */
    version: string | null
    disk_free_bytes: number | null
    disk_total_bytes: number | null
    /** SHA-256 of its secret. Null: whoever registers next under the id sets it. */
    credential_hash: string | null
    credential_revoked_at: number | null
    /** The token with which the node last joined. Null: the join secret. */
    join_token_id: string | null
  }
  node_processes: {
    node_id: string
    process: string
    applied_epoch: number
    healthy: number
    reasons: string
    /** Only of ingest: not healthy for want of room. */
    disk_full: number
    /** Only of ingest: it was asked to stop. */
    leaving: number
    copy_store: number
    last_seen_at: number
    /** Time of the last healthy heartbeat. */
    healthy_at: number | null
    /** JSON: the configuration that it keeps, because it refuses that of this database. */
    kept_position: string | null
    /** Numbers the heartbeats of one run of the process. Null if the node does not say. */
    run: string | null
    number: number | null
    /** Only of delivery: names the report that `endpoint_lags` has. */
    lag_version: string | null
    /** Only of delivery: all that was acknowledged before is in `endpoint_lags`. Null if the node does not say. */
    counted_at: number | null
  }
  /** The certificate that control last saw at an address of a node, or why it saw none. */
  certificate_checks: {
    node_id: string
    address: string
    port: number
    names: string
    not_before: number | null
    not_after: number | null
    error: string | null
    checked_at: number
  }
  /** Last answers of the name servers for the name of an endpoint. `answers` is JSON, one for each server. */
  dns_checks: { endpoint_id: string; name: string; answers: string; checked_at: number }
  /** The newest configuration of a region that was sent to a node: it may hold data of every endpoint in it. */
  node_snapshots: { node_id: string; region: string; epoch: number }
  endpoint_lags: {
    endpoint_id: string
    node_id: string
    open_segments: number
    undelivered_segments: number
    parked_segments: number
    quarantined_segments: number
    undelivered_bytes: number
    /** Acknowledged records of the open and the sealed segments, and their lowest and highest seq; null if the node does not say. */
    records: number | null
    first_seq: number | null
    last_seq: number | null
    /** `HeldSegments` of these, as JSON; null if the node does not say. */
    held: string | null
    /** The lowest and the highest seq in quarantine; null for none, and if the node does not say. */
    quarantined_first_seq: number | null
    quarantined_last_seq: number | null
    oldest_sealed_at: number | null
    blocked_by: string | null
    /** The required view that holds the log, and since when. */
    failing_view_id: string | null
    failing_since: number | null
    closed: number
    scrub_findings: number
    scrub_finding: string | null
    /** The same for a log that could not be read since; null for others. */
    counted_at: number | null
  }
  /** Logs that ingest of a node cannot append to. */
  blocked_logs: { node_id: string; endpoint_id: string; reason: string }
  /** Records that are published in DNS for each endpoint (`dns-records.ts`). Values are JSON. */
  dns_records: {
    name: string
    type: string
    endpoint_id: string
    region: string
    /** The DNS service that has them. */
    target: string
    published: string | null
    ttl: number | null
    published_at: number | null
    /** Values that the last attempt sent; null once it is confirmed. */
    sent: string | null
    attempt: string | null
    retry_at: number | null
    /** How often the service rejected the records in a row. */
    failures: number
    last_error: string | null
  }
  /** When an address was last taken from a name of the region. Clients may use it until the TTL has passed. */
  dns_removals: { region: string; address: string; removed_at: number }
  commits: {
    id: string
    endpoint_id: string
    node_id: string
    log: string
    seq: number
    records: number
    records_damaged: number
    wal_bytes: number
    duration_ms: number
    sealed_at: number
    uploaded_at: number
    destination_id: string
    bucket: string
    region: string
    artifacts: string
    /** Ids of the views that were applied to the whole segment. Null in commits from before they were recorded. */
    applied_views: string | null
    /** Views that failed on the segment as a whole, with the number of its records. Null if there are none. */
    failed_views: string | null
  }
  commit_heads: { endpoint_id: string; uploaded_at: number }
  committed_seqs: { node_id: string; endpoint_id: string; seq: number }
  node_commits: { node_id: string; commits: number }
  dlq_files: {
    commit_id: string
    view_id: string
    endpoint_id: string
    segment_seq: number
    destination_id: string
    s3_bucket: string
    s3_key: string
    region: string
    bytes: number
    rows: number
    created_at: number
    /** When its rows were counted in the metrics of the view. Null in files of jobs from before jobs were counted. */
    counted_at: number | null
    /** When a re-drive took over its rows. */
    redriven_at: number | null
  }
  view_counters: ViewCounters & { bucket_start: number }
  view_totals: ViewCounters & {
    last_error_at: number | null
    last_error_code: string | null
    last_error_message: string | null
    updated_at: number
  }
  view_quality: {
    view_id: string
    endpoint_id: string
    /** -1 for all time. */
    bucket_start: number
    quality: string
  }
  /** Time series of endpoints, in buckets of each length: one or more, by their number in the row, in the JSON of `counts`. */
  endpoint_series: { endpoint_id: string; step: string; bucket_start: number; counts: string; writes: number }
  view_series: {
    view_id: string
    endpoint_id: string
    step: string
    bucket_start: number
    accepted: number
    dropped: number
    dlq: number
    failed: number
    /** Rows beyond one for each accepted record. */
    more_rows: number
    duplicates: number
  }
  /** The last report of each node that is in `endpoint_series`. `run` is one start of its ingest. */
  series_reports: { node_id: string; run: string; number: number }
  jobs: {
    id: string
    account_id: string
    kind: string
    status: string
    /** Null for a compaction. */
    view_id: string | null
    /** For a re-drive: the version whose rejected rows it reads. */
    from_view_id: string | null
    endpoint_id: string
    region: string
    from_at: number | null
    to_at: number | null
    total: number
    done: number
    skipped: number
    failed: number
    processed: number
    accepted: number
    dropped: number
    dlq: number
    /** Records of the failed units on which the view failed as a whole. */
    failed_records: number
    /** Rows beyond one for each accepted record. */
    more_rows: number
    duplicates: number
    created_by: string
    created_at: number
    started_at: number | null
    finished_at: number | null
    last_error: string | null
    /** When a node last took units of the job. Jobs take turns by it. */
    looked_at: number
  }
  job_units: {
    job_id: string
    /** Id of the commit, or of the compaction. */
    commit_id: string
    /** Null for a compaction. */
    view_id: string | null
    number: number
    status: string
    /** When a node may take the unit. For a leased unit, the end of the lease. Null once finished. */
    available_at: number | null
    lease_id: string | null
    node_id: string | null
    incarnation: string | null
    /** Number of processes that crashed while working on the unit. */
    deaths: number
    reason: string | null
  }
  /** Requests that a caller has taken of its limit `allowed`, until `ends_at`. `granted` is the last part that a process took. */
  rate_windows: { caller: string; allowed: number; ends_at: number; taken: number; granted: number }
  /** Artifacts that jobs added to a segment after the commit. */
  commit_additions: {
    commit_id: string
    view_id: string
    /** The version whose dead letters a re-drive took over. */
    from_view_id: string | null
    job_id: string
    artifacts: string
    added_at: number
  }
  /** One file that is, or will be, made of several. */
  compactions: {
    id: string
    account_id: string
    endpoint_id: string
    /** Kind of the sources, as in the artifacts of a commit. */
    kind: string
    view_id: string | null
    view_version: number | null
    /** The UTC date on which the sources were sealed: their `dt`. */
    date: string
    destination_id: string
    bucket: string
    region: string
    prefix: string
    planned_at: number
    /** The last attempt failed for good. Only somebody who asks for it causes another. */
    failed_at: number | null
    /** The new file, once its marker is in the bucket. */
    file: string | null
    published_at: number | null
    /** From then on its sources may be missing, and are not read any more. */
    removing_since: number | null
    /** When all of its sources were removed. */
    removed_at: number | null
  }
  /** A file of a commit or its additions that a compaction moves, and the rows of the new file that it becomes. */
  compacted_artifacts: {
    commit_id: string
    kind: string
    compaction_id: string
    /** Id of the marker that lists the file. */
    marker_id: string
    first_row: number
    rows: number
    bytes: number
    sha256: string
  }
}

/** `more_rows` are those beyond one for each accepted record. */
type ViewCounters = { view_id: string; endpoint_id: string } & Record<
  'processed' | 'accepted' | 'dropped' | 'dlq' | 'failed' | 'more_rows' | 'duplicates' | 'cast_nulls' | 'redriven' | 'errors',
  number
>
