/**
 * Converts in child processes, which can be killed at any time.
 *
 * Owns: the tasks of the processes, and what becomes of their replies. Does not own: how files are built (build.ts), when a process is killed
 * and who is to blame (attempts.ts), the processes (process-pool.ts), how many run at once.
 * Law: a conversion that fails leaves no file behind.
 */
import { assert } from '#lib/assert.ts'
import { MiB } from '#lib/bytes.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import type { SegmentRef, SegmentSource } from '#log/segment-source.ts'
import type { ArtifactKind } from '#model/artifact.ts'
import type { OutputFormat } from '#model/endpoint.ts'
import type { Unit } from '#model/job-protocol.ts'
import type { BoundView } from '#model/snapshot.ts'
import { buildLimits, viewsTimeoutMs, viewTimeoutMs } from '#records/limits.ts'
import { deliveryLimits } from '../segments/limits.ts'
import { type Attempts, convertRepeatedly, isDetached } from './attempts.ts'
import type { UnitFiles } from './build/build-unit.ts'
import type { BuiltFile } from './build/built-file.ts'
import { ConversionCrashed, RequiredViewFailed, UnitViewFailed } from './build/failures.ts'
import { TransientError } from './build/transient-error.ts'
import { type BuiltDirectory, buildInDirectory } from './build-directory.ts'
import type { ConversionPool } from './conversion-pool.ts'
import { ExpensiveViews } from './expensive-views.ts'
import { type Built, filesIn, viewAt } from './reply.ts'
import { WorkerAccess } from './worker-access.ts'

export type ConversionsOptions = {
  readonly pool: ConversionPool
  readonly segments: Pick<SegmentSource, 'location' | 'filesOf'>
  /** Files are written to new directories under it. */
  readonly scratch: string
  /** Needed if the processes run as another user. */
  readonly access?: WorkerAccess
  /** Returns how long a view may take on a segment of that many bytes. */
  readonly viewTimeoutMs?: (bytes: number) => number
  /** Extra time after the limit of a step. */
  readonly killAfterMs?: number
  readonly clock?: Clock
}

export type SegmentConversion = {
  readonly segment: SegmentRef
  /** Size of the segment. */
  readonly bytes: number
  readonly outputFormats: readonly OutputFormat[]
  /** The views that apply to this segment. */
  readonly views: readonly BoundView[]
  readonly memoryBytes: number
  readonly signal: AbortSignal
}

export type UnitConversion = {
  readonly unit: Unit
  /** The downloaded file. */
  readonly sourcePath: string
  /** Where files are written. */
  readonly directory: string
  readonly memoryBytes: number
  readonly signal: AbortSignal
}

export type MergeConversion = {
  /** Parquet files in the order of their rows. */
  readonly sources: readonly { readonly path: string; readonly rows: number }[]
  readonly kind: ArtifactKind
  /** Where the new file is written. */
  readonly directory: string
  readonly memoryBytes: number
  readonly signal: AbortSignal
}

type Conversion = Omit<Attempts, 'pool' | 'access' | 'clock' | 'killAfterMs'>

/** The node cannot convert anything now. */
class NodeCannotConvert extends TransientError {
  override readonly name = 'NodeCannotConvert'
}

/** DuckDB needs this much for one record. */
const probeBytes = 64 * MiB

export class Conversions {
  readonly #options: ConversionsOptions
  readonly #access: WorkerAccess
  readonly #expensive = new ExpensiveViews()

  constructor(options: ConversionsOptions) {
    this.#options = options
    this.#access = options.access ?? new WorkerAccess({ directory: options.scratch, user: undefined })
  }

  /** Builds the files of a segment. Throws RequiredViewFailed, SegmentError, ConversionCrashed, a transient error, or the signal's reason. */
  build(request: SegmentConversion): Promise<BuiltDirectory> {
    const { segment, bytes, outputFormats, views, memoryBytes, signal } = request
    const timeoutMs = (this.#options.viewTimeoutMs ?? viewTimeoutMs)(bytes)
    const { segments, scratch } = this.#options
    const last = this.#expensive.among(views)
    return buildInDirectory(scratch, async (directory) => {
      const paths = { source: this.#access.inside(segments.location), directory: this.#access.inside(directory) }
      const common = { ...paths, segment, outputFormats, views, memoryBytes, viewTimeoutMs: timeoutMs }
      const built = await this.#convert({
        inputs: segments.filesOf(segment),
        ...{ directory, viewTimeoutMs: timeoutMs, views, signal },
        // A view that was detached because it is slow must not hold up the others.
        isApart: views.some(isDetached) || last.length > 0,
        last,
        viewsTimeoutMs: viewsTimeoutMs(bytes, views.length, timeoutMs),
        taskOf: (plan) => ({ kind: 'segment', ...common, plan }),
        onVerdict: ({ view, reason, isTooExpensive }) => {
          const guilty = viewAt(views, view)
          if (isTooExpensive) this.#expensive.add(guilty)
          if (guilty.is_required) throw new RequiredViewFailed(guilty, reason)
        },
      })
      this.#expensive.learn(built.views)
      const failed = built.failed.map(({ view, reason }) => ({ view: viewAt(views, view), error: reason }))
      return { files: filesIn(directory, built), views: built.views, failed }
    })
  }

