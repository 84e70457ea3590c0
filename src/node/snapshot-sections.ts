/**
 * Merges the sections of a process into one snapshot.
 *
 * Owns: parsing updates, merging sections, resolving views. Does not own: fetching and storing updates.
 * Law: an update is applied completely or not at all. An endpoint is published only with the definition of each view bound to it.
 */
import type { z } from 'zod'
import type { RevokedKey } from '#model/api-key.ts'
import { type DatabasePosition, findRollback } from '#model/database-position.ts'
import { type Definition, fromSentView, isSentComplete } from '#model/definition.ts'
import type { SecretValues } from '#model/secret.ts'
import { digestSections } from '#model/section-digest.ts'
import type { BoundView, Snapshot, SnapshotEndpoint } from '#model/snapshot.ts'
import { type CommittedSeqs, Section, type SectionKind, SectionsEnd, type ShadowSection } from '#model/snapshot-sections.ts'

/** One response of control: new sections, or new versions of existing ones. */
export type SnapshotUpdate = { readonly sections: readonly Section[]; readonly end: SectionsEnd }

type Sections = ReadonlyMap<string, Section>
type BoundDefinition = {
  readonly name: string
  readonly version: number
  readonly definition: Definition
  readonly secrets?: SecretValues | undefined
}

export class SnapshotSections {
  readonly #hasViews: boolean
  #sections: Sections = new Map()
  #committed: Readonly<CommittedSeqs['seqs']> = {}
  /** True if nothing of the current snapshot can be reused. */
  #isStale = false
  #current: Snapshot | undefined
  #isRefusing = false

  constructor(kinds: readonly SectionKind[]) {
    this.#hasViews = kinds.includes('views')
  }

  get current(): Snapshot | undefined {
    return this.#current
  }

  /** The position of the configuration that is kept because another one was refused. */
  get kept(): DatabasePosition | undefined {
    return this.#isRefusing ? this.#current?.position : undefined
  }

