/**
 * The indexes of the keys that views with `dedupe_within` wrote on this node.
 *
 * Owns: which index a segment is compared with, that it has the keys of all commits before, and how much disk all of them take. Does not own: the
 * tables (key-index.ts), what is read from the bucket (CommittedKeys), the order of segments.
 * Law: called for one segment of a log at a time, in the order of their commits. The keys of a segment are on the disk before its marker is written,
 * and are taken out if it never is. An index that cannot be trusted is built again from commits before a segment is compared with it. Nothing of
 * this costs an endpoint whose views have no window.
 */
import { join } from 'node:path'
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Files } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import { parseDurationSeconds } from '#model/duration.ts'
import type { BoundView } from '#model/snapshot.ts'
import { IndexDamaged, type IndexedSegment, type IndexedView, type IndexState } from './key-index.ts'
import type { KeyWindow } from './key-lookup.ts'
import { windowLimits } from './limits.ts'
import type { KeyIndexes } from './thread.ts'

export type WindowView = Pick<BoundView, 'view_id' | 'name' | 'version' | 'definition'>
export type WindowSegment = IndexedSegment & { readonly endpointId: string }

export type KeysRequest = {
  readonly endpointId: string
  readonly view: WindowView
  /** Segments that were sealed later. */
  readonly sinceMicros: number
  /** Returns those of the ids whose keys are known. */
  readonly registered: (ids: readonly string[]) => Promise<ReadonlySet<string>>
  /** Called in the order of the commits, with a file of keys. */
  readonly add: (segment: IndexedSegment, keysPath: string) => Promise<void>
  readonly signal: AbortSignal
}

/** Reads the keys of the rows that this node delivered. */
export interface CommittedKeys {
  /** Whether control has recorded the commit, or will. */
  isCommitted(id: string, signal: AbortSignal): Promise<boolean>
  /** Returns the number of files that are no longer in the bucket. Throws KeysUnreadable if the role may not read. */
  read(request: KeysRequest): Promise<number>
}

/** No attempt will be able to read the files. */
export class KeysUnreadable extends Error {
  override readonly name = 'KeysUnreadable'
}

/** The index that a conversion compares a segment with. `heldSeconds` is set if the window was shorter than the definition says. */
export type PreparedWindow = { readonly window: KeyWindow; readonly heldSeconds?: number }

export type KeyWindowsOptions = {
  readonly directory: string
  /** For all indexes of the node. */
  readonly bytesMax: number
  readonly indexes: KeyIndexes
  readonly committed: CommittedKeys
  /** Returns the account of an endpoint, and the ids of the views that its segments may still need; undefined if it has none here. */
  readonly usersOf: (endpointId: string) => { readonly account: string; readonly views: ReadonlySet<string> } | undefined
  readonly files: Files
  readonly clock: Clock
  readonly logger: Logger
}

type Known = { readonly endpointId: string; readonly viewId: string; bytes: number; isChecked: boolean; mustShrink: boolean }

export class KeyWindows {
  readonly #options: KeyWindowsOptions
  /** Indexes on the disk, by path. */
  readonly #known = new Map<string, Known>()
  /** Endpoints whose indexes a conversion reads. */
  readonly #busy = new Set<string>()
  /** When rebuilding an index began to fail, on the monotonic clock. */
  readonly #failingSince = new Map<string, number>()
  #cleanedAt = 0

  constructor(options: KeyWindowsOptions) {
    this.#options = options
  }

  /** Finds the indexes that are there. */
  async open(): Promise<void> {
    const { directory, files } = this.#options
    for (const { name: endpointId, kind } of await files.list(directory)) {
      if (kind !== 'directory') continue
      for (const { name } of await files.list(join(directory, endpointId))) {
        const viewId = /^(.+)\.db$/.exec(name)?.[1]
        if (viewId === undefined) continue
        const path = join(directory, endpointId, name)
        this.#know(path, endpointId, viewId).bytes = (await files.bytes(path)) ?? 0
      }
    }
  }

  /**
   * Returns what to compare a segment with, once every earlier one of its log is committed or parked. Throws why the index is not ready: to be tried
   * again. Call `end` when the conversion has ended.
   */
  async prepare(view: WindowView, segment: WindowSegment, signal: AbortSignal): Promise<PreparedWindow> {
    const { indexes, logger } = this.#options
    const { endpointId } = segment
    this.#busy.add(endpointId)
    const index = this.#indexOf(view, endpointId)
    try {
      const known = await this.#check(index, view, endpointId)
      if (known.mustShrink) {
        known.mustShrink = false
        known.bytes = (await indexes.shorten(index)).bytes
      }
      await this.#complete(index, view, segment, signal)
      const range = await indexes.range(index, segment)
      const state = await indexes.state(index)
      const heldMicros = heldBy(index, state, segment)
      const isShort = heldMicros < index.windowMicros
      return { window: { path: index.path, ...range }, ...(isShort && { heldSeconds: Math.floor(heldMicros / 1_000_000) }) }
    } catch (error) {
      signal.throwIfAborted()
      this.#doubt(index.path)
      if (error instanceof IndexDamaged)
        logger.error({ endpoint: endpointId, view: view.name, err: error }, 'index of keys damaged')
      throw error
    }
  }

