/**
 * Runs tasks in child processes that can be killed at any time.
 *
 * Owns: starting the processes, keeping idle ones, the time limit of a task. Does not own: how many run at once, whose turn it is, what a
 * task does (`serveTasks` in the program).
 * Law: when `run` settles, no process works on its task. A process works on one task at a time. Unless it is given another one, its environment
 * has the place of compiled code and settings of the C library, and nothing else.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { getCompileCacheDir } from 'node:module'
import { dirname } from 'node:path'
import { assert } from './assert.ts'
import { KiB } from './bytes.ts'
import type { Clock } from './clock.ts'
import { disableInspector } from './inspector.ts'

/**
 * Workers run DuckDB, which is native code and allocates blocks of 256 KiB. A small young generation, one arena of glibc, and blocks that return
 * to the system when they are freed take a quarter less memory, and no more processor time.
 */
const nodeFlags = [disableInspector, '--max-semi-space-size=1'] as const
const mallocSettings = { MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: String(192 * KiB) } as const

export type ProcessPoolOptions = {
  /** The path of a program that calls `serveTasks`. */
  readonly program: string
  /** Returns the command line to start instead of the given one. It must end in an `exec` of that: the process is known by its pid. */
  readonly commandLine?: (command: readonly string[]) => readonly string[]
  /** The directory to start in, if not that of this process. The user of a process needs no access to the directories above. */
  readonly cwd?: string | undefined
  /** The environment to add, for processes that need what this one has. */
  readonly environment?: NodeJS.ProcessEnv
  /** How long an idle process is kept. */
  readonly idleMs: number
  readonly clock: Clock
}

export type TaskOptions<Report> = {
  /** From when the process is ready until the reply, or until the first report. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Called when the process is ready, unless it was before. */
  readonly onReady?: () => void
  /** Called with each report of the task. Returns the time limit from then on. */
  readonly onReport?: (report: Report) => number
  /** Called with each question of the task, one at a time. Must not throw. The time limit goes on. Without it, tasks that ask get no answer. */
  readonly onQuestion?: ((question: unknown) => Promise<unknown>) | undefined
}

/** Time for a process to get ready. On a busy machine that alone may take longer than a task may. */
const startMsMax = 60_000

/** The signal with which a process ends itself that would exit. Nobody else sends it. */
export const ownEnd = 'SIGUSR2'

/** A message of a process: first that it is ready. `isLast`: it must not get another task, because this one has used it up. */
export type WorkerMessage<Reply, Report> =
  | { readonly ready: true }
  | { readonly reply: Reply; readonly isLast?: true }
  | { readonly report: Report }
  | { readonly question: unknown }

/** A message to a process: a task, or the answer to its question. */
export type ParentMessage<Task> = { readonly task: Task } | { readonly answer: unknown }

export type TaskEnd<Reply> =
  | { readonly reply: Reply }
  | { readonly timedOut: true }
  /** The process could not start, or it ended before it replied: says how, such as `killed by SIGSEGV`. */
  | { readonly exited: string }

type Worker = {
  readonly child: ChildProcess
  /** Resolves with how the process ended. */
  readonly exit: Promise<string>
  isReady: boolean
  hasExited: boolean
  cancelTimer: () => void
}

export class ProcessPool<Task, Reply, Report = never> {
  readonly #options: ProcessPoolOptions
  readonly #idle: Worker[] = []
  readonly #all = new Set<Worker>()
  readonly #stopping = new AbortController()

  constructor(options: ProcessPoolOptions) {
    this.#options = options
  }

