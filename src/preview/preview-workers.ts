/**
 * The processes that run previews.
 *
 * Owns: how many there are, when one is started and ended. Does not own: what a preview is.
 * Law: a preview ends at its limit whatever DuckDB does, and what it does to its process harms no other; no account has all workers.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { extname, join } from 'node:path'
import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import { Semaphore } from '#lib/semaphore.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { previewLimits } from '#model/limits.ts'
import type { DefinedPreview, PreviewResult } from '#model/preview.ts'
import type { Suggestion } from '#model/suggestion.ts'
import { failedPreview, timeoutIssue } from './preview.ts'
import type { PreviewAnswer, PreviewRequestOf, PreviewTask, SampleSource } from './preview-protocol.ts'

const workerLimits = {
  /** Processes that run previews at once; those that one account may use; how long a preview waits for one. */
  count: 2,
  perAccount: 1,
  waitMs: 5_000,
  /** Time that a process gets beyond the limit of a preview to report a timeout before it is killed. */
  killAfterMs: 250,
  /** How long an idle process is kept. */
  idleMs: 60_000,
} as const

export type PreviewWorkersOptions = { readonly clock: Clock; readonly logger: Logger; readonly timeoutMs?: number }

type TimedOut = { readonly timedOutAfterMs: number }

type Idle = { readonly child: ChildProcess; readonly cancelTimer: () => void }

const program = join(import.meta.dirname, `preview-worker${extname(import.meta.filename)}`)

export class PreviewWorkers implements Service {
  readonly name = 'preview workers'
  readonly #options: PreviewWorkersOptions
  readonly #permits = new Semaphore(workerLimits.count)
  /** Of accounts that have something running or waiting. */
  readonly #accounts = new Map<string, { readonly permits: Semaphore; users: number }>()
  readonly #stopping = new AbortController()
  readonly #idle: Idle[] = []
  readonly #running = new Set<Promise<unknown>>()

  constructor(options: PreviewWorkersOptions) {
    this.#options = options
  }

  /** Processes are started when they are needed. */
  async start(): Promise<void> {}

  async stop(): Promise<void> {
    this.#stopping.abort(new AppError('unavailable', 'the service is stopping', { retryAfterSeconds: 1 }))
    for (const { child, cancelTimer } of this.#idle.splice(0)) {
      cancelTimer()
      end(child)
    }
    await Promise.allSettled(this.#running)
  }

  /** Throws validation_error for a definition that does not compile, unavailable when it waits for too long, and the signal's reason. */
  async run(preview: DefinedPreview, account: string, signal: AbortSignal): Promise<PreviewResult> {
    const answer = await this.#ask({ preview }, account, signal)
    if ('result' in answer) return answer.result
    if ('timedOutAfterMs' in answer) return failedPreview(timeoutIssue(answer.timedOutAfterMs))
    return failedPreview({ sample_index: null, column: null, code: 'view_failed', message: 'the preview could not be run' })
  }

  /** Throws validation_error for a source that cannot be looked at, unavailable when it waits for too long, and the signal's reason. */
  async suggest(source: SampleSource, account: string, signal: AbortSignal): Promise<Suggestion> {
    const answer = await this.#ask({ suggest: source }, account, signal)
    if ('suggestion' in answer) return answer.suggestion
    throw new AppError('validation_error', 'the samples could not be looked at within the limits: send fewer of them')
  }

  async #ask(request: PreviewRequestOf, account: string, signal: AbortSignal): Promise<PreviewAnswer | TimedOut> {
    const ended = AbortSignal.any([signal, this.#stopping.signal])
    const permit = await this.#permit(account, ended)
    const running = this.#runOn(this.#take(), request, ended).finally(() => permit[Symbol.dispose]())
    this.#running.add(running)
    return running.finally(() => this.#running.delete(running))
  }

  /** An account never has the last worker: what else it asks for waits in a line of its own, so that accounts take turns. */
  async #permit(account: string, ended: AbortSignal): Promise<Disposable> {
    const own = this.#accounts.get(account) ?? { permits: new Semaphore(workerLimits.perAccount), users: 0 }
    this.#accounts.set(account, own)
    own.users += 1
    const held = new DisposableStack()
    held.defer(() => {
      own.users -= 1
      if (own.users === 0) this.#accounts.delete(account)
    })
    const tooLong = new AbortController()
    const cancelTimer = this.#options.clock.setTimer(() => tooLong.abort(busy()), workerLimits.waitMs)
    try {
      const signal = AbortSignal.any([ended, tooLong.signal])
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

  async #runOn(child: ChildProcess, request: PreviewRequestOf, ended: AbortSignal): Promise<PreviewAnswer | TimedOut> {
    const { clock, logger, timeoutMs = previewLimits.timeoutMs } = this.#options
    const { promise, resolve, reject } = Promise.withResolvers<PreviewAnswer | TimedOut>()
    const onExit = () => resolve({ crashed: 'the process ended' })
    const onEnded = () => reject(ended.reason)
    const cancelTimer = clock.setTimer(() => resolve({ timedOutAfterMs: timeoutMs }), timeoutMs + workerLimits.killAfterMs)
    child.once('message', resolve)
    child.once('exit', onExit)
    ended.addEventListener('abort', onEnded, { once: true })
    let isFree = false
    try {
      ended.throwIfAborted()
      child.send({ request, timeoutMs } satisfies PreviewTask, (error) => {
        if (error !== null) resolve({ crashed: error.message })
      })
      child.once('message', () => {
        isFree = true
      })
      const answer = await promise
      if ('refused' in answer) throw new AppError('validation_error', answer.refused.message, { errors: answer.refused.errors })
      if ('crashed' in answer) logger.error({ reason: answer.crashed }, 'a preview failed')
      return answer
    } finally {
      cancelTimer()
      child.removeAllListeners('message')
      child.off('exit', onExit)
      ended.removeEventListener('abort', onEnded)
      if (isFree && !this.#stopping.signal.aborted) this.#keep(child)
      else end(child)
    }
  }

  #take(): ChildProcess {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      idle.cancelTimer()
      // It may have died just now: the end of the process and of the channel to it are told one after the other.
      const { connected, exitCode, signalCode } = idle.child
      if (connected && exitCode === null && signalCode === null) return idle.child
    }
    // Nothing of this process's secrets is in its environment.
    const child = fork(program, [], {
      env: {},
      execArgv: [],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    child.on('error', (error) => this.#options.logger.error({ err: error }, 'a preview process failed'))
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
  return new AppError('unavailable', 'too many previews run at once', { retryAfterSeconds: 1 })
}