  /** Returns a byte for each key: 1 if an earlier segment wrote it. Throws why it cannot be found out. */
  async find({ window }: PreparedWindow, keys: Uint8Array): Promise<Uint8Array> {
    try {
      return await this.#options.indexes.find(window, keys)
    } catch (error) {
      this.#doubt(window.path)
      throw error
    }
  }

  /** Stores the keys of a segment, of a file; null for none. */
  async register(view: WindowView, segment: WindowSegment, keysPath: string | null): Promise<void> {
    const index = this.#indexOf(view, segment.endpointId)
    try {
      const { bytes } = await this.#options.indexes.register(index, segment, keysPath)
      this.#know(index.path, segment.endpointId, view.view_id).bytes = bytes
    } catch (error) {
      this.#doubt(index.path)
      throw error
    }
    await this.#shrink(index.path)
    await this.#clean()
  }

  end(endpointId: string): void {
    this.#busy.delete(endpointId)
  }

  /** The segment is committed. If that cannot be stored, control is asked after the next start. */
  async confirm(endpointId: string, id: string): Promise<void> {
    for (const index of this.#indexesOf(endpointId))
      await this.#options.indexes.confirm(index, id).catch(() => this.#doubt(index.path))
  }

  /** The segment will not be committed as it was converted. An index from which its keys cannot be taken out is removed. */
  async forget(endpointId: string, id: string): Promise<void> {
    const { indexes, logger } = this.#options
    for (const index of this.#indexesOf(endpointId)) {
      try {
        await indexes.forget(index, id)
      } catch (error) {
        logger.warn({ endpoint: endpointId, segment: id, err: error }, 'keys of a segment not removed; removing their index')
        await this.#remove(index.path)
      }
    }
  }

  #indexOf({ view_id, definition }: WindowView, endpointId: string): IndexedView {
    const seconds = parseDurationSeconds(definition.dedupe_within ?? '') ?? 0
    return { path: join(this.#options.directory, endpointId, `${view_id}.db`), windowMicros: seconds * 1_000_000 }
  }

  #indexesOf(endpointId: string): readonly IndexedView[] {
    // The window does not matter for changes of one segment.
    return [...this.#known].flatMap(([path, known]) => (known.endpointId === endpointId ? [{ path, windowMicros: 0 }] : []))
  }

  #know(path: string, endpointId: string, viewId: string): Known {
    const known = this.#known.get(path) ?? { endpointId, viewId, bytes: 0, isChecked: false, mustShrink: false }
    this.#known.set(path, known)
    return known
  }

  /** An index that was not usable is checked before its next use. */
  #doubt(path: string): void {
    const known = this.#known.get(path)
    if (known !== undefined) known.isChecked = false
  }

