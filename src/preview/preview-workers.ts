/**
 * Runs previews in a pool of processes.
 *
 * Owns: the number of processes, and whose turn it is. Does not own: what a preview does (preview.ts), the processes (process-pool.ts).
 * Law: a preview ends at its limit whatever DuckDB does, a crash affects no other preview, and no account occupies all workers.
 */
import { extname, join } from 'node:path'
import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import { ProcessPool } from '#lib/process-pool.ts'
import { Semaphore } from '#lib/semaphore.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { previewLimits } from '#model/limits.ts'
import type { DefinedPreview, PreviewIssue, PreviewResult } from '#model/preview.ts'
import type { Suggestion } from '#model/suggestion.ts'
import { failedPreview, timeoutIssue, toMicroseconds } from './failed-preview.ts'
import type { PreviewReply, PreviewRequest, PreviewTask, SampleSource } from './preview-protocol.ts'

const workerLimits = {
  /** Number of processes; how many one account may use; how long a preview waits for one. */
  count: 2,
  perAccount: 1,
  waitMs: 5_000,
  /** Extra time after the limit of a preview for the process to report a timeout before it is killed. */
  killAfterMs: 250,
  /** How long an idle process is kept. */
  idleMs: 60_000,
} as const

export type PreviewWorkersOptions = { readonly clock: Clock; readonly logger: Logger; readonly timeoutMs?: number }

type TimedOut = { readonly timedOutAfterMs: number }

type TimedReply = { readonly reply: PreviewReply | TimedOut; readonly elapsedMs: number }

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
  readonly #permits = new Semaphore(workerLimits.count)
  /** Accounts with running or waiting previews. */
  readonly #accounts = new Map<string, { readonly permits: Semaphore; users: number }>()
  readonly #stopping = new AbortController()
  readonly #pool: ProcessPool<PreviewTask, PreviewReply>

  constructor(options: PreviewWorkersOptions) {
    this.#options = options
    this.#pool = new ProcessPool({ program, idleMs: workerLimits.idleMs, clock: options.clock })
  }

  /** Does nothing: processes are started on demand. */
  async start(): Promise<void> {}

  async stop(): Promise<void> {
    this.#stopping.abort(new AppError('unavailable', 'the service is stopping', { retryAfterSeconds: 1 }))
    await this.#pool.stop()
  }

  /** Throws validation_error for a definition that does not compile, unavailable after waiting too long, and the signal's reason. */
  async run(preview: DefinedPreview, account: string, signal: AbortSignal): Promise<PreviewResult> {
    const { reply, elapsedMs } = await this.#ask({ preview }, account, signal)
    if ('result' in reply) return reply.result
    const error = 'timedOutAfterMs' in reply ? timeoutIssue(reply.timedOutAfterMs) : processFailed
    return { ...failedPreview(error, preview.samples.length), compiledSql: '', executionTimeMs: toMicroseconds(elapsedMs) }
  }

  /** Throws validation_error for samples that cannot be read, unavailable after waiting too long, and the signal's reason. */
  async suggest(source: SampleSource, account: string, signal: AbortSignal): Promise<Suggestion> {
    const { reply } = await this.#ask({ suggest: source }, account, signal)
    if ('suggestion' in reply) return reply.suggestion
    throw new AppError('validation_error', 'reading the samples exceeded the limits: send fewer samples')
  }

  async #ask(request: PreviewRequest, account: string, signal: AbortSignal): Promise<TimedReply> {
    const ended = AbortSignal.any([signal, this.#stopping.signal])
    using _permit = await this.#permit(account, ended)
    return await this.#runInProcess(request, ended)
  }

  /** Acquires a worker. An account never gets the last one. Its other requests wait in its own queue, so that accounts take turns. */
  async #permit(account: string, ended: AbortSignal): Promise<Disposable> {
    const own = this.#accounts.get(account) ?? { permits: new Semaphore(workerLimits.perAccount), users: 0 }
    this.#accounts.set(account, own)
    own.users += 1
    const held = new DisposableStack()
    held.defer(() => {
      own.users -= 1
      if (own.users === 0) this.#accounts.delete(account)
    })
    const waitTimeout = new AbortController()
    const cancelTimer = this.#options.clock.setTimer(() => waitTimeout.abort(busy()), workerLimits.waitMs)
    try {
      const signal = AbortSignal.any([ended, waitTimeout.signal])
      held.use(await own.permits.acquire(1, signal))
      held.use(await this.#permits.acquire(1, signal))
      return held
    } catch (error) {
      held.dispose()
      throw error
    } finally {
      cancelTimer()
    }
  }

  async #runInProcess(request: PreviewRequest, signal: AbortSignal): Promise<TimedReply> {
    const { clock, logger, timeoutMs = previewLimits.timeoutMs } = this.#options
    const startedAt = clock.monotonic()
    const end = await this.#pool.run({ request, timeoutMs }, { timeoutMs: timeoutMs + workerLimits.killAfterMs, signal })
    const elapsedMs = clock.monotonic() - startedAt
    if ('timedOut' in end) return { reply: { timedOutAfterMs: timeoutMs }, elapsedMs }
    const reply = 'reply' in end ? end.reply : { crashed: `the process ended: ${end.exited}` }
    if ('rejected' in reply) throw new AppError('validation_error', reply.rejected.message, { errors: reply.rejected.errors })
    if ('crashed' in reply) logger.error({ reason: reply.crashed }, 'preview failed')
    return { reply, elapsedMs }
  }
}

function busy(): AppError {
  return new AppError('unavailable', 'too many previews are running: try again later', { retryAfterSeconds: 1 })
}
