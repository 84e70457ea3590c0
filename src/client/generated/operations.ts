/** Written by `npm run openapi` from openapi/openapi.json: change nothing here. */
import type { CallOptions } from '../bound.ts'
import type { Listing } from '../listing.ts'
import type { Operation } from '../operation.ts'
import type { components } from './schema.ts'

export type Operations = {
/** Exchange an API key for an access token. Needs no token. */
readonly exchangeToken: (body: components['schemas']["ExchangeToken"], options?: CallOptions) => Promise<components['schemas']["AccessToken"]>
/** List API keys, newest first, including revoked ones. Needs a token of scope `admin`. */
readonly listKeys: (query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
}, options?: CallOptions) => Listing<components['schemas']["ApiKey"], {
readonly items: (components['schemas']["ApiKey"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}>
/** Create an API key; only this response contains the secret. Needs a token of scope `admin`. */
readonly createKey: (body: {
readonly name: string
readonly scopes: ("ingest" | "metrics" | "query" | "admin")[]
/** limits the key to these endpoints of the account; not for a key with the scope `admin` */
readonly endpoint_ids?: (string)[] | null | undefined
/** for a key that web pages hold: scope `ingest` only, one endpoint, and `origins`. Such a key may be in the query (`?key=`). The operator has to allow public keys */
readonly public?: boolean | undefined
/** origins of the pages that a public key sends from */
readonly origins?: (string)[] | null | undefined
}, options?: CallOptions) => Promise<{
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
}>
/** Revoke an API key permanently. Calls with the key are refused. Access tokens that were issued for it stay valid until they expire, 15 minutes at most, and MQTT connections until they next authenticate: this is how a key is replaced without an outage. If the key leaked, end all of it at once with `now=true`. Needs a token of scope `admin`. */
readonly revokeKey: (id: string, query?: {
readonly now?: "true" | "false" | undefined
}, options?: CallOptions) => Promise<components['schemas']["ApiKey"]>
/** List secrets by name, without their values. Needs a token of scope `admin`. */
readonly listSecrets: (query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
}, options?: CallOptions) => Listing<components['schemas']["Secret"], {
readonly items: (components['schemas']["Secret"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}>
/** Create a secret that views can hash with. Views name it in `hmac_sha256`. The API never returns a value that was sent. Without `value`, Inlet makes one at random, which only this response contains. Needs a token of scope `admin`. */
readonly createSecret: (body: components['schemas']["CreateSecret"], options?: CallOptions) => Promise<{
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
}>
/** Replace the value of a secret. Nodes hash with the new value from the next segment that they convert: equal texts have different hashes before and after. Backfills and re-drives use the new value, too. The old one is not kept. Needs a token of scope `admin`. */
readonly rotateSecret: (id: string, body: components['schemas']["RotateSecret"], options?: CallOptions) => Promise<{
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
}>
/** Delete a secret that no published view names. Needs a token of scope `admin`. */
readonly deleteSecret: (id: string, options?: CallOptions) => Promise<void>
/** List who belongs to the account, in the order in which they joined. Needs a token of scope `metrics` or `admin`. */
readonly listPeople: (options?: CallOptions) => Listing<components['schemas']["Person"], {
readonly items: (components['schemas']["Person"])[]
}>
/** List who changed what in the account, or tried to, newest first. Needs a token of scope `admin`. */
readonly listAuditEvents: (query?: {
readonly limit?: number | undefined
readonly before?: string | undefined
readonly operation?: string | undefined
readonly result?: "succeeded" | "failed" | undefined
readonly since?: string | undefined
}, options?: CallOptions) => Listing<components['schemas']["AuditEvent"], {
readonly items: (components['schemas']["AuditEvent"])[]
readonly next_cursor: string | null
}>
/** List destinations, newest first. Needs a token of scope `metrics` or `admin`. */
readonly listDestinations: (query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
}, options?: CallOptions) => Listing<components['schemas']["DestinationWithCount"], {
readonly items: (components['schemas']["DestinationWithCount"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}>
/** Create a destination. Needs a token of scope `admin`. */
readonly createDestination: (body: components['schemas']["CreateDestination"], options?: CallOptions) => Promise<components['schemas']["Destination"]>
/** Get a destination. Needs a token of scope `metrics` or `admin`. */
readonly getDestination: (id: string, options?: CallOptions) => Promise<components['schemas']["DestinationWithCount"]>
/** Delete a destination that no endpoint uses. Needs a token of scope `admin`. */
readonly deleteDestination: (id: string, options?: CallOptions) => Promise<void>
/** Change a destination; anything but a new name makes it pending again. Needs a token of scope `admin`. */
readonly changeDestination: (id: string, body: components['schemas']["ChangeDestination"], options?: CallOptions) => Promise<components['schemas']["Destination"]>
/** Validate a destination: try each step of a delivery with a test object, and record the result. Needs a token of scope `admin`. */
readonly validateDestination: (id: string, options?: CallOptions) => Promise<components['schemas']["ValidatedDestination"]>
/** Get what a new destination needs: where objects are stored, whom its role must trust, settings that fit. Needs a token of scope `metrics` or `admin`. */
readonly getObjectStore: (options?: CallOptions) => Promise<components['schemas']["ObjectStoreSettings"]>
/** List endpoints, newest first. Accepts a token of any scope. */
readonly listEndpoints: (query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
readonly status?: "deploying" | "active" | "degraded" | "paused" | "draining" | "failed" | "all" | undefined
readonly name?: string | undefined
}, options?: CallOptions) => Listing<components['schemas']["Endpoint"], {
readonly items: (components['schemas']["Endpoint"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}>
/** Create an endpoint. Needs a token of scope `admin`. */
readonly createEndpoint: (body: components['schemas']["CreateEndpoint"], options?: CallOptions) => Promise<components['schemas']["Endpoint"]>
/** List the regions that have nodes. Accepts a token of any scope. */
readonly listRegions: (options?: CallOptions) => Promise<components['schemas']["NodeRegions"]>
/** Get an endpoint. Needs a token of scope `metrics` or `admin`. */
readonly getEndpoint: (id: string, options?: CallOptions) => Promise<components['schemas']["Endpoint"]>
/** Delete an endpoint: it rejects new data and is removed once all its data is delivered. Needs a token of scope `admin`. */
readonly deleteEndpoint: (id: string, query?: {
readonly force?: "true" | "false" | undefined
}, options?: CallOptions) => Promise<components['schemas']["ForcedDeletion"] | undefined>
/** Change an endpoint; null restores a default, unbinds the destination or disables MQTT; mqtt_config is merged with the current one. Needs a token of scope `admin`. */
readonly changeEndpoint: (id: string, body: components['schemas']["ChangeEndpoint"], options?: CallOptions) => Promise<{
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
}>
/** Pause an endpoint: it rejects new data until it is resumed, and delivers the data it has. Needs a token of scope `admin`. */
readonly pauseEndpoint: (id: string, options?: CallOptions) => Promise<components['schemas']["Endpoint"]>
/** Resume a paused endpoint. Needs a token of scope `admin`. */
readonly resumeEndpoint: (id: string, options?: CallOptions) => Promise<components['schemas']["Endpoint"]>
/** List the delivered segments of an endpoint, newest first, also of a deleted one. Needs a token of scope `metrics` or `admin`. */
readonly listCommits: (id: string, query?: {
readonly limit?: number | undefined
readonly before?: string | undefined
readonly node_id?: string | undefined
readonly segment_seq?: number | undefined
}, options?: CallOptions) => Listing<components['schemas']["Commit"], {
readonly items: (components['schemas']["Commit"])[]
/** pass it as `before`; null on the last page */
readonly next_cursor: string | null
/** null unless the database may lack commits, as after it went back to an older state: those since this time may be missing here, until control, or the operator with `inlet commits rebuild`, has recorded them. Their files are in the bucket */
readonly may_lack_commits_since: string | null
}>
/** Get a delivered segment with a link to each of its files, also of a deleted endpoint. Needs a token of scope `query` or `admin`. */
readonly listCommitFiles: (id: string, commit_id: string, options?: CallOptions) => Promise<components['schemas']["CommitFiles"]>
/** Send one record through the ingest address of the endpoint, and return its receipt. Needs a token of scope `admin`. */
readonly sendTestEvent: (id: string, body?: components['schemas']["SendTestEvent"], options?: CallOptions) => Promise<components['schemas']["TestEvent"]>
/** Show the latest records delivered, from raw Parquet in the bucket: for looking at a few. Needs a token of scope `query` or `admin`. */
readonly listRecords: (id: string, query?: {
readonly limit?: number | undefined
readonly node_id?: string | undefined
readonly segment_seq?: number | undefined
readonly contains?: string | undefined
}, options?: CallOptions) => Listing<components['schemas']["DeliveredRecord"], {
readonly items: (components['schemas']["DeliveredRecord"])[]
}>
/** Show the latest records that a view rejected, from dead letter files in the bucket. Needs a token of scope `query` or `admin`. */
readonly listDlqRecords: (id: string, query?: {
readonly limit?: number | undefined
readonly endpoint_id?: string | undefined
readonly created_after?: string | undefined
readonly created_before?: string | undefined
readonly error_code?: string | undefined
readonly column?: string | undefined
}, options?: CallOptions) => Listing<components['schemas']["DlqRecord"], {
readonly items: (components['schemas']["DlqRecord"])[]
}>
/** Count why a view rejected records, in its newest dead letter files in the bucket. Needs a token of scope `query` or `admin`. */
readonly listDlqReasons: (id: string, query?: {
readonly endpoint_id?: string | undefined
readonly created_after?: string | undefined
readonly created_before?: string | undefined
}, options?: CallOptions) => Listing<{
readonly error_code: string
/** null if the reason concerns the whole record */
readonly column: string | null
readonly rows: number
/** of the latest of them: others may have another cause */
readonly message: string
/** when the latest of them was received */
readonly last_ingested_at: string
}, {
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
}>
/** Get what an endpoint accepted, refused and delivered over time, also of a deleted one. Needs a token of scope `metrics` or `admin`. */
readonly getEndpointSeries: (id: string, query?: {
readonly since?: string | undefined
readonly step?: "10s" | "1m" | "5m" | "1h" | undefined
}, options?: CallOptions) => Promise<components['schemas']["EndpointSeries"]>
/** List view versions, newest first. Accepts a token of any scope. */
readonly listViews: (query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
readonly status?: "draft" | "published" | "archived" | "all" | undefined
readonly name?: string | undefined
readonly tag?: (string)[] | undefined
}, options?: CallOptions) => Listing<components['schemas']["ViewWithUsage"], {
readonly items: (components['schemas']["ViewWithUsage"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}>
/** Create a view, as a draft. Needs a token of scope `admin`. */
readonly createView: (body: components['schemas']["CreateView"], options?: CallOptions) => Promise<{
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
}>
/** List the metrics of published view versions, newest first. Needs a token of scope `metrics` or `admin`. */
readonly listViewMetrics: (query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
}, options?: CallOptions) => Listing<{
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
}, {
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
}>
/** Get a view with its versions and endpoints. Needs a token of scope `metrics` or `admin`. */
readonly getView: (id: string, options?: CallOptions) => Promise<components['schemas']["ViewDetail"]>
/** Delete a draft. Needs a token of scope `admin`. */
readonly deleteView: (id: string, options?: CallOptions) => Promise<void>
/** Change a draft. Needs a token of scope `admin`. */
readonly changeView: (id: string, body: components['schemas']["ChangeView"], options?: CallOptions) => Promise<{
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
}>
/** Create the next version of a view, as a draft. Needs a token of scope `admin`. */
readonly createViewVersion: (id: string, body?: components['schemas']["CreateViewVersion"], options?: CallOptions) => Promise<components['schemas']["View"]>
/** Archive a published view: it is detached from every endpoint and cannot be attached again. Needs a token of scope `admin`. */
readonly archiveView: (id: string, options?: CallOptions) => Promise<components['schemas']["View"]>
/** List the files of rows that a view rejected, each with a download URL. Needs a token of scope `metrics` or `admin`. */
readonly listDlqFiles: (id: string, query?: {
readonly endpoint_id?: string | undefined
readonly created_after?: string | undefined
readonly created_before?: string | undefined
readonly limit?: number | undefined
readonly cursor?: string | undefined
}, options?: CallOptions) => Listing<components['schemas']["DlqFile"], {
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
}>
/** Get the metrics of a view, over 24 hours and in total. Needs a token of scope `metrics` or `admin`. */
readonly getViewMetrics: (id: string, query?: {
readonly detail?: "columns" | undefined
}, options?: CallOptions) => Promise<{
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
}>
/** Get what all versions of a view accepted, dropped and rejected over time. Needs a token of scope `metrics` or `admin`. */
readonly getViewSeries: (id: string, query?: {
readonly since?: string | undefined
readonly step?: "10s" | "1m" | "5m" | "1h" | undefined
readonly endpoint_id?: string | undefined
}, options?: CallOptions) => Promise<components['schemas']["ViewSeries"]>
/** Publish a draft: its definition can no longer change. Needs a token of scope `admin`. */
readonly publishView: (id: string, options?: CallOptions) => Promise<{
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
}>
/** Try a definition on samples; nothing is saved. Accepts a token of any scope. */
readonly previewView: (body: components['schemas']["PreviewRequest"], options?: CallOptions) => Promise<components['schemas']["PreviewResult"]>
/** Suggest a definition for samples, or for the data of an endpoint; nothing is saved. Accepts a token of any scope. */
readonly suggestView: (body: components['schemas']["SuggestRequest"], options?: CallOptions) => Promise<components['schemas']["Suggestion"]>
/** Compare a changed definition with the published one, over records of the last day; nothing is saved. Needs a token of scope `query` or `admin`. */
readonly compareView: (id: string, body?: components['schemas']["CompareView"], options?: CallOptions) => Promise<components['schemas']["ViewComparison"]>
/** List the views of an endpoint, attached and detached: all of them, or a page. Accepts a token of any scope. */
readonly listBindings: (endpoint_id: string, query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
}, options?: CallOptions) => Listing<components['schemas']["Binding"], {
readonly items: (components['schemas']["Binding"])[]
readonly total?: number | undefined
readonly limit?: number | undefined
readonly offset?: number | undefined
readonly next_offset?: number | null | undefined
}>
/** Attach a published view to an endpoint. Needs a token of scope `admin`. */
readonly attachView: (endpoint_id: string, body: components['schemas']["AttachView"], options?: CallOptions) => Promise<{
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
}>
/** Detach a view from an endpoint. Needs a token of scope `admin`. */
readonly detachView: (endpoint_id: string, binding_id: string, options?: CallOptions) => Promise<void>
/** List the shadows of an endpoint. Accepts a token of any scope. */
readonly listShadows: (endpoint_id: string, options?: CallOptions) => Listing<components['schemas']["Shadow"], {
/** the latest first */
readonly items: (components['schemas']["Shadow"])[]
}>
/** Run a draft or a version on the segments of an endpoint, to be counted; it writes no files. Needs a token of scope `admin`. */
readonly startShadow: (endpoint_id: string, body: components['schemas']["StartShadow"], options?: CallOptions) => Promise<components['schemas']["Shadow"]>
/** End a shadow; its figures stay until another one starts. Needs a token of scope `admin`. */
readonly endShadow: (endpoint_id: string, shadow_id: string, options?: CallOptions) => Promise<void>
/** Get what became of records that were acknowledged: delivered, waiting or lost; also of a deleted endpoint. Needs a token of scope `metrics` or `admin`. */
readonly getReceipt: (id: string, receipt_id: string, options?: CallOptions) => Promise<components['schemas']["ReceiptOutcome"]>
/** List what was acknowledged and not delivered when nodes were removed, newest first. Needs a token of scope `metrics` or `admin`. */
readonly listLosses: (query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
readonly state?: "open" | "recovered" | "confirmed" | undefined
readonly endpoint_id?: string | undefined
}, options?: CallOptions) => Listing<components['schemas']["Loss"], {
readonly items: (components['schemas']["Loss"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}>
/** Accept a loss: it is no longer a reason in the status of its endpoint. Needs a token of scope `admin`. */
readonly confirmLoss: (id: string, options?: CallOptions) => Promise<components['schemas']["Loss"]>
/** Run a published version over segments that were committed without it. Needs a token of scope `admin`. */
readonly backfillView: (id: string, body: components['schemas']["Backfill"], options?: CallOptions) => Promise<components['schemas']["Job"]>
/** Run a published version over the rows that another version of the view rejected. Needs a token of scope `admin`. */
readonly redriveView: (id: string, body: components['schemas']["Redrive"], options?: CallOptions) => Promise<components['schemas']["Job"]>
/** Merge small Parquet files of closed hours or days, and remove those that were merged long enough ago. Needs a token of scope `admin`. */
readonly compactEndpoint: (id: string, body: {
/** files of different hours, or days, are not merged */
readonly period?: "hour" | "day" | undefined
/** only segments sealed at or after this time */
readonly from?: string | undefined
/** only segments sealed before this time; default: all closed periods */
readonly to?: string | undefined
}, options?: CallOptions) => Promise<components['schemas']["Job"] | undefined>
/** List backfills, re-drives and compactions, newest first. Needs a token of scope `metrics` or `admin`. */
readonly listJobs: (query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
readonly status?: "running" | "paused" | "succeeded" | "failed" | "canceled" | undefined
readonly view_id?: string | undefined
readonly endpoint_id?: string | undefined
}, options?: CallOptions) => Listing<components['schemas']["Job"], {
readonly items: (components['schemas']["Job"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}>
/** Get a job with its progress. Needs a token of scope `metrics` or `admin`. */
readonly getJob: (id: string, options?: CallOptions) => Promise<components['schemas']["JobDetail"]>
/** Pause a job: segments in progress are finished, and no others are started. Needs a token of scope `admin`. */
readonly pauseJob: (id: string, options?: CallOptions) => Promise<components['schemas']["Job"]>
/** Resume a job. Needs a token of scope `admin`. */
readonly resumeJob: (id: string, options?: CallOptions) => Promise<components['schemas']["Job"]>
/** Cancel a job: files it has already written stay. Needs a token of scope `admin`. */
readonly cancelJob: (id: string, options?: CallOptions) => Promise<components['schemas']["Job"]>
/** Run SQL over what was delivered; nothing is saved. Needs a token of scope `query` or `admin`. */
readonly runQuery: (body: components['schemas']["RunQuery"], options?: CallOptions) => Promise<components['schemas']["QueryResult"]>
/** Get the quotas of the account and how much of them is used. Needs a token of scope `metrics` or `admin`. */
readonly getQuotas: (options?: CallOptions) => Promise<components['schemas']["QuotaUse"]>
/** List accounts, newest first. Needs the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`. A session of the console of an operator will do. */
readonly listAccounts: (query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
}, options?: CallOptions) => Listing<components['schemas']["Account"], {
readonly items: (components['schemas']["Account"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}>
/** Create an account and its first API key; only this response contains the secret. Needs the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`. A session of the console of an operator will do. */
readonly createAccount: (body: components['schemas']["CreateAccount"], options?: CallOptions) => Promise<components['schemas']["CreatedAccount"]>
/** Get an account. Needs the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`. A session of the console of an operator will do. */
readonly getAccount: (id: string, options?: CallOptions) => Promise<components['schemas']["Account"]>
/** Rename, suspend or resume an account, or change its weight, quotas and buckets. Needs the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`. A session of the console of an operator will do. */
readonly changeAccount: (id: string, body: components['schemas']["ChangeAccount"], options?: CallOptions) => Promise<components['schemas']["Account"]>
/** Get the quotas of an account and how much of them is used. Needs the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`. A session of the console of an operator will do. */
readonly getAccountQuotas: (id: string, options?: CallOptions) => Promise<components['schemas']["QuotaUse"]>
/** Create a link with which somebody joins an account, such as its first owner; only this response contains it. Needs the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`. A session of the console of an operator will do. */
readonly createAccountInvitation: (id: string, body: components['schemas']["Invite"], options?: CallOptions) => Promise<components['schemas']["CreatedInvitation"]>
/** List nodes, their health and what is on their disks. Needs the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`. A session of the console of an operator will do. */
readonly listNodes: (query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
}, options?: CallOptions) => Listing<components['schemas']["Node"], {
readonly items: (components['schemas']["Node"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}>
/** Remove a node: drains no longer wait for it, and control refuses its credential. Needs the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`. A session of the console of an operator will do. */
readonly removeNode: (id: string, query?: {
readonly force?: "true" | "false" | undefined
}, options?: CallOptions) => Promise<components['schemas']["NodeRemoval"]>
/** Name a node. Needs the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`. A session of the console of an operator will do. */
readonly changeNode: (id: string, body: components['schemas']["ChangeNode"], options?: CallOptions) => Promise<components['schemas']["Node"]>
/** List what a node holds of each endpoint, also of deleted and unknown ones. Needs the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`. A session of the console of an operator will do. */
readonly listNodeSegments: (id: string, query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
readonly owner?: components['schemas']["LogOwner"] | undefined
}, options?: CallOptions) => Listing<components['schemas']["NodeLog"], {
readonly items: (components['schemas']["NodeLog"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}>
/** Revoke the credential of a node. Control refuses it at once. The node registers again by itself if it has a join token that is still active, or the join secret (`INLET_NODE_TOKEN`): revoke the token or change the secret first to keep it out. If the node was removed, or its id released, control no longer believes what its machine says is left on its disk. Needs the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`. A session of the console of an operator will do. */
readonly revokeNodeCredential: (id: string, query?: {
readonly release?: "true" | "false" | undefined
readonly force?: "true" | "false" | undefined
}, options?: CallOptions) => Promise<void>
/** List join tokens, newest first, also those that can no longer be used. Needs the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`. A session of the console of an operator will do. */
readonly listJoinTokens: (query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
}, options?: CallOptions) => Listing<components['schemas']["JoinToken"], {
readonly items: (components['schemas']["JoinToken"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}>
/** Create a token with which nodes join; only this response contains it. Needs the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`. A session of the console of an operator will do. */
readonly createJoinToken: (body: components['schemas']["CreateJoinToken"], options?: CallOptions) => Promise<components['schemas']["CreatedJoinToken"]>
/** Revoke a join token; nodes that joined with it stay. Needs the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`. A session of the console of an operator will do. */
readonly revokeJoinToken: (id: string, options?: CallOptions) => Promise<void>
/** List who changed what in the installation, or tried to, newest first. Needs the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`. A session of the console of an operator will do. */
readonly listInstallationAuditEvents: (query?: {
readonly limit?: number | undefined
readonly before?: string | undefined
readonly operation?: string | undefined
readonly result?: "succeeded" | "failed" | undefined
readonly since?: string | undefined
readonly account_id?: string | undefined
}, options?: CallOptions) => Listing<components['schemas']["AuditEvent"], {
readonly items: (components['schemas']["AuditEvent"])[]
readonly next_cursor: string | null
}>
/** List what was acknowledged and not delivered when nodes were removed, of all accounts, newest first. Needs the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`. A session of the console of an operator will do. */
readonly listInstallationLosses: (query?: {
readonly limit?: number | undefined
readonly offset?: number | undefined
readonly state?: "open" | "recovered" | "confirmed" | undefined
readonly endpoint_id?: string | undefined
readonly account_id?: string | undefined
}, options?: CallOptions) => Listing<components['schemas']["Loss"], {
readonly items: (components['schemas']["Loss"])[]
readonly total: number
readonly limit: number
readonly offset: number
readonly next_offset: number | null
}>
/** Accept a loss for its account, such as a suspended one. The audit trail of the account has it, with the actor `operator`. Needs the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`. A session of the console of an operator will do. */
readonly confirmInstallationLoss: (id: string, options?: CallOptions) => Promise<components['schemas']["Loss"]>
}

export const operations = {
exchangeToken: {"method":"POST","path":"/v1/token/exchange","scope":"public","input":"body","isRepeatable":true},
listKeys: {"method":"GET","path":"/v1/keys","scope":"admin","input":"query","isRepeatable":true,"paging":{"items":"items","cursor":{"field":"next_offset","parameter":"offset"},"limitMax":200}},
createKey: {"method":"POST","path":"/v1/keys","scope":"admin","input":"body","isRepeatable":false},
revokeKey: {"method":"POST","path":"/v1/keys/{id}/revoke","scope":"admin","input":"query","isRepeatable":false},
listSecrets: {"method":"GET","path":"/v1/secrets","scope":"admin","input":"query","isRepeatable":true,"paging":{"items":"items","cursor":{"field":"next_offset","parameter":"offset"},"limitMax":200}},
createSecret: {"method":"POST","path":"/v1/secrets","scope":"admin","input":"body","isRepeatable":false},
rotateSecret: {"method":"POST","path":"/v1/secrets/{id}/rotate","scope":"admin","input":"body","isRepeatable":false},
deleteSecret: {"method":"DELETE","path":"/v1/secrets/{id}","scope":"admin","input":"none","isRepeatable":true},
listPeople: {"method":"GET","path":"/v1/people","scope":"metrics","input":"none","isRepeatable":true,"paging":{"items":"items"}},
listAuditEvents: {"method":"GET","path":"/v1/audit-events","scope":"admin","input":"query","isRepeatable":true,"paging":{"items":"items","cursor":{"field":"next_cursor","parameter":"before"},"limitMax":200}},
listDestinations: {"method":"GET","path":"/v1/destinations","scope":"metrics","input":"query","isRepeatable":true,"paging":{"items":"items","cursor":{"field":"next_offset","parameter":"offset"},"limitMax":200}},
createDestination: {"method":"POST","path":"/v1/destinations","scope":"admin","input":"body","isRepeatable":false},
getDestination: {"method":"GET","path":"/v1/destinations/{id}","scope":"metrics","input":"none","isRepeatable":true},
deleteDestination: {"method":"DELETE","path":"/v1/destinations/{id}","scope":"admin","input":"none","isRepeatable":true},
changeDestination: {"method":"PATCH","path":"/v1/destinations/{id}","scope":"admin","input":"body","isRepeatable":true},
validateDestination: {"method":"POST","path":"/v1/destinations/{id}/validate","scope":"admin","input":"none","isRepeatable":false},
getObjectStore: {"method":"GET","path":"/v1/object-store","scope":"metrics","input":"none","isRepeatable":true},
listEndpoints: {"method":"GET","path":"/v1/endpoints","scope":"any","input":"query","isRepeatable":true,"paging":{"items":"items","cursor":{"field":"next_offset","parameter":"offset"},"limitMax":200}},
createEndpoint: {"method":"POST","path":"/v1/endpoints","scope":"admin","input":"body","isRepeatable":false},
listRegions: {"method":"GET","path":"/v1/regions","scope":"any","input":"none","isRepeatable":true},
getEndpoint: {"method":"GET","path":"/v1/endpoints/{id}","scope":"metrics","input":"none","isRepeatable":true},
deleteEndpoint: {"method":"DELETE","path":"/v1/endpoints/{id}","scope":"admin","input":"query","isRepeatable":true},
changeEndpoint: {"method":"PATCH","path":"/v1/endpoints/{id}","scope":"admin","input":"body","isRepeatable":true},
pauseEndpoint: {"method":"POST","path":"/v1/endpoints/{id}/pause","scope":"admin","input":"none","isRepeatable":false},
resumeEndpoint: {"method":"POST","path":"/v1/endpoints/{id}/resume","scope":"admin","input":"none","isRepeatable":false},
listCommits: {"method":"GET","path":"/v1/endpoints/{id}/commits","scope":"metrics","input":"query","isRepeatable":true,"paging":{"items":"items","cursor":{"field":"next_cursor","parameter":"before"},"limitMax":200}},
listCommitFiles: {"method":"GET","path":"/v1/endpoints/{id}/commits/{commit_id}/files","scope":"query","input":"none","isRepeatable":true},
sendTestEvent: {"method":"POST","path":"/v1/endpoints/{id}/test-events","scope":"admin","input":"body","isRepeatable":false},
listRecords: {"method":"GET","path":"/v1/endpoints/{id}/records","scope":"query","input":"query","isRepeatable":true,"paging":{"items":"items"}},
listDlqRecords: {"method":"GET","path":"/v1/views/{id}/dlq-records","scope":"query","input":"query","isRepeatable":true,"paging":{"items":"items"}},
listDlqReasons: {"method":"GET","path":"/v1/views/{id}/dlq-reasons","scope":"query","input":"query","isRepeatable":true,"paging":{"items":"items"}},
getEndpointSeries: {"method":"GET","path":"/v1/endpoints/{id}/series","scope":"metrics","input":"query","isRepeatable":true},
listViews: {"method":"GET","path":"/v1/views","scope":"any","input":"query","isRepeatable":true,"paging":{"items":"items","cursor":{"field":"next_offset","parameter":"offset"},"limitMax":200}},
createView: {"method":"POST","path":"/v1/views","scope":"admin","input":"body","isRepeatable":false},
listViewMetrics: {"method":"GET","path":"/v1/view-metrics","scope":"metrics","input":"query","isRepeatable":true,"paging":{"items":"items","cursor":{"field":"next_offset","parameter":"offset"},"limitMax":200}},
getView: {"method":"GET","path":"/v1/views/{id}","scope":"metrics","input":"none","isRepeatable":true},
deleteView: {"method":"DELETE","path":"/v1/views/{id}","scope":"admin","input":"none","isRepeatable":true},
changeView: {"method":"PATCH","path":"/v1/views/{id}","scope":"admin","input":"body","isRepeatable":true},
createViewVersion: {"method":"POST","path":"/v1/views/{id}/versions","scope":"admin","input":"body","isRepeatable":false},
archiveView: {"method":"POST","path":"/v1/views/{id}/archive","scope":"admin","input":"none","isRepeatable":false},
listDlqFiles: {"method":"GET","path":"/v1/views/{id}/dlq-files","scope":"metrics","input":"query","isRepeatable":true,"paging":{"items":"files","cursor":{"field":"next_cursor","parameter":"cursor"},"limitMax":200}},
getViewMetrics: {"method":"GET","path":"/v1/views/{id}/metrics","scope":"metrics","input":"query","isRepeatable":true},
getViewSeries: {"method":"GET","path":"/v1/views/{id}/series","scope":"metrics","input":"query","isRepeatable":true},
publishView: {"method":"POST","path":"/v1/views/{id}/publish","scope":"admin","input":"none","isRepeatable":false},
previewView: {"method":"POST","path":"/v1/views/preview","scope":"any","input":"body","isRepeatable":true},
suggestView: {"method":"POST","path":"/v1/views/suggest","scope":"any","input":"body","isRepeatable":true},
compareView: {"method":"POST","path":"/v1/views/{id}/compare","scope":"query","input":"body","isRepeatable":true},
listBindings: {"method":"GET","path":"/v1/endpoints/{endpoint_id}/views","scope":"any","input":"query","isRepeatable":true,"paging":{"items":"items","cursor":{"field":"next_offset","parameter":"offset"},"limitMax":200}},
attachView: {"method":"POST","path":"/v1/endpoints/{endpoint_id}/views","scope":"admin","input":"body","isRepeatable":false},
detachView: {"method":"DELETE","path":"/v1/endpoints/{endpoint_id}/views/{binding_id}","scope":"admin","input":"none","isRepeatable":true},
listShadows: {"method":"GET","path":"/v1/endpoints/{endpoint_id}/shadows","scope":"any","input":"none","isRepeatable":true,"paging":{"items":"items"}},
startShadow: {"method":"POST","path":"/v1/endpoints/{endpoint_id}/shadows","scope":"admin","input":"body","isRepeatable":false},
endShadow: {"method":"DELETE","path":"/v1/endpoints/{endpoint_id}/shadows/{shadow_id}","scope":"admin","input":"none","isRepeatable":true},
getReceipt: {"method":"GET","path":"/v1/endpoints/{id}/receipts/{receipt_id}","scope":"metrics","input":"none","isRepeatable":true},
listLosses: {"method":"GET","path":"/v1/losses","scope":"metrics","input":"query","isRepeatable":true,"paging":{"items":"items","cursor":{"field":"next_offset","parameter":"offset"},"limitMax":200}},
confirmLoss: {"method":"POST","path":"/v1/losses/{id}/confirm","scope":"admin","input":"none","isRepeatable":false},
backfillView: {"method":"POST","path":"/v1/views/{id}/backfill","scope":"admin","input":"body","isRepeatable":false},
redriveView: {"method":"POST","path":"/v1/views/{id}/redrive","scope":"admin","input":"body","isRepeatable":false},
compactEndpoint: {"method":"POST","path":"/v1/endpoints/{id}/compact","scope":"admin","input":"body","isRepeatable":false},
listJobs: {"method":"GET","path":"/v1/jobs","scope":"metrics","input":"query","isRepeatable":true,"paging":{"items":"items","cursor":{"field":"next_offset","parameter":"offset"},"limitMax":200}},
getJob: {"method":"GET","path":"/v1/jobs/{id}","scope":"metrics","input":"none","isRepeatable":true},
pauseJob: {"method":"POST","path":"/v1/jobs/{id}/pause","scope":"admin","input":"none","isRepeatable":false},
resumeJob: {"method":"POST","path":"/v1/jobs/{id}/resume","scope":"admin","input":"none","isRepeatable":false},
cancelJob: {"method":"POST","path":"/v1/jobs/{id}/cancel","scope":"admin","input":"none","isRepeatable":false},
runQuery: {"method":"POST","path":"/v1/query","scope":"query","input":"body","isRepeatable":true},
getQuotas: {"method":"GET","path":"/v1/quotas","scope":"metrics","input":"none","isRepeatable":true},
listAccounts: {"method":"GET","path":"/v1/accounts","scope":"operator","input":"query","isRepeatable":true,"paging":{"items":"items","cursor":{"field":"next_offset","parameter":"offset"},"limitMax":200}},
createAccount: {"method":"POST","path":"/v1/accounts","scope":"operator","input":"body","isRepeatable":false},
getAccount: {"method":"GET","path":"/v1/accounts/{id}","scope":"operator","input":"none","isRepeatable":true},
changeAccount: {"method":"PATCH","path":"/v1/accounts/{id}","scope":"operator","input":"body","isRepeatable":true},
getAccountQuotas: {"method":"GET","path":"/v1/accounts/{id}/quotas","scope":"operator","input":"none","isRepeatable":true},
createAccountInvitation: {"method":"POST","path":"/v1/accounts/{id}/invitations","scope":"operator","input":"body","isRepeatable":false},
listNodes: {"method":"GET","path":"/v1/nodes","scope":"operator","input":"query","isRepeatable":true,"paging":{"items":"items","cursor":{"field":"next_offset","parameter":"offset"},"limitMax":200}},
removeNode: {"method":"DELETE","path":"/v1/nodes/{id}","scope":"operator","input":"query","isRepeatable":true},
changeNode: {"method":"PATCH","path":"/v1/nodes/{id}","scope":"operator","input":"body","isRepeatable":true},
listNodeSegments: {"method":"GET","path":"/v1/nodes/{id}/segments","scope":"operator","input":"query","isRepeatable":true,"paging":{"items":"items","cursor":{"field":"next_offset","parameter":"offset"},"limitMax":200}},
revokeNodeCredential: {"method":"DELETE","path":"/v1/nodes/{id}/credential","scope":"operator","input":"query","isRepeatable":true},
listJoinTokens: {"method":"GET","path":"/v1/join-tokens","scope":"operator","input":"query","isRepeatable":true,"paging":{"items":"items","cursor":{"field":"next_offset","parameter":"offset"},"limitMax":200}},
createJoinToken: {"method":"POST","path":"/v1/join-tokens","scope":"operator","input":"body","isRepeatable":false},
revokeJoinToken: {"method":"DELETE","path":"/v1/join-tokens/{id}","scope":"operator","input":"none","isRepeatable":true},
listInstallationAuditEvents: {"method":"GET","path":"/v1/installation/audit-events","scope":"operator","input":"query","isRepeatable":true,"paging":{"items":"items","cursor":{"field":"next_cursor","parameter":"before"},"limitMax":200}},
listInstallationLosses: {"method":"GET","path":"/v1/installation/losses","scope":"operator","input":"query","isRepeatable":true,"paging":{"items":"items","cursor":{"field":"next_offset","parameter":"offset"},"limitMax":200}},
confirmInstallationLoss: {"method":"POST","path":"/v1/installation/losses/{id}/confirm","scope":"operator","input":"none","isRepeatable":false},
} as const satisfies Record<keyof Operations, Operation>