  /** Converts a record that is known to be good. Throws the signal's reason, or NodeCannotConvert. Takes about 50 ms. */
  async probe(signal: AbortSignal): Promise<void> {
    const timeoutMs = buildLimits.viewTimeoutMsMin
    const limits = { viewTimeoutMs: timeoutMs, viewsTimeoutMs: timeoutMs }
    try {
      const built = await buildInDirectory(this.#options.scratch, async (directory) => {
        const inside = this.#access.inside(directory)
        const built = await this.#convert({
          ...limits,
          ...{ directory, views: [], isApart: false, onVerdict: () => undefined, signal },
          taskOf: () => ({ kind: 'probe', directory: inside, viewTimeoutMs: timeoutMs, memoryBytes: probeBytes }),
        })
        return { files: filesIn(directory, built), views: [], failed: [] }
      })
      await built.remove()
    } catch (error) {
      signal.throwIfAborted()
      throw new NodeCannotConvert('this node cannot convert segments now', { cause: error })
    }
  }

  /** Builds the files of a unit of a job. Throws UnitViewFailed, SegmentError, a transient error, or the signal's reason. */
  async buildUnit({ unit, sourcePath, directory, memoryBytes, signal }: UnitConversion): Promise<UnitFiles> {
    // The source is compressed, so its size does not tell how long its records take.
    const paths = { sourcePath: this.#access.inside(sourcePath), directory: this.#access.inside(directory) }
    const common = { unit, memoryBytes, viewTimeoutMs: buildLimits.viewTimeoutMsMax }
    const built = await this.#convertTwice({
      ...common,
      ...{ inputs: [sourcePath], directory, views: [], isApart: true },
      viewsTimeoutMs: viewsTimeoutMs(0, 1, common.viewTimeoutMs),
      taskOf: (plan) => ({ kind: 'unit', ...common, ...paths, plan }),
      onVerdict: ({ reason }) => {
        throw new UnitViewFailed(reason, unit.source.artifact.rows)
      },
      signal,
    })
    const [outcome] = built.views
    assert(outcome !== undefined, 'a unit has the outcome of its view')
    return { files: filesIn(directory, built), outcome }
  }

  /** Merges files into one. Throws a transient error, the signal's reason, or why they cannot be merged. */
  async merge({ sources, kind, directory, memoryBytes, signal }: MergeConversion): Promise<BuiltFile> {
    const limits = { viewTimeoutMs: buildLimits.viewTimeoutMsMin, viewsTimeoutMs: buildLimits.viewTimeoutMsMin }
    const inside = sources.map(({ path, rows }) => ({ path: this.#access.inside(path), rows }))
    const built = await this.#convertTwice({
      ...limits,
      ...{ inputs: sources.map(({ path }) => path), directory, views: [], isApart: true, onVerdict: () => undefined, signal },
      taskOf: () => ({ kind: 'merge', sources: inside, of: kind, directory: this.#access.inside(directory), memoryBytes }),
    })
    const [file] = filesIn(directory, built)
    assert(file !== undefined, 'a merge makes a file')
    return file
  }

  /** For units of jobs, whose failure is final: a process can also die for another reason of the node, so it must die twice. */
  async #convertTwice(attempts: Conversion): Promise<Built> {
    try {
      return await this.#convert(attempts)
    } catch (error) {
      if (!(error instanceof ConversionCrashed)) throw error
      await this.probe(attempts.signal)
      return this.#convert(attempts)
    }
  }

  #convert(attempts: Conversion): Promise<Built> {
    const { pool, clock = systemClock, killAfterMs = deliveryLimits.conversionKillAfterMs } = this.#options
    return convertRepeatedly({ ...attempts, pool, access: this.#access, clock, killAfterMs })
  }
}
