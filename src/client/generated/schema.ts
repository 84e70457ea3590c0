/** Written by `npm run openapi` from openapi/openapi.json: change nothing here. */
export type components = {
schemas: {
readonly AcceptInvitation: {
/** what stands after `#link=` in the link */
readonly link: string
}
readonly AccessToken: {
readonly access_token: string
readonly token_type: "Bearer"
/** lifetime in seconds */
readonly expires_in: number
}
readonly Account: {
readonly id: string
/** unique in the installation */
readonly name: string
/** suspended: its data is refused and its configuration cannot be changed; what it has is kept and can be read */
readonly status: "active" | "suspended"
/** share of the account where accounts compete for a node: with weight 2 it gets twice as much as one with weight 1 */
readonly weight: number
readonly quotas: components['schemas']["Quotas"]
/** with `INLET_S3_CREDENTIALS=own`: the buckets that the account may use, each with or without a prefix (`lake/raw`); null where there is no such list */
readonly allowed_buckets: (string)[] | null
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
}
readonly ApiKey: {
readonly id: string
readonly name: string
/** the first characters of the key, to recognise it */
readonly prefix: string
readonly scopes: ("ingest" | "metrics" | "query" | "admin")[]
/** the only endpoints that the key may send to and read; null for all of the account */
readonly endpoint_ids: (string)[] | null
/** whether web pages may hold the key: it sends from its `origins` only */
readonly public: boolean
/** origins of the pages of a public key; null for other keys */
readonly origins: (string)[] | null
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
/** the minute in which the key, or a token of it, was last accepted, or a connection with it was open; null before the first use */
readonly last_used_at: string | null
readonly revoked_at: string | null
/** when its access tokens and MQTT connections were ended at once (`now`); null if they end by themselves: tokens when they expire, at most 15 minutes after `revoked_at`, and connections when they next authenticate */
readonly access_ended_at: string | null
/** how far the revocation got; null for a key that is not revoked, or was before an upgrade to a version that tells it */
readonly revocation: components['schemas']["Revocation"] | null
}
readonly AttachView: {
readonly view_id: string
readonly is_required?: boolean | undefined
readonly canary_start_ts?: string | null | undefined
/** when the version is detached by itself, because it does worse than the version beside it. If not set: with the defaults of the fields if there is a `canary_start_ts`, else never. null: never */
readonly canary_rule?: components['schemas']["SetCanaryRule"] | null | undefined
}
readonly AuditEvent: {
readonly id: string
/** ISO 8601, UTC, milliseconds */
readonly at: string
/** the account that the call belongs to; null if it belongs to none */
readonly account_id: string | null
/** `key:<id>`: a token of this API key; `person:<id>`: somebody in the console; `operator`: the operator token; `cli`: a command on the machine of the database; `bootstrap`: a start; `join-token:<id>`, `join-secret`: a node that joined; `node:<id>`: a machine that adopted the log of this node; `inlet`: a rule, such as that of a canary; `unknown`: no valid credentials */
readonly actor: string
/** of the person or key, as it is called now; null if it is not known here */
readonly actor_name: string | null
/** the client, as control sees it; null for commands, and for calls of the operator */
readonly address: string | null
/** the `operationId` in this description; `revokeKeyNow` for `revokeKey` with `now`; `joinNode` for a node that joined; `adoptNode` for a machine that adopted the log of one; `takeOverNode` for a node that took over a lost one; `applyRevocation` for a revoked key that every node refuses from then on; `recordLosses` for a node that was removed before it had delivered everything; `stopCanary` for a canary that its rule stopped; `signInByEmail` and the like for people at the console */
readonly operation: string
/** what was created, changed or named */
readonly resource_id: string | null
/** as it is called now; null if it is gone or not of the account */
readonly resource_name: string | null
readonly result: "succeeded" | "failed"
/** of the response; null for commands and starts */
readonly status: number | null
/** the error code of a failed call */
readonly error: string | null
/** the header `x-request-id` of the response */
readonly request_id: string | null
/** failed calls before this one that were not recorded, because there were more than 10 in a minute */
readonly unrecorded: number
}
readonly Backfill: {
readonly endpoint_id: string
/** only segments sealed at or after this time */
readonly from?: string | undefined
/** only segments sealed before this time */
readonly to?: string | undefined
}
readonly Binding: {
readonly id: string
readonly endpoint_id: string
readonly endpoint_name: string
readonly view_id: string
readonly view_name: string
readonly view_version: number
readonly is_required: boolean
/** ISO 8601, UTC, milliseconds */
readonly activated_at: string
readonly activated_by: string
readonly deactivated_at: string | null
readonly canary_start_ts: string | null
/** when it is detached by itself; null: never */
readonly canary_rule: components['schemas']["CanaryRule"] | null
/** why its rule detached it; null if that did not happen */
readonly stopped_reason: string | null
readonly status: "active" | "detached"
}
readonly BucketPolicy: {
readonly Version: "2012-10-17"
readonly Statement: ({
readonly Sid: string
readonly Effect: "Allow"
readonly Principal: {
readonly AWS: string
}
readonly Action: string | (string)[]
readonly Resource: string
readonly Condition?: {
readonly StringLike: {
readonly "s3:prefix": string
}
} | undefined
})[]
}
readonly CanaryRule: {
readonly min_records: number
readonly dead_letters_pct: number | null
readonly failed_pct: number | null
readonly nulls_pct: number | null
readonly window_minutes: number | null
}
readonly ChangeAccount: {
readonly name?: string | undefined
readonly status?: "active" | "suspended" | undefined
/** share of the account where accounts compete for a node: with weight 2 it gets twice as much as one with weight 1 */
readonly weight?: number | undefined
readonly quotas?: components['schemas']["ChangeQuotas"] | undefined
/** replaces the list. Nodes stop within seconds to use what is no longer on it */
readonly allowed_buckets?: (string)[] | undefined
}
readonly ChangeDestination: {
readonly name?: string | undefined
/** without two dots in a row, not of the form of an IP address, not starting with xn--, sthree-, amzn-s3-demo- and not ending with -s3alias, --ol-s3, .mrap, --x-s3, --table-s3 */
readonly bucket?: string | undefined
/** without the parts . and ..; slashes at both ends are removed */
readonly prefix?: string | undefined
readonly region?: string | undefined
/** the role that Inlet assumes; required except with `INLET_S3_CREDENTIALS=own`, where it is not used */
readonly role_arn?: string | null | undefined
/** `sse-s3`: the keys of the store; `kms`: the key of `kms_key_arn`, which implies it; `bucket-default`: as the bucket does by itself, no header is sent */
readonly encryption?: "sse-s3" | "kms" | "bucket-default" | undefined
readonly kms_key_arn?: string | null | undefined
/** `standard`: puts carry a SHA-256, parts of large files a CRC32; `none`: for stores that reject them */
readonly checksums?: "standard" | "none" | undefined
readonly path_style?: boolean | undefined
}
readonly ChangeEndpoint: {
readonly name?: string | null | undefined
readonly destination_id?: string | null | undefined
readonly segment_bytes?: number | null | undefined
readonly segment_max_age_seconds?: number | null | undefined
readonly output_formats?: ("segments" | "parquet" | "parquet_views")[] | null | undefined
readonly mqtt_config?: components['schemas']["ChangeMqttConfig"] | null | undefined
readonly compaction?: {
/** the files of each hour, or of each day, are merged once it is closed */
readonly period: "hour" | "day"
/** views whose files stay as they are: they are not merged, and not removed */
readonly except_views?: (string)[] | undefined
/** removes files this long after they were merged; null keeps them. Programs that read a folder such as `views/orders/v1/`, and do not follow markers, then miss the rows of removed files: name their views in `except_views` */
readonly remove_after_hours?: number | null | undefined
} | null | undefined
readonly kept_headers?: (string)[] | null | undefined
readonly kept_fields?: ("address" | "address_masked" | "key_name")[] | null | undefined
readonly copies?: number | null | undefined
}
readonly ChangeMqttConfig: {
readonly enabled?: boolean | null | undefined
readonly max_connections?: number | null | undefined
readonly keepalive_max_s?: number | null | undefined
readonly qos_max?: number | null | undefined
}
readonly ChangeNode: {
/** unique in the installation, and part of the reasons that accounts read; null for none */
readonly name: string | null
}
readonly ChangePerson: {
/** `owner`: everything, also who belongs to the account; `member`: everything else; `viewer`: looks, and changes nothing */
readonly role: "owner" | "member" | "viewer"
}
readonly ChangeQuotas: {
readonly endpoints?: number | null | undefined
readonly views?: number | null | undefined
readonly view_versions?: number | null | undefined
readonly api_keys?: number | null | undefined
readonly bytes_per_day?: number | null | undefined
readonly records_per_second?: number | null | undefined
}
readonly ChangeView: {
readonly description?: string | undefined
readonly definition?: components['schemas']["Definition"] | string | undefined
/** default: the current format of the view */
readonly format?: "yaml" | "json" | undefined
readonly tags?: (string)[] | undefined
}
readonly Column: {
readonly name: string
/** a list type such as VARCHAR[] if the path has [*], and a scalar if it names a field of the envelope */
readonly type: string
/** a JSONPath, or $$.<field> of the envelope: docs/views.md */
readonly path?: string | undefined
/** how times at the path are written if not in ISO 8601: `epoch_s`, `epoch_ms`, `epoch_us` or `epoch_ns` for numbers since 1970, or a format of strptime */
readonly format?: string | undefined
/** instead of `path`: an expression over other columns of this definition and $$.<field> of the envelope: docs/views.md */
readonly value?: string | undefined
/** other columns and filters can use it, but it is not written */
readonly hidden?: boolean | undefined
readonly required?: boolean | undefined
readonly cast_failures?: "null" | "dlq" | undefined
/** how Parquet stores the column; if not set, in a form that every engine reads. `native` stores a UUID, TIME, JSON or unsigned integer as such, `naive` a TIMESTAMP that is not marked as UTC */
readonly parquet?: "native" | "naive" | undefined
}
readonly Commit: {
readonly id: string
readonly node_id: string
readonly seq: number
readonly records: number
readonly records_damaged: number
readonly wal_bytes: number
readonly duration_ms: number
/** ISO 8601, UTC, milliseconds */
readonly sealed_at: string
/** ISO 8601, UTC, milliseconds */
readonly uploaded_at: string
readonly bucket: string
readonly artifacts: Readonly<Record<string, {
readonly key: string
readonly bytes: number
readonly sha256: string
/** set once the file is being removed: the merged file that has its rows, and which they are, counted from 0 */
readonly moved_to?: {
readonly key: string
readonly bytes: number
readonly sha256: string
readonly first_row: number
readonly rows: number
} | undefined
}>>
}
readonly CommitFiles: {
readonly id: string
readonly node_id: string
readonly seq: number
readonly records: number
readonly records_damaged: number
readonly wal_bytes: number
readonly duration_ms: number
/** ISO 8601, UTC, milliseconds */
readonly sealed_at: string
/** ISO 8601, UTC, milliseconds */
readonly uploaded_at: string
readonly bucket: string
/** also those that jobs added */
readonly files: ({
readonly kind: string
readonly key: string
readonly bytes: number
/** of the file, in hex */
readonly sha256: string
/** set once the file is being removed: the merged file that has its rows, and which they are, counted from 0 */
readonly moved_to?: {
readonly key: string
readonly bytes: number
readonly sha256: string
readonly first_row: number
readonly rows: number
} | undefined
/** of the file, or the one it was moved to; valid for one hour, needs no credentials; null if the destination was deleted or denies reading */
readonly download_url: string | null
})[]
}
readonly CompareView: {
/** the changed definition; without it and without `version`, the draft of the view */
readonly definition?: components['schemas']["Definition"] | string | undefined
/** language of a definition that is sent as text; default: the format of the view */
readonly format?: "yaml" | "json" | undefined
/** a version of the view, in place of a definition */
readonly version?: number | undefined
/** the version to compare with; default: the newest published one, other than `version` */
readonly base_version?: number | undefined
/** the endpoint whose records are read; default: those that a version of the view is attached to */
readonly endpoint_id?: string | undefined
}
readonly ComparedColumn: {
readonly name: string
/** null for a new column */
readonly before: {
readonly type: string
/** written rows in which it is NULL */
readonly nulls: number
readonly null_rate_pct: number
/** values of it that could not be cast and became NULL */
readonly cast_nulls: number
} | null
/** null for a column that is lost */
readonly after: {
readonly type: string
/** written rows in which it is NULL */
readonly nulls: number
readonly null_rate_pct: number
/** values of it that could not be cast and became NULL */
readonly cast_nulls: number
} | null
/** rows that both write, with another value in this column; values of different types are compared as text. Null if `matched_by` is null */
readonly values_differ: number | null
readonly samples: ({
readonly endpoint_id: string
readonly commit_id: string
readonly segment_seq: number
/** position in the segment, from 0 */
readonly record_index: number
/** the payload; null if it is not valid UTF-8 */
readonly record: string | null
/** the payload, if it is not valid UTF-8 */
readonly record_base64: string | null
/** whether only the first 2000 characters of the payload are here */
readonly is_cut: boolean
/** position of the element in the record, from 0, if both definitions expand the same array; otherwise null */
readonly item_index: number | null
/** in the form of a preview */
readonly value_before: unknown
readonly value_after: unknown
/** whether a value is only the first 500 characters of its text */
readonly is_value_cut: boolean
})[]
}
readonly ComparedEndpoint: {
readonly endpoint_id: string
readonly endpoint_name: string
/** records of segments that were sealed since `since` */
readonly records_stored: number
readonly records_read: number
}
readonly ComparedSide: {
/** null for a definition of the request */
readonly view_id: string | null
readonly version: number | null
/** the array whose elements are rows; null if each record is a row */
readonly expand: string | null
/** a window that is not applied here: rows are only compared with those of their segment, so delivery may leave out more */
readonly dedupe_within: string | null
/** rows of its Parquet */
readonly rows: number
/** rows that are not written, because one before them in their segment has the same key */
readonly duplicates: number
readonly accepted: number
readonly dropped: number
readonly dlq: number
/** values that could not be cast and became NULL */
readonly cast_nulls: number
/** by reason, the most frequent first; they add up to `dlq` */
readonly dead_letters: ({
readonly error_code: string
readonly column: string | null
readonly records: number
})[]
}
readonly CreateAccount: {
readonly name: string
}
readonly CreateDestination: {
readonly name: string
/** without two dots in a row, not of the form of an IP address, not starting with xn--, sthree-, amzn-s3-demo- and not ending with -s3alias, --ol-s3, .mrap, --x-s3, --table-s3 */
readonly bucket: string
readonly region: string
/** the role that Inlet assumes; required except with `INLET_S3_CREDENTIALS=own`, where it is not used */
readonly role_arn?: string | null | undefined
/** without the parts . and ..; slashes at both ends are removed */
readonly prefix?: string | undefined
/** `sse-s3`: the keys of the store; `kms`: the key of `kms_key_arn`, which implies it; `bucket-default`: as the bucket does by itself, no header is sent */
readonly encryption?: "sse-s3" | "kms" | "bucket-default" | undefined
readonly kms_key_arn?: string | null | undefined
/** `standard`: puts carry a SHA-256, parts of large files a CRC32; `none`: for stores that reject them */
readonly checksums?: "standard" | "none" | undefined
readonly path_style?: boolean | undefined
}
readonly CreateEndpoint: {
readonly region: string
readonly name?: string | null | undefined
readonly destination_id?: string | null | undefined
/** size at which a segment is sealed, in bytes: 8 MB to 1 GB in decimal units */
readonly segment_bytes?: number | undefined
readonly segment_max_age_seconds?: number | undefined
readonly output_formats?: ("segments" | "parquet" | "parquet_views")[] | undefined
readonly mqtt_config?: components['schemas']["MqttConfigInput"] | null | undefined
readonly compaction?: {
/** the files of each hour, or of each day, are merged once it is closed */
readonly period: "hour" | "day"
/** views whose files stay as they are: they are not merged, and not removed */
readonly except_views?: (string)[] | undefined
/** removes files this long after they were merged; null keeps them. Programs that read a folder such as `views/orders/v1/`, and do not follow markers, then miss the rows of removed files: name their views in `except_views` */
readonly remove_after_hours?: number | null | undefined
} | null | undefined
/** HTTP headers that are kept with the records of a request, such as the signature of a webhook: `$$.headers.<name>` in views. In lower case; none of authorization, proxy-authorization, x-api-key, cookie */
readonly kept_headers?: (string)[] | undefined
/** what is kept of the sender of each record: the `address` of the client, or only its network (`address_masked`: the last octet of IPv4 and the last 80 bits of IPv6 are zero), both as `$$.address` in views, and the name of the API key (`key_name`, `$$.key_name`). An address is personal data in many countries */
readonly kept_fields?: ("address" | "address_masked" | "key_name")[] | undefined
/** 1: a record is acknowledged once it is on the disk of a node; 2: once it is in the copy store as well (`INLET_COPY_URL`), so that it survives the machine */
readonly copies?: number | undefined
}
readonly CreateJoinToken: {
readonly name: string
readonly region?: string | null | undefined
/** null for any number of nodes */
readonly uses_max?: number | null | undefined
/** lifetime of the token, such as 30m or 720h; at most 8760h */
readonly ttl?: string | undefined
}
readonly CreateSecret: {
readonly name: string
/** 16 to 1024 bytes; if not set, Inlet makes one at random and returns it once */
readonly value?: string | undefined
/** how `value` is written: its UTF-8 is the secret, or base64 of the bytes */
readonly encoding?: "text" | "base64" | undefined
}
readonly CreateView: {
readonly name: string
readonly definition: components['schemas']["Definition"] | string
readonly description?: string | undefined
readonly format?: "yaml" | "json" | undefined
readonly tags?: (string)[] | undefined
}
readonly CreateViewVersion: {
readonly copy_from_version?: number | undefined
readonly description?: string | undefined
}
readonly CreatedAccount: {
readonly id: string
/** unique in the installation */
readonly name: string
/** suspended: its data is refused and its configuration cannot be changed; what it has is kept and can be read */
readonly status: "active" | "suspended"
/** share of the account where accounts compete for a node: with weight 2 it gets twice as much as one with weight 1 */
readonly weight: number
readonly quotas: components['schemas']["Quotas"]
/** with `INLET_S3_CREDENTIALS=own`: the buckets that the account may use, each with or without a prefix (`lake/raw`); null where there is no such list */
readonly allowed_buckets: (string)[] | null
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
/** has every scope */
readonly first_key: {
readonly id: string
readonly name: string
/** the first characters of the key, to recognise it */
readonly prefix: string
readonly scopes: ("ingest" | "metrics" | "query" | "admin")[]
/** the only endpoints that the key may send to and read; null for all of the account */
readonly endpoint_ids: (string)[] | null
/** whether web pages may hold the key: it sends from its `origins` only */
readonly public: boolean
/** origins of the pages of a public key; null for other keys */
readonly origins: (string)[] | null
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
/** the minute in which the key, or a token of it, was last accepted, or a connection with it was open; null before the first use */
readonly last_used_at: string | null
readonly revoked_at: string | null
/** when its access tokens and MQTT connections were ended at once (`now`); null if they end by themselves: tokens when they expire, at most 15 minutes after `revoked_at`, and connections when they next authenticate */
readonly access_ended_at: string | null
/** how far the revocation got; null for a key that is not revoked, or was before an upgrade to a version that tells it */
readonly revocation: components['schemas']["Revocation"] | null
/** the key itself, returned only now */
readonly api_key: string
}
}
readonly CreatedInvitation: {
readonly id: string
readonly email: string | null
/** `owner`: everything, also who belongs to the account; `member`: everything else; `viewer`: looks, and changes nothing */
readonly role: "owner" | "member" | "viewer"
readonly created_by: string
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
/** ISO 8601, UTC, milliseconds */
readonly expires_at: string
/** opens the console and works once; returned only now */
readonly url: string
}
readonly CreatedJoinToken: {
readonly id: string
readonly name: string
/** the region in which nodes may join with it; null for any */
readonly region: string | null
/** nodes can join only while it is `active` */
readonly status: "active" | "used_up" | "expired" | "revoked"
/** how many nodes joined with it */
readonly uses: number
/** how many nodes may join with it; null for any number */
readonly uses_max: number | null
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
/** ISO 8601, UTC, milliseconds */
readonly expires_at: string
readonly revoked_at: string | null
/** the token itself, returned only now: `inlet node --join-token` */
readonly join_token: string
/** SHA-256 of the root certificate that the token pins: nodes then need no CA file. Null if the certificate of control has no root of its own */
readonly root_sha256: string | null
}
readonly Definition: {
/** their names differ, also if case is ignored */
readonly columns: (components['schemas']["Column"])[]
readonly filters?: (components['schemas']["Filter"])[] | undefined
/** of the rows of a segment that have the same values in these columns, only the first is written; the others are counted as `duplicates` */
readonly dedupe_by?: (string)[] | undefined
/** with `dedupe_by`: rows are also compared with those that the node wrote in segments before, if these were sealed at most so long before. If not set, with the same segment only */
readonly dedupe_within?: string | undefined
/** columns whose values name folders, such as `country=DE`, instead of being in the files: each segment has a file for each combination of values */
readonly partition_by?: (string)[] | undefined
/** the rows of each file are in the order of these columns, so that readers of few values skip parts of it */
readonly sort_by?: (string)[] | undefined
/** whether files have Bloom filters for columns with few different values, which is the default: `false` saves their space */
readonly bloom_filters?: boolean | undefined
/** a path that ends with [*]: each element of the array is a row, which columns read at `$item`. It may have two [*]: then `$parent` is the element of the outer array. docs/views.md */
readonly expand?: string | undefined
/** what a list has for an element of `[*]` in which the rest of the path finds nothing: NULL (`aligned`, the default), or nothing (`packed`). Versions that were created before this choice have none, and are packed */
readonly lists?: "aligned" | "packed" | undefined
}
readonly DefinitionWarning: {
readonly path: string
readonly code: "reserved_word" | "reserved_prefix" | "name_characters" | "aligned_lists" | "shadow_not_changed"
readonly message: string
/** position in a definition that was sent as text, from 1 */
readonly line?: number | undefined
readonly column?: number | undefined
}
readonly DeliveredRecord: {
readonly segment_seq: number
/** position in the segment, from 0 */
readonly record_index: number
/** ISO 8601, UTC, microseconds */
readonly ingested_at: string
readonly protocol: string
readonly topic: string | null
readonly client_id: string | null
/** other fields of the envelope, such as MQTT properties */
readonly attributes: Readonly<Record<string, unknown>> | null
/** the payload; null if it is not valid UTF-8 */
readonly record: string | null
/** the payload, if it is not valid UTF-8 */
readonly record_base64: string | null
/** whether only the first 65536 characters of the payload are here */
readonly is_cut: boolean
readonly commit_id: string
}
readonly Destination: {
readonly id: string
readonly name: string
readonly bucket: string
readonly prefix: string
readonly region: string
readonly role_arn: string | null
readonly external_id: string
readonly encryption: "sse-s3" | "kms" | "bucket-default"
readonly kms_key_arn: string | null
readonly checksums: "standard" | "none"
readonly path_style: boolean
readonly status: "pending" | "valid"
readonly validated_at: string | null
readonly last_error: string | null
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
/** ISO 8601, UTC, milliseconds */
readonly updated_at: string
/** paste it as the trust policy of the role; null without a role */
readonly trust_policy: components['schemas']["TrustPolicy"] | null
/** paste it as the policy of the bucket; null without a role */
readonly bucket_policy: components['schemas']["BucketPolicy"] | null
}
readonly DestinationWithCount: {
readonly id: string
readonly name: string
readonly bucket: string
readonly prefix: string
readonly region: string
readonly role_arn: string | null
readonly external_id: string
readonly encryption: "sse-s3" | "kms" | "bucket-default"
readonly kms_key_arn: string | null
readonly checksums: "standard" | "none"
readonly path_style: boolean
readonly status: "pending" | "valid"
readonly validated_at: string | null
readonly last_error: string | null
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
/** ISO 8601, UTC, milliseconds */
readonly updated_at: string
/** paste it as the trust policy of the role; null without a role */
readonly trust_policy: components['schemas']["TrustPolicy"] | null
/** paste it as the policy of the bucket; null without a role */
readonly bucket_policy: components['schemas']["BucketPolicy"] | null
readonly ref_count: number
}
readonly DlqFile: {
readonly endpoint_id: string
readonly endpoint_name: string
readonly segment_seq: number
readonly s3_key: string
readonly s3_bucket: string
readonly region: string
readonly bytes: number
readonly rows: number
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
/** when a re-drive took over its rows; null if none did */
readonly redriven_at: string | null
/** valid for one hour, needs no credentials; null if the destination was deleted or denies reading */
readonly download_url: string | null
}
readonly DlqRecord: {
readonly segment_seq: number
/** position in the segment, from 0 */
readonly record_index: number
/** ISO 8601, UTC, microseconds */
readonly ingested_at: string
readonly protocol: string
readonly topic: string | null
readonly client_id: string | null
/** other fields of the envelope, such as MQTT properties */
readonly attributes: Readonly<Record<string, unknown>> | null
/** the payload; null if it is not valid UTF-8 */
readonly record: string | null
/** the payload, if it is not valid UTF-8 */
readonly record_base64: string | null
/** whether only the first 65536 characters of the payload are here */
readonly is_cut: boolean
readonly endpoint_id: string
readonly error_code: string
/** null if the reason concerns the whole record */
readonly column: string | null
/** the path of the element that is the reason, if the view expands an array */
readonly item: string | null
readonly message: string
}
readonly Endpoint: {
readonly id: string
/** unique in the account; elsewhere this is the `endpoint_name` */
readonly name: string
readonly region: string
readonly status: "deploying" | "active" | "degraded" | "paused" | "draining" | "failed"
/** reasons for the status; empty while active */
readonly status_reasons: (string)[]
readonly destination_id: string | null
readonly destination_name: string | null
readonly destination_status: "pending" | "valid" | null
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
readonly dns_ipv4: (string)[]
readonly dns_ipv6: (string)[]
/** what nodes hold and is not in the bucket, over all nodes, as last reported */
readonly lag: {
/** segments that are still written to */
readonly open_segments: number
/** sealed segments that are not committed, parked ones included */
readonly undelivered_segments: number
/** sealed segments that were set aside because they cannot be converted */
readonly parked_segments: number
/** damaged files that were kept; their intact records are delivered */
readonly quarantined_segments: number
/** bytes of all these segments */
readonly undelivered_bytes: number
readonly oldest_sealed_at: string | null
readonly oldest_age_seconds: number | null
}
/** host to send data to, with a port if it is the address of a node */
readonly ingest_host: string
/** URL to send data to with POST; it begins with `https://` if the nodes speak TLS there */
readonly ingest_url: string
readonly segment_bytes: number
readonly segment_max_age_seconds: number
readonly output_formats: ("segments" | "parquet" | "parquet_views")[]
readonly mqtt_config: components['schemas']["MqttConfig"] | null
/** merges small files by itself; null if it does not */
readonly compaction: {
/** the files of each hour, or of each day, are merged once it is closed */
readonly period: "hour" | "day"
/** views whose files stay as they are: they are not merged, and not removed */
readonly except_views: (string)[]
/** removes files this long after they were merged; null keeps them. Programs that read a folder such as `views/orders/v1/`, and do not follow markers, then miss the rows of removed files: name their views in `except_views` */
readonly remove_after_hours: number | null
} | null
/** HTTP headers that are kept with the records of a request */
readonly kept_headers: (string)[]
/** what is kept of the sender of each record */
readonly kept_fields: ("address" | "address_masked" | "key_name")[]
/** 1: a record is acknowledged once it is on the disk of a node; 2: once it is in the copy store as well (`INLET_COPY_URL`), so that it survives the machine */
readonly copies: number
}
readonly EndpointBucket: {
/** when the bucket begins, in UTC */
readonly at: string
/** records accepted */
readonly records: number
/** bytes of these records */
readonly bytes: number
/** HTTP requests and MQTT messages accepted */
readonly requests: number
/** requests, messages and connections that were refused after their endpoint was known, by reason */
readonly refused: Readonly<Record<string, number>>
/** from the last byte of a request to its acknowledgement; null if nothing was accepted */
readonly ack_latency_ms: {
readonly p50: number
readonly p99: number
} | null
/** segments delivered */
readonly commits: number
/** records delivered */
readonly committed_records: number
/** from the seal of a segment to its commit; null if nothing was delivered */
readonly commit_lag_ms: {
readonly p50: number
readonly max: number
} | null
/** most bytes that were acknowledged, on the disks of nodes, and in no commit, of samples about once a minute; null if none found any */
readonly undelivered_bytes_max: number | null
}
readonly EndpointSeries: {
readonly endpoint_id: string
/** when the first bucket begins */
readonly since: string
/** when this was read: the last bucket is not over */
readonly until: string
/** length of a bucket */
readonly step_seconds: number
/** in the order of time; those in which nothing happened are left out */
readonly buckets: (components['schemas']["EndpointBucket"])[]
}
readonly ExchangeToken: {
readonly api_key: string
readonly scope?: "ingest" | "metrics" | "query" | "admin" | undefined
/** lifetime of the token, such as 15m or 1h; at most 1h */
readonly ttl?: string | undefined
}
readonly FieldError: {
/** dotted, empty for the whole body */
readonly path: string
readonly message: string
/** line in a statement, or in a definition that was sent as text, from 1 */
readonly line?: number | undefined
/** column in the line, from 1 */
readonly column?: number | undefined
/** what is wrong with an expression of a view */
readonly code?: "syntax" | "unknown_name" | "not_allowed" | "wrong_type" | "too_expensive" | undefined
/** the line of an expression with the problem, and a caret below the place */
readonly excerpt?: string | undefined
}
readonly Filter: {
/** names only columns of this definition: docs/views.md */
readonly condition: string
readonly description?: string | undefined
}
readonly ForcedDeletion: {
/** every node that is not known to hold nothing of the endpoint; the segments stay on its disk */
readonly abandoned: ({
readonly node_id: string
readonly region: string
/** the last report of the node; null if there is none */
readonly reported_at: string | null
readonly open_segments: number
readonly sealed_segments: number
readonly parked_segments: number
readonly quarantined_segments: number
readonly bytes: number
/** whether the counts are complete: the node reports, and had closed the log when it did. If false, 0 does not mean nothing */
readonly is_current: boolean
/** why the counts may be wrong; null if `is_current` */
readonly note: string | null
})[]
}
readonly Invitation: {
readonly id: string
readonly email: string | null
/** `owner`: everything, also who belongs to the account; `member`: everything else; `viewer`: looks, and changes nothing */
readonly role: "owner" | "member" | "viewer"
readonly created_by: string
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
/** ISO 8601, UTC, milliseconds */
readonly expires_at: string
}
readonly Invite: {
/** `owner`: everything, also who belongs to the account; `member`: everything else; `viewer`: looks, and changes nothing */
readonly role: "owner" | "member" | "viewer"
/** whom the link is for; whoever has the link can use it */
readonly email?: string | null | undefined
}
readonly Job: {
readonly id: string
readonly kind: "backfill" | "redrive" | "compaction"
readonly status: "running" | "paused" | "succeeded" | "failed" | "canceled"
/** null for a compaction, which covers all views and raw Parquet */
readonly view_id: string | null
readonly view_name: string | null
readonly view_version: number | null
/** redrive only: the version whose DLQ rows are read */
readonly from_version: number | null
readonly endpoint_id: string
readonly endpoint_name: string
readonly from: string | null
readonly to: string | null
/** skipped: there was nothing to do or nothing to read; see `reasons`. For a compaction: its merged files instead of segments, those that are made and those whose sources are removed */
readonly segments: {
readonly total: number
readonly done: number
readonly skipped: number
readonly failed: number
}
/** of this job alone. Of a compaction: rows that were moved */
readonly counters: {
/** `accepted` + `dropped` + `dlq` + `failed` */
readonly processed: number
readonly accepted: number
/** records that a filter, or `dedupe_by`, left out */
readonly dropped: number
readonly dlq: number
/** records of segments on which the view failed as a whole (`view_failed`) */
readonly failed: number
/** rows written: `accepted`, or more if the view expands an array */
readonly rows: number
/** rows that `dedupe_by` left out: their records are `dropped`, unless the view expands an array and they have other rows */
readonly duplicates: number
}
readonly created_by: string
/** of the person or key, as it is called now; null if it is not of the account any more */
readonly created_by_name: string | null
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
/** when a node leased the first segment */
readonly started_at: string | null
readonly finished_at: string | null
readonly last_error: string | null
}
readonly JobDetail: {
readonly id: string
readonly kind: "backfill" | "redrive" | "compaction"
readonly status: "running" | "paused" | "succeeded" | "failed" | "canceled"
/** null for a compaction, which covers all views and raw Parquet */
readonly view_id: string | null
readonly view_name: string | null
readonly view_version: number | null
/** redrive only: the version whose DLQ rows are read */
readonly from_version: number | null
readonly endpoint_id: string
readonly endpoint_name: string
readonly from: string | null
readonly to: string | null
/** skipped: there was nothing to do or nothing to read; see `reasons`. For a compaction: its merged files instead of segments, those that are made and those whose sources are removed */
readonly segments: {
readonly total: number
readonly done: number
readonly skipped: number
readonly failed: number
}
/** of this job alone. Of a compaction: rows that were moved */
readonly counters: {
/** `accepted` + `dropped` + `dlq` + `failed` */
readonly processed: number
readonly accepted: number
/** records that a filter, or `dedupe_by`, left out */
readonly dropped: number
readonly dlq: number
/** records of segments on which the view failed as a whole (`view_failed`) */
readonly failed: number
/** rows written: `accepted`, or more if the view expands an array */
readonly rows: number
/** rows that `dedupe_by` left out: their records are `dropped`, unless the view expands an array and they have other rows */
readonly duplicates: number
}
readonly created_by: string
/** of the person or key, as it is called now; null if it is not of the account any more */
readonly created_by_name: string | null
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
/** when a node leased the first segment */
readonly started_at: string | null
readonly finished_at: string | null
readonly last_error: string | null
/** why segments were skipped or failed, most frequent first */
readonly reasons: ({
readonly outcome: "skipped" | "failed"
readonly reason: string
readonly segments: number
})[]
}
readonly JoinToken: {
readonly id: string
readonly name: string
/** the region in which nodes may join with it; null for any */
readonly region: string | null
/** nodes can join only while it is `active` */
readonly status: "active" | "used_up" | "expired" | "revoked"
/** how many nodes joined with it */
readonly uses: number
/** how many nodes may join with it; null for any number */
readonly uses_max: number | null
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
/** ISO 8601, UTC, milliseconds */
readonly expires_at: string
readonly revoked_at: string | null
}
readonly LogOwner: "active" | "paused" | "draining" | "deleted" | "unknown"
readonly Loss: {
readonly id: string
readonly account_id: string
readonly endpoint_id: string
readonly endpoint_name: string
readonly node_id: string
/** as it was when the node was removed; null for none */
readonly node_name: string | null
readonly region: string
/** `open`: it is a reason in the status of the endpoint; `recovered`: all of its segments were delivered after all, which cannot be known of those in quarantine, or if `first_segment_seq` is null; `confirmed`: somebody of the account, or the operator for it, accepted it */
readonly state: "open" | "recovered" | "confirmed"
/** `node_removed`, `node_released`, `node_adopted`: what the node had last reported then, also if another machine adopted its log, until that has delivered it; `node_taken_over`: the same, of a node that is lost, whose copies another node delivers: what had one copy is on its disk alone; `left_on_disk`: another machine has its place, and the records are only on the disk of the one before, which said so */
readonly cause: "node_removed" | "node_released" | "node_adopted" | "node_taken_over" | "left_on_disk"
/** receipts with `node_id` and this `segment_seq` or a higher one are concerned; null if the node did not say: then only `confirmed` ends the loss */
readonly first_segment_seq: number | null
/** the last segment that the node reported; null if it did not say */
readonly last_segment_seq: number | null
/** what is lost, as of when, and what comes on top: a sentence for people */
readonly summary: string
/** by the reports of the node, without those that were delivered before it lost its place */
readonly segments: number
/** at most so many were lost of what was acknowledged by `reported_at`; null if the node had not counted them. What it acknowledged later is lost as well, and is not counted */
readonly records: number | null
/** size of these segments on the disk of the node, at most */
readonly bytes: number
/** as of when the counts are, by the last report of the node: all that it acknowledged before is in them, or delivered. A heartbeat may be later */
readonly reported_at: string
/** when the node was last removed, its id released or its log adopted, or its disk first reported */
readonly recorded_at: string
/** whether the machine joined again, or its disk was adopted, or another node is at its copies: it delivers what it still has. Another machine under its id does not */
readonly is_node_back: boolean
/** when control had looked for its segments in the bucket; null: not yet since it was recorded, or became more, so they may be there */
readonly searched_at: string | null
/** what the search left in doubt, with the next step: segments may be there; null for nothing. Control tries again while `searched_at` is null, once a destination of the account changes, and after `inlet commits rebuild` */
readonly search_problem: string | null
/** delivered since the node was removed */
readonly recovered: {
readonly segments: number
readonly records: number
readonly bytes: number
}
/** when the last segment of it was delivered */
readonly recovered_at: string | null
readonly confirmed_at: string | null
/** `key:<id>` or `person:<id>` of the account; `operator` or `cli`: the operator */
readonly confirmed_by: string | null
}
readonly Membership: {
readonly account_id: string
readonly account_name: string
/** `owner`: everything, also who belongs to the account; `member`: everything else; `viewer`: looks, and changes nothing */
readonly role: "owner" | "member" | "viewer"
}
readonly MqttConfig: {
readonly enabled: boolean
readonly max_connections: number
readonly keepalive_max_s: number
readonly qos_max: number
}
readonly MqttConfigInput: {
readonly enabled?: boolean | undefined
readonly max_connections?: number | undefined
readonly keepalive_max_s?: number | undefined
readonly qos_max?: number | undefined
}
readonly Node: {
readonly id: string
/** given by an operator, unique in the installation; null for none */
readonly name: string | null
readonly region: string
readonly ipv4: (string)[]
readonly ipv6: (string)[]
readonly ingest_address: string
/** ISO 8601, UTC, milliseconds */
readonly registered_at: string
/** the token with which the node last joined; null for the join secret */
readonly join_token_id: string | null
/** of the Inlet that the node runs; null for one that does not say so */
readonly version: string | null
/** the disk with the write-ahead log, as of the last minutes; null before the first report */
readonly disk: {
readonly free_bytes: number
readonly total_bytes: number
} | null
/** `none`: the next node that registers under the id sets it */
readonly credential: "active" | "revoked" | "none"
/** both processes are healthy and have sent a heartbeat within 7 seconds */
readonly healthy: boolean
/** null before the first heartbeat */
readonly ingest: components['schemas']["NodeProcess"] | null
/** null before the first heartbeat */
readonly delivery: components['schemas']["NodeProcess"] | null
/** everything on the disk of the node, as delivery last reported it */
readonly segments: components['schemas']["SegmentTotals"]
/** the part of it whose endpoint was deleted or is unknown */
readonly unowned: components['schemas']["SegmentTotals"]
/** logs that ingest cannot append to, or not everything that it gets */
readonly blocked_logs: number
/** damage that the scrub of the node knows of, on its disk or in buckets; `inlet scrub` lists it */
readonly scrub_findings: number
}
readonly NodeLog: {
readonly open_segments: number
readonly sealed_segments: number
readonly parked_segments: number
readonly quarantined_segments: number
readonly bytes: number
readonly endpoint_id: string
/** null for an unknown endpoint */
readonly endpoint_name: string | null
/** null for an unknown endpoint */
readonly account_id: string | null
readonly owner: components['schemas']["LogOwner"]
/** acknowledged records of the open, sealed and parked segments; null if the node has not counted them */
readonly records: number | null
/** `segment_seq` of the receipts from which on these segments are; null if there are none, or the node does not say */
readonly first_segment_seq: number | null
readonly oldest_sealed_at: string | null
/** why delivery is blocked */
readonly blocked_by: string | null
/** why ingest refuses data of the log, or which file that it cannot recover holds back delivery */
readonly append_blocked_by: string | null
/** ingest refuses further data, because the endpoint drains */
readonly closed: boolean
/** damage that the scrub of the node knows of */
readonly scrub_findings: number
/** the first of it */
readonly scrub_finding: string | null
}
readonly NodeProcess: {
/** as the process last reported */
readonly healthy: boolean
/** why it is not healthy; of a healthy process, what else is wrong with the node */
readonly reasons: (string)[]
/** the configuration in use; -1 before the first */
readonly applied_epoch: number
/** only of ingest: it was asked to stop, and serves until clients no longer find the node by DNS */
readonly leaving: boolean
/** null unless the process keeps this configuration and refuses that of control, whose database is an older copy or another one: see `inlet database` */
readonly kept_position: {
readonly database: string
readonly generation: number
readonly epoch: number
readonly version: string
} | null
/** ISO 8601, UTC, milliseconds */
readonly last_seen_at: string
}
readonly NodeRegion: {
/** what an endpoint is created with to be served by these nodes */
readonly region: string
}
readonly NodeRegions: {
readonly items: (components['schemas']["NodeRegion"])[]
}
readonly NodeRemoval: {
readonly node_id: string
readonly region: string
/** as of when the counts are, by its last report about its disk; null if there is none */
readonly reported_at: string | null
/** everything that was on its disk and not delivered, as last reported */
readonly segments: components['schemas']["SegmentTotals"]
/** the number of endpoints that it held data of */
readonly endpoints: number
/** what it held of each endpoint, those with the most bytes first; at most 1000 */
readonly logs: (components['schemas']["NodeLog"])[]
/** losses that the removal recorded, one for each endpoint whose account has to confirm it; see `GET /v1/losses` */
readonly losses: number
/** why its disk may hold something else than these counts say */
readonly note: string
}
readonly ObjectStoreSettings: {
/** `aws`: buckets of S3; `gateway`: those of the S3 gateway of the operator; `directory`: directories of this installation, without roles */
readonly kind: "aws" | "gateway" | "directory"
/** whether Inlet assumes the role of each destination; if not, the credentials of the installation open the buckets, or there are none */
readonly has_roles: boolean
/** what the operator allows the account: buckets, each with or without a prefix (`lake/raw`); null where roles decide, or the store is a directory */
readonly allowed_buckets: (string)[] | null
/** what the trust policies of the roles of this account must demand */
readonly external_id: string
/** the AWS identity that assumes the roles; null if the operator has not set INLET_AWS_PRINCIPAL_ARN */
readonly principal_arn: string | null
/** settings that fit the store; null: the owner of the bucket knows */
readonly suggested: {
readonly region: string | null
readonly role_arn: string | null
readonly encryption: "sse-s3" | "kms" | "bucket-default"
readonly checksums: "standard" | "none"
readonly path_style: boolean
}
}
readonly OpenSession: {
readonly id: string
/** whether it is the session of this call */
readonly is_current: boolean
/** from where the person signed in, as control saw it */
readonly address: string | null
/** what the browser called itself */
readonly user_agent: string | null
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
/** when it was last extended, to the hour */
readonly last_seen_at: string
/** ISO 8601, UTC, milliseconds */
readonly expires_at: string
}
readonly OutcomeChange: {
readonly before: "accepted" | "dropped" | "dlq"
/** another one than `before` */
readonly after: "accepted" | "dropped" | "dlq"
readonly records: number
readonly samples: ({
readonly endpoint_id: string
readonly commit_id: string
readonly segment_seq: number
/** position in the segment, from 0 */
readonly record_index: number
/** the payload; null if it is not valid UTF-8 */
readonly record: string | null
/** the payload, if it is not valid UTF-8 */
readonly record_base64: string | null
/** whether only the first 2000 characters of the payload are here */
readonly is_cut: boolean
/** null unless it was a dead letter before */
readonly reason_before: {
readonly error_code: string
/** null if the reason concerns the whole record */
readonly column: string | null
readonly message: string
} | null
/** null unless it becomes a dead letter */
readonly reason_after: {
readonly error_code: string
/** null if the reason concerns the whole record */
readonly column: string | null
readonly message: string
} | null
/** why one of the definitions drops it: a filter, all of its rows are duplicates, or its array has no element */
readonly dropped_by: "filter" | "duplicate" | "no_element" | null
})[]
}
readonly Person: {
readonly id: string
readonly name: string
readonly email: string | null
/** `owner`: everything, also who belongs to the account; `member`: everything else; `viewer`: looks, and changes nothing */
readonly role: "owner" | "member" | "viewer"
/** ISO 8601, UTC, milliseconds */
readonly joined_at: string
/** when the newest session was last extended; null without a session */
readonly last_seen_at: string | null
}
readonly PreviewColumn: {
readonly name: string
readonly type: string
readonly nullCount: number
readonly totalCount: number
/** from 0 to 1 */
readonly nullRate: number
readonly sampleValues: (unknown)[]
}
readonly PreviewIssue: {
/** null if it concerns all samples */
readonly sample_index: number | null
readonly column: string | null
readonly code: string
readonly message: string
/** the element that it is about, in a view that expands an array */
readonly item?: string | undefined
/** the part of the definition that it is about */
readonly path?: string | undefined
/** where that part is in a definition that was sent as text, from 1 */
readonly place?: {
readonly line: number
readonly column: number
} | undefined
}
readonly PreviewItem: {
readonly sample_index: number
/** the path of the element in the sample */
readonly item: string
/** `dlq`: it, or another element of the sample, has an error */
readonly outcome: "accepted" | "dropped" | "dlq"
/** its index in `rows`; null if it is not accepted */
readonly row: number | null
/** if it has an error itself */
readonly error_code: string | null
/** the column that has the error */
readonly column: string | null
}
readonly PreviewRequest: {
readonly definition: components['schemas']["Definition"] | string
/** language of a definition that is sent as text */
readonly format?: "yaml" | "json" | undefined
readonly samples: (string)[]
}
readonly PreviewResult: {
/** whether `errors` is empty: no sample went to the dead letter queue, and nothing else failed */
readonly success: boolean
/** rows of the accepted samples, in their order */
readonly rows: (Readonly<Record<string, unknown>>)[]
/** only for a view that expands an array: the elements of the samples in order, at most 1000 */
readonly items?: (components['schemas']["PreviewItem"])[] | undefined
readonly columns: (components['schemas']["PreviewColumn"])[]
readonly rowCount: number
/** how many samples have which outcome; `failed`: all, if the preview failed as a whole */
readonly counts: {
/** `accepted` + `dropped` + `dlq` + `failed` */
readonly processed: number
readonly accepted: number
/** records that a filter, or `dedupe_by`, left out */
readonly dropped: number
readonly dlq: number
/** records of segments on which the view failed as a whole (`view_failed`) */
readonly failed: number
/** rows that `dedupe_by` leaves out, because one before them has the same values: their samples are `dropped`, unless they have other rows */
readonly duplicates: number
}
readonly compiledSql: string
readonly warnings: (components['schemas']["PreviewIssue"])[]
readonly errors: (components['schemas']["PreviewIssue"])[]
readonly executionTimeMs: number
}
readonly Problem: {
/** `{base_url}/errors/<error>`, a page that explains the error */
readonly type: string
readonly title: string
readonly status: number
readonly error: "bad_request" | "unauthorized" | "forbidden" | "account_suspended" | "not_found" | "method_not_allowed" | "not_acceptable" | "request_timeout" | "conflict" | "view_already_attached" | "payload_too_large" | "unsupported_media_type" | "expectation_failed" | "idempotency_key_reused" | "validation_error" | "too_many_requests" | "quota_exceeded" | "headers_too_large" | "internal_error" | "unavailable"
readonly detail: string
/** the same request may succeed later */
readonly retry?: true | undefined
/** for quota_exceeded: the name of the quota */
readonly quota?: string | undefined
/** for validation_error: every problem found. If there are more, `detail` says how many */
readonly errors?: (components['schemas']["FieldError"])[] | undefined
}
readonly QueriedTable: {
/** as the statement names it */
readonly name: string
readonly kind: "view" | "raw"
readonly view_id: string | null
readonly view_version: number | null
/** of `raw`: whose records they are */
readonly endpoint_id: string | null
/** files that were read, the newest ones */
readonly files: number
readonly bytes: number
/** files that are no longer in the bucket */
readonly missing: number
/** whether all files in the time range were read; if not, the result is about the rows since `oldest`, unless `may_lack_commits_since` is set */
readonly complete: boolean
/** null unless the database may lack commits, as after it went back to an older state: those since this time may be missing here, until control, or the operator with `inlet commits rebuild`, has recorded them. Their files are in the bucket */
readonly may_lack_commits_since: string | null
/** when the oldest file that was read was delivered; null without a file */
readonly oldest: string | null
readonly newest: string | null
}
readonly QueryResult: {
readonly columns: ({
readonly name: string
readonly type: string
})[]
readonly rows: ((unknown)[])[]
/** number of `rows` */
readonly row_count: number
/** whether the statement has more rows than `max_rows`, or than fit into a response; null if `rows` has all */
readonly truncated: "rows" | "bytes" | null
readonly tables: (components['schemas']["QueriedTable"])[]
/** how long the statement ran */
readonly elapsed_ms: number
}
readonly QuotaUse: {
readonly account_id: string
/** share of the account where accounts compete for a node: with weight 2 it gets twice as much as one with weight 1 */
readonly weight: number
readonly quotas: {
readonly endpoints: {
readonly limit: number
readonly used: number
}
readonly views: {
readonly limit: number
readonly used: number
}
readonly view_versions: {
readonly limit: number
readonly used: number
}
readonly api_keys: {
readonly limit: number
readonly used: number
}
readonly bytes_per_day: {
readonly limit: number
readonly used: number
/** when the next UTC day begins */
readonly resets_at: string
}
/** used: in all regions, as nodes last reported */
readonly records_per_second: {
readonly limit: number
readonly used: number
}
}
}
readonly Quotas: {
/** endpoints that are not deleted */
readonly endpoints: number
/** views with a version that is not archived, whatever the number of versions */
readonly views: number
/** versions of all views, archived ones included */
readonly view_versions: number
/** API keys that are not revoked */
readonly api_keys: number
/** payload bytes accepted in a UTC day, decompressed */
readonly bytes_per_day: number
/** records accepted in each region, on average */
readonly records_per_second: number
}
readonly ReceiptOutcome: {
readonly node_id: string
readonly segment_seq: number
/** `delivered`: in the bucket; `waiting`: on the disk of the node, as far as control knows, or in its quarantine, where an operator has to act; `lost`: the node was removed, or the segment discarded, before it was delivered */
readonly state: "delivered" | "waiting" | "lost"
/** why they are not delivered, or not all; null if all are */
readonly reason: string | null
/** of the segment; null until it is delivered */
readonly commit_id: string | null
readonly delivered_at: string | null
/** objects in the bucket that have its records, merged ones included */
readonly keys: (string)[]
/** the loss that includes the segment; see `GET /v1/losses` */
readonly loss_id: string | null
}
readonly Redrive: {
readonly endpoint_id: string
/** only segments sealed at or after this time */
readonly from?: string | undefined
/** only segments sealed before this time */
readonly to?: string | undefined
/** the version whose DLQ rows are read; default: the latest other version with DLQ rows of this endpoint */
readonly from_version?: number | undefined
}
readonly Revocation: {
/** in words */
readonly summary: string
/** nodes that refuse the key, as they reported */
readonly applied_nodes: number
/** nodes that know keys of the account */
readonly nodes: number
/** when the last node had applied it; null until then */
readonly applied_at: string | null
/** nodes that may still accept the key; at most 20 */
readonly waiting: ({
readonly node_id: string
readonly node_name: string | null
readonly region: string
/** null for a node that sends heartbeats */
readonly out_of_reach_seconds: number | null
})[]
}
readonly RotateSecret: {
/** 16 to 1024 bytes; if not set, Inlet makes one at random and returns it once */
readonly value?: string | undefined
/** how `value` is written: its UTF-8 is the secret, or base64 of the bytes */
readonly encoding?: "text" | "base64" | undefined
}
readonly RowChange: {
/** lost: only the definition before writes the row */
readonly change: "lost" | "new"
readonly rows: number
readonly samples: ({
readonly endpoint_id: string
readonly commit_id: string
readonly segment_seq: number
/** position in the segment, from 0 */
readonly record_index: number
/** the payload; null if it is not valid UTF-8 */
readonly record: string | null
/** the payload, if it is not valid UTF-8 */
readonly record_base64: string | null
/** whether only the first 2000 characters of the payload are here */
readonly is_cut: boolean
/** position of the element in the record, from 0, if both definitions expand the same array; otherwise null */
readonly item_index: number | null
/** why the other definition does not write the row */
readonly dropped_by: "filter" | "duplicate" | "no_element"
})[]
}
readonly RunQuery: {
/** one SELECT statement in the dialect of DuckDB */
readonly sql: string
/** reads only files that were delivered at this time or later */
readonly since?: string | undefined
/** reads only files that were delivered before this time */
readonly until?: string | undefined
/** reads only files of this endpoint */
readonly endpoint_id?: string | undefined
readonly max_rows?: number | undefined
}
readonly Secret: {
readonly id: string
readonly name: string
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
/** when its value was last replaced; null for never */
readonly rotated_at: string | null
/** names of views with a version that names it and is not archived, at most 20 */
readonly used_by: (string)[]
}
readonly SegmentTotals: {
readonly open_segments: number
readonly sealed_segments: number
readonly parked_segments: number
readonly quarantined_segments: number
readonly bytes: number
}
readonly SendTestEvent: {
/** one record as a client would send it; left out: a small JSON object with an `id` of its own */
readonly record?: string | undefined
}
readonly Session: {
readonly id: string
readonly person: {
readonly id: string
readonly name: string
/** null until the person has set one */
readonly email: string | null
/** whether the person may call the operations of the operator */
readonly is_operator: boolean
}
/** in the order of their names */
readonly accounts: (components['schemas']["Membership"])[]
/** whether the operator allows keys that web pages hold (`INLET_PUBLIC_KEYS`) */
readonly allows_public_keys: boolean
/** ISO 8601, UTC, milliseconds */
readonly expires_at: string
}
readonly SetCanaryRule: {
/** records that both versions must have processed before it is judged */
readonly min_records?: number | undefined
/** percentage points by which its share of dead letters may be above that of the other version; null: any */
readonly dead_letters_pct?: number | null | undefined
/** the same for records of segments on which it failed as a whole */
readonly failed_pct?: number | null | undefined
/** the same for the NULLs of each column that both versions have */
readonly nulls_pct?: number | null | undefined
/** it is also judged by the last so many minutes, if both versions have `min_records` in them; null: only by all since it began */
readonly window_minutes?: number | null | undefined
}
readonly Shadow: {
readonly id: string
readonly endpoint_id: string
readonly endpoint_name: string
readonly view_id: string
readonly view_name: string
readonly view_version: number
/** ISO 8601, UTC, milliseconds */
readonly started_at: string
readonly started_by: string
}
readonly StartShadow: {
/** a draft or a published version */
readonly view_id: string
}
readonly SuggestRequest: {
readonly samples?: (string)[] | undefined
/** use samples from its last segment that has raw Parquet */
readonly endpoint_id?: string | undefined
}
readonly SuggestedColumn: {
readonly name: string
readonly path: string
readonly type: string
/** samples with a value at the path */
readonly found: number
/** samples with JSON null at the path, and no value */
readonly nulls: number
/** samples without the path */
readonly missing: number
}
readonly Suggestion: {
/** null if no column can be derived from the samples */
readonly definition: components['schemas']["Definition"] | null
readonly warnings: (components['schemas']["PreviewIssue"])[]
/** samples that are valid JSON */
readonly sample_count: number
/** columns of the definition, in its order */
readonly columns: (components['schemas']["SuggestedColumn"])[]
}
readonly TestEvent: {
/** where it was sent */
readonly url: string
readonly record: string
/** ISO 8601, UTC, milliseconds */
readonly sent_at: string
/** from the request to the receipt: the record is on disk */
readonly acknowledged_after_ms: number
readonly node_id: string
/** with `node_id` it names the commit: see `GET /v1/endpoints/{id}/commits` */
readonly segment_seq: number
}
readonly TrustPolicy: {
readonly Version: "2012-10-17"
readonly Statement: ({
readonly Sid: string
readonly Effect: "Allow"
readonly Principal: {
readonly AWS: string
}
readonly Action: "sts:AssumeRole"
readonly Condition: {
readonly StringEquals: {
readonly "sts:ExternalId": string
}
}
})[]
}
readonly UnreadFiles: {
/** gone: no longer in the bucket; destination_deleted: its destination was deleted; damaged: no raw Parquet, its records until there may have been read */
readonly reason: "gone" | "destination_deleted" | "damaged"
readonly files: number
}
readonly ValidatedDestination: {
readonly id: string
readonly name: string
readonly bucket: string
readonly prefix: string
readonly region: string
readonly role_arn: string | null
readonly external_id: string
readonly encryption: "sse-s3" | "kms" | "bucket-default"
readonly kms_key_arn: string | null
readonly checksums: "standard" | "none"
readonly path_style: boolean
readonly status: "pending" | "valid"
readonly validated_at: string | null
readonly last_error: string | null
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
/** ISO 8601, UTC, milliseconds */
readonly updated_at: string
/** paste it as the trust policy of the role; null without a role */
readonly trust_policy: components['schemas']["TrustPolicy"] | null
/** paste it as the policy of the bucket; null without a role */
readonly bucket_policy: components['schemas']["BucketPolicy"] | null
/** what was tried, in this order; only what the store has: directories have neither roles nor keys */
readonly steps: (components['schemas']["ValidationStep"])[]
}
readonly ValidationStep: {
readonly step: "assume_role" | "allowlist" | "kms" | "write" | "list" | "read" | "if_absent" | "multipart" | "delete"
/** `failed` keeps the destination pending; `warning`: it delivers, but see `effect`; `skipped`: not reached */
readonly outcome: "passed" | "failed" | "warning" | "skipped"
/** what failed, the error code of the store, what to do; null unless it failed */
readonly message: string | null
/** what does not work until then; null unless the outcome is `warning` */
readonly effect: string | null
/** what to change: a field of the destination, the `allowlist` that the operator keeps, the policy of the role (`trust_policy`), of the bucket or of the KMS key (`key_policy`), or `installation`: its operator must act; null if nothing is to be changed, or the store does not tell */
readonly setting: "bucket" | "region" | "role_arn" | "path_style" | "encryption" | "kms_key_arn" | "checksums" | "trust_policy" | "allowlist" | "bucket_policy" | "key_policy" | "installation" | null
/** the value that the field needs, if it is known, such as the region of the bucket; for the `allowlist` the entry that is missing */
readonly value: string | null
}
readonly View: {
readonly id: string
readonly name: string
readonly version: number
readonly definition: components['schemas']["Definition"]
readonly format: "yaml" | "json"
readonly status: "draft" | "published" | "archived"
readonly description: string
readonly tags: (string)[]
readonly created_by: string
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
readonly published_at: string | null
}
readonly ViewBucket: {
/** when the bucket begins, in UTC */
readonly at: string
readonly accepted: number
readonly dropped: number
readonly dlq: number
/** records of segments on which the view failed as a whole */
readonly failed: number
/** rows written: as many as records accepted, unless the view expands an array or leaves out duplicates */
readonly rows: number
/** rows left out because another one had the same values in `dedupe_by` */
readonly duplicates: number
}
readonly ViewComparison: {
readonly view_name: string
/** only segments sealed at this time or later are read */
readonly since: string
/** records of these segments */
readonly records_stored: number
/** how many of them were compared: a sample of the newest unless `is_complete` */
readonly records_read: number
/** whether all of them were read */
readonly is_complete: boolean
/** why not all were read: at most 10 endpoints, 50 files, 67108864 bytes of files, 200000 records, 1000000 rows of both definitions and 6 s; `raw_parquet`: segments without raw Parquet; `unread_files`: files that could not be read */
readonly bounded_by: ("endpoints" | "files" | "bytes" | "records" | "rows" | "time" | "raw_parquet" | "unread_files")[]
/** files of these segments that could not be read, by reason */
readonly unread_files: (components['schemas']["UnreadFiles"])[]
readonly endpoints: (components['schemas']["ComparedEndpoint"])[]
/** whether both made the same of every record that was read, in the same columns */
readonly is_same: boolean
/** what rows of both have in common that are compared: their record, or the element of it if both expand the same array. Null if they expand different ones, or only one expands: then values are not compared */
readonly matched_by: "record" | "item" | null
readonly before: components['schemas']["ComparedSide"]
readonly after: components['schemas']["ComparedSide"]
/** records with another outcome; the most frequent change first, with up to 5 samples each */
readonly outcome_changes: (components['schemas']["OutcomeChange"])[]
/** rows that only one definition writes, of records that both accept; empty unless `matched_by` is `item`; with up to 5 samples each */
readonly row_changes: (components['schemas']["RowChange"])[]
/** those of the changed definition, then those that are lost; with up to 5 samples of values that differ */
readonly columns: (components['schemas']["ComparedColumn"])[]
readonly duration_ms: number
}
readonly ViewDetail: {
readonly id: string
readonly name: string
readonly version: number
readonly definition: components['schemas']["Definition"]
readonly format: "yaml" | "json"
readonly status: "draft" | "published" | "archived"
readonly description: string
readonly tags: (string)[]
readonly created_by: string
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
readonly published_at: string | null
readonly versions: ({
readonly id: string
readonly version: number
readonly status: "draft" | "published" | "archived"
readonly published_at: string | null
readonly created_by: string
})[]
readonly endpoints: ({
readonly id: string
readonly endpoint_name: string
readonly region: string
readonly binding_id: string
readonly is_required: boolean
/** ISO 8601, UTC, milliseconds */
readonly activated_at: string
readonly canary_start_ts: string | null
readonly canary_rule: components['schemas']["CanaryRule"] | null
})[]
/** endpoints that this version shadows: it is counted there, and writes no files */
readonly shadows: ({
readonly id: string
readonly endpoint_id: string
readonly endpoint_name: string
/** ISO 8601, UTC, milliseconds */
readonly started_at: string
})[]
/** endpoints from which this version was detached by the rule of its canary, the latest first */
readonly stopped_canaries: ({
readonly binding_id: string
readonly endpoint_id: string
readonly endpoint_name: string
/** ISO 8601, UTC, milliseconds */
readonly stopped_at: string
readonly reason: string
})[]
}
readonly ViewSeries: {
readonly view_name: string
readonly endpoint_id: string | null
/** when the first bucket begins */
readonly since: string
/** when this was read: the last bucket is not over */
readonly until: string
/** length of a bucket */
readonly step_seconds: number
/** versions of the view that processed records since then, the newest first */
readonly versions: ({
readonly view_id: string
readonly view_version: number
/** in the order of time; those in which nothing happened are left out */
readonly buckets: (components['schemas']["ViewBucket"])[]
})[]
}
readonly ViewWithUsage: {
readonly id: string
readonly name: string
readonly version: number
readonly definition: components['schemas']["Definition"]
readonly format: "yaml" | "json"
readonly status: "draft" | "published" | "archived"
readonly description: string
readonly tags: (string)[]
readonly created_by: string
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
readonly published_at: string | null
readonly usage_count: number
}
}
}

