/**
 * Sends snapshots to nodes, by section.
 *
 * Owns: which sections a node receives, and when its long poll ends. Does not own: content (`section-builder.ts`), versions
 * (`store/cluster/section-versions.ts`).
 * Law: a response reflects one state of the database. A poll ends early only if a section of its region and kinds changed, or if the process
 * refuses another state of the database: it then learns the position, also without a section. A process that accepts data receives endpoints
 * only after the database knows that it does: drains depend on it.
 */
import { AppError } from '#errors.ts'
import { must } from '#lib/assert.ts'
import { batchCalls } from '#lib/batch-calls.ts'
import type { Clock } from '#lib/clock.ts'
import { Semaphore } from '#lib/semaphore.ts'
import { type DatabasePosition, findRollback } from '#model/database-position.ts'
import { digestSections } from '#model/section-digest.ts'
import {
  type CommittedSeqs,
  type SectionKind,
  type SectionsEnd,
  type SnapshotCheck,
  type SnapshotRequest,
  sectionKindOf,
} from '#model/snapshot-sections.ts'
import { awaitRunningChanges, currentPosition } from '#store/cluster/epoch.ts'
import type { EpochFeed } from '#store/cluster/epoch-feed.ts'
import { listSectionVersions, type SectionVersions, versionsFor } from '#store/cluster/section-versions.ts'
import { listCommittedSeqs } from '#store/commits/commits.ts'
import { getNodeRegion, recordSnapshotsSent } from '#store/nodes/nodes.ts'
import { readConsistently, type Store, transact } from '#store/store.ts'
import { controlLimits } from '../limits.ts'
import type { SectionOptions } from './section-builder.ts'
import { SectionCache } from './section-cache.ts'

export type SnapshotsOptions = SectionOptions & {
  readonly store: Store
  readonly feed: EpochFeed
  readonly clock: Clock
}

/** The lines of a response. The last one is the line `end`. */
export type SnapshotLines = readonly Buffer[]

type Collected = { readonly position: DatabasePosition; readonly lines: SnapshotLines }

type Versions = ReadonlyMap<string, string>

/** The sections of a region, with the versions in the database and the versions to send to nodes. */
type Offer = {
  readonly versions: Versions
  readonly sections: readonly { readonly name: string; readonly kind: SectionKind | undefined; readonly version: string }[]
  /** Computes the digest of the sections of these kinds once. */
  readonly digest: (kinds: readonly SectionKind[]) => string
  /** Returns the versions to send to nodes by name, of the sections of these kinds. All polls share them. */
  readonly have: (kinds: readonly SectionKind[]) => Have
  /** Computed once for all polls that share their versions. */
  readonly differences: WeakMap<Have, Difference>
}

type Have = Readonly<Record<string, string>>

/** A request with the versions that the process has. */
type Poll = Omit<SnapshotRequest, 'have' | 'digest'> & { readonly have: Have }

type Sent = { readonly node_id: string; readonly region: string; readonly epoch: number }

type Known = { readonly position: DatabasePosition; readonly versions: SectionVersions }

type Difference = { readonly changed: readonly string[]; readonly removed: readonly string[] }

export class Snapshots {
  readonly #options: SnapshotsOptions
  readonly #cache: SectionCache
  /** Sections are built for one node at a time. Others waiting for the same change then find them in the cache. */
  readonly #building = new Semaphore(1)
  /** Read from one state of the database, which may be newer than the epoch of the feed. */
  #known: Known | undefined
  /** By region, newest first. A process that polls after a change names what it has by the digest of one of these. */
  readonly #offered = new Map<string, readonly Offer[]>()
  /** One buffer for all processes that lack the same sections. */
  readonly #collected = new WeakMap<Difference, Collected>()
  /** One transaction for the many nodes that receive the same change. */
  readonly #recordSent = batchCalls((sent: readonly Sent[]) =>
    transact(this.#options.store, (db) => recordSnapshotsSent(db, this.#options.store.dialect, sent)),
  )
  /** Long polls by node. */
  readonly #waiting = new Map<string, number>()

