/**
 * The windows of the views of one segment.
 *
 * Owns: which views have one, and what their outcomes say about it. Does not own: the indexes (windows/key-windows.ts), the turn of the segment.
 * Law: keys are registered before the files of the segment are uploaded, so no marker is without them. A fault of an index is one of the node.
 */
import type { BoundView } from '#model/snapshot.ts'
import type { SegmentFacts } from '../segments/delivery-run.ts'
import type { KeyWindows, PreparedWindow, WindowSegment } from '../windows/key-windows.ts'
import type { WindowedView } from './build/build-views.ts'
import { NotConfiguredError, TransientError } from './build/transient-error.ts'
import type { BuiltArtifacts } from './segment-build.ts'

type Prepared = PreparedWindow & { readonly view: BoundView }

export class SegmentWindows {
  readonly #windows: KeyWindows | undefined
  readonly #segment: WindowSegment
  /** By view id. */
  #prepared: ReadonlyMap<string, Prepared> = new Map()
  #hasBegun = false

  constructor(windows: KeyWindows | undefined, { id, sealedAt, name: { endpointId, seq } }: SegmentFacts) {
    this.#windows = windows
    // As the commit has it, from which an index is rebuilt.
    this.#segment = { endpointId, id, seq, sealedAtMicros: Date.parse(sealedAt) * 1_000 }
  }

  areNeededBy(views: readonly BoundView[]): boolean {
    return this.#windows !== undefined && views.some(hasWindow)
  }

  /** Call it in the turn of the segment. Throws a transient error, or the signal's reason. */
  async prepare(views: readonly BoundView[], signal: AbortSignal): Promise<void> {
    const prepared = new Map<string, Prepared>()
    this.#hasBegun = true
    for (const view of views.filter(hasWindow)) {
      const ready = await asFault(() => this.#windows?.prepare(view, this.#segment, signal))
      if (ready !== undefined) prepared.set(view.view_id, { ...ready, view })
    }
    this.#prepared = prepared
  }

  /** Returns the view, which says whether it has a window. */
  withWindow(view: BoundView): WindowedView {
    if (this.#windows === undefined || !hasWindow(view)) return view
    const prepared = this.#prepared.get(view.view_id)
    if (prepared === undefined) throw new NotConfiguredError('the views of the endpoint were changed')
    return { ...view, hasWindow: true }
  }

  /** Returns which keys of a view earlier segments wrote. Throws a transient error. */
  async find(viewId: string, keys: Uint8Array): Promise<Uint8Array> {
    const prepared = this.#prepared.get(viewId)
    const found = await asFault(() => prepared && this.#windows?.find(prepared, keys))
    if (found === undefined) throw new TransientError('the view has no window')
    return found
  }

  /** Stores the keys that the segment wrote. Returns what was built, with outcomes that say for which views the window was short. */
  async register(built: BuiltArtifacts): Promise<BuiltArtifacts> {
    if (this.#prepared.size === 0) return built
    for (const { view } of this.#prepared.values())
      await asFault(() => this.#windows?.register(view, this.#segment, built.keys.get(view.view_id) ?? null))
    const views = built.views.map((outcome) => {
      const heldSeconds = outcome.is_shadow === true ? undefined : this.#prepared.get(outcome.view_id)?.heldSeconds
      return heldSeconds === undefined ? outcome : { ...outcome, window_seconds: heldSeconds }
    })
    return { ...built, views }
  }

  end(): void {
    if (this.#hasBegun) this.#windows?.end(this.#segment.endpointId)
  }
}

function hasWindow({ definition }: BoundView): boolean {
  return definition.dedupe_within !== undefined
}

async function asFault<T>(work: () => Promise<T> | undefined): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    throw new TransientError(error instanceof Error ? error.message : String(error), { cause: error })
  }
}
