/** The configuration of a node, as its processes use it. Merged from sections (`snapshot-sections.ts`). */
import type { z } from 'zod'
import type { RevokedKey } from './api-key.ts'
import type { DatabasePosition } from './database-position.ts'
import type { Definition } from './definition.ts'
import type { SecretValues } from './secret.ts'
import type { BindingSection, EndpointSection, KeySection } from './snapshot-sections.ts'

/** A view version as attached to an endpoint. */
export type BoundView = z.infer<typeof BindingSection> & {
  readonly name: string
  readonly version: number
  readonly definition: Definition
  /** Secrets that the definition names, as far as the account has them. */
  readonly secrets?: SecretValues | undefined
}

export type SnapshotEndpoint = Omit<z.infer<typeof EndpointSection>, 'label' | 'bindings' | 'kept_fields' | 'shadows'> & {
  /** Facts about the sender that are kept with each record. */
  kept_fields: string[]
  /** `<label>.<region>.<base domain>`; null if endpoints have no hosts of their own. */
  ingest_host: string | null
  /** Oldest binding first, also detached ones that segments on nodes may need. Empty in a process that does not fetch views. */
  views: BoundView[]
  /** Definitions that run to be counted. They write nothing. */
  shadows?: BoundView[]
  /** The highest seq of this node with a commit, as of the start of the process; -1 for none. */
  committed_seq: number
}

export type SnapshotKey = z.infer<typeof KeySection>

export type Snapshot = {
  /** Every change of the node's region up to this epoch is included. */
  epoch: number
  region: string
  /** Missing from control of an earlier release. */
  position?: DatabasePosition | undefined
  /** The active keys of accounts with an endpoint in the region. The same array while no key changes. */
  keys: SnapshotKey[]
  /** Keys revoked so recently that a token issued for them could still be valid. */
  revoked_keys: RevokedKey[]
  /** The public keys that sign access tokens. */
  jwks: { keys: Record<string, unknown>[] }
  /** `iss` and `aud` that a token must have: the base URL of control. */
  token_issuer: string
  /** Fingerprint of the newest certificate for the region; null if control issues none, or has none yet. */
  certificate: string | null
  /** The same array while no endpoint changes. */
  endpoints: SnapshotEndpoint[]
}
