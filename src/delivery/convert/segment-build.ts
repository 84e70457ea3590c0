/**
 * Builds the files of one segment, in as many attempts as it takes: what is built stays built.
 *
 * Owns: the groups of views with their directories, and one result of all. Does not own: what follows if an attempt does not finish (policy.ts).
 * Law: no file is left after `remove`. If one group fails, all of it fails.
 */
import type { SegmentRef } from '#log/segment-source.ts'
import type { ViewOutcome } from '#model/commit.ts'
import type { OutputFormat } from '#model/endpoint.ts'
import type { BoundView } from '#model/snapshot.ts'
import { viewsTimeoutMs } from '#records/limits.ts'
import type { SegmentFiles } from './build/build.ts'
import type { FindKeys, WindowedView } from './build/build-views.ts'
import { RequiredViewFailed } from './build/failures.ts'
import type { Build, ConversionRunner } from './conversion-runner.ts'
import type { ExpensiveViews } from './expensive-views.ts'
import { filesIn, keysIn, viewAt } from './reply.ts'
import { GroupQueue, groupsOf } from './view-groups.ts'
import { isDetached, ViewProgress } from './view-progress.ts'

export type BuildRequest = {
  readonly segment: SegmentRef
  /** Size of the segment. */
  readonly bytes: number
  readonly outputFormats: readonly OutputFormat[]
  /** The views that apply to this segment. */
  readonly views: readonly WindowedView[]
  readonly memoryBytes: number
  /** For views with a window. */
  readonly findKeys?: FindKeys
  /** Definitions that are only counted, once everything else is built. */
  readonly runShadows?: (signal: AbortSignal) => Promise<readonly ViewOutcome[]>
}

export type BuiltArtifacts = Omit<SegmentFiles, 'keys'> & {
  /** Files of the keys that views with a window wrote, by view. */
  readonly keys: ReadonlyMap<string, string>
  /** Whether all files are still there. */
  isComplete(): Promise<boolean>
  /** Whether they also have the content that was built. Reads them. */
  isIntact(): Promise<boolean>
  /** Removes the files. */
  remove(): Promise<void>
}

/** Slots that an attempt may use in addition to its own. */
export type LentSlots = {
  readonly count: number
  /** Runs work in another slot, as soon as nobody else wants it. If somebody does, the signal of the work aborts, and it is repeated later. */
  readonly lend: (signal: AbortSignal, work: (signal: AbortSignal) => Promise<void>) => Promise<void>
}

export class SegmentBuild {
  readonly #runner: ConversionRunner
  readonly #expensive: ExpensiveViews
  readonly #request: BuildRequest
  readonly #groups: readonly (readonly WindowedView[])[]
  /** One for each group, once its directory is there. */
  readonly #builds: Build[] = []

  constructor(runner: ConversionRunner, expensive: ExpensiveViews, request: BuildRequest, slots: number) {
    this.#runner = runner
    this.#expensive = expensive
    this.#request = request
    this.#groups = groupsOf(request.views, { bytes: request.bytes, slots })
  }

  get views(): readonly BoundView[] {
    return this.#request.views
  }

  /**
   * Builds what is left, each group in one process. Returns undefined if one of them ended before it replied, and the rest is to be built in
   * another attempt. Throws RequiredViewFailed, SegmentError, ConversionCrashed, a transient error, or the signal's reason.
   */
  async attempt({ count, lend }: LentSlots, signal: AbortSignal): Promise<BuiltArtifacts | undefined> {
    for (const views of this.#groups.slice(this.#builds.length)) this.#builds.push(await this.#begin(views))
    const left = this.#builds.filter(({ built }) => built === undefined)
    const queue = new GroupQueue(left, this.#runner.run.bind(this.#runner))
    const failed = new AbortController()
    const either = AbortSignal.any([signal, failed.signal])
    const helpers = Array.from({ length: Math.min(count, left.length - 1) }, () =>
      lend(either, (signal) => queue.work(signal, 'helper')).catch((error: unknown) => failed.abort(error)),
    )
    try {
      await queue.work(either, 'owner')
    } catch (error) {
      failed.abort(error)
      throw failed.signal.reason
    } finally {
      failed.abort(new Error('the groups are built'))
      await Promise.all(helpers)
    }
    const result = this.#result()
    const { runShadows } = this.#request
    if (result === undefined || runShadows === undefined) return result
    return { ...result, views: [...result.views, ...(await runShadows(signal))] }
  }

  async remove(): Promise<void> {
    await Promise.all(this.#builds.map(({ directory, built }) => directory.remove(built && filesIn(directory.path, built))))
  }

  async #begin(views: readonly WindowedView[]): Promise<Build> {
    const { segment, bytes, memoryBytes, findKeys } = this.#request
    // One group has the files of the records.
    const outputFormats: readonly OutputFormat[] = this.#builds.length === 0 ? this.#request.outputFormats : ['parquet_views']
    const viewTimeoutMs = this.#runner.viewTimeoutMs(bytes)
    const last = this.#expensive.among(views)
    return {
      directory: await this.#runner.createDirectory(),
      inputs: this.#runner.filesOf(segment),
      findKeys,
      views,
      progress: new ViewProgress({
        ...{ views, last, viewTimeoutMs },
        // A view that was detached because it is slow must not hold up the others.
        isApart: views.some(isDetached) || last.length > 0,
        viewsTimeoutMs: viewsTimeoutMs(bytes, views.length, viewTimeoutMs),
      }),
      taskOf: ({ source, directory }, plan) => ({
        kind: 'segment',
        source,
        directory,
        segment,
        outputFormats,
        views,
        memoryBytes,
        viewTimeoutMs,
        plan,
      }),
      onBlame: ({ view, reason, isTooExpensive }) => {
        const blamed = viewAt(views, view)
        if (isTooExpensive) this.#expensive.add(blamed)
        if (blamed.is_required) throw new RequiredViewFailed(blamed, reason)
      },
    }
  }

  #result(): BuiltArtifacts | undefined {
    const results = this.#builds.flatMap(({ built, directory, views }) => (built ? { built, directory, views } : []))
    if (results.length < this.#builds.length) return undefined
    const all = results.map(({ built, directory, views }) => {
      const files = filesIn(directory.path, built)
      const failed = built.failed.map(({ view, reason }) => ({ view: viewAt(views, view), error: reason }))
      return { files, failed, views: built.views, directory }
    })
    const files = all.flatMap((each) => each.files)
    const views = all.flatMap((each) => each.views)
    this.#expensive.learn(views)
    return {
      // Each group with a view that failed has all records.
      files: files.filter(
        ({ kind }, index) => kind.type !== 'parquet' || index === files.findIndex((file) => file.kind.type === 'parquet'),
      ),
      views,
      keys: new Map(results.flatMap(({ built, directory }) => [...keysIn(directory.path, built)])),
      failed: all.flatMap((each) => each.failed),
      isComplete: async () =>
        (await Promise.all(all.map(({ directory, files }) => directory.hasAll(files)))).every((hasAll) => hasAll),
      isIntact: async () =>
        (await Promise.all(all.map(({ directory, files }) => directory.hasIntact(files)))).every((hasIntact) => hasIntact),
      remove: () => this.remove(),
    }
  }
}
