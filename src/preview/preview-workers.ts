/**
 * Reads, compiles and tries out definitions in a pool of processes.
 *
 * Owns: the number of processes. Does not own: what a process does (preview-worker.ts), whose turn it is and the processes
 * (confined-workers.ts).
 * Law: a task ends at its limit whatever it does, and a crash affects no other task. An account that used less than others lately waits for
 * about a second: the task of another one is ended for it, and repeated. This process looks into no definition and into no body of a request
 * that has one: nothing that such a request contains holds its event loop.
 */
import { dirname, extname, join } from 'node:path'
import { AppError } from '#errors.ts'
import { GiB, MiB } from '#lib/bytes.ts'
import type { Clock } from '#lib/clock.ts'
import { ConfinedWorkers } from '#lib/confined-workers.ts'
import type { Sandbox } from '#lib/sandbox.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Definition, DefinitionFormat } from '#model/definition.ts'
import { previewLimits } from '#model/limits.ts'
import type { DefinitionWarning, PreviewIssue, PreviewResult } from '#model/preview.ts'
import type { CompareTask } from './compare-stored.ts'
import { failedPreview, onDefinition, timeoutIssue, toMicroseconds, tooSlowToCompare } from './failed-preview.ts'
import type {
  CheckedChange,
  DlqRowsTask,
  PreviewReply,
  PreviewReport,
  PreviewRequest,
  PreviewSecrets,
  PreviewTask,
  RawRowsTask,
  ReadComparison,
  ReadView,
} from './preview-protocol.ts'

const workerLimits = {
  /** Number of processes; how long after its arrival a task may start, or start again: longer than another may take. */
  count: 2,
  waitMs: 15_000,
  /** How far an account may be ahead of one that waits. Most tasks take less, also in a process that has to start. */
  leadMsMax: 500,
  /** Extra time after the limit of a preview for the process to report a timeout before it is killed. */
  killAfterMs: 250,
  /** How long an idle process is kept. */
  idleMs: 60_000,
  /** Memory of a process, and the size of a file that it may write. */
  memoryBytes: 512 * MiB,
  fileBytes: GiB,
} as const

export type PreviewWorkersOptions = {
  readonly clock: Clock
  readonly logger: Logger
  readonly sandbox?: Sandbox
  readonly timeoutMs?: number
}

type TimedOut = { readonly timedOutAfterMs: number }

/** `samples` is undefined if the process ended before it had read them. */
type TimedReply = { readonly reply: PreviewReply | TimedOut; readonly elapsedMs: number; readonly samples: number | undefined }

const processFailed: PreviewIssue = {
  sample_index: null,
  column: null,
  code: 'view_failed',
  message: 'the preview process failed; try again',
}

const program = join(import.meta.dirname, `preview-worker${extname(import.meta.filename)}`)

export class PreviewWorkers implements Service {
  readonly name = 'preview workers'
  readonly #options: PreviewWorkersOptions
  readonly #workers: ConfinedWorkers<PreviewTask, PreviewReply, PreviewReport>

  constructor(options: PreviewWorkersOptions) {
    const { sandbox, clock } = options
    this.#options = options
    this.#workers = new ConfinedWorkers({ program, limits: workerLimits, tooLate: busy, sandbox, clock })
  }

  get pids(): readonly number[] {
    return this.#workers.pids
  }

  /** Does nothing: processes are started on demand. */
  async start(): Promise<void> {}

  stop(): Promise<void> {
    return this.#workers.stop(new AppError('unavailable', 'the service is stopping', { retryAfterSeconds: 1 }))
  }

