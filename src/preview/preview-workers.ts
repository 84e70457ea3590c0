/**
 * Runs previews in a pool of processes.
 *
 * Owns: the number of processes, starting and ending them. Does not own: what a preview does (preview.ts).
 * Law: a preview ends at its limit whatever DuckDB does, a crash affects no other preview, and no account occupies all workers.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { extname, join } from 'node:path'
import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
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

type Idle = { readonly child: ChildProcess; readonly cancelTimer: () => void }

const program = join(import.meta.dirname, `preview-worker${extname(import.meta.filename)}`)

export class PreviewWorkers implements Service {
  readonly name = 'preview workers'
  readonly #options: PreviewWorkersOptions
  readonly #permits = new Semaphore(workerLimits.count)
  /** Accounts with running or waiting previews. */
  readonly #accounts = new Map<string, { readonly permits: Semaphore; users: number }>()
  readonly #stopping = new AbortController()
  readonly #idle: Idle[] = []
  readonly #running = new Set<Promise<unknown>>()

  constructor(options: PreviewWorkersOptions) {
    this.#options = options
  }

  /** Does nothing: processes are started on demand. */
  async start(): Promise<void> {}

  async stop(): Promise<void> {
    this.#stopping.abort(new AppError('unavailable', 'the service is stopping', { retryAfterSeconds: 1 }))
    for (const { child, cancelTimer } of this.#idle.splice(0)) {
      cancelTimer()
      end(child)
    }
    await Promise.allSettled(this.#running)
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
    const permit = await this.#permit(account, ended)
    const running = this.#runOn(this.#take(), request, ended).finally(() => permit[Symbol.dispose]())
    this.#running.add(running)
    return running.finally(() => this.#running.delete(running))
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

  async #runOn(child: ChildProcess, request: PreviewRequest, ended: AbortSignal): Promise<TimedReply> {
    const { clock, logger, timeoutMs = previewLimits.timeoutMs } = this.#options
    const startedAt = clock.monotonic()
    const { promise, resolve, reject } = Promise.withResolvers<PreviewReply | TimedOut>()
    const onExit = () => resolve({ crashed: 'the process ended' })
    const onEnded = () => reject(ended.reason)
    const cancelTimer = clock.setTimer(() => resolve({ timedOutAfterMs: timeoutMs }), timeoutMs + workerLimits.killAfterMs)
    child.once('message', resolve)
    child.once('exit', onExit)
    ended.addEventListener('abort', onEnded, { once: true })
    let isReusable = false
    try {
      ended.throwIfAborted()
      child.send({ request, timeoutMs } satisfies PreviewTask, (error) => {
        if (error !== null) resolve({ crashed: error.message })
      })
      child.once('message', () => {
        isReusable = true
      })
      const reply = await promise
      if ('rejected' in reply) throw new AppError('validation_error', reply.rejected.message, { errors: reply.rejected.errors })
      if ('crashed' in reply) logger.error({ reason: reply.crashed }, 'preview failed')
      return { reply, elapsedMs: clock.monotonic() - startedAt }
    } finally {
      cancelTimer()
      child.removeAllListeners('message')
      child.off('exit', onExit)
      ended.removeEventListener('abort', onEnded)
      if (isReusable && !this.#stopping.signal.aborted) this.#keep(child)
      else end(child)
    }
  }

  #take(): ChildProcess {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      idle.cancelTimer()
      // The process may have just exited: its exit and the closing of its channel are separate events.
      const { connected, exitCode, signalCode } = idle.child
      if (connected && exitCode === null && signalCode === null) return idle.child
    }
    // An empty environment keeps the secrets of this process out of it.
    const child = fork(program, [], {
      env: {},
      execArgv: [],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    child.on('error', (error) => this.#options.logger.error({ err: error }, 'preview process failed'))
    return child
  }

  #keep(child: ChildProcess): void {
    const cancelTimer = this.#options.clock.setTimer(() => {
      const at = this.#idle.findIndex((idle) => idle.child === child)
      if (at >= 0) this.#idle.splice(at, 1)
      end(child)
    }, workerLimits.idleMs)
    this.#idle.push({ child, cancelTimer })
  }
}

function end(child: ChildProcess): void {
  child.kill('SIGKILL')
}

function busy(): AppError {
  return new AppError('unavailable', 'too many previews are running: try again later', { retryAfterSeconds: 1 })
}
