/**
 * Caches serialized sections of snapshots. section-builder.ts makes them.
 *
 * Law: a section is built once per region, name and version, and all nodes share its bytes.
 */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { effectiveQuotas } from '#model/quota.ts'
import { type Section, sectionKindOf } from '#model/snapshot-sections.ts'
import type { Db } from '#store/store.ts'
import { controlLimits } from '../limits.ts'
import { effectiveSettings } from '../resources/effective-settings.ts'
import { buildSections, type SectionOptions } from './section-builder.ts'

type Versions = ReadonlyMap<string, string>
type Lines = ReadonlyMap<string, Buffer>

export class SectionCache {
  readonly #options: SectionOptions
  readonly #lines = new LRUCache<string, Buffer>({
    maxSize: controlLimits.sectionCacheBytes,
    sizeCalculation: (line) => line.byteLength,
  })
  /** Hash of the other inputs of sections: settings of this process, and what this release has by default and sends. */
  readonly #settingsHash: string

  constructor(options: SectionOptions) {
    this.#options = options
    const { issuer, baseDomain, certificateName } = options
    const defaults = effectiveSettings({
      segment_bytes: null,
      segment_max_age_seconds: null,
      output_formats: null,
      mqtt_config: null,
      kept_headers: null,
      kept_fields: null,
      copies: null,
    })
    this.#settingsHash = createHash('sha256')
      .update(
        JSON.stringify({
          ...{ issuer, baseDomain, certificate: certificateName?.('') ?? null, defaults, quotas: effectiveQuotas({}) },
          ...{ sendsSecrets: true },
        }),
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
      for (const content of await buildSections(db, region, { kind, names: wanted }, this.#options)) {
        const { name } = content
        const section: Section = { ...content, version: this.version(region, versions.get(name) ?? '') }
        const line = Buffer.from(`${JSON.stringify(section)}\n`)
        this.#lines.set(keyOf(region, name, versions), line)
        lines.set(name, line)
      }
    }
    return lines
  }
}

function keyOf(region: string, name: string, versions: Versions): string {
  return `${region} ${name} ${versions.get(name) ?? ''}`
}
