/**
 * Caches serialized sections of snapshots.
 *
 * Law: a section is built once per region, name and version, and all nodes share its bytes.
 */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { z } from 'zod'
import type { publicKeys } from '#auth/access-tokens.ts'
import type { Clock } from '#lib/clock.ts'
import { segmentLimits, tokenLimits } from '#model/limits.ts'
import { effectiveQuotas } from '#model/quota.ts'
import { type EndpointSection, type Section, type SectionKind, sectionKindOf } from '#model/snapshot-sections.ts'
import { findFingerprint } from '#store/naming/certificates.ts'
import { listRegionEndpoints, listRegionKeys, listRegionViews, type RegionEndpoint } from '#store/nodes/snapshot-sections.ts'
import type { Db } from '#store/store.ts'
import { controlLimits } from '../limits.ts'
import { effectiveSettings } from '../resources/effective-settings.ts'

export type SectionCacheOptions = {
  readonly readPublicKeys: (db: Db) => Promise<ReturnType<typeof publicKeys>>
  readonly clock: Clock
  /** `iss` and `aud` of access tokens. */
  readonly issuer: string
  readonly baseDomain: string | null
  /** The name of the certificate for a region; undefined if control issues none. */
  readonly certificateName?: ((region: string) => string) | undefined
}

type Versions = ReadonlyMap<string, string>
type Lines = ReadonlyMap<string, Buffer>

export class SectionCache {
  readonly #options: SectionCacheOptions
  readonly #lines = new LRUCache<string, Buffer>({
    maxSize: controlLimits.sectionCacheBytes,
    sizeCalculation: (line) => line.byteLength,
  })
  /** Hash of the other inputs of sections: settings of this process and defaults of this release. */
  readonly #settingsHash: string

  constructor(options: SectionCacheOptions) {
    this.#options = options
    const { issuer, baseDomain, certificateName } = options
    const defaults = effectiveSettings({
      segment_bytes: null,
      segment_max_age_seconds: null,
      output_formats: null,
      mqtt_config: null,
      kept_headers: null,
    })
    this.#settingsHash = createHash('sha256')
      .update(
        JSON.stringify({ issuer, baseDomain, certificate: certificateName?.('') ?? null, defaults, quotas: effectiveQuotas({}) }),
      )
      .digest('base64url')
      .slice(0, 6)
  }

  /** Returns the version to send to nodes of a region: one change may give several regions' sections the same version in the database. */
  version(region: string, stored: string): string {
    return `${stored}.${region}.${this.#settingsHash}`
  }

  /** Returns the lines of all the named sections, or undefined if one has to be built. */
  find(region: string, versions: Versions, names: readonly string[]): Lines | undefined {
    const lines = new Map<string, Buffer>()
    for (const name of names) {
      const line = this.#lines.get(keyOf(region, name, versions))
      if (line === undefined) return undefined
      lines.set(name, line)
    }
    return lines
  }

  /** Returns the lines of the named sections, building missing ones. `db` and `versions` must be from one transaction. */
  async build(db: Db, region: string, versions: Versions, names: readonly string[]): Promise<Lines> {
    const known = names.flatMap((name) => {
      const line = this.#lines.get(keyOf(region, name, versions))
      return line === undefined ? [] : [[name, line] as const]
    })
    const lines = new Map(known)
    const missing = Map.groupBy(
      names.filter((name) => !lines.has(name)),
      (name) => sectionKindOf(name),
    )
    for (const [kind, wanted] of missing) {
      if (kind === undefined) continue
      for (const content of await this.#read(db, region, kind, wanted)) {
        const { name } = content
        const section: Section = { ...content, version: this.version(region, versions.get(name) ?? '') }
        const line = Buffer.from(`${JSON.stringify(section)}\n`)
        this.#lines.set(keyOf(region, name, versions), line)
        lines.set(name, line)
      }
    }
    return lines
  }

  async #read(db: Db, region: string, kind: SectionKind, names: readonly string[]): Promise<readonly Content[]> {
    const { readPublicKeys, clock, issuer: token_issuer, baseDomain: base_domain, certificateName } = this.#options
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
          expiring_keys: revoked_keys.flatMap(({ id, tokens_until }) => (tokens_until === null ? [] : [{ id, tokens_until }])),
        }))
      }
      case 'endpoints': {
        const found = await listRegionEndpoints(db, region, shards)
        return [...found].map(([shard, some]) => ({ kind, name: `${kind}/${shard}`, endpoints: some.map(toSection) }))
      }
      case 'views': {
        const found = await listRegionViews(db, region, shards)
        return [...found].map(([shard, views]) => ({ kind, name: `${kind}/${shard}`, views: [...views] }))
      }
    }
  }
}

type WithoutVersion<T> = T extends Section ? Omit<T, 'version'> : never
type Content = WithoutVersion<Section>

function keyOf(region: string, name: string, versions: Versions): string {
  return `${region} ${name} ${versions.get(name) ?? ''}`
}

function toSection(endpoint: RegionEndpoint): z.infer<typeof EndpointSection> {
  const { id, account_id, account_suspended, account_weight, account_quotas, label, desired_state, destination, bindings } =
    endpoint
  return {
    ...{ id, account_id, account_suspended, account_weight, account_quotas, label, desired_state },
    ...effectiveSettings(endpoint),
    // Seals open segments of a draining endpoint as soon as possible.
    ...(desired_state === 'draining' ? { segment_max_age_seconds: segmentLimits.maxAgeSecondsMin } : {}),
    destination,
    bindings: [...bindings],
  }
}
