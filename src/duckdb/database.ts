/**
 * A sandboxed in-memory DuckDB, and its connections.
 *
 * Owns: the sandbox (only files below the given directories, no network, no extensions, locked settings), the memory limit, the single
 * thread, and ending statements on timeout or abort. Does not own: the statements.
 * Law: a statement is interrupted repeatedly until it ends; `run` never settles while DuckDB is still working on it.
 */
import type { DuckDBAppender, DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { MiB } from '#lib/bytes.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import type { Json } from '#lib/json.ts'
import { StorageFailure } from '#lib/storage-failure.ts'
import { quoteLiteral } from './quote.ts'

export type DatabaseOptions = {
  /** The only directories that statements may read and write. */
  readonly directories: readonly string[]
  /** Where DuckDB may spill to disk, and how much. Without it, nothing is spilled. */
  readonly spill?: { readonly directory: string; readonly bytesMax: number }
  readonly memoryBytes: number
  /** Lets DuckDB reorder joins and share subexpressions. Statements of views depend on neither being done. */
  readonly optimizesFully?: boolean
  readonly clock?: Clock
}

export type StatementOptions = { readonly signal?: AbortSignal; readonly timeoutMs?: number }

/** A value in DuckDB's JSON form: numbers beyond 2^53 and all other types are text. */
export type Value = Json
export type Rows = {
  readonly columns: readonly string[]
  readonly types: readonly string[]
  readonly rows: readonly (readonly Value[])[]
}

export type RowReader = {
  readonly columns: (names: readonly string[], types: readonly string[]) => void
  /** Returns whether to go on. */
  readonly take: (row: readonly Value[]) => boolean
}

/** Appends rows to a table, one value at a time. */
export type RowAppender = Pick<
  DuckDBAppender,
  | 'appendSmallInt'
  | 'appendInteger'
  | 'appendBigInt'
  | 'appendVarchar'
  | 'appendBlob'
  | 'appendNull'
  | 'endRow'
  | 'flushSync'
  | 'closeSync'
>

export type RowFunction = {
  readonly name: string
  readonly parameters: readonly ('SMALLINT' | 'INTEGER' | 'BIGINT' | 'VARCHAR')[]
  /** Called for each row with access to its arguments by position: a number, bigint, string or null. */
  readonly decide: (argument: (position: number) => unknown) => boolean
}

export class StatementTimeout extends Error {
  override readonly name = 'StatementTimeout'
}

/** A statement exceeded the memory limit, or the bound for spilled data. A full disk is another error. */
export class OutOfMemory extends Error {
  override readonly name = 'OutOfMemory'

  constructor(message: string) {
    // The other lines suggest changing settings, which are locked.
    super(message.split('\n')[0])
  }
}

/** A statement wrote a larger file than this process may. */
export class FileTooLarge extends Error {
  override readonly name = 'FileTooLarge'
}

/** Interval between interrupts: DuckDB loses one that arrives between the steps of a statement. */
const INTERRUPT_EVERY_MS = 5

type Library = typeof import('@duckdb/node-api')

export class Database {
  readonly #library: Library
  readonly #instance: DuckDBInstance
  readonly #clock: Clock
  readonly #connections = new Set<Connection>()

  private constructor(library: Library, instance: DuckDBInstance, clock: Clock) {
    this.#library = library
    this.#instance = instance
    this.#clock = clock
  }

  static async open(options: DatabaseOptions): Promise<Database> {
    const { directories, spill, memoryBytes, optimizesFully = false, clock = systemClock } = options
    // Loaded with the first database: an idle process needs neither the library nor its memory.
    const library = await import('@duckdb/node-api')
    const instance = await library.DuckDBInstance.create(':memory:', {
      // With one thread, rows keep their order without `preserve_insertion_order`, which would cost memory.
      threads: '1',
      preserve_insertion_order: 'false',
      memory_limit: `${Math.floor(memoryBytes / MiB)}MiB`,
      temp_directory: spill?.directory ?? '',
      autoinstall_known_extensions: 'false',
      autoload_known_extensions: 'false',
      allow_community_extensions: 'false',
    })
    try {
      const connection = await instance.connect()
      await connection.run("SET GLOBAL TimeZone = 'UTC'")
      // DuckDB ignores this option when an instance is created.
      if (spill !== undefined) await connection.run(`SET max_temp_directory_size = '${Math.ceil(spill.bytesMax / MiB)}MiB'`)
      await connection.run(`SET allowed_directories = [${directories.map(quoteLiteral).join(', ')}]`)
      // A join keeps the order of its left side only if its right side is hashed. Common subexpression elimination would move an
      // expression that occurs twice out of its TRY, so that its error would no longer be caught.
      if (!optimizesFully)
        await connection.run("SET disabled_optimizers = 'join_order,build_side_probe_side,common_subexpressions'")
      await connection.run('SET enable_external_access = false')
      await connection.run('SET lock_configuration = true')
      connection.closeSync()
    } catch (error) {
      instance.closeSync()
      throw error
    }
    return new Database(library, instance, clock)
  }

  async connect(): Promise<Connection> {
    const closed = (): boolean => this.#connections.delete(connection)
    const connection = new Connection(this.#library, await this.#instance.connect(), this.#clock, closed)
    this.#connections.add(connection)
    return connection
  }

  /** Closes all connections: an open one would keep everything in memory until the next garbage collection. */
  close(): void {
    for (const connection of this.#connections) connection.close()
    this.#instance.closeSync()
  }
}

/** Runs one statement at a time. */
export class Connection {
  readonly #library: Library
  readonly #connection: DuckDBConnection
  readonly #clock: Clock
  readonly #closed: () => void

  constructor(library: Library, connection: DuckDBConnection, clock: Clock, closed: () => void) {
    this.#library = library
    this.#connection = connection
    this.#clock = clock
    this.#closed = closed
  }

  /** Runs a statement without reading rows. Throws the signal's reason, StatementTimeout, OutOfMemory, StorageFailure, or DuckDB's error. */
  async run(sql: string, options: StatementOptions = {}): Promise<void> {
    await this.#bounded(() => this.#connection.run(sql), options)
  }

  /** Runs a statement and reads all of its rows. For small results. */
  async query(sql: string, options: StatementOptions = {}): Promise<Rows> {
    const reader = await this.#bounded(() => this.#connection.runAndReadAll(sql), options)
    return {
      columns: reader.columnNames(),
      types: reader.columnTypes().map(String),
      rows: reader.getRowsJson() as unknown as readonly (readonly Value[])[],
    }
  }

  /**
   * Runs a statement and passes its rows to `take` as they are found, until it returns false. The rest is not computed. `columns` is called
   * once, before the first row. For results of any size.
   */
  async read(sql: string, { columns, take }: RowReader, options: StatementOptions = {}): Promise<void> {
    const { JsonDuckDBValueConverter } = this.#library
    await this.#bounded(async () => {
      const result = await this.#connection.stream(sql)
      columns(result.deduplicatedColumnNames(), result.columnTypes().map(String))
      for (let chunk = await result.fetchChunk(); chunk !== null && chunk.rowCount > 0; chunk = await result.fetchChunk()) {
        for (let row = 0; row < chunk.rowCount; row += 1) {
          if (!take(chunk.convertRowValues(row, JsonDuckDBValueConverter) as unknown as readonly Value[])) return
        }
      }
    }, options)
  }

  /** Returns an appender for a table. Appending latin1 strings is fastest. */
  async appender(table: string): Promise<RowAppender> {
    const appender = await this.#connection.createAppender(table)
    for (const write of ['endRow', 'flushSync', 'closeSync'] as const) {
      const original = appender[write].bind(appender)
      appender[write] = () => {
        try {
          original()
        } catch (error) {
          throw toKnownError(error)
        }
      }
    }
    return appender
  }

  /**
   * Registers a function that statements on any connection can call. DuckDB calls it on this thread, once for each row that reaches it,
   * in order, and never moves or repeats the call. An error that it throws fails the statement.
   */
  register({ name, parameters, decide }: RowFunction): void {
    const { BOOLEAN, DuckDBScalarFunction } = this.#library
    const made = DuckDBScalarFunction.create({
      name,
      parameterTypes: parameters.map((type) => this.#library[type]),
      returnType: BOOLEAN,
      volatile: true,
      // Call it for NULL arguments too.
      specialHandling: true,
      mainFunction: (_, rows, results) => {
        const { rowCount } = rows
        const columns = parameters.map((_, position) => rows.getColumnVector(position))
        let row = 0
        const argument = (position: number): unknown => columns[position]?.getItem(row)
        for (; row < rowCount; row += 1) results.setItem(row, decide(argument))
        results.flush()
      },
    })
    this.#connection.registerScalarFunction(made)
    made.destroySync()
  }

  close(): void {
    this.#closed()
    this.#connection.closeSync()
  }

  async #bounded<T>(start: () => Promise<T>, { signal, timeoutMs }: StatementOptions): Promise<T> {
    signal?.throwIfAborted()
    let timedOut = false
    let cancelTimer = (): void => undefined
    const interrupt = (): void => {
      this.#connection.interrupt()
      cancelTimer()
      cancelTimer = this.#clock.setTimer(interrupt, INTERRUPT_EVERY_MS)
    }
    if (timeoutMs !== undefined) {
      cancelTimer = this.#clock.setTimer(() => {
        timedOut = true
        interrupt()
      }, timeoutMs)
    }
    signal?.addEventListener('abort', interrupt, { once: true })
    try {
      return await start()
    } catch (error) {
      signal?.throwIfAborted()
      if (timedOut) throw new StatementTimeout(`statement timed out after ${timeoutMs} ms`, { cause: error })
      throw toKnownError(error)
    } finally {
      cancelTimer()
      signal?.removeEventListener('abort', interrupt)
    }
  }
}

/** DuckDB tells its errors apart by their text alone. An append or a commit that fails, also in a function that it called, loses the kind. */
const withoutKind = '^(?:[^\\n]*: )?Failed to (?:append|commit): [^\\n]*'
const memoryWithoutKind = new RegExp(`${withoutKind}(?: used| \\(bad allocation)\\)\\.?$`, 'm')
/** Thrown by an allocation that DuckDB does not count, at the limit of the process. */
const failedAllocation = /^(?:[A-Za-z ]+ Error: )?std::bad_alloc\b/
const fileWithoutKind = new RegExp(`${withoutKind}(?:file|directory) "[^"\\n]*": `, 'm')

/** Returns OutOfMemory, FileTooLarge or StorageFailure for an error about memory or files, else the error. */
function toKnownError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { message } = error
  if (message.startsWith('Out of Memory Error') || memoryWithoutKind.test(message) || failedAllocation.test(message))
    return new OutOfMemory(message)
  if (!message.startsWith('IO Error') && !fileWithoutKind.test(message)) return error
  if (message.includes('File too large')) return new FileTooLarge('a file is larger than a process may write')
  return new StorageFailure(message.split('\n')[0], { cause: error })
}
