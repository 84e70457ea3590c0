/**
 * Runs statements of users over delivered files, in a pool of processes.
 *
 * Owns: the number of processes, the directory of each query, and the time for all of it. Does not own: which files a table
 * has and how they are fetched (`fetch`), what a process does (query-worker.ts), whose turn it is and the processes
 * (confined-workers.ts).
 * Law: a statement sees the files of its query and nothing else. They are removed before `run` settles, and no process that saw them gets
 * another task. This process parses neither a statement nor a file.
 */
import { chmod, mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import { AppError } from '#errors.ts'
import { GiB, MiB } from '#lib/bytes.ts'
import type { Clock } from '#lib/clock.ts'
import { ConfinedWorkers } from '#lib/confined-workers.ts'
import type { Sandbox } from '#lib/sandbox.ts'
import type { Service } from '#lib/service.ts'
import type { Logger } from '#lib/telemetry.ts'
import { queryLimits } from '#model/limits.ts'
import type { StatementProblem } from './error-place.ts'
import type { FetchedTable, QueryReply, QueryTask, TableName } from './query-protocol.ts'

const workerLimits = {
  /** Queries at once. Each may have files of `queryLimits.bytesMax` on disk. */
  count: 2,
  /** How long after its arrival a query may start, or start again. */
  waitMs: 15_000,
  /** Time to parse a statement: milliseconds, but the process has the lowest priority, and gets little of a machine that is busy. */
  inspectMs: 15_000,
  /** Extra time after the limit of a statement for the process to report a timeout before it is killed, and to read the result. */
  killAfterMs: 2_000,
  idleMs: 60_000,
  /** Memory of a process beside what Node may use: the statement, its result, and the code of DuckDB. */
  memoryBytes: queryLimits.memoryBytes + 256 * MiB,
  fileBytes: GiB,
  /** A directory that is older than a query can take is of a process that crashed. */
  directoryAgeMsMax: 600_000,
} as const

export type QueryWorkersOptions = {
  readonly clock: Clock
  readonly logger: Logger
  /** Where the files of queries are, each query in a directory of its own. */
  readonly directory: string
  readonly sandbox?: Sandbox
}

export type Query = {
  readonly sql: string
  readonly maxRows: number
  /** Puts the files of the tables into the directory. May be repeated, in another directory. */
  readonly fetch: (tables: readonly TableName[], directory: string, signal: AbortSignal) => Promise<readonly FetchedTable[]>
}

const program = join(import.meta.dirname, `query-worker${extname(import.meta.filename)}`)

export class QueryWorkers implements Service {
  readonly name = 'query workers'
  readonly #options: QueryWorkersOptions
  readonly #workers: ConfinedWorkers<QueryTask, QueryReply>

  constructor(options: QueryWorkersOptions) {
    const { clock, directory: cwd, sandbox } = options
    this.#options = options
    this.#workers = new ConfinedWorkers({ program, limits: workerLimits, tooLate: busy, sandbox, cwd, clock })
  }

  get pids(): readonly number[] {
    return this.#workers.pids
  }

  /** Prepares the directory. Processes are started on demand. */
  async start(): Promise<void> {
    const { clock, directory, sandbox } = this.#options
    await mkdir(directory, { recursive: true, mode: 0o700 })
    // Another user may pass through it, to the directory that is given to it, and cannot list it.
    await chmod(directory, sandbox?.user === undefined ? 0o700 : 0o711)
    for (const name of await readdir(directory)) {
      const path = join(directory, name)
      const age = clock.now() - (await stat(path)).mtimeMs
      if (age > workerLimits.directoryAgeMsMax) await rm(path, { recursive: true, force: true })
    }
  }

  stop(): Promise<void> {
    return this.#workers.stop(new AppError('unavailable', 'the service is stopping', { retryAfterSeconds: 1 }))
  }

  /**
   * Returns the body of the response, as JSON. Throws validation_error for a statement that is refused or fails, unavailable after waiting
   * too long, what `fetch` throws, and the signal's reason.
   */
  run(query: Query, account: string, signal: AbortSignal): Promise<Uint8Array> {
    return this.#workers.inTurn(account, signal, (turn) => this.#runInTurn(query, turn))
  }

  async #runInTurn({ sql, maxRows, fetch }: Query, signal: AbortSignal): Promise<Uint8Array> {
    const { tables } = await this.#ask({ inspect: sql }, 'tables', workerLimits.inspectMs, signal)
    // The process of the last query is gone: the next one starts while the files are fetched.
    this.#workers.warm()
    const directory = await mkdtemp(join(this.#options.directory, 'query-'))
    try {
      const fetched = await this.#within(queryLimits.fetchTimeoutMs, signal, (ended) => fetch(tables, directory, ended))
      // The user of the processes may read them.
      await this.#workers.give([directory, ...(await readdir(directory)).map((name) => join(directory, name))])
      const task = { run: sql, directory: basename(directory), tables: fetched, maxRows }
      return (await this.#ask(task, 'json', queryLimits.timeoutMs + workerLimits.killAfterMs, signal)).json
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  }

  async #within<T>(limitMs: number, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const tooLate = new AbortController()
    const cancel = this.#options.clock.setTimer(() => tooLate.abort(tooSlow(limitMs)), limitMs)
    try {
      return await work(AbortSignal.any([signal, tooLate.signal]))
    } finally {
      cancel()
    }
  }

  async #ask<Kind extends 'tables' | 'json'>(
    task: QueryTask,
    kind: Kind,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<Extract<QueryReply, Readonly<Record<Kind, unknown>>>> {
    const end = await this.#workers.run(task, { timeoutMs, signal })
    if ('timedOut' in end) {
      const message =
        kind === 'tables'
          ? `reading the statement took longer than ${timeoutMs / 1_000} s: shorten it, or try again later`
          : `the statement ran longer than ${queryLimits.timeoutMs / 1_000} s: read fewer rows, or a shorter time range`
      throw refused({ message })
    }
    const reply = 'reply' in end ? end.reply : { crashed: `the process ended: ${end.exited}` }
    if (isOfKind(reply, kind)) return reply
    if ('rejected' in reply) throw refused(reply.rejected)
    this.#options.logger.error({ reason: 'crashed' in reply ? reply.crashed : 'unexpected reply' }, 'query failed')
    throw refused({
      message: 'the statement ended its process: it needs too much memory, or does something that does not work here',
    })
  }
}

function isOfKind<Kind extends string>(
  reply: QueryReply,
  kind: Kind,
): reply is Extract<QueryReply, Readonly<Record<Kind, unknown>>> {
  return kind in reply
}

function refused(problem: StatementProblem): AppError {
  const { message, line, column } = problem
  const place = line === undefined ? '' : `line ${line}, column ${column}: `
  return new AppError('validation_error', `${place}${message}`, { errors: [{ path: 'sql', ...problem }] })
}

function tooSlow(limitMs: number): AppError {
  const message = `the files could not be fetched within ${limitMs / 1_000} s: choose a shorter time range`
  return new AppError('validation_error', message, { errors: [{ path: 'since', message }] })
}

function busy(): AppError {
  return new AppError('unavailable', 'too many queries are running: try again later', { retryAfterSeconds: 1 })
}