  /** Returns why the update must not be applied, or undefined if it may. */
  findRollback({ end }: SnapshotUpdate): string | undefined {
    const position = this.#current?.position
    return position && end.position && findRollback({ position, isRefusing: this.#isRefusing }, end.position)
  }

  /** Returns the update that stores the refusal. */
  refuse(): SnapshotUpdate | undefined {
    this.#isRefusing = true
    const all = this.all()
    return all && { sections: [], end: all.end }
  }

  /** The epoch to send to control, which responds with later changes. -1 requests a response at once, even if nothing changed. */
  get knownEpoch(): number {
    return this.#isStale ? -1 : (this.#current?.epoch ?? -1)
  }

  /** Returns the version of each section by name, to send to control. */
  versions(): Record<string, string> {
    return Object.fromEntries([...this.#sections.values()].map(({ name, version }) => [name, version]))
  }

  /** Identifies the sections with their versions. */
  get digest(): string {
    return digestSections(this.#sections.values())
  }

  /** Throws, and changes nothing, if the update is inconsistent with the current sections. */
  apply({ sections, end }: SnapshotUpdate): Snapshot {
    const merged = new Map(this.#sections)
    for (const name of end.removed) merged.delete(name)
    for (const section of sections) merged.set(section.name, section)
    const current = this.#resolve(merged, end, new Set([...end.removed, ...sections.map(({ name }) => name)]))
    this.#sections = merged
    this.#isStale = false
    this.#current = current
    this.#isRefusing = end.refusing === true
    return current
  }

  /** Drops the sections, so that control sends all of them again. The current snapshot stays in use. */
  forget(): void {
    this.#sections = new Map()
    this.#isStale = true
  }

  /** Takes effect with the next update. */
  setCommitted({ seqs }: CommittedSeqs): void {
    this.#committed = seqs
    this.#isStale = true
  }

  /** Returns all sections as one update. */
  all(): SnapshotUpdate | undefined {
    if (this.#current === undefined) return undefined
    const { epoch, region, position } = this.#current
    const kept = { ...(position && { position }), ...(this.#isRefusing && { refusing: true as const }) }
    return { sections: [...this.#sections.values()], end: { kind: 'end', epoch, region, removed: [], ...kept } }
  }

  #resolve(sections: Sections, { epoch, region, position }: SectionsEnd, changed: ReadonlySet<string>): Snapshot {
    const before = this.#current
    const isSame = (...kinds: readonly string[]) =>
      !this.#isStale && before?.region === region && !changed.values().some((name) => kinds.some((kind) => name.startsWith(kind)))
    const installation = ofKind(sections, 'installation')[0]
    const keys = ofKind(sections, 'keys')
    return {
      epoch,
      region,
      ...(position && { position }),
      keys: before !== undefined && isSame('keys') ? before.keys : keys.flatMap((section) => section.keys),
      revoked_keys: keys.flatMap(revokedKeysOf),
      jwks: installation?.jwks ?? { keys: [] },
      token_issuer: installation?.token_issuer ?? '',
      certificate: installation?.certificate ?? null,
      endpoints:
        before !== undefined && isSame('installation', 'endpoints', 'views')
          ? before.endpoints
          : this.#endpoints(sections, region, installation?.base_domain ?? null),
    }
  }

  #endpoints(sections: Sections, region: string, baseDomain: string | null): SnapshotEndpoint[] {
    const views = new Map(
      ofKind(sections, 'views').flatMap((section) =>
        section.views.map(fromSentView).map(({ id, ...view }) => [id, view] as const),
      ),
    )
    return ofKind(sections, 'endpoints').flatMap(({ endpoints }) =>
      endpoints.map(({ label, bindings, shadows = [], kept_fields = [], ...endpoint }) => ({
        ...endpoint,
        kept_fields,
        ingest_host: baseDomain === null ? null : `${label}.${region}.${baseDomain}`,
        views: this.#hasViews ? bindings.map((binding) => bind(binding, views)) : [],
        ...(this.#hasViews && shadows.length > 0 ? { shadows: shadows.map(toBoundView) } : {}),
        committed_seq: this.#committed[endpoint.id] ?? -1,
      })),
    )
  }
}

function revokedKeysOf({ revoked_keys, expiring_keys }: Extract<Section, { kind: 'keys' }>): RevokedKey[] {
  const expiring = new Map(expiring_keys.map((key) => [key.id, key]))
  return revoked_keys.map((id) => expiring.get(id) ?? { id, tokens_until: null })
}

function bind(binding: Omit<BoundView, keyof BoundDefinition>, views: ReadonlyMap<string, BoundDefinition>): BoundView {
  const view = views.get(binding.view_id)
  if (view === undefined) throw new Error(`the snapshot lacks the definition of view ${binding.view_id}`)
  return { ...binding, ...view }
}

function toBoundView({ shadow_id: binding_id, activated_at, ...sent }: z.infer<typeof ShadowSection>): BoundView {
  const { id: view_id, ...view } = fromSentView(sent)
  return { binding_id, view_id, ...view, is_required: false, activated_at, deactivated_at: null, canary_start_ts: null }
}

function ofKind<Kind extends Section['kind']>(sections: Sections, kind: Kind): Extract<Section, { kind: Kind }>[] {
  return [...sections.values()].filter((section): section is Extract<Section, { kind: Kind }> => section.kind === kind)
}

/**
 * Returns the update as a start uses it. The process that stored it may have been of the release before, which left out fields that it did
 * not know. Sections that lack one lose their version, so that control sends them again.
 */
export function asStored({ sections, end }: SnapshotUpdate): SnapshotUpdate {
  return { sections: sections.map((section) => (isComplete(section) ? section : { ...section, version: '' })), end }
}

function isComplete(section: Section): boolean {
  if (section.kind === 'views') return section.views.every(isSentComplete)
  if (section.kind === 'keys') return section.keys.every(({ name }) => name !== undefined)
  return (
    section.kind !== 'endpoints' ||
    section.endpoints.every(({ kept_fields, shadows }) => kept_fields !== undefined && shadows !== undefined)
  )
}

/** Parses the updates in these bytes. Ignores an incomplete update at the end. Throws for anything else. */
export function parseUpdates(bytes: Uint8Array): readonly SnapshotUpdate[] {
  const updates: SnapshotUpdate[] = []
  let sections: Section[] = []
  let start = 0
  for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a, start)) {
    const value: unknown = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString())
    start = end + 1
    const last = SectionsEnd.safeParse(value)
    if (!last.success) {
      sections.push(Section.parse(value))
      continue
    }
    updates.push({ sections, end: last.data })
    sections = []
  }
  return updates
}

export function printUpdate({ sections, end }: SnapshotUpdate): Buffer {
  return Buffer.concat([...sections, end].map((line) => Buffer.from(`${JSON.stringify(line)}\n`)))
}
