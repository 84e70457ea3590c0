import { type ChildProcess, spawn } from 'node:child_process'
import { type Clock, sleep } from '#lib/clock.ts'
import { Backoff } from '#lib/retry.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'

/** A run this long counts as healthy: the next crash starts the back-off again from its minimum. */
const healthyRunMs = 30_000

export type ChildSpec = {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Called with each message of the child, unparsed. */
  readonly onMessage?: (message: unknown) => void
}

export type SupervisorOptions = {
  /** In start order; stopped in reverse. */
  readonly children: readonly ChildSpec[]
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Keeps child processes running.
 *
 * Owns: starting, restarting with back-off, stopping. Does not own: the work or state of the children.
 * Law: the exit of one child never affects another. A child may use all the time until the deadline to stop.
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

  async start(): Promise<void> {
    for (const spec of this.#options.children) this.#loops.set(spec.name, this.#keepRunning(spec))
  }

  /**
   * Stops the children one at a time, last started first, so that a child that others need to drain stops later.
   * Kills the remaining ones at the deadline.
   */
  async stop(signal: AbortSignal): Promise<void> {
    this.#stopping.abort()
    const killAll = () => {
      for (const child of this.#running.values()) child.kill('SIGKILL')
    }
    signal.addEventListener('abort', killAll, { once: true })
    if (signal.aborted) killAll()
    for (const { name } of this.#options.children.toReversed()) {
      this.#running.get(name)?.kill('SIGTERM')
      await this.#loops.get(name)
    }
    signal.removeEventListener('abort', killAll)
  }

  /** Returns process ids of the running children by name. */
  pids(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#running].flatMap(([name, { pid }]) => (pid === undefined ? [] : [[name, pid]])))
  }

  async #keepRunning(spec: ChildSpec): Promise<void> {
    const { clock, logger } = this.#options
    const backoff = new Backoff({ delayMsMin: 200, delayMsMax: 15_000 })
    while (!this.#stopping.signal.aborted) {
      const startedAt = clock.monotonic()
      const end = await this.#run(spec)
      if (this.#stopping.signal.aborted) return
      if (clock.monotonic() - startedAt > healthyRunMs) backoff.reset()
      const delayMs = Math.round(backoff.next())
      logger.error({ child: spec.name, end, restart_ms: delayMs }, 'process ended; restarting')
      await sleep(clock, delayMs, this.#stopping.signal)
    }
  }

  /** Runs a child. Resolves with its exit code, signal or error. */
  #run(spec: ChildSpec): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>()
    const child = spawn(spec.command, [...spec.args], {
      env: spec.environment,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    this.#running.set(spec.name, child)
    child.on('message', (message) => spec.onMessage?.(message))
    const ended = (end: string) => {
      this.#running.delete(spec.name)
      resolve(end)
    }
    child.once('error', (error) => ended(error.message))
    child.once('exit', (code, signalName) => ended(signalName ?? `exit code ${code}`))
    return promise
  }
}
