/**
 * Converts in child processes, which can be killed at any time.
 *
 * Owns: the time limit of each step of a conversion, and which view is to blame if its process is killed or dies. Does not own: how files are
 * built (build.ts), the processes (process-pool.ts), how many run at once.
 * Law: a view is to blame only if the process worked on that view alone: at its time limit, or if it died twice. Then the view fails, and the
 * segment is converted again without it.
 */
import { mkdir, rm } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import { assert } from '#lib/assert.ts'
import { MiB } from '#lib/bytes.ts'
import type { Clock } from '#lib/clock.ts'
import { ProcessPool, type ProcessPoolOptions } from '#lib/process-pool.ts'
import type { OutputFormat } from '#model/endpoint.ts'
import type { Unit } from '#model/job-protocol.ts'
import type { BoundView } from '#model/snapshot.ts'
import { buildLimits, viewTimeoutMs } from '#records/limits.ts'
import { SegmentError } from '#wal/segment-reader.ts'
import type { UnitFiles } from '../jobs/build-unit.ts'
import { deliveryLimits } from '../limits.ts'
import type { SegmentRef } from '../segments.ts'
import { TransientError } from '../transient-error.ts'
import { type BuiltArtifacts, buildInDirectory } from './build-directory.ts'
import type { ViewPlan, ViewVerdict } from './build-views.ts'
import { ConversionCrashed, RequiredViewFailed, UnitViewFailed } from './failures.ts'
import type { ConvertReply, ConvertTask, Failure, Step } from './worker/protocol.ts'

export type ConversionPool = ProcessPool<ConvertTask, ConvertReply, Step>

const program = join(import.meta.dirname, 'worker', `convert-worker${extname(import.meta.filename)}`)

export function createConversionPool(
  options: { readonly clock: Clock } & Pick<ProcessPoolOptions, 'commandLine'>,
): ConversionPool {
  return new ProcessPool({ program, idleMs: deliveryLimits.conversionIdleMs, ...options })
}

