import type { z } from 'zod'
import type { publicKeys } from '#auth/access-tokens.ts'
import type { Clock } from '#lib/clock.ts'
import type { Keyring } from '#lib/keyring.ts'
import { segmentLimits, tokenLimits } from '#model/limits.ts'
import type { EndpointSection, Section, SectionKind } from '#model/snapshot-sections.ts'
import { findFingerprint } from '#store/naming/certificates.ts'
import { listRegionEndpoints, listRegionKeys, listRegionViews, type RegionEndpoint } from '#store/nodes/section-content.ts'
import type { Db } from '#store/store.ts'
import { effectiveSettings } from '../resources/effective-settings.ts'

export type SectionOptions = {
  readonly readPublicKeys: (db: Db) => Promise<ReturnType<typeof publicKeys>>
  /** Opens the secrets that views need. */
  readonly keyring: Keyring
  readonly clock: Clock
  /** `iss` and `aud` of access tokens. */
  readonly issuer: string
  readonly baseDomain: string | null
  /** The name of the certificate for a region; undefined if control issues none. */
  readonly certificateName?: ((region: string) => string) | undefined
}

type WithoutVersion<T> = T extends Section ? Omit<T, 'version'> : never
type Content = WithoutVersion<Section>

/** Reads the sections of one kind that have these names. */
export async function buildSections(
  db: Db,
  region: string,
  { kind, names }: { readonly kind: SectionKind; readonly names: readonly string[] },
  options: SectionOptions,
): Promise<readonly Content[]> {
  const { readPublicKeys, clock, issuer: token_issuer, baseDomain: base_domain, certificateName } = options
  const shards = names.map((name) => name.slice(kind.length + 1))
  switch (kind) {
    case 'installation':
      return [
        {
          ...{ kind, name: kind, token_issuer, base_domain },
          jwks: await readPublicKeys(db),
          certificate: certificateName === undefined ? null : await findFingerprint(db, certificateName(region)),
        },
      ]
    case 'keys': {
      const found = await listRegionKeys(db, region, shards, clock.now() - tokenLimits.revokedKeysKeptSeconds * 1000)
      return [...found].map(([shard, { keys, revoked_keys }]) => ({
        ...{ kind, name: `${kind}/${shard}` },
        keys: [...keys],
        revoked_keys: revoked_keys.map(({ id }) => id),
        expiring_keys: revoked_keys.flatMap(({ id, tokens_until, name }) =>
          tokens_until === null ? [] : [{ id, tokens_until, name }],
        ),
      }))
    }
    case 'endpoints': {
      const found = await listRegionEndpoints(db, region, shards)
      return [...found].map(([shard, some]) => ({ kind, name: `${kind}/${shard}`, endpoints: some.map(toSection) }))
    }
    case 'views': {
      const found = await listRegionViews(db, region, shards, options.keyring)
      return [...found].map(([shard, views]) => ({ kind, name: `${kind}/${shard}`, views: [...views] }))
    }
  }
}

function toSection(endpoint: RegionEndpoint): z.infer<typeof EndpointSection> {
  const {
    id,
    account_id,
    account_suspended,
    account_weight,
    account_quotas,
    label,
    desired_state,
    destination,
    bindings,
    shadows,
  } = endpoint
  return {
    ...{ id, account_id, account_suspended, account_weight, account_quotas, label, desired_state },
    ...effectiveSettings(endpoint),
    // Seals open segments of a draining endpoint as soon as possible.
    ...(desired_state === 'draining' ? { segment_max_age_seconds: segmentLimits.maxAgeSecondsMin } : {}),
    destination,
    bindings: [...bindings],
    shadows: [...shadows],
  }
}
