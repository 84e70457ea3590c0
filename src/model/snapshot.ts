import { z } from 'zod'
import { Scope } from './api-key.ts'
import { Definition } from './definition.ts'
import { DestinationTarget } from './destination.ts'
import { DesiredState, MqttConfig, OutputFormat } from './endpoint.ts'
import { Id } from './id.ts'
import { Timestamp } from './timestamp.ts'

/** A view version as attached to an endpoint. */
export const BoundView = z.object({
  binding_id: Id,
  view_id: Id,
  name: z.string(),
  version: z.int(),
  definition: Definition,
  is_required: z.boolean(),
  canary_start_ts: Timestamp.nullable(),
})
export type BoundView = z.infer<typeof BoundView>

export const SnapshotEndpoint = z.object({
  id: Id,
  account_id: Id,
  /** `<label>.<region>.<base domain>`, or where the endpoint is reached when hosts can't be used. */
  ingest_host: z.string(),
  desired_state: DesiredState,
  segment_bytes: z.int(),
  segment_max_age_seconds: z.int(),
  output_formats: z.array(OutputFormat),
  mqtt_config: MqttConfig.nullable(),
  destination: DestinationTarget.nullable(),
  views: z.array(BoundView),
  /** The highest seq that control has a commit for from this node; -1 for none. */
  committed_seq: z.int().min(-1),
})
export type SnapshotEndpoint = z.infer<typeof SnapshotEndpoint>

export const SnapshotKey = z.object({
  id: Id,
  account_id: Id,
  /** SHA-256 of the key, lowercase hex. */
  hash: z.string(),
  scopes: z.array(Scope),
})
export type SnapshotKey = z.infer<typeof SnapshotKey>

/** All a node knows at an epoch: everything it needs to take in and deliver while control is down. */
export const Snapshot = z.object({
  epoch: z.int().min(0),
  region: z.string(),
  /** Every key that is not revoked. */
  keys: z.array(SnapshotKey),
  /** Keys revoked so lately that a token of theirs could still be alive. */
  revoked_keys: z.array(z.object({ id: Id, revoked_at: Timestamp })),
  /** The public keys that sign access tokens. */
  jwks: z.object({ keys: z.array(z.record(z.string(), z.unknown())) }),
  /** `iss` and `aud` that a token must carry. */
  token_issuer: z.string(),
  endpoints: z.array(SnapshotEndpoint),
})
export type Snapshot = z.infer<typeof Snapshot>