export type Schemas = components['schemas']

export type paths = {
readonly "/v1/token/exchange": {
readonly get?: never
readonly put?: never
/** Exchange an API key for an access token */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["ExchangeToken"]
} }
responses: {
200: { content: {
readonly "application/json": components['schemas']["AccessToken"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/keys": {
/** List API keys, newest first, including revoked ones */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
} | undefined
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["ApiKey"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
/** Create an API key; only this response contains the secret */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody: { content: {
readonly "application/json": {
readonly name: string
readonly scopes: ("ingest" | "metrics" | "query" | "admin")[]
/** limits the key to these endpoints of the account; not for a key with the scope `admin` */
readonly endpoint_ids?: (string)[] | null | undefined
/** for a key that web pages hold: scope `ingest` only, one endpoint, and `origins`. Such a key may be in the query (`?key=`). The operator has to allow public keys */
readonly public?: boolean | undefined
/** origins of the pages that a public key sends from */
readonly origins?: (string)[] | null | undefined
}
} }
responses: {
201: { content: {
readonly "application/json": {
readonly id: string
readonly name: string
/** the first characters of the key, to recognise it */
readonly prefix: string
readonly scopes: ("ingest" | "metrics" | "query" | "admin")[]
/** the only endpoints that the key may send to and read; null for all of the account */
readonly endpoint_ids: (string)[] | null
/** whether web pages may hold the key: it sends from its `origins` only */
readonly public: boolean
/** origins of the pages of a public key; null for other keys */
readonly origins: (string)[] | null
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
/** the minute in which the key, or a token of it, was last accepted, or a connection with it was open; null before the first use */
readonly last_used_at: string | null
readonly revoked_at: string | null
/** when its access tokens and MQTT connections were ended at once (`now`); null if they end by themselves: tokens when they expire, at most 15 minutes after `revoked_at`, and connections when they next authenticate */
readonly access_ended_at: string | null
/** how far the revocation got; null for a key that is not revoked, or was before an upgrade to a version that tells it */
readonly revocation: components['schemas']["Revocation"] | null
/** the key itself, returned only now */
readonly api_key: string
}
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/keys/{id}/revoke": {
readonly get?: never
readonly put?: never
/** Revoke an API key permanently */
readonly post: {
parameters: {
readonly query?: {
readonly now?: "true" | "false" | undefined
} | undefined
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["ApiKey"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/secrets": {
/** List secrets by name, without their values */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
} | undefined
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["Secret"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
/** Create a secret that views can hash with */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["CreateSecret"]
} }
responses: {
201: { content: {
readonly "application/json": {
readonly id: string
readonly name: string
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
/** when its value was last replaced; null for never */
readonly rotated_at: string | null
/** names of views with a version that names it and is not archived, at most 20 */
readonly used_by: (string)[]
/** the secret in base64, returned only now, and only if Inlet made it */
readonly value?: string | undefined
}
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/secrets/{id}/rotate": {
readonly get?: never
readonly put?: never
/** Replace the value of a secret */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["RotateSecret"]
} }
responses: {
200: { content: {
readonly "application/json": {
readonly id: string
readonly name: string
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
/** when its value was last replaced; null for never */
readonly rotated_at: string | null
/** names of views with a version that names it and is not archived, at most 20 */
readonly used_by: (string)[]
/** the secret in base64, returned only now, and only if Inlet made it */
readonly value?: string | undefined
}
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/secrets/{id}": {
readonly get?: never
readonly put?: never
readonly post?: never
/** Delete a secret that no published view names */
readonly delete: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
204: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly patch?: never
}
readonly "/v1/people": {
/** List who belongs to the account, in the order in which they joined */
readonly get: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["Person"])[]
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/people/{id}": {
readonly get?: never
readonly put?: never
readonly post?: never
/** Take somebody out of the account; the person stays in others */
readonly delete: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
204: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
/** Change the role of somebody in the account */
readonly patch: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["ChangePerson"]
} }
responses: {
204: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
}
readonly "/v1/invitations": {
/** List the invitations that can still be used, newest first */
readonly get: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["Invitation"])[]
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
/** Create a link with which somebody joins the account; only this response contains it */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["Invite"]
} }
responses: {
201: { content: {
readonly "application/json": components['schemas']["CreatedInvitation"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/invitations/{id}": {
readonly get?: never
readonly put?: never
readonly post?: never
/** Revoke an invitation */
readonly delete: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
204: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly patch?: never
}
readonly "/v1/audit-events": {
/** List who changed what in the account, or tried to, newest first */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly before?: string | undefined
readonly operation?: string | undefined
readonly result?: "succeeded" | "failed" | undefined
readonly since?: string | undefined
} | undefined
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["AuditEvent"])[]
readonly next_cursor: string | null
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/destinations": {
/** List destinations, newest first */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
} | undefined
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["DestinationWithCount"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
/** Create a destination */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["CreateDestination"]
} }
responses: {
201: { content: {
readonly "application/json": components['schemas']["Destination"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/destinations/{id}": {
/** Get a destination */
readonly get: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["DestinationWithCount"]
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
/** Delete a destination that no endpoint uses */
readonly delete: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
204: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
/** Change a destination; anything but a new name makes it pending again */
readonly patch: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["ChangeDestination"]
} }
responses: {
200: { content: {
readonly "application/json": components['schemas']["Destination"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
}
readonly "/v1/destinations/{id}/validate": {
readonly get?: never
readonly put?: never
/** Validate a destination: try each step of a delivery with a test object, and record the result */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["ValidatedDestination"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/object-store": {
/** Get what a new destination needs: where objects are stored, whom its role must trust, settings that fit */
readonly get: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["ObjectStoreSettings"]
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/endpoints": {
/** List endpoints, newest first */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
readonly status?: "deploying" | "active" | "degraded" | "paused" | "draining" | "failed" | "all" | undefined
readonly name?: string | undefined
} | undefined
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["Endpoint"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
/** Create an endpoint */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["CreateEndpoint"]
} }
responses: {
201: { content: {
readonly "application/json": components['schemas']["Endpoint"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/regions": {
/** List the regions that have nodes */
readonly get: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["NodeRegions"]
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/endpoints/{id}": {
/** Get an endpoint */
readonly get: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["Endpoint"]
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
/** Delete an endpoint: it rejects new data and is removed once all its data is delivered */
readonly delete: {
parameters: {
readonly query?: {
readonly force?: "true" | "false" | undefined
} | undefined
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["ForcedDeletion"]
} }
204: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
/** Change an endpoint; null restores a default, unbinds the destination or disables MQTT; mqtt_config is merged with the current one */
readonly patch: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["ChangeEndpoint"]
} }
responses: {
200: { content: {
readonly "application/json": {
readonly id: string
/** unique in the account; elsewhere this is the `endpoint_name` */
readonly name: string
readonly region: string
readonly status: "deploying" | "active" | "degraded" | "paused" | "draining" | "failed"
/** reasons for the status; empty while active */
readonly status_reasons: (string)[]
readonly destination_id: string | null
readonly destination_name: string | null
readonly destination_status: "pending" | "valid" | null
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
readonly dns_ipv4: (string)[]
readonly dns_ipv6: (string)[]
/** what nodes hold and is not in the bucket, over all nodes, as last reported */
readonly lag: {
/** segments that are still written to */
readonly open_segments: number
/** sealed segments that are not committed, parked ones included */
readonly undelivered_segments: number
/** sealed segments that were set aside because they cannot be converted */
readonly parked_segments: number
/** damaged files that were kept; their intact records are delivered */
readonly quarantined_segments: number
/** bytes of all these segments */
readonly undelivered_bytes: number
readonly oldest_sealed_at: string | null
readonly oldest_age_seconds: number | null
}
/** host to send data to, with a port if it is the address of a node */
readonly ingest_host: string
/** URL to send data to with POST; it begins with `https://` if the nodes speak TLS there */
readonly ingest_url: string
readonly segment_bytes: number
readonly segment_max_age_seconds: number
readonly output_formats: ("segments" | "parquet" | "parquet_views")[]
readonly mqtt_config: components['schemas']["MqttConfig"] | null
/** merges small files by itself; null if it does not */
readonly compaction: {
/** the files of each hour, or of each day, are merged once it is closed */
readonly period: "hour" | "day"
/** views whose files stay as they are: they are not merged, and not removed */
readonly except_views: (string)[]
/** removes files this long after they were merged; null keeps them. Programs that read a folder such as `views/orders/v1/`, and do not follow markers, then miss the rows of removed files: name their views in `except_views` */
readonly remove_after_hours: number | null
} | null
/** HTTP headers that are kept with the records of a request */
readonly kept_headers: (string)[]
/** what is kept of the sender of each record */
readonly kept_fields: ("address" | "address_masked" | "key_name")[]
/** 1: a record is acknowledged once it is on the disk of a node; 2: once it is in the copy store as well (`INLET_COPY_URL`), so that it survives the machine */
readonly copies: number
/** what attached views read and is no longer kept; usually empty */
readonly warnings: (string)[]
}
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
}
readonly "/v1/endpoints/{id}/pause": {
readonly get?: never
readonly put?: never
/** Pause an endpoint: it rejects new data until it is resumed, and delivers the data it has */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["Endpoint"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/endpoints/{id}/resume": {
readonly get?: never
readonly put?: never
/** Resume a paused endpoint */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["Endpoint"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/endpoints/{id}/commits": {
/** List the delivered segments of an endpoint, newest first, also of a deleted one */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly before?: string | undefined
readonly node_id?: string | undefined
readonly segment_seq?: number | undefined
} | undefined
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["Commit"])[]
/** pass it as `before`; null on the last page */
readonly next_cursor: string | null
/** null unless the database may lack commits, as after it went back to an older state: those since this time may be missing here, until control, or the operator with `inlet commits rebuild`, has recorded them. Their files are in the bucket */
readonly may_lack_commits_since: string | null
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/endpoints/{id}/commits/{commit_id}/files": {
/** Get a delivered segment with a link to each of its files, also of a deleted endpoint */
readonly get: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
readonly commit_id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["CommitFiles"]
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/endpoints/{id}/test-events": {
readonly get?: never
readonly put?: never
/** Send one record through the ingest address of the endpoint, and return its receipt */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: { content: {
readonly "application/json": components['schemas']["SendTestEvent"]
} } | undefined
responses: {
200: { content: {
readonly "application/json": components['schemas']["TestEvent"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/endpoints/{id}/records": {
/** Show the latest records delivered, from raw Parquet in the bucket: for looking at a few */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly node_id?: string | undefined
readonly segment_seq?: number | undefined
readonly contains?: string | undefined
} | undefined
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["DeliveredRecord"])[]
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/views/{id}/dlq-records": {
/** Show the latest records that a view rejected, from dead letter files in the bucket */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly endpoint_id?: string | undefined
readonly created_after?: string | undefined
readonly created_before?: string | undefined
readonly error_code?: string | undefined
readonly column?: string | undefined
} | undefined
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["DlqRecord"])[]
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/views/{id}/dlq-reasons": {
/** Count why a view rejected records, in its newest dead letter files in the bucket */
readonly get: {
parameters: {
readonly query?: {
readonly endpoint_id?: string | undefined
readonly created_after?: string | undefined
readonly created_before?: string | undefined
} | undefined
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
/** the most frequent first, at most 100 */
readonly items: ({
readonly error_code: string
/** null if the reason concerns the whole record */
readonly column: string | null
readonly rows: number
/** of the latest of them: others may have another cause */
readonly message: string
/** when the latest of them was received */
readonly last_ingested_at: string
})[]
/** the newest, at most 50 */
readonly files_read: number
/** records in these files */
readonly rows_read: number
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/endpoints/{id}/series": {
/** Get what an endpoint accepted, refused and delivered over time, also of a deleted one */
readonly get: {
parameters: {
readonly query?: {
readonly since?: string | undefined
readonly step?: "10s" | "1m" | "5m" | "1h" | undefined
} | undefined
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["EndpointSeries"]
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/views": {
/** List view versions, newest first */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
readonly status?: "draft" | "published" | "archived" | "all" | undefined
readonly name?: string | undefined
readonly tag?: (string)[] | undefined
} | undefined
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["ViewWithUsage"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
/** Create a view, as a draft */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["CreateView"]
} }
responses: {
201: { content: {
readonly "application/json": {
readonly id: string
readonly name: string
readonly version: number
readonly definition: components['schemas']["Definition"]
readonly format: "yaml" | "json"
readonly status: "draft" | "published" | "archived"
readonly description: string
readonly tags: (string)[]
readonly created_by: string
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
readonly published_at: string | null
/** names that readers of the files must quote, or that an engine does not accept, and shadows that keep an earlier definition; empty if the definition was not sent */
readonly warnings: (components['schemas']["DefinitionWarning"])[]
}
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/view-metrics": {
/** List the metrics of published view versions, newest first */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
} | undefined
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: ({
readonly endpoints: ({
readonly endpoint_id: string
readonly endpoint_name: string
/** records that were processed in the last 24 hours, by live delivery or by a job */
readonly last_24h: {
/** `accepted` + `dropped` + `dlq` + `failed` */
readonly processed: number
readonly accepted: number
/** records that a filter, or `dedupe_by`, left out */
readonly dropped: number
readonly dlq: number
/** records of segments on which the view failed as a whole (`view_failed`) */
readonly failed: number
/** rows written: `accepted`, or more if the view expands an array */
readonly rows: number
/** rows that `dedupe_by` left out: their records are `dropped`, unless the view expands an array and they have other rows */
readonly duplicates: number
/** those of `dlq` that a re-drive ran another version over, which counts them since: they are no errors any more */
readonly redriven: number
}
readonly all_time: {
/** `accepted` + `dropped` + `dlq` + `failed` */
readonly processed: number
readonly accepted: number
/** records that a filter, or `dedupe_by`, left out */
readonly dropped: number
readonly dlq: number
/** records of segments on which the view failed as a whole (`view_failed`) */
readonly failed: number
/** rows written: `accepted`, or more if the view expands an array */
readonly rows: number
/** rows that `dedupe_by` left out: their records are `dropped`, unless the view expands an array and they have other rows */
readonly duplicates: number
/** those of `dlq` that a re-drive ran another version over, which counts them since: they are no errors any more */
readonly redriven: number
}
/** share of `dlq` without `redriven` and of `failed` in `processed` of the last 24 hours, in per cent; 100 if nothing was processed because the view holds back the delivery */
readonly error_rate_pct: number
/** whether `error_count_24h` is not 0, or `held_since` is set */
readonly has_errors: boolean
/** `dlq` without `redriven`, `failed`, and 1 each time that the view began to hold back the delivery */
readonly error_count_24h: number
/** the same of all time */
readonly total_error_count: number
readonly last_error_at: string | null
/** the code of a dead letter, `view_failed`, or `too_expensive` if the view exceeded a bound on its cost */
readonly last_error_code: string | null
readonly last_error_message: string | null
/** ISO 8601, UTC, milliseconds */
readonly last_updated_at: string
/** since when the view, which is required, fails and holds back the delivery of the endpoint; null if it does not */
readonly held_since: string | null
/** with `detail=columns`: in definition order */
readonly columns?: ({
readonly name: string
readonly type: string
/** whether the column is not written: then only its failures are counted, and it has no `values`, `nulls` and `min` */
readonly hidden: boolean
readonly last_24h: {
/** accepted rows that have a value in the column */
readonly values: number
/** accepted rows that have NULL in the column */
readonly nulls: number
/** share of `nulls` in the accepted rows, in per cent; 0 if there are no rows */
readonly null_rate_pct: number
/** values that could not be cast to the type of the column: `cast_nulls` + `cast_dlq` */
readonly cast_failures: number
/** cast failures that became NULL, in rows that are accepted or for which the filters are unknown */
readonly cast_nulls: number
/** cast failures that sent the row to the DLQ; a row with several errors counts for the first column only */
readonly cast_dlq: number
/** rows that went to the DLQ because the column is required and has no value */
readonly missing: number
/** smallest value of the accepted rows as text: whole numbers and decimals exact, floating point numbers in their shortest form (NaN is ignored), ISO 8601 in UTC, BOOLEAN as `false` or `true`, VARCHAR in the order of its bytes and cut to 64 characters, so that it is never larger than the value. Null if there is no value, and for JSON, BLOB and lists */
readonly min: string | null
/** largest value, in the same format; for a longer VARCHAR, its first characters */
readonly max: string | null
}
readonly all_time: {
/** accepted rows that have a value in the column */
readonly values: number
/** accepted rows that have NULL in the column */
readonly nulls: number
/** share of `nulls` in the accepted rows, in per cent; 0 if there are no rows */
readonly null_rate_pct: number
/** values that could not be cast to the type of the column: `cast_nulls` + `cast_dlq` */
readonly cast_failures: number
/** cast failures that became NULL, in rows that are accepted or for which the filters are unknown */
readonly cast_nulls: number
/** cast failures that sent the row to the DLQ; a row with several errors counts for the first column only */
readonly cast_dlq: number
/** rows that went to the DLQ because the column is required and has no value */
readonly missing: number
/** smallest value of the accepted rows as text: whole numbers and decimals exact, floating point numbers in their shortest form (NaN is ignored), ISO 8601 in UTC, BOOLEAN as `false` or `true`, VARCHAR in the order of its bytes and cut to 64 characters, so that it is never larger than the value. Null if there is no value, and for JSON, BLOB and lists */
readonly min: string | null
/** largest value, in the same format; for a longer VARCHAR, its first characters */
readonly max: string | null
}
})[] | undefined
/** with `detail=columns`: paths in the records of the last 24 hours that no column reads, without paths below them, the most frequent first, at most 100; from up to 200 records of each segment */
readonly unmapped_paths?: ({
/** truncated with … after 200 characters */
readonly path: string
/** kinds of JSON values at the path */
readonly types: ("boolean" | "integer" | "number" | "string" | "object" | "array")[]
/** sampled records with a value at the path that is not null */
readonly records: number
/** records that were sampled, accepted or not */
readonly sampled_records: number
/** share of `records` in `sampled_records`, in per cent */
readonly seen_pct: number
/** ISO 8601, UTC, milliseconds */
readonly last_seen_at: string
})[] | undefined
})[]
readonly aggregated: {
readonly last_24h: {
/** `accepted` + `dropped` + `dlq` + `failed` */
readonly processed: number
readonly accepted: number
/** records that a filter, or `dedupe_by`, left out */
readonly dropped: number
readonly dlq: number
/** records of segments on which the view failed as a whole (`view_failed`) */
readonly failed: number
/** rows written: `accepted`, or more if the view expands an array */
readonly rows: number
/** rows that `dedupe_by` left out: their records are `dropped`, unless the view expands an array and they have other rows */
readonly duplicates: number
/** those of `dlq` that a re-drive ran another version over, which counts them since: they are no errors any more */
readonly redriven: number
}
readonly all_time: {
/** `accepted` + `dropped` + `dlq` + `failed` */
readonly processed: number
readonly accepted: number
/** records that a filter, or `dedupe_by`, left out */
readonly dropped: number
readonly dlq: number
/** records of segments on which the view failed as a whole (`view_failed`) */
readonly failed: number
/** rows written: `accepted`, or more if the view expands an array */
readonly rows: number
/** rows that `dedupe_by` left out: their records are `dropped`, unless the view expands an array and they have other rows */
readonly duplicates: number
/** those of `dlq` that a re-drive ran another version over, which counts them since: they are no errors any more */
readonly redriven: number
}
/** share of `dlq` without `redriven` and of `failed` in `processed` of the last 24 hours, in per cent; 100 if nothing was processed because the view holds back the delivery */
readonly error_rate_pct: number
readonly has_errors: boolean
readonly total_error_count_24h: number
/** with `detail=columns`: in definition order */
readonly columns?: ({
readonly name: string
readonly type: string
/** whether the column is not written: then only its failures are counted, and it has no `values`, `nulls` and `min` */
readonly hidden: boolean
readonly last_24h: {
/** accepted rows that have a value in the column */
readonly values: number
/** accepted rows that have NULL in the column */
readonly nulls: number
/** share of `nulls` in the accepted rows, in per cent; 0 if there are no rows */
readonly null_rate_pct: number
/** values that could not be cast to the type of the column: `cast_nulls` + `cast_dlq` */
readonly cast_failures: number
/** cast failures that became NULL, in rows that are accepted or for which the filters are unknown */
readonly cast_nulls: number
/** cast failures that sent the row to the DLQ; a row with several errors counts for the first column only */
readonly cast_dlq: number
/** rows that went to the DLQ because the column is required and has no value */
readonly missing: number
/** smallest value of the accepted rows as text: whole numbers and decimals exact, floating point numbers in their shortest form (NaN is ignored), ISO 8601 in UTC, BOOLEAN as `false` or `true`, VARCHAR in the order of its bytes and cut to 64 characters, so that it is never larger than the value. Null if there is no value, and for JSON, BLOB and lists */
readonly min: string | null
/** largest value, in the same format; for a longer VARCHAR, its first characters */
readonly max: string | null
}
readonly all_time: {
/** accepted rows that have a value in the column */
readonly values: number
/** accepted rows that have NULL in the column */
readonly nulls: number
/** share of `nulls` in the accepted rows, in per cent; 0 if there are no rows */
readonly null_rate_pct: number
/** values that could not be cast to the type of the column: `cast_nulls` + `cast_dlq` */
readonly cast_failures: number
/** cast failures that became NULL, in rows that are accepted or for which the filters are unknown */
readonly cast_nulls: number
/** cast failures that sent the row to the DLQ; a row with several errors counts for the first column only */
readonly cast_dlq: number
/** rows that went to the DLQ because the column is required and has no value */
readonly missing: number
/** smallest value of the accepted rows as text: whole numbers and decimals exact, floating point numbers in their shortest form (NaN is ignored), ISO 8601 in UTC, BOOLEAN as `false` or `true`, VARCHAR in the order of its bytes and cut to 64 characters, so that it is never larger than the value. Null if there is no value, and for JSON, BLOB and lists */
readonly min: string | null
/** largest value, in the same format; for a longer VARCHAR, its first characters */
readonly max: string | null
}
})[] | undefined
/** with `detail=columns`: paths in the records of the last 24 hours that no column reads, without paths below them, the most frequent first, at most 100; from up to 200 records of each segment */
readonly unmapped_paths?: ({
/** truncated with … after 200 characters */
readonly path: string
/** kinds of JSON values at the path */
readonly types: ("boolean" | "integer" | "number" | "string" | "object" | "array")[]
/** sampled records with a value at the path that is not null */
readonly records: number
/** records that were sampled, accepted or not */
readonly sampled_records: number
/** share of `records` in `sampled_records`, in per cent */
readonly seen_pct: number
/** ISO 8601, UTC, milliseconds */
readonly last_seen_at: string
})[] | undefined
}
readonly view_id: string
readonly view_name: string
readonly view_version: number
})[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/views/{id}": {
/** Get a view with its versions and endpoints */
readonly get: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["ViewDetail"]
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
/** Delete a draft */
readonly delete: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
204: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
/** Change a draft */
readonly patch: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["ChangeView"]
} }
responses: {
200: { content: {
readonly "application/json": {
readonly id: string
readonly name: string
readonly version: number
readonly definition: components['schemas']["Definition"]
readonly format: "yaml" | "json"
readonly status: "draft" | "published" | "archived"
readonly description: string
readonly tags: (string)[]
readonly created_by: string
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
readonly published_at: string | null
/** names that readers of the files must quote, or that an engine does not accept, and shadows that keep an earlier definition; empty if the definition was not sent */
readonly warnings: (components['schemas']["DefinitionWarning"])[]
}
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
}
readonly "/v1/views/{id}/versions": {
readonly get?: never
readonly put?: never
/** Create the next version of a view, as a draft */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: { content: {
readonly "application/json": components['schemas']["CreateViewVersion"]
} } | undefined
responses: {
201: { content: {
readonly "application/json": components['schemas']["View"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/views/{id}/archive": {
readonly get?: never
readonly put?: never
/** Archive a published view: it is detached from every endpoint and cannot be attached again */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["View"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/views/{id}/dlq-files": {
/** List the files of rows that a view rejected, each with a download URL */
readonly get: {
parameters: {
readonly query?: {
readonly endpoint_id?: string | undefined
readonly created_after?: string | undefined
readonly created_before?: string | undefined
readonly limit?: number | undefined
readonly cursor?: string | undefined
} | undefined
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly view_id: string
readonly view_name: string
readonly view_version: number
/** newest first; without `limit` the latest 1000 */
readonly files: (components['schemas']["DlqFile"])[]
/** number of files that match, over all pages */
readonly total: number
/** null unless the database may lack commits, as after it went back to an older state: those since this time may be missing here, until control, or the operator with `inlet commits rebuild`, has recorded them. Their files are in the bucket */
readonly may_lack_commits_since: string | null
/** present if `limit` is given: pass it as `cursor`; null on the last page */
readonly next_cursor?: string | null | undefined
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/views/{id}/metrics": {
/** Get the metrics of a view, over 24 hours and in total */
readonly get: {
parameters: {
readonly query?: {
readonly detail?: "columns" | undefined
} | undefined
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly endpoints: ({
readonly endpoint_id: string
readonly endpoint_name: string
/** records that were processed in the last 24 hours, by live delivery or by a job */
readonly last_24h: {
/** `accepted` + `dropped` + `dlq` + `failed` */
readonly processed: number
readonly accepted: number
/** records that a filter, or `dedupe_by`, left out */
readonly dropped: number
readonly dlq: number
/** records of segments on which the view failed as a whole (`view_failed`) */
readonly failed: number
/** rows written: `accepted`, or more if the view expands an array */
readonly rows: number
/** rows that `dedupe_by` left out: their records are `dropped`, unless the view expands an array and they have other rows */
readonly duplicates: number
/** those of `dlq` that a re-drive ran another version over, which counts them since: they are no errors any more */
readonly redriven: number
}
readonly all_time: {
/** `accepted` + `dropped` + `dlq` + `failed` */
readonly processed: number
readonly accepted: number
/** records that a filter, or `dedupe_by`, left out */
readonly dropped: number
readonly dlq: number
/** records of segments on which the view failed as a whole (`view_failed`) */
readonly failed: number
/** rows written: `accepted`, or more if the view expands an array */
readonly rows: number
/** rows that `dedupe_by` left out: their records are `dropped`, unless the view expands an array and they have other rows */
readonly duplicates: number
/** those of `dlq` that a re-drive ran another version over, which counts them since: they are no errors any more */
readonly redriven: number
}
/** share of `dlq` without `redriven` and of `failed` in `processed` of the last 24 hours, in per cent; 100 if nothing was processed because the view holds back the delivery */
readonly error_rate_pct: number
/** whether `error_count_24h` is not 0, or `held_since` is set */
readonly has_errors: boolean
/** `dlq` without `redriven`, `failed`, and 1 each time that the view began to hold back the delivery */
readonly error_count_24h: number
/** the same of all time */
readonly total_error_count: number
readonly last_error_at: string | null
/** the code of a dead letter, `view_failed`, or `too_expensive` if the view exceeded a bound on its cost */
readonly last_error_code: string | null
readonly last_error_message: string | null
/** ISO 8601, UTC, milliseconds */
readonly last_updated_at: string
/** since when the view, which is required, fails and holds back the delivery of the endpoint; null if it does not */
readonly held_since: string | null
/** with `detail=columns`: in definition order */
readonly columns?: ({
readonly name: string
readonly type: string
/** whether the column is not written: then only its failures are counted, and it has no `values`, `nulls` and `min` */
readonly hidden: boolean
readonly last_24h: {
/** accepted rows that have a value in the column */
readonly values: number
/** accepted rows that have NULL in the column */
readonly nulls: number
/** share of `nulls` in the accepted rows, in per cent; 0 if there are no rows */
readonly null_rate_pct: number
/** values that could not be cast to the type of the column: `cast_nulls` + `cast_dlq` */
readonly cast_failures: number
/** cast failures that became NULL, in rows that are accepted or for which the filters are unknown */
readonly cast_nulls: number
/** cast failures that sent the row to the DLQ; a row with several errors counts for the first column only */
readonly cast_dlq: number
/** rows that went to the DLQ because the column is required and has no value */
readonly missing: number
/** smallest value of the accepted rows as text: whole numbers and decimals exact, floating point numbers in their shortest form (NaN is ignored), ISO 8601 in UTC, BOOLEAN as `false` or `true`, VARCHAR in the order of its bytes and cut to 64 characters, so that it is never larger than the value. Null if there is no value, and for JSON, BLOB and lists */
readonly min: string | null
/** largest value, in the same format; for a longer VARCHAR, its first characters */
readonly max: string | null
}
readonly all_time: {
/** accepted rows that have a value in the column */
readonly values: number
/** accepted rows that have NULL in the column */
readonly nulls: number
/** share of `nulls` in the accepted rows, in per cent; 0 if there are no rows */
readonly null_rate_pct: number
/** values that could not be cast to the type of the column: `cast_nulls` + `cast_dlq` */
readonly cast_failures: number
/** cast failures that became NULL, in rows that are accepted or for which the filters are unknown */
readonly cast_nulls: number
/** cast failures that sent the row to the DLQ; a row with several errors counts for the first column only */
readonly cast_dlq: number
/** rows that went to the DLQ because the column is required and has no value */
readonly missing: number
/** smallest value of the accepted rows as text: whole numbers and decimals exact, floating point numbers in their shortest form (NaN is ignored), ISO 8601 in UTC, BOOLEAN as `false` or `true`, VARCHAR in the order of its bytes and cut to 64 characters, so that it is never larger than the value. Null if there is no value, and for JSON, BLOB and lists */
readonly min: string | null
/** largest value, in the same format; for a longer VARCHAR, its first characters */
readonly max: string | null
}
})[] | undefined
/** with `detail=columns`: paths in the records of the last 24 hours that no column reads, without paths below them, the most frequent first, at most 100; from up to 200 records of each segment */
readonly unmapped_paths?: ({
/** truncated with … after 200 characters */
readonly path: string
/** kinds of JSON values at the path */
readonly types: ("boolean" | "integer" | "number" | "string" | "object" | "array")[]
/** sampled records with a value at the path that is not null */
readonly records: number
/** records that were sampled, accepted or not */
readonly sampled_records: number
/** share of `records` in `sampled_records`, in per cent */
readonly seen_pct: number
/** ISO 8601, UTC, milliseconds */
readonly last_seen_at: string
})[] | undefined
})[]
readonly aggregated: {
readonly last_24h: {
/** `accepted` + `dropped` + `dlq` + `failed` */
readonly processed: number
readonly accepted: number
/** records that a filter, or `dedupe_by`, left out */
readonly dropped: number
readonly dlq: number
/** records of segments on which the view failed as a whole (`view_failed`) */
readonly failed: number
/** rows written: `accepted`, or more if the view expands an array */
readonly rows: number
/** rows that `dedupe_by` left out: their records are `dropped`, unless the view expands an array and they have other rows */
readonly duplicates: number
/** those of `dlq` that a re-drive ran another version over, which counts them since: they are no errors any more */
readonly redriven: number
}
readonly all_time: {
/** `accepted` + `dropped` + `dlq` + `failed` */
readonly processed: number
readonly accepted: number
/** records that a filter, or `dedupe_by`, left out */
readonly dropped: number
readonly dlq: number
/** records of segments on which the view failed as a whole (`view_failed`) */
readonly failed: number
/** rows written: `accepted`, or more if the view expands an array */
readonly rows: number
/** rows that `dedupe_by` left out: their records are `dropped`, unless the view expands an array and they have other rows */
readonly duplicates: number
/** those of `dlq` that a re-drive ran another version over, which counts them since: they are no errors any more */
readonly redriven: number
}
/** share of `dlq` without `redriven` and of `failed` in `processed` of the last 24 hours, in per cent; 100 if nothing was processed because the view holds back the delivery */
readonly error_rate_pct: number
readonly has_errors: boolean
readonly total_error_count_24h: number
/** with `detail=columns`: in definition order */
readonly columns?: ({
readonly name: string
readonly type: string
/** whether the column is not written: then only its failures are counted, and it has no `values`, `nulls` and `min` */
readonly hidden: boolean
readonly last_24h: {
/** accepted rows that have a value in the column */
readonly values: number
/** accepted rows that have NULL in the column */
readonly nulls: number
/** share of `nulls` in the accepted rows, in per cent; 0 if there are no rows */
readonly null_rate_pct: number
/** values that could not be cast to the type of the column: `cast_nulls` + `cast_dlq` */
readonly cast_failures: number
/** cast failures that became NULL, in rows that are accepted or for which the filters are unknown */
readonly cast_nulls: number
/** cast failures that sent the row to the DLQ; a row with several errors counts for the first column only */
readonly cast_dlq: number
/** rows that went to the DLQ because the column is required and has no value */
readonly missing: number
/** smallest value of the accepted rows as text: whole numbers and decimals exact, floating point numbers in their shortest form (NaN is ignored), ISO 8601 in UTC, BOOLEAN as `false` or `true`, VARCHAR in the order of its bytes and cut to 64 characters, so that it is never larger than the value. Null if there is no value, and for JSON, BLOB and lists */
readonly min: string | null
/** largest value, in the same format; for a longer VARCHAR, its first characters */
readonly max: string | null
}
readonly all_time: {
/** accepted rows that have a value in the column */
readonly values: number
/** accepted rows that have NULL in the column */
readonly nulls: number
/** share of `nulls` in the accepted rows, in per cent; 0 if there are no rows */
readonly null_rate_pct: number
/** values that could not be cast to the type of the column: `cast_nulls` + `cast_dlq` */
readonly cast_failures: number
/** cast failures that became NULL, in rows that are accepted or for which the filters are unknown */
readonly cast_nulls: number
/** cast failures that sent the row to the DLQ; a row with several errors counts for the first column only */
readonly cast_dlq: number
/** rows that went to the DLQ because the column is required and has no value */
readonly missing: number
/** smallest value of the accepted rows as text: whole numbers and decimals exact, floating point numbers in their shortest form (NaN is ignored), ISO 8601 in UTC, BOOLEAN as `false` or `true`, VARCHAR in the order of its bytes and cut to 64 characters, so that it is never larger than the value. Null if there is no value, and for JSON, BLOB and lists */
readonly min: string | null
/** largest value, in the same format; for a longer VARCHAR, its first characters */
readonly max: string | null
}
})[] | undefined
/** with `detail=columns`: paths in the records of the last 24 hours that no column reads, without paths below them, the most frequent first, at most 100; from up to 200 records of each segment */
readonly unmapped_paths?: ({
/** truncated with … after 200 characters */
readonly path: string
/** kinds of JSON values at the path */
readonly types: ("boolean" | "integer" | "number" | "string" | "object" | "array")[]
/** sampled records with a value at the path that is not null */
readonly records: number
/** records that were sampled, accepted or not */
readonly sampled_records: number
/** share of `records` in `sampled_records`, in per cent */
readonly seen_pct: number
/** ISO 8601, UTC, milliseconds */
readonly last_seen_at: string
})[] | undefined
}
readonly view_id: string
readonly view_name: string
readonly view_version: number
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/views/{id}/series": {
/** Get what all versions of a view accepted, dropped and rejected over time */
readonly get: {
parameters: {
readonly query?: {
readonly since?: string | undefined
readonly step?: "10s" | "1m" | "5m" | "1h" | undefined
readonly endpoint_id?: string | undefined
} | undefined
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["ViewSeries"]
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/views/{id}/publish": {
readonly get?: never
readonly put?: never
/** Publish a draft: its definition can no longer change */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly id: string
readonly name: string
readonly version: number
readonly definition: components['schemas']["Definition"]
readonly format: "yaml" | "json"
readonly status: "draft" | "published" | "archived"
readonly description: string
readonly tags: (string)[]
readonly created_by: string
/** ISO 8601, UTC, milliseconds */
readonly created_at: string
readonly published_at: string | null
/** names that readers of the files must quote, or that an engine does not accept, and shadows that keep an earlier definition; empty if the definition was not sent */
readonly warnings: (components['schemas']["DefinitionWarning"])[]
}
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/views/preview": {
readonly get?: never
readonly put?: never
/** Try a definition on samples; nothing is saved */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["PreviewRequest"]
} }
responses: {
200: { content: {
readonly "application/json": components['schemas']["PreviewResult"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/views/suggest": {
readonly get?: never
readonly put?: never
/** Suggest a definition for samples, or for the data of an endpoint; nothing is saved */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["SuggestRequest"]
} }
responses: {
200: { content: {
readonly "application/json": components['schemas']["Suggestion"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/views/{id}/compare": {
readonly get?: never
readonly put?: never
/** Compare a changed definition with the published one, over records of the last day; nothing is saved */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: { content: {
readonly "application/json": components['schemas']["CompareView"]
} } | undefined
responses: {
200: { content: {
readonly "application/json": components['schemas']["ViewComparison"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/endpoints/{endpoint_id}/views": {
/** List the views of an endpoint, attached and detached: all of them, or a page */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
} | undefined
readonly header?: never
readonly path: {
readonly endpoint_id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["Binding"])[]
readonly total?: number | undefined
readonly limit?: number | undefined
readonly offset?: number | undefined
readonly next_offset?: number | null | undefined
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
/** Attach a published view to an endpoint */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly endpoint_id: string
}
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["AttachView"]
} }
responses: {
201: { content: {
readonly "application/json": {
readonly id: string
readonly endpoint_id: string
readonly endpoint_name: string
readonly view_id: string
readonly view_name: string
readonly view_version: number
readonly is_required: boolean
/** ISO 8601, UTC, milliseconds */
readonly activated_at: string
readonly activated_by: string
readonly deactivated_at: string | null
readonly canary_start_ts: string | null
/** when it is detached by itself; null: never */
readonly canary_rule: components['schemas']["CanaryRule"] | null
/** why its rule detached it; null if that did not happen */
readonly stopped_reason: string | null
readonly status: "active" | "detached"
/** why the view may not do what was meant; usually empty */
readonly warnings: (string)[]
}
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/endpoints/{endpoint_id}/views/{binding_id}": {
readonly get?: never
readonly put?: never
readonly post?: never
/** Detach a view from an endpoint */
readonly delete: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly endpoint_id: string
readonly binding_id: string
}
}
readonly requestBody?: never
responses: {
204: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly patch?: never
}
readonly "/v1/endpoints/{endpoint_id}/shadows": {
/** List the shadows of an endpoint */
readonly get: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly endpoint_id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
/** the latest first */
readonly items: (components['schemas']["Shadow"])[]
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
/** Run a draft or a version on the segments of an endpoint, to be counted; it writes no files */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly endpoint_id: string
}
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["StartShadow"]
} }
responses: {
201: { content: {
readonly "application/json": components['schemas']["Shadow"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/endpoints/{endpoint_id}/shadows/{shadow_id}": {
readonly get?: never
readonly put?: never
readonly post?: never
/** End a shadow; its figures stay until another one starts */
readonly delete: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly endpoint_id: string
readonly shadow_id: string
}
}
readonly requestBody?: never
responses: {
204: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly patch?: never
}
readonly "/v1/endpoints/{id}/receipts/{receipt_id}": {
/** Get what became of records that were acknowledged: delivered, waiting or lost; also of a deleted endpoint */
readonly get: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
readonly receipt_id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["ReceiptOutcome"]
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/losses": {
/** List what was acknowledged and not delivered when nodes were removed, newest first */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
readonly state?: "open" | "recovered" | "confirmed" | undefined
readonly endpoint_id?: string | undefined
} | undefined
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["Loss"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/losses/{id}/confirm": {
readonly get?: never
readonly put?: never
/** Accept a loss: it is no longer a reason in the status of its endpoint */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["Loss"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/views/{id}/backfill": {
readonly get?: never
readonly put?: never
/** Run a published version over segments that were committed without it */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["Backfill"]
} }
responses: {
202: { content: {
readonly "application/json": components['schemas']["Job"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/views/{id}/redrive": {
readonly get?: never
readonly put?: never
/** Run a published version over the rows that another version of the view rejected */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["Redrive"]
} }
responses: {
202: { content: {
readonly "application/json": components['schemas']["Job"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/endpoints/{id}/compact": {
readonly get?: never
readonly put?: never
/** Merge small Parquet files of closed hours or days, and remove those that were merged long enough ago */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody: { content: {
readonly "application/json": {
/** files of different hours, or days, are not merged */
readonly period?: "hour" | "day" | undefined
/** only segments sealed at or after this time */
readonly from?: string | undefined
/** only segments sealed before this time; default: all closed periods */
readonly to?: string | undefined
}
} }
responses: {
202: { content: {
readonly "application/json": components['schemas']["Job"]
} }
204: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/jobs": {
/** List backfills, re-drives and compactions, newest first */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
readonly status?: "running" | "paused" | "succeeded" | "failed" | "canceled" | undefined
readonly view_id?: string | undefined
readonly endpoint_id?: string | undefined
} | undefined
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["Job"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/jobs/{id}": {
/** Get a job with its progress */
readonly get: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["JobDetail"]
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/jobs/{id}/pause": {
readonly get?: never
readonly put?: never
/** Pause a job: segments in progress are finished, and no others are started */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["Job"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/jobs/{id}/resume": {
readonly get?: never
readonly put?: never
/** Resume a job */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["Job"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/jobs/{id}/cancel": {
readonly get?: never
readonly put?: never
/** Cancel a job: files it has already written stay */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["Job"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/query": {
readonly get?: never
readonly put?: never
/** Run SQL over what was delivered; nothing is saved */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["RunQuery"]
} }
responses: {
200: { content: {
readonly "application/json": components['schemas']["QueryResult"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/quotas": {
/** Get the quotas of the account and how much of them is used */
readonly get: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["QuotaUse"]
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/session": {
/** Get who is signed in, and their accounts */
readonly get: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["Session"]
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/sessions": {
/** List the browsers in which you are signed in, the last seen first */
readonly get: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["OpenSession"])[]
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
/** End all your sessions but this one */
readonly delete: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
204: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly patch?: never
}
readonly "/v1/sessions/{id}": {
readonly get?: never
readonly put?: never
readonly post?: never
/** End one of your sessions */
readonly delete: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
204: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly patch?: never
}
readonly "/v1/accepted-invitations": {
readonly get?: never
readonly put?: never
/** Join one more account with the link of an invitation */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["AcceptInvitation"]
} }
responses: {
200: { content: {
readonly "application/json": components['schemas']["Membership"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/accounts": {
/** List accounts, newest first */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
} | undefined
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["Account"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
/** Create an account and its first API key; only this response contains the secret */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["CreateAccount"]
} }
responses: {
201: { content: {
readonly "application/json": components['schemas']["CreatedAccount"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/accounts/{id}": {
/** Get an account */
readonly get: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["Account"]
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
/** Rename, suspend or resume an account, or change its weight, quotas and buckets */
readonly patch: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["ChangeAccount"]
} }
responses: {
200: { content: {
readonly "application/json": components['schemas']["Account"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
}
readonly "/v1/accounts/{id}/quotas": {
/** Get the quotas of an account and how much of them is used */
readonly get: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["QuotaUse"]
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/accounts/{id}/invitations": {
readonly get?: never
readonly put?: never
/** Create a link with which somebody joins an account, such as its first owner; only this response contains it */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["Invite"]
} }
responses: {
201: { content: {
readonly "application/json": components['schemas']["CreatedInvitation"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/nodes": {
/** List nodes, their health and what is on their disks */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
} | undefined
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["Node"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/nodes/{id}": {
readonly get?: never
readonly put?: never
readonly post?: never
/** Remove a node: drains no longer wait for it, and control refuses its credential */
readonly delete: {
parameters: {
readonly query?: {
readonly force?: "true" | "false" | undefined
} | undefined
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["NodeRemoval"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
/** Name a node */
readonly patch: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["ChangeNode"]
} }
responses: {
200: { content: {
readonly "application/json": components['schemas']["Node"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
}
readonly "/v1/nodes/{id}/segments": {
/** List what a node holds of each endpoint, also of deleted and unknown ones */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
readonly owner?: components['schemas']["LogOwner"] | undefined
} | undefined
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["NodeLog"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/nodes/{id}/credential": {
readonly get?: never
readonly put?: never
readonly post?: never
/** Revoke the credential of a node */
readonly delete: {
parameters: {
readonly query?: {
readonly release?: "true" | "false" | undefined
readonly force?: "true" | "false" | undefined
} | undefined
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
204: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly patch?: never
}
readonly "/v1/join-tokens": {
/** List join tokens, newest first, also those that can no longer be used */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
} | undefined
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["JoinToken"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
/** Create a token with which nodes join; only this response contains it */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path?: never
}
readonly requestBody: { content: {
readonly "application/json": components['schemas']["CreateJoinToken"]
} }
responses: {
201: { content: {
readonly "application/json": components['schemas']["CreatedJoinToken"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
413: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
415: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
readonly "/v1/join-tokens/{id}": {
readonly get?: never
readonly put?: never
readonly post?: never
/** Revoke a join token; nodes that joined with it stay */
readonly delete: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
204: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly patch?: never
}
readonly "/v1/installation/audit-events": {
/** List who changed what in the installation, or tried to, newest first */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly before?: string | undefined
readonly operation?: string | undefined
readonly result?: "succeeded" | "failed" | undefined
readonly since?: string | undefined
readonly account_id?: string | undefined
} | undefined
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["AuditEvent"])[]
readonly next_cursor: string | null
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/installation/losses": {
/** List what was acknowledged and not delivered when nodes were removed, of all accounts, newest first */
readonly get: {
parameters: {
readonly query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
readonly state?: "open" | "recovered" | "confirmed" | undefined
readonly endpoint_id?: string | undefined
readonly account_id?: string | undefined
} | undefined
readonly header?: never
readonly path?: never
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": {
readonly items: (components['schemas']["Loss"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}
} }
304: { content: Record<never, never> }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly put?: never
readonly post?: never
readonly delete?: never
readonly patch?: never
}
readonly "/v1/installation/losses/{id}/confirm": {
readonly get?: never
readonly put?: never
/** Accept a loss for its account, such as a suspended one */
readonly post: {
parameters: {
readonly query?: never
readonly header?: never
readonly path: {
readonly id: string
}
}
readonly requestBody?: never
responses: {
200: { content: {
readonly "application/json": components['schemas']["Loss"]
} }
401: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
403: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
404: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
406: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
409: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
422: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
429: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
500: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
503: { content: {
readonly "application/problem+json": components['schemas']["Problem"]
} }
}
}
readonly delete?: never
readonly patch?: never
}
}