  async #check(index: IndexedView, view: WindowView, endpointId: string): Promise<Known> {
    const { files, indexes, directory, logger } = this.#options
    const known = this.#know(index.path, endpointId, view.view_id)
    if (known.isChecked) return known
    await files.makeDirectory(join(directory, endpointId))
    const { found, reason } = await indexes.check(index)
    if (found === 'damaged')
      logger.error({ endpoint: endpointId, view: view.name, reason }, 'index of keys damaged; rebuilding it')
    known.isChecked = true
    known.bytes = (await indexes.state(index)).bytes
    return known
  }

  /** Makes sure that the index has the keys of all commits before the segment, and no others. */
  async #complete(index: IndexedView, view: WindowView, segment: WindowSegment, signal: AbortSignal): Promise<void> {
    const { indexes, committed, clock, logger } = this.#options
    const state = await indexes.state(index)
    try {
      const { last } = state
      if (last !== null && last.id !== segment.id && !last.isCommitted) {
        if (await committed.isCommitted(last.id, signal)) await indexes.confirm(index, last.id)
        else await indexes.forget(index, last.id)
      }
      const isCurrent = state.sinceMicros !== null && last !== null && last.seq >= segment.seq - 1
      if (!isCurrent) await this.#rebuild(index, view, segment, state, signal)
      this.#failingSince.delete(index.path)
    } catch (error) {
      signal.throwIfAborted()
      const since = this.#failingSince.get(index.path) ?? clock.monotonic()
      this.#failingSince.set(index.path, since)
      const isHopeless = error instanceof KeysUnreadable || clock.monotonic() - since > windowLimits.rebuildMs
      if (!isHopeless || error instanceof IndexDamaged)
        throw new Error(`the index of dedupe_within of ${view.name} v${view.version} is being rebuilt: ${errorMessage(error)}`, {
          cause: error,
        })
      await this.#beginAnew(index, segment)
      const fields = { endpoint: segment.endpointId, view: view.name, version: view.version, reason: errorMessage(error) }
      logger.error(fields, 'index of keys cannot be rebuilt; the window of dedupe_within begins anew')
    }
  }

  async #rebuild(
    index: IndexedView,
    view: WindowView,
    segment: WindowSegment,
    { newestMicros, sinceMicros }: IndexState,
    signal: AbortSignal,
  ): Promise<void> {
    const { indexes, committed, clock, logger } = this.#options
    const { endpointId } = segment
    const from = Math.max(segment.sealedAtMicros, newestMicros) - index.windowMicros
    let added = 0
    const missing = await committed.read({
      ...{ endpointId, view, sinceMicros: from, signal },
      registered: async (ids) => new Set([segment.id, ...(await indexes.registered(index, ids))]),
      add: async (of, keysPath) => {
        await indexes.register(index, of, keysPath)
        await indexes.confirm(index, of.id)
        added += 1
        this.#failingSince.set(index.path, clock.monotonic())
      },
    })
    if (sinceMicros === null) await indexes.complete(index, from)
    if (added > 0 || missing > 0)
      logger.notice({ endpoint: endpointId, view: view.name, segments: added, missing }, 'index of keys rebuilt from commits')
  }

  /** Keys of a segment that may not be committed would drop the events that come next. */
  async #beginAnew(index: IndexedView, { id, sealedAtMicros }: WindowSegment): Promise<void> {
    const { indexes } = this.#options
    const { last, newestMicros } = await indexes.state(index)
    if (last !== null && last.id !== id && !last.isCommitted) await indexes.forget(index, last.id)
    await indexes.complete(index, Math.max(sealedAtMicros, newestMicros))
  }

  /** Shortens windows until all indexes fit: of the account that takes most, the largest. */
  async #shrink(current: string): Promise<void> {
    const { bytesMax, indexes, usersOf, logger } = this.#options
    const sum = (of: readonly Known[]) => of.reduce((total, { bytes }) => total + bytes, 0)
    const accountOf = ({ endpointId }: Known) => usersOf(endpointId)?.account ?? ''
    const tried = new Set<string>()
    while (sum([...this.#known.values()]) > bytesMax) {
      const left = [...this.#known].filter(([path]) => !tried.has(path))
      const byAccount = [...Map.groupBy(this.#known.values(), accountOf)].toSorted(([, a], [, b]) => sum(b) - sum(a))
      const ranks = new Map(byAccount.map(([account], rank) => [account, rank]))
      const rankOf = (known: Known) => ranks.get(accountOf(known)) ?? 0
      const [path, known] = left.toSorted(([, a], [, b]) => rankOf(a) - rankOf(b) || b.bytes - a.bytes)[0] ?? []
      if (path === undefined || known === undefined) return
      if (path !== current && this.#busy.has(known.endpointId)) {
        known.mustShrink = true
        tried.add(path)
        continue
      }
      const { bytes, keys } = await indexes.shorten({ path, windowMicros: 0 })
      known.bytes = bytes
      if (keys === 0) tried.add(path)
      logger.warn(
        { endpoint: known.endpointId, view: known.viewId, bytes },
        'windows of dedupe_within take too much disk; shortened one',
      )
    }
  }

  /** Removes indexes whose views are no longer bound here. */
  async #clean(): Promise<void> {
    const { clock, usersOf } = this.#options
    if (clock.monotonic() - this.#cleanedAt < windowLimits.cleanIntervalMs) return
    this.#cleanedAt = clock.monotonic()
    for (const [path, { endpointId, viewId }] of this.#known)
      if (!this.#busy.has(endpointId) && usersOf(endpointId)?.views.has(viewId) !== true) await this.#remove(path)
  }

  async #remove(path: string): Promise<void> {
    const { files } = this.#options
    for (const suffix of ['-journal', '']) await files.remove(`${path}${suffix}`)
    this.#known.delete(path)
  }
}

/** Returns for how long before a segment the index has all keys. */
function heldBy(
  { windowMicros }: IndexedView,
  { newestMicros, sinceMicros }: IndexState,
  { sealedAtMicros }: IndexedSegment,
): number {
  const at = Math.max(sealedAtMicros, newestMicros)
  return Math.min(windowMicros, Math.max(0, at - (sinceMicros ?? at)))
}