  /**
   * Returns the response to a preview, as JSON. Throws validation_error for a body that is not valid or a definition that does not compile or names another secret,
   * unavailable after waiting too long, and the signal's reason. So do the other methods.
   */
  async preview(body: Uint8Array, secrets: PreviewSecrets, account: string, signal: AbortSignal): Promise<Uint8Array> {
    const { reply, elapsedMs, samples = 0 } = await this.#ask({ preview: body, secrets }, account, signal)
    if ('json' in reply) return reply.json
    const error = 'timedOutAfterMs' in reply ? timeoutIssue(reply.timedOutAfterMs) : processFailed
    const failed: PreviewResult = {
      ...failedPreview(error, samples),
      compiledSql: '',
      executionTimeMs: toMicroseconds(elapsedMs),
    }
    return Buffer.from(JSON.stringify(failed))
  }

  /** Returns the response to a suggestion, as JSON, or the id of the endpoint that the body names instead of samples. */
  async suggest(body: Uint8Array, account: string, signal: AbortSignal): Promise<Uint8Array | { readonly endpointId: string }> {
    const { reply } = await this.#ask({ suggest: body }, account, signal)
    if ('endpointId' in reply) return reply
    if ('json' in reply) return reply.json
    throw samplesTooLarge()
  }

  /** Like `suggest`, from the raw Parquet at a path in a directory of its own. */
  async suggestFrom(parquet: string, account: string, signal: AbortSignal): Promise<Uint8Array> {
    await this.#workers.give([parquet, dirname(parquet)])
    const { reply } = await this.#ask({ suggestFrom: parquet }, account, signal)
    if ('json' in reply) return reply.json
    throw samplesTooLarge()
  }

  /** Returns the latest records of raw Parquet, as JSON. The files are in a directory of their own. Throws conflict for unreadable ones. */
  readRawRows(
    files: RawRowsTask['files'],
    query: Omit<RawRowsTask, 'files'>,
    account: string,
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    const { limit, contains } = query
    return this.#readRows(files, { rawRows: { files, limit, contains } }, account, signal)
  }

  /** Like `readRawRows`, from DLQ files. */
  readDlqRows(
    files: DlqRowsTask['files'],
    query: Omit<DlqRowsTask, 'files'>,
    account: string,
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    const { limit, error_code, column } = query
    return this.#readRows(files, { dlqRows: { files, limit, error_code, column } }, account, signal)
  }

  /** Counts why records were rejected, from DLQ files as above. */
  countDlqReasons(paths: readonly string[], account: string, signal: AbortSignal): Promise<Uint8Array> {
    const files = paths.map((path) => ({ path }))
    return this.#readRows(files, { dlqReasons: paths }, account, signal)
  }