export type ConversionsOptions = {
  readonly pool: ConversionPool
  /** The directory of the log. */
  readonly wal: string
  /** Files are written to new directories under it. */
  readonly scratch: string
  /** Returns how long a view may take on a segment of that many bytes. */
  readonly viewTimeoutMs?: (bytes: number) => number
  /** Extra time after the limit of a step. */
  readonly killAfterMs?: number
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

/** The node cannot convert anything now. */
class NodeCannotConvert extends TransientError {
  override readonly name = 'NodeCannotConvert'
}

/** DuckDB needs this much for one record. */
const probeBytes = 64 * MiB

type Built = Exclude<ConvertReply, { readonly failure: Failure }>

type Attempts = {
  readonly directory: string
  readonly viewTimeoutMs: number
  readonly views: readonly BoundView[]
  readonly taskOf: (plan: ViewPlan) => ConvertTask
  /** Called when a view is to blame. Throws if it must not be left out. */
  readonly onVerdict: (verdict: ViewVerdict) => void
  readonly signal: AbortSignal
}

export class Conversions {
  readonly #options: ConversionsOptions

  constructor(options: ConversionsOptions) {
    this.#options = options
  }

  /** Builds the files of a segment. Throws RequiredViewFailed, SegmentError, ConversionCrashed, a transient error, or the signal's reason. */
  build(request: SegmentConversion): Promise<BuiltArtifacts> {
    const { segment, bytes, outputFormats, views, memoryBytes, signal } = request
    const timeoutMs = (this.#options.viewTimeoutMs ?? viewTimeoutMs)(bytes)
    return buildInDirectory(this.#options.scratch, async (directory) => {
      const common = { wal: this.#options.wal, segment, outputFormats, views, directory, memoryBytes, viewTimeoutMs: timeoutMs }
      const built = await this.#convert({
        ...{ directory, viewTimeoutMs: timeoutMs, views, signal },
        taskOf: (plan) => ({ kind: 'segment', ...common, plan }),
        onVerdict: ({ view, reason }) => {
          const guilty = viewAt(views, view)
          if (guilty.is_required) throw new RequiredViewFailed(guilty, reason)
        },
      })
      const failed = built.failed.map(({ view, reason }) => ({ view: viewAt(views, view), error: reason }))
      return { files: filesIn(directory, built), views: built.views, failed }
    })
  }

  /** Converts a record that is known to be good. Throws the signal's reason, or NodeCannotConvert. Takes about 50 ms. */
  async probe(signal: AbortSignal): Promise<void> {
    const timeoutMs = buildLimits.viewTimeoutMsMin
    try {
      const built = await buildInDirectory(this.#options.scratch, async (directory) => {
        const task: ConvertTask = { kind: 'probe', directory, memoryBytes: probeBytes, viewTimeoutMs: timeoutMs }
        const attempts = {
          directory,
          viewTimeoutMs: timeoutMs,
          views: [],
          taskOf: () => task,
          onVerdict: () => undefined,
          signal,
        }
        return { files: filesIn(directory, await this.#convert(attempts)), views: [], failed: [] }
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
    const common = { unit, sourcePath, directory, memoryBytes, viewTimeoutMs: buildLimits.viewTimeoutMsMax }
    const built = await this.#convert({
      ...common,
      views: [],
      taskOf: (plan) => ({ kind: 'unit', ...common, plan }),
      onVerdict: ({ reason }) => {
        throw new UnitViewFailed(reason, unit.source.artifact.rows)
      },
      signal,
    })
    const [outcome] = built.views
    assert(outcome !== undefined, 'a unit has the outcome of its view')
    return { files: filesIn(directory, built), outcome }
  }

  async #convert({ directory, viewTimeoutMs, views, taskOf, onVerdict, signal }: Attempts): Promise<Built> {
    const { pool, killAfterMs = deliveryLimits.conversionKillAfterMs } = this.#options
    const died = new Set<number>()
    // A view that was detached because it is slow must not hold up the others.
    let plan: ViewPlan = { isApart: views.some(isDetached), failed: [] }
    const timeoutOf = (view: number): number => {
      const known = views[view]
      return known !== undefined && isDetached(known) ? viewTimeoutMs * deliveryLimits.detachedViewTimeoutFactor : viewTimeoutMs
    }
    for (;;) {
      let step: Step | undefined
      const limitMs = ({ views }: Step) =>
        views.length === 0 ? buildLimits.statementTimeoutMs : views.reduce((sum, view) => sum + timeoutOf(view), 0)
      const end = await pool.run(taskOf(plan), {
        timeoutMs: deliveryLimits.conversionStartMs,
        onReport: (report) => {
          step = report
          // A statement ends by itself at the limit, if DuckDB handles the interrupt.
          return limitMs(report) + killAfterMs
        },
        signal,
      })
      if ('reply' in end) {
        if ('failure' in end.reply) throw toError(end.reply.failure, views)
        return end.reply
      }
      const ended = 'timedOut' in end ? undefined : end.exited
      if (step === undefined) throw new TransientError(`the conversion process ${ended ?? 'did not start in time'}`)
      const [view, ...others] = step.views
      if (view === undefined) {
        if (ended === undefined) throw new TransientError('a step of the conversion took too long: is the disk slow?')
        throw new ConversionCrashed(`the conversion process ended: ${ended}`)
      }
      let { failed } = plan
      if (others.length === 0) {
        // A process can also die for a reason of the node, such as a lack of memory.
        if (ended === undefined || died.has(view)) {
          const verdict = verdictOn(view, ended, timeoutOf(view))
          onVerdict(verdict)
          failed = [...failed, verdict]
        }
        died.add(view)
      }
      plan = { isApart: true, failed }
      await rm(directory, { recursive: true, force: true })
      await mkdir(directory)
    }
  }
}

/** A process that exceeds the memory or file size that it may use ends by one of these. */
const limitSignals = ['SIGKILL', 'SIGABRT', 'SIGTRAP', 'SIGXFSZ']

function verdictOn(view: number, ended: string | undefined, limitMs: number): ViewVerdict {
  if (ended === undefined)
    return { view, reason: `its extraction took longer than ${Math.round(limitMs / 100) / 10} s`, isTooExpensive: true }
  const isTooExpensive = limitSignals.some((signal) => ended.endsWith(signal))
  const reason = isTooExpensive
    ? `its extraction exceeded the memory or file size of a conversion (${ended})`
    : `its extraction crashed (${ended})`
  return { view, reason, isTooExpensive }
}

function toError(failure: Failure, views: readonly BoundView[]): Error {
  switch (failure.kind) {
    case 'required view':
      return new RequiredViewFailed(viewAt(views, failure.view), failure.reason)
    case 'unit view':
      return new UnitViewFailed(failure.reason, failure.records)
    case 'segment':
      return new SegmentError(failure.path, failure.problem, failure.offset, failure.message)
    case 'fault':
      return new TransientError(failure.message)
    case 'other':
      return new Error(failure.message)
  }
}

function isDetached({ deactivated_at }: BoundView): boolean {
  return deactivated_at !== null
}

function viewAt(views: readonly BoundView[], position: number): BoundView {
  const view = views[position]
  assert(view !== undefined, 'a conversion process names a view of its task')
  return view
}

function filesIn(directory: string, { files }: Built): UnitFiles['files'] {
  return files.map(({ name, ...file }) => {
    assert(name === basename(name), 'a conversion process writes into its directory')
    return { ...file, path: join(directory, name) }
  })
}
