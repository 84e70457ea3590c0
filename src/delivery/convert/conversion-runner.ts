/**
 * Converts in child processes, which can be killed at any time.
 *
 * Owns: one task in one process, its files and its reply. Does not own: how files are built (build/), when a process is killed and which view is to
 * blame (view-progress.ts), what follows (policy.ts), the processes (process-pool.ts), how many run at once.
 */
import { MiB } from '#lib/bytes.ts'
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Files } from '#lib/files.ts'
import type { TaskEnd } from '#lib/process-pool.ts'
import type { SegmentRef, SegmentSource } from '#log/segment-source.ts'
import type { BoundView } from '#model/snapshot.ts'
import { keyBytes } from '#records/key-hashes.ts'
import { buildLimits, viewTimeoutMs } from '#records/limits.ts'
import type { FindKeys, ViewBlame, ViewPlan } from './build/build-views.ts'
import { TransientError } from './build/transient-error.ts'
import { BuildDirectory } from './build-directory.ts'
import type { ConversionPool } from './conversion-pool.ts'
import { conversionLimits } from './limits.ts'
import { type Built, filesIn, toError } from './reply.ts'
import { ViewProgress } from './view-progress.ts'
import type { ConvertReply, ConvertTask, KeyAnswer } from './worker/protocol.ts'
import { WorkerAccess } from './worker-access.ts'

export type ConversionRunnerOptions = {
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
  readonly files: Files
  readonly clock: Clock
}

/** Paths as a process knows them. */
export type TaskPaths = { readonly source: string; readonly directory: string; readonly inside: (path: string) => string }

/** Files that one process after the other builds. */
export type Build = {
  readonly directory: BuildDirectory
  /** The files that the processes read. */
  readonly inputs: readonly string[]
  readonly views: readonly BoundView[]
  readonly progress: ViewProgress
  readonly taskOf: (paths: TaskPaths, plan: ViewPlan) => ConvertTask
  /** For views with a window. */
  readonly findKeys?: FindKeys | undefined
  /** Called when a view is to blame. Throws if it must not be left out. */
  readonly onBlame: (blame: ViewBlame) => void
  /** Once a process has replied. */
  built?: Built
}

/** The node cannot convert anything now. */
class NodeCannotConvert extends TransientError {
  override readonly name = 'NodeCannotConvert'
}

/** DuckDB needs this much for one record. */
const probeBytes = 64 * MiB

export class ConversionRunner {
  readonly #options: ConversionRunnerOptions
  readonly #access: WorkerAccess

  constructor(options: ConversionRunnerOptions) {
    this.#options = options
    this.#access = options.access ?? new WorkerAccess({ directory: options.scratch, user: undefined })
  }

  createDirectory(parent: string = this.#options.scratch): Promise<BuildDirectory> {
    return BuildDirectory.create(this.#options.files, parent)
  }

  /** Returns how long a view may take on a segment of that many bytes. */
  viewTimeoutMs(bytes: number): number {
    return (this.#options.viewTimeoutMs ?? viewTimeoutMs)(bytes)
  }

  filesOf(segment: SegmentRef): readonly string[] {
    return this.#options.segments.filesOf(segment)
  }

  /**
   * Has one process build what is left. If it ends before it replies, the build has no result, and its progress says what the next one is to
   * do. Throws what the process replies, ConversionCrashed, a transient error, what `onBlame` throws, or the signal's reason.
   */
  async run(build: Build, signal: AbortSignal): Promise<void> {
    const { pool, segments, clock, killAfterMs = conversionLimits.killAfterMs } = this.#options
    const { directory, inputs, views, progress } = build
    const inside = (path: string) => this.#access.inside(path)
    const paths = { source: inside(segments.location), directory: inside(directory.path), inside }
    let end: TaskEnd<ConvertReply>
    {
      await using _access = await this.#access.grant({ inputs, directory: directory.path })
      end = await pool.run(build.taskOf(paths, progress.plan), {
        timeoutMs: conversionLimits.startMs,
        onReport: (step) => Math.max(0, progress.begin(step, clock.monotonic()) + killAfterMs),
        onQuestion: (question) => answer(question, build.findKeys),
        signal,
      })
    }
    if (!('reply' in end)) {
      for (const blame of progress.end('exited' in end ? end.exited : undefined, clock.monotonic())) build.onBlame(blame)
      await directory.keepOnly(progress.built.flatMap(({ files, keys = [] }) => [files, keys].flat()))
    } else if ('failure' in end.reply) throw toError(end.reply.failure, views, this.#access)
    else {
      const names = [...end.reply.files, ...(end.reply.keys ?? [])].map(({ name }) => name)
      await this.#access.take(directory.path, names)
      build.built = end.reply
    }
  }

  /** Converts a record that is known to be good. Throws the signal's reason, or NodeCannotConvert. Takes about 50 ms. */
  async probe(signal: AbortSignal): Promise<void> {
    const viewTimeoutMs = buildLimits.viewTimeoutMsMin
    let directory: BuildDirectory | undefined
    try {
      directory = await this.createDirectory()
      const build: Build = {
        ...{ directory, inputs: [], views: [], onBlame: () => undefined },
        progress: new ViewProgress({ views: [], isApart: false, viewTimeoutMs, viewsTimeoutMs: viewTimeoutMs }),
        taskOf: ({ directory }) => ({ kind: 'probe', directory, viewTimeoutMs, memoryBytes: probeBytes }),
      }
      await this.run(build, signal)
      await directory.remove(build.built && filesIn(directory.path, build.built))
    } catch (error) {
      await directory?.remove()
      signal.throwIfAborted()
      throw new NodeCannotConvert('this node cannot convert segments now', { cause: error })
    }
  }
}

/** Answers a question of a process, which may be anything. */
async function answer(question: unknown, findKeys: FindKeys | undefined): Promise<KeyAnswer> {
  const { viewId, keys } = (question ?? {}) as { readonly viewId?: unknown; readonly keys?: unknown }
  const isValid =
    typeof viewId === 'string' &&
    keys instanceof Uint8Array &&
    keys.length % keyBytes === 0 &&
    keys.length <= conversionLimits.questionBytesMax
  if (!isValid || findKeys === undefined) return { failure: 'a conversion process asked for something else than keys' }
  try {
    return { found: await findKeys(viewId, keys) }
  } catch (error) {
    return { failure: errorMessage(error) }
  }
}