  /** Ids of the processes that run, idle ones included. */
  get pids(): readonly number[] {
    return [...this.#all].flatMap(({ child }) => child.pid ?? [])
  }

  /** Runs a task in an idle process or a new one. Throws the signal's reason. After a reply, the process is used again unless it says otherwise. */
  async run(task: Task, options: TaskOptions<Report>): Promise<TaskEnd<Reply>> {
    const { timeoutMs, signal, onReady, onReport, onQuestion } = options
    const ended = AbortSignal.any([signal, this.#stopping.signal])
    ended.throwIfAborted()
    const worker = this.#take()
    const { child, exit } = worker
    const { promise, resolve } = Promise.withResolvers<TaskEnd<Reply> | 'aborted'>()
    let messages = 0
    let isUsedUp = false
    let cancelTimer: () => void = () => undefined
    const limit = (limitMs: number) => {
      cancelTimer()
      cancelTimer = this.#options.clock.setTimer(() => {
        const before = messages
        // If this process was suspended, a message in time may still wait to be read.
        setImmediate(() => messages === before && resolve({ timedOut: true }))
      }, limitMs)
    }
    limit(worker.isReady ? timeoutMs : startMsMax)
    let isAnswering: Promise<unknown> = Promise.resolve()
    let hasEnded = false
    const answer = async (question: unknown): Promise<void> => {
      if (hasEnded || onQuestion === undefined) return
      const sent: ParentMessage<Task> = { answer: await onQuestion(question) }
      // The process may work on another task by now.
      if (!hasEnded && child.connected) child.send(sent, (error) => error === null || void kill(worker))
    }
    const onMessage = (sent: unknown) => {
      messages += 1
      const message = sent as WorkerMessage<Reply, Report>
      if ('ready' in message) {
        onReady?.()
        return limit(timeoutMs)
      }
      if ('reply' in message) {
        isUsedUp = message.isLast === true
        return resolve({ reply: message.reply })
      }
      if ('question' in message) {
        isAnswering = isAnswering.then(() => answer(message.question))
        return
      }
      limit(onReport?.(message.report) ?? timeoutMs)
    }
    const onAbort = () => resolve('aborted')
    child.on('message', onMessage)
    ended.addEventListener('abort', onAbort, { once: true })
    void exit.then((exited) => resolve({ exited }))
    let isReusable = false
    try {
      // A process that is ending does not take the task. One without a channel never started. The exit says why.
      const sent: ParentMessage<Task> = { task }
      if (child.connected) child.send(sent, (error) => error === null || void kill(worker))
      const end = await promise
      if (end === 'aborted') throw ended.reason
      isReusable = 'reply' in end && !isUsedUp && !ended.aborted
      return end
    } finally {
      hasEnded = true
      cancelTimer()
      child.off('message', onMessage)
      ended.removeEventListener('abort', onAbort)
      if (isReusable) this.#keep(worker)
      else await kill(worker)
    }
  }

  /** Has a process ready for the next task: starts one if none is idle. */
  warm(): void {
    if (this.#idle.length === 0 && !this.#stopping.signal.aborted) this.#keep(this.#start())
  }

  /** Kills all processes. Tasks that run throw. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the process pool has stopped'))
    this.#idle.length = 0
    await Promise.all([...this.#all].map(kill))
  }

  #take(): Worker {
    for (let worker = this.#idle.pop(); worker !== undefined; worker = this.#idle.pop()) {
      worker.cancelTimer()
      // The process may have just exited: its exit and the closing of its channel are separate events.
      const { connected, exitCode, signalCode } = worker.child
      if (connected && exitCode === null && signalCode === null) {
        worker.child.ref()
        worker.child.channel?.ref()
        return worker
      }
    }
    return this.#start()
  }

  #start(): Worker {
    const { program, commandLine = (command) => command, environment = {}, cwd } = this.#options
    const [file, ...args] = commandLine([process.execPath, ...nodeFlags, program])
    assert(file !== undefined, 'a command line names a program')
    // The environment of this process has secrets.
    const child = spawn(file, args, {
      ...{
        cwd,
        env: { ...environment, ...ownEnvironment() },
        serialization: 'advanced',
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      },
    })
    const { promise: exit, resolve } = Promise.withResolvers<string>()
    const worker: Worker = { child, exit, isReady: false, hasExited: false, cancelTimer: () => undefined }
    this.#all.add(worker)
    child.once('message', () => {
      worker.isReady = true
    })
    const onEnd = (how: string) => {
      worker.hasExited = true
      worker.cancelTimer()
      this.#all.delete(worker)
      this.#forget(worker)
      resolve(how)
    }
    child.on('exit', (code, signal) => {
      const how =
        signal === ownEnd ? 'ended by an error of its own' : signal === null ? `ended with code ${code}` : `killed by ${signal}`
      // The last messages may still be on their way.
      if (child.connected) child.once('disconnect', () => onEnd(how))
      else onEnd(how)
    })
    child.on('error', (error) => {
      // Also reports a failed kill or send, after which the process goes on.
      if (child.pid === undefined) onEnd(`could not start: ${error.message}`)
    })
    return worker
  }

  #keep(worker: Worker): void {
    if (worker.hasExited) return
    // An idle process does not keep this one alive.
    worker.child.unref()
    worker.child.channel?.unref()
    worker.cancelTimer = this.#options.clock.setTimer(() => {
      this.#forget(worker)
      void kill(worker)
    }, this.#options.idleMs)
    this.#idle.push(worker)
  }

  #forget(worker: Worker): void {
    const at = this.#idle.indexOf(worker)
    if (at >= 0) this.#idle.splice(at, 1)
  }
}

/** Compiled code halves the time of a start. */
function ownEnvironment(): NodeJS.ProcessEnv {
  const cache = getCompileCacheDir()
  // It is the directory for this version of Node in the one that Node is told.
  return { ...mallocSettings, ...(cache === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cache) }) }
}

async function kill({ child, exit, cancelTimer }: Worker): Promise<void> {
  cancelTimer()
  // Idle, it does not keep this process alive. Its end does.
  child.ref()
  child.channel?.ref()
  child.kill('SIGKILL')
  await exit
}