  constructor(options: SnapshotsOptions) {
    this.#options = options
    this.#cache = new SectionCache(options)
    options.feed.subscribe(async () => {
      this.#known = await readConsistently(options.store, async (db) => ({
        position: await currentPosition(db),
        versions: await listSectionVersions(db),
      }))
      for (const [region, offers] of this.#offered) {
        const newest = this.#offerOf(region, offers[0])
        if (newest !== offers[0]) this.#offered.set(region, [newest, ...offers].slice(0, controlLimits.snapshotOffersKept))
      }
    })
  }

  /**
   * Waits until a section differs from the node's copy and returns those that do, or undefined after `wait_ms`. Throws conflict for a digest
   * that is not known.
   */
  async poll(asked: SnapshotRequest, signal: AbortSignal): Promise<SnapshotLines | undefined> {
    const { store, feed } = this.#options
    const region = await getNodeRegion(store.db, asked.node_id)
    const refused = await this.#refusedByDatabase(asked)
    if (refused !== undefined) return [toEndLine(refused, region, { removed: [] })]
    const request = { ...asked, have: asked.have ?? this.#haveOf(region, asked) }
    let compared: Offer | undefined
    let isDifferent = request.epoch < 0
    const isDue = () => {
      const offer = this.#offer(region)
      // The process refuses this database, or has to follow it now, or an operator said that nodes follow it.
      if (request.refusing === true || request.epoch > this.#position.epoch || this.#refusedBy(request) !== undefined)
        isDifferent = true
      // Most changes affect other regions, so the offer is the same object as before.
      else if (!isDifferent && offer !== compared) isDifferent = !isEmpty(differenceFrom(request, offer))
      compared = offer
      return isDifferent
    }
    await this.#inTurn(request.node_id, () => feed.waitUntil(isDue, request.wait_ms, signal))
    if (!isDue()) return undefined
    const position = this.#refusedBy(request)
    if (position !== undefined) return [toEndLine(position, region, { removed: [] })]
    const {
      position: { epoch },
      lines,
    } = await this.#collect(region, request, signal)
    // Only a process that knows keys accepts data.
    if (request.kinds.includes('keys')) await this.#recordSent({ node_id: request.node_id, region, epoch })
    return lines
  }

  /** Returns whether a process had every change that was made before this call, including those that were running. */
  async isCurrent({ node_id, kinds, digest }: SnapshotCheck): Promise<boolean> {
    const { store, feed } = this.#options
    const region = await getNodeRegion(store.db, node_id)
    await awaitRunningChanges(store)
    await feed.refresh()
    return this.#offer(region).digest(kinds) === digest
  }

  async committedSeqs(node_id: string): Promise<CommittedSeqs> {
    const { db } = this.#options.store
    await getNodeRegion(db, node_id)
    return { seqs: await listCommittedSeqs(db, node_id) }
  }

  /** One node cannot take the places of all others. */
  async #inTurn(nodeId: string, wait: () => Promise<void>): Promise<void> {
    const waiting = this.#waiting.get(nodeId) ?? 0
    if (waiting >= controlLimits.snapshotWaitersPerNode)
      throw new AppError('unavailable', 'this node waits for too many snapshots at once', { retryAfterSeconds: 1 })
    this.#waiting.set(nodeId, waiting + 1)
    try {
      await wait()
    } finally {
      const left = (this.#waiting.get(nodeId) ?? 1) - 1
      if (left === 0) this.#waiting.delete(nodeId)
      else this.#waiting.set(nodeId, left)
    }
  }

  get #position(): DatabasePosition {
    return must(this.#known, 'the first read of the epoch').position
  }

  /** Returns the position of the database if the process would refuse it: then the answer has nothing else. */
  #refusedBy({ position, refusing }: Pick<SnapshotRequest, 'position' | 'refusing'>): DatabasePosition | undefined {
    if (position === undefined) return undefined
    const isRefused = findRollback({ position, isRefusing: refusing === true }, this.#position) !== undefined
    return isRefused ? this.#position : undefined
  }

  /** As `refusedBy`. What this process knows may be older than what another one, or the database itself, has sent to the node. */
  async #refusedByDatabase(request: SnapshotRequest): Promise<DatabasePosition | undefined> {
    if (this.#refusedBy(request) !== undefined) await this.#options.feed.refresh()
    return this.#refusedBy(request)
  }

  async #collect(region: string, request: Poll, signal: AbortSignal): Promise<Collected> {
    const cached = this.#fromCache(region, request)
    if (cached !== undefined) return cached
    using _turn = await this.#building.acquire(1, signal)
    return this.#fromCache(region, request) ?? (await this.#build(region, request))
  }

  #fromCache(region: string, request: Poll): Collected | undefined {
    const offer = this.#offer(region)
    const difference = differenceFrom(request, offer)
    const position = this.#position
    const known = this.#collected.get(difference)
    if (known?.position === position) return known
    const found = this.#cache.find(region, offer.versions, difference.changed)
    if (found === undefined) return undefined
    const lines = [...found.values(), toEndLine(position, region, difference)]
    const bytes = lines.reduce((sum, line) => sum + line.byteLength, 0)
    if (bytes > controlLimits.snapshotBytesShared) return { position, lines }
    const collected = { position, lines: [Buffer.concat(lines)] }
    this.#collected.set(difference, collected)
    return collected
  }

  #build(region: string, request: Poll): Promise<Collected> {
    return readConsistently(this.#options.store, async (db) => {
      const position = await currentPosition(db)
      const versions = versionsFor(region, await listSectionVersions(db, region))
      const difference = compare(request, this.#toSections(region, versions))
      const lines = await this.#cache.build(db, region, versions, difference.changed)
      return { position, lines: [...lines.values(), toEndLine(position, region, difference)] }
    })
  }

  #offer(region: string): Offer {
    const known = this.#offered.get(region)?.[0]
    if (known !== undefined) return known
    const offer = this.#offerOf(region)
    this.#offered.set(region, [offer])
    return offer
  }

  #haveOf(region: string, { kinds, digest }: SnapshotRequest): Have {
    this.#offer(region)
    const offer = this.#offered.get(region)?.find((each) => each.digest(kinds) === digest)
    if (offer === undefined) throw new AppError('conflict', 'the digest is not known here: send the versions of the sections')
    return offer.have(kinds)
  }

  /** Returns the same object as before if nothing changed in the region. */
  #offerOf(region: string, before?: Offer): Offer {
    const versions = versionsFor(region, this.#known?.versions ?? new Map())
    if (before !== undefined && isSame(before.versions, versions)) return before
    const sections = this.#toSections(region, versions)
    const ofKinds = (kinds: readonly SectionKind[]) => sections.filter(({ kind }) => kind !== undefined && kinds.includes(kind))
    return {
      versions,
      sections,
      digest: memoize((kinds) => digestSections(ofKinds(kinds))),
      differences: new WeakMap(),
      have: memoize((kinds) => Object.fromEntries(ofKinds(kinds).map(({ name, version }) => [name, version]))),
    }
  }

  #toSections(region: string, versions: Versions): Offer['sections'] {
    return [...versions].map(([name, version]) => ({
      name,
      kind: sectionKindOf(name),
      version: this.#cache.version(region, version),
    }))
  }
}

