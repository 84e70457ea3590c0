/**
 * The parts of a snapshot as control sends them: one JSON document per line, and the line `end` last.
 *
 * Law: a section's content is a function of its region, name and version. Versions are opaque: they are compared for equality only.
 */
import { z } from 'zod'
import { Scope } from './api-key.ts'
import { DatabasePosition } from './database-position.ts'
import { SentView } from './definition.ts'
import { DestinationTarget } from './destination.ts'
import { DesiredState, MqttConfig, OutputFormat } from './endpoint.ts'
import { Id } from './id.ts'
import { weightLimits } from './limits.ts'
import { NodeQuotas } from './quota.ts'
import { Timestamp } from './timestamp.ts'

/**
 * `installation` is a single section. The others are split by the last two hex digits of the ids in them (`keys/3f`), so that one
 * change costs a 256th of its kind.
 */
export const SectionKind = z.enum(['installation', 'keys', 'endpoints', 'views'])
export type SectionKind = z.infer<typeof SectionKind>

export const sectionNameCharsMax = 16
export const sectionVersionCharsMax = 64

export function sectionKindOf(name: string): SectionKind | undefined {
  const [kind] = name.split('/', 1)
  return SectionKind.options.find((known) => known === kind)
}

/** A binding that is active, or that a segment on a node may still need: it applies to segments that were sealed in its time. */
export const BindingSection = z.object({
  binding_id: Id,
  view_id: Id,
  is_required: z.boolean(),
  activated_at: Timestamp,
  deactivated_at: Timestamp.nullable(),
  canary_start_ts: Timestamp.nullable(),
})

/** A definition that nodes run to count its outcome. It has its definition with it: a draft may change, or go. */
export const ShadowSection = SentView.extend({ shadow_id: Id, activated_at: Timestamp })

export const EndpointSection = z.object({
  id: Id,
  account_id: Id,
  /** The node refuses data for it, whatever its desired state, and delivers what it has. */
  account_suspended: z.boolean(),
  account_weight: z.int().min(weightLimits.min),
  account_quotas: NodeQuotas,
  label: z.string(),
  desired_state: DesiredState,
  segment_bytes: z.int(),
  segment_max_age_seconds: z.int(),
  output_formats: z.array(OutputFormat),
  mqtt_config: MqttConfig.nullable(),
  /** Lower-case names. */
  kept_headers: z.array(z.string()).default([]),
  /** Nodes ignore names that they do not know. Missing in what a process of the release before stored. */
  kept_fields: z.array(z.string()).optional(),
  /** Missing in what a process of the release before stored. */
  copies: z.int().min(1).max(2).default(1),
  destination: DestinationTarget.nullable(),
  bindings: z.array(BindingSection),
  /** Nodes of the release before do not know them, and write nothing for them. Missing in what a process of that release stored. */
  shadows: z.array(ShadowSection).optional(),
})

export const KeySection = z.object({
  id: Id,
  account_id: Id,
  /** SHA-256 of the key, lowercase hex. */
  hash: z.string(),
  scopes: z.array(Scope),
  /** The only endpoints that the key is for; null for all of the account. */
  endpoint_ids: z.array(Id).nullable(),
  /** The only origins that a public key may send from; null for other keys. */
  origins: z.array(z.string()).nullable().default(null),
  /** Missing in what a process of the release before stored. */
  name: z.string().optional(),
})

/** A revoked key whose tokens live until they expire, and at most until `tokens_until`. */
export const ExpiringKey = z.object({ id: Id, tokens_until: Timestamp, name: z.string().optional() })

const named = { name: z.string().max(sectionNameCharsMax), version: z.string().max(sectionVersionCharsMax) }

export const Section = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('installation'),
    ...named,
    /** `iss` and `aud` of access tokens: the base URL of control, which links in problems begin with. */
    token_issuer: z.string(),
    jwks: z.object({ keys: z.array(z.record(z.string(), z.unknown())) }),
    base_domain: z.string().nullable(),
    /** Fingerprint of the newest certificate for the region. Nodes fetch it on their own. */
    certificate: z.string().nullable(),
  }),
  z.object({
    kind: z.literal('keys'),
    ...named,
    keys: z.array(KeySection),
    /** All keys revoked lately. Nodes of a release that does not know `expiring_keys` end the access of all of them. */
    revoked_keys: z.array(Id),
    /** Revoked keys whose tokens and connections end by themselves. */
    expiring_keys: z.array(ExpiringKey).default([]),
  }),
  z.object({ kind: z.literal('endpoints'), ...named, endpoints: z.array(EndpointSection) }),
  z.object({ kind: z.literal('views'), ...named, views: z.array(SentView) }),
])
export type Section = z.infer<typeof Section>

/** The last line of a response. Without it the response was cut off. */
export const SectionsEnd = z.object({
  kind: z.literal('end'),
  epoch: z.int().min(0),
  region: z.string(),
  /** Sections that the node named and that no longer exist. */
  removed: z.array(z.string()),
  /** Missing from control of an earlier release. */
  position: DatabasePosition.optional(),
  /** Only in the stored copy: the process refused the configuration of another position since then. */
  refusing: z.literal(true).optional(),
})
export type SectionsEnd = z.infer<typeof SectionsEnd>

export const SnapshotRequest = z
  .strictObject({
    node_id: Id,
    /** The epoch that the process uses, or -1 for none. With -1 control responds at once, even if nothing changed. */
    epoch: z.int().min(-1),
    kinds: z.array(SectionKind).min(1),
    /** The versions that the process has, by section name. */
    have: z.record(z.string().max(sectionNameCharsMax), z.string().max(sectionVersionCharsMax)).optional(),
    /** Instead of them: their digest as of `section-digest.ts`. Control rejects one that it does not know with 409. */
    digest: z.string().max(sectionVersionCharsMax).optional(),
    wait_ms: z.int().min(0).max(60_000),
    /** Position that the process has, if control reported one. Control sends no section to a process that would refuse it. */
    position: DatabasePosition.optional(),
    refusing: z.literal(true).optional(),
  })
  .refine(({ have, digest }) => (have === undefined) !== (digest === undefined), 'must have either the versions or their digest')
export type SnapshotRequest = z.infer<typeof SnapshotRequest>

/** Asks whether a process has the newest sections of these kinds. */
export const SnapshotCheck = z.strictObject({
  node_id: Id,
  kinds: z.array(SectionKind).min(1),
  /** As of `section-digest.ts`. */
  digest: z.string().max(sectionVersionCharsMax),
})
export type SnapshotCheck = z.infer<typeof SnapshotCheck>

/** Whether it had every change that was made before the question. */
export const SnapshotChecked = z.object({ is_current: z.boolean() })
export type SnapshotChecked = z.infer<typeof SnapshotChecked>

/** The highest committed seq of each endpoint on one node. */
export const CommittedSeqs = z.object({ seqs: z.record(Id, z.int().min(0)) })
export type CommittedSeqs = z.infer<typeof CommittedSeqs>
