import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type Clock, sleep } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import { Backoff } from '#lib/retry.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import { readChildReport, type SupervisorMessage } from './child-messages.ts'

/** A run this long counts as healthy: the next crash starts the back-off again from its minimum. */
const healthyRunMs = 30_000

export type ChildSpec = {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Whether the children after it may start only once it is ready. They load their code before that. */
  readonly startsFirst?: boolean
  /** Called with each message of the child that is not a ChildReport, unparsed. */
  readonly onMessage?: (message: unknown) => void
}

export type SupervisorOptions = {
  /** In start order; stopped in reverse. */
  readonly children: readonly ChildSpec[]
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

/** A child ended before it was ready. The message is one sentence for the operator. */
export class StartFailed extends UserError {
  override readonly name = 'StartFailed'
}

/** How a run of a child ended: its exit code or signal, and the reason if it could not start. */
type RunEnd = { readonly end: string; readonly reason: string | undefined }

/**
 * Keeps child processes running.
 *
 * Owns: starting, restarting with back-off, stopping. Does not own: the work or state of the children.
 * Law: only a child that was ready before is restarted. If one ends earlier, the start has failed: trying again would fail again.
 * After the start, the exit of one child never affects another. A child may use all the time until the deadline to stop.
 */
export class Supervisor implements Service {
  readonly name = 'supervisor'
  readonly #options: SupervisorOptions
  readonly #stopping = new AbortController()
  readonly #running = new Map<string, ChildProcess>()
  readonly #loops = new Map<string, Promise<void>>()

  constructor(options: SupervisorOptions) {
    this.#options = options
  }

  /** Resolves when all children are ready, or after `stop`. Throws StartFailed if one ends before; then the others run until `stop`. */
  async start(): Promise<void> {
    const ready: Promise<void>[] = []
    let predecessors: Promise<unknown> = Promise.resolve()
    for (const spec of this.#options.children) {
      const isReady = Promise.withResolvers<void>()
      this.#loops.set(spec.name, this.#keepRunning(spec, predecessors, isReady))
      ready.push(isReady.promise)
      if (spec.startsFirst === true) predecessors = Promise.all(ready)
    }
    await Promise.all(ready)
  }

  /**
   * Stops the children one at a time, last started first, so that a child that others need to drain stops later.
   * Kills the remaining ones at the deadline.
   */
  async stop(signal: AbortSignal): Promise<void> {
    this.#stopping.abort()
    const killAll = () => this.kill()
    signal.addEventListener('abort', killAll, { once: true })
    if (signal.aborted) killAll()
    for (const { name } of this.#options.children.toReversed()) {
      tell(this.#running.get(name), { type: 'stop' })
      await this.#loops.get(name)
    }
    signal.removeEventListener('abort', killAll)
  }

  /** Ends all children at once, without a drain. */
  kill(): void {
    for (const child of this.#running.values()) child.kill('SIGKILL')
  }

  /** Returns process ids of the running children by name. */
  pids(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#running].flatMap(([name, { pid }]) => (pid === undefined ? [] : [[name, pid]])))
  }

  async #keepRunning(spec: ChildSpec, predecessors: Promise<unknown>, isReady: PromiseWithResolvers<void>): Promise<void> {
    const { clock, random, logger } = this.#options
    const backoff = new Backoff({ delayMsMin: 200, delayMsMax: 15_000, random })
    let wasReady = false
    const onReady = () => {
      wasReady = true
      isReady.resolve()
    }
    while (!this.#stopping.signal.aborted) {
      const startedAt = clock.monotonic()
      const { end, reason } = await this.#run(spec, predecessors, onReady)
      if (this.#stopping.signal.aborted) break
      if (!wasReady) {
        isReady.reject(new StartFailed(reason ?? `${spec.name} ended before it was ready (${end}); its log above says why`))
        return
      }
      if (clock.monotonic() - startedAt > healthyRunMs) backoff.reset()
      const delayMs = Math.round(backoff.next())
      logger.error({ child: spec.name, end, reason, restart_ms: delayMs }, 'process ended; restarting')
      await sleep(clock, delayMs, this.#stopping.signal)
    }
    isReady.resolve()
  }

  /** Runs a child until it ends. */
  #run(spec: ChildSpec, predecessors: Promise<unknown>, onReady: () => void): Promise<RunEnd> {
    const { promise, resolve } = Promise.withResolvers<RunEnd>()
    let reason: string | undefined
    const child = spawn(spec.command, [...spec.args], {
      env: spec.environment,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    this.#running.set(spec.name, child)
    predecessors.then(
      () => tell(child, { type: 'start' }),
      () => undefined,
    )
    child.on('message', (message) => {
      const report = readChildReport(message)
      if (report?.type === 'ready') onReady()
      else if (report?.type === 'failed') reason = report.reason
      else spec.onMessage?.(message)
    })
    const ended = (end: string) => {
      this.#running.delete(spec.name)
      resolve({ end, reason })
    }
    child.once('error', (error) => ended(error.message))
    child.once('exit', async (code, signalName) => {
      // Its last messages may arrive after its exit.
      if (child.connected) await once(child, 'disconnect')
      ended(signalName ?? `exit code ${code}`)
    })
    return promise
  }
}

/** Does nothing if the child is just ending. */
function tell(child: ChildProcess | undefined, message: SupervisorMessage): void {
  child?.send(message, () => undefined)
}