function compare({ kinds, have }: Poll, sections: Offer['sections']): Difference {
  const changed = sections.filter(({ name, kind, version }) => kinds.some((wanted) => wanted === kind) && have[name] !== version)
  const names = new Set(sections.map(({ name }) => name))
  return { changed: changed.map(({ name }) => name), removed: Object.keys(have).filter((name) => !names.has(name)) }
}

function memoize<T>(compute: (kinds: readonly SectionKind[]) => T): (kinds: readonly SectionKind[]) => T {
  const known = new Map<string, T>()
  return (kinds) => {
    const wanted = kinds.toSorted().join()
    const value = known.get(wanted) ?? compute(kinds)
    known.set(wanted, value)
    return value
  }
}

function differenceFrom(request: Poll, { sections, differences }: Offer): Difference {
  const difference = differences.get(request.have) ?? compare(request, sections)
  differences.set(request.have, difference)
  return difference
}

function isEmpty({ changed, removed }: Difference): boolean {
  return changed.length === 0 && removed.length === 0
}

function isSame(one: Versions, other: Versions): boolean {
  return one.size === other.size && one.entries().every(([name, version]) => other.get(name) === version)
}

function toEndLine(position: DatabasePosition, region: string, { removed }: Pick<Difference, 'removed'>): Buffer {
  const end: SectionsEnd = { kind: 'end', epoch: position.epoch, region, removed: [...removed], position }
  return Buffer.from(`${JSON.stringify(end)}\n`)
}