  async #readRows(
    files: readonly { readonly path: string }[],
    request: PreviewRequest,
    account: string,
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    const paths = files.map(({ path }) => path)
    await this.#workers.give([...paths, ...new Set(paths.map(dirname))])
    const { reply } = await this.#ask(request, account, signal)
    if ('json' in reply) return reply.json
    const { logger } = this.#options
    if ('unreadable' in reply) logger.warn({ reason: reply.unreadable }, 'delivered file not readable')
    const isLate = 'timedOutAfterMs' in reply
    throw new AppError(
      'conflict',
      isLate ? 'reading the files took too long: ask for fewer records' : 'the files in the bucket cannot be read',
    )
  }

  /** Returns the view that a body describes. Its definition compiles. */
  async readView(body: Uint8Array, secrets: readonly string[], account: string, signal: AbortSignal): Promise<ReadView> {
    const { reply } = await this.#ask({ create: body, secrets }, account, signal)
    if ('view' in reply) return reply.view
    throw cannotBeChecked(reply)
  }

  /** Returns the change that a body describes. `format` is for a definition that comes without one. */
  async readChange(
    body: Uint8Array,
    format: DefinitionFormat,
    secrets: readonly string[],
    account: string,
    signal: AbortSignal,
  ): Promise<CheckedChange> {
    const { reply } = await this.#ask({ change: body, format, secrets }, account, signal)
    if ('change' in reply) return reply.change
    throw cannotBeChecked(reply)
  }

  /** Checks a definition from the store. Returns the warnings about it. */
  async compile(
    definition: Definition,
    secrets: readonly string[],
    account: string,
    signal: AbortSignal,
  ): Promise<readonly DefinitionWarning[]> {
    const { reply } = await this.#ask({ compile: definition, secrets }, account, signal)
    if ('compiled' in reply) return reply.compiled.warnings
    throw cannotBeChecked(reply)
  }

  /** Returns what a body asks to compare. `format` is for a definition that comes without one. */
  async readComparison(
    body: Uint8Array,
    format: DefinitionFormat,
    secrets: readonly string[],
    account: string,
    signal: AbortSignal,
  ): Promise<ReadComparison> {
    const { reply } = await this.#ask({ readComparison: body, format, secrets }, account, signal)
    if ('comparison' in reply) return reply.comparison
    throw cannotBeChecked(reply)
  }

  /** Returns the comparison as JSON. The files are in a directory of their own. Throws conflict for unreadable ones. */
  async compare(task: CompareTask, account: string, signal: AbortSignal): Promise<Uint8Array> {
    const paths = task.files.map(({ path }) => path)
    await this.#workers.give([...paths, ...new Set(paths.map(dirname))])
    const { reply } = await this.#ask({ compare: task }, account, signal)
    if ('json' in reply) return reply.json
    if ('unreadable' in reply) {
      this.#options.logger.warn({ reason: reply.unreadable }, 'delivered file not readable')
      throw new AppError('conflict', 'the files in the bucket cannot be read')
    }
    if ('timedOutAfterMs' in reply) throw tooSlowToCompare(reply.timedOutAfterMs)
    throw onDefinition('the comparison failed: simplify the expressions, or try again later')
  }

  #ask(request: PreviewRequest, account: string, signal: AbortSignal): Promise<TimedReply> {
    return this.#workers.inTurn(account, signal, (turn) => {
      const reply = this.#runInProcess(request, turn)
      // The process of whoever returns a slot is killed. Meanwhile, another one starts.
      if (this.#workers.waiting > 0) this.#workers.warm()
      return reply
    })
  }

  async #runInProcess(request: PreviewRequest, signal: AbortSignal): Promise<TimedReply> {
    const { clock, logger, timeoutMs = previewLimits.timeoutMs } = this.#options
    let startedAt = clock.monotonic()
    const onReady = () => {
      startedAt = clock.monotonic()
    }
    const elapsed = () => clock.monotonic() - startedAt
    const limitMs = timeoutMs + workerLimits.killAfterMs
    let samples: number | undefined
    const onReport = (report: PreviewReport) => {
      samples = report.samples
      return Math.max(0, limitMs - elapsed())
    }
    const end = await this.#workers.run({ request, timeoutMs }, { timeoutMs: limitMs, signal, onReady, onReport })
    const elapsedMs = elapsed()
    if ('timedOut' in end) return { reply: { timedOutAfterMs: timeoutMs }, elapsedMs, samples }
    const reply = 'reply' in end ? end.reply : { crashed: `the process ended: ${end.exited}` }
    if ('rejected' in reply) throw new AppError('validation_error', reply.rejected.message, reply.rejected)
    if ('crashed' in reply) logger.error({ reason: reply.crashed }, 'preview failed')
    return { reply, elapsedMs, samples }
  }
}

function samplesTooLarge(): AppError {
  return new AppError('validation_error', 'reading the samples exceeded the limits: send fewer samples')
}

function cannotBeChecked(reply: PreviewReply | TimedOut): AppError {
  const message =
    'timedOutAfterMs' in reply
      ? `checking the definition took longer than ${reply.timedOutAfterMs / 1000} s: simplify its conditions, or try again later`
      : 'checking the definition failed: simplify its conditions, or try again later'
  return new AppError('validation_error', message, { errors: [{ path: 'definition', message }] })
}

function busy(): AppError {
  return new AppError('unavailable', 'too many definitions are being checked or tried out: try again later', {
    retryAfterSeconds: 1,
  })
}
