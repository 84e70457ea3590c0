/**
 * Work of users in a pool of confined processes: requests wait for turns that tenants share.
 *
 * Owns: how long a request waits, and that none waits once this stops. Does not own: whose turn it is (fair-slots.ts), the processes
 * (process-pool.ts), what they may do (sandbox.ts).
 * Law: the waiting times of a request together are bounded, also if its work is ended for others and repeated.
 */
import { chown } from 'node:fs/promises'
import type { Clock } from './clock.ts'
import { FairSlots } from './fair-slots.ts'
import { ProcessPool, type TaskEnd, type TaskOptions } from './process-pool.ts'
import type { Sandbox } from './sandbox.ts'

export type ConfinedWorkersOptions = {
  /** The path of a program that calls `serveTasks`. */
  readonly program: string
  readonly limits: {
    /** Requests that are worked on at once. */
    readonly count: number
    /** How far a tenant may be ahead of one that waits. */
    readonly leadMsMax?: number
    readonly waitMs: number
    /** How long an idle process is kept. */
    readonly idleMs: number
    /** Memory of a process, and the size of a file that it may write. */
    readonly memoryBytes: number
    readonly fileBytes: number
  }
  /** Returns what a request that waited too long is rejected with. */
  readonly tooLate: () => Error
  readonly sandbox?: Sandbox | undefined
  /** The directory of the processes, if not that of this one. */
  readonly cwd?: string
  readonly clock: Clock
}

export class ConfinedWorkers<Task, Reply, Report = never> {
  readonly #options: ConfinedWorkersOptions
  readonly #slots: FairSlots
  readonly #pool: ProcessPool<Task, Reply, Report>
  readonly #stopping = new AbortController()
  #waiting = 0

  constructor(options: ConfinedWorkersOptions) {
    const { program, limits, sandbox, cwd, clock } = options
    const { count: capacity, leadMsMax, idleMs } = limits
    this.#options = options
    this.#slots = new FairSlots({ capacity, clock, ...(leadMsMax !== undefined && { leadMsMax }) })
    const commandLine = sandbox?.confine(limits)
    this.#pool = new ProcessPool({ program, idleMs, clock, cwd, ...(commandLine && { commandLine }) })
  }

  get pids(): readonly number[] {
    return this.#pool.pids
  }

  /** Requests without a turn. */
  get waiting(): number {
    return this.#waiting
  }

  /** Throws what the work throws, or the signal's reason. */
  async inTurn<T>(tenant: string, signal: AbortSignal, work: (turn: AbortSignal) => Promise<T>): Promise<T> {
    const { clock, limits, tooLate } = this.#options
    const deadline = clock.monotonic() + limits.waitMs
    const late = new AbortController()
    const wait = () => {
      const cancel = clock.setTimer(() => late.abort(tooLate()), Math.max(0, deadline - clock.monotonic()))
      this.#waiting += 1
      return () => {
        cancel()
        this.#waiting -= 1
      }
    }
    let stopWaiting = wait()
    try {
      const ended = AbortSignal.any([signal, this.#stopping.signal, late.signal])
      return await this.#slots.run({ tenant, member: tenant, weight: 1 }, { signal: ended }, async (turn) => {
        stopWaiting()
        try {
          return await work(turn)
        } finally {
          stopWaiting = wait()
        }
      })
    } finally {
      stopWaiting()
    }
  }

  /** Runs a task in a process. Call it within a turn. */
  run(task: Task, options: TaskOptions<Report>): Promise<TaskEnd<Reply>> {
    return this.#pool.run(task, options)
  }

  /** Starts a process for the task after this one. */
  warm(): void {
    this.#pool.warm()
  }

  /** Makes the user of the processes the owner of these paths. */
  async give(paths: Iterable<string>): Promise<void> {
    const { user } = this.#options.sandbox ?? {}
    if (user !== undefined) for (const path of paths) await chown(path, user.uid, user.gid)
  }

  /** Rejects requests that wait, and aborts the work of the others. */
  async stop(reason: Error): Promise<void> {
    this.#stopping.abort(reason)
    await this.#pool.stop()
  }
}
