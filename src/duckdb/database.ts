/**
 * A walled-in DuckDB in memory, and its connections.
 *
 * Owns: the wall (no file but under the directories given, no network, no extension, no setting changed afterwards), the limit of
 * memory, the one thread, the end of a statement at its deadline or when its signal aborts. Does not own: what is asked.
 * Law: a statement that is told to end is told again until it has ended; `run` never settles before DuckDB is done with it.
 */
import {
  BIGINT,
  BOOLEAN,
  type DuckDBAppender,
  type DuckDBConnection,
  DuckDBInstance,
  DuckDBScalarFunction,
  INTEGER,
  SMALLINT,
  VARCHAR,
} from '@duckdb/node-api'
import { MiB } from '#lib/bytes.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import { quoteLiteral } from './quote.ts'

export type DatabaseOptions = {
  /** The only directories that statements may read and write. */
  readonly directories: readonly string[]
  /** Where DuckDB may put what doesn't fit in memory; without it nothing is put on disk. */
  readonly spillDirectory?: string
  readonly memoryBytes: number
  readonly clock?: Clock
}

export type StatementOptions = { readonly signal?: AbortSignal; readonly timeoutMs?: number }

/** A value as DuckDB's JSON form has it: numbers beyond 2^53 and all other types as text. */
export type Value = string | number | boolean | null | readonly Value[] | { readonly [key: string]: Value }
export type Rows = {
  readonly columns: readonly string[]
  readonly types: readonly string[]
  readonly rows: readonly (readonly Value[])[]
}

/** Appends to a table, value by value, column by column. */
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

const argumentTypes = { SMALLINT, INTEGER, BIGINT, VARCHAR } as const

export type RowFunction = {
  readonly name: string
  readonly parameters: readonly (keyof typeof argumentTypes)[]
  /** The row's arguments by position: a number, a bigint, a text, or null. */
  readonly decide: (argument: (position: number) => unknown) => boolean
}

export class StatementTimeout extends Error {
  override readonly name = 'StatementTimeout'
}

/** The limit of memory does not allow a statement. What DuckDB finds no room for on disk is none of these. */
export class OutOfMemory extends Error {
  override readonly name = 'OutOfMemory'

  constructor(message: string) {
    // The rest is advice, on settings that are locked.
    super(message.split('\n')[0])
  }
}

/** An interrupt that comes between the steps of a statement is lost: it is repeated at this pace. */
const INTERRUPT_EVERY_MS = 5

export class Database {
  readonly #instance: DuckDBInstance
  readonly #clock: Clock
  readonly #connections = new Set<Connection>()

  private constructor(instance: DuckDBInstance, clock: Clock) {
    this.#instance = instance
    this.#clock = clock
  }

  static async open({ directories, spillDirectory, memoryBytes, clock = systemClock }: DatabaseOptions): Promise<Database> {
    const instance = await DuckDBInstance.create(':memory:', {
      // With one thread rows keep their order although DuckDB is not held to it, and so needs less memory.
      threads: '1',
      preserve_insertion_order: 'false',
      memory_limit: `${Math.floor(memoryBytes / MiB)}MiB`,
      temp_directory: spillDirectory ?? '',
      autoinstall_known_extensions: 'false',
      autoload_known_extensions: 'false',
      allow_community_extensions: 'false',
    })
    try {
      const connection = await instance.connect()
      await connection.run("SET GLOBAL TimeZone = 'UTC'")
      await connection.run(`SET allowed_directories = [${directories.map(quoteLiteral).join(', ')}]`)
      // A join keeps the order of its left side only if its right side is the one that is hashed. And DuckDB moves an expression
      // that occurs twice out of the TRY around it, so that its error is no longer caught.
      await connection.run("SET disabled_optimizers = 'join_order,build_side_probe_side,common_subexpressions'")
      await connection.run('SET enable_external_access = false')
      await connection.run('SET lock_configuration = true')
      connection.closeSync()
    } catch (error) {
      instance.closeSync()
      throw error
    }
    return new Database(instance, clock)
  }

  async connect(): Promise<Connection> {
    const closed = (): boolean => this.#connections.delete(connection)
    const connection = new Connection(await this.#instance.connect(), this.#clock, closed)
    this.#connections.add(connection)
    return connection
  }

  /** A connection or an appender that is left open would keep everything in memory until JavaScript collects its garbage. */
  close(): void {
    for (const connection of this.#connections) connection.close()
    this.#instance.closeSync()
  }
}

/** One statement at a time. */
export class Connection {
  readonly #connection: DuckDBConnection
  readonly #clock: Clock
  readonly #closed: () => void

  constructor(connection: DuckDBConnection, clock: Clock, closed: () => void) {
    this.#connection = connection
    this.#clock = clock
    this.#closed = closed
  }

  /** Runs a statement for what it does. Throws the signal's reason, StatementTimeout, OutOfMemory, or DuckDB's error. */
  async run(sql: string, options: StatementOptions = {}): Promise<void> {
    await this.#bounded(() => this.#connection.run(sql), options)
  }

  /** Runs a statement and reads all of its rows. For small answers. */
  async query(sql: string, options: StatementOptions = {}): Promise<Rows> {
    const reader = await this.#bounded(() => this.#connection.runAndReadAll(sql), options)
    return {
      columns: reader.columnNames(),
      types: reader.columnTypes().map(String),
      rows: reader.getRowsJson() as unknown as readonly (readonly Value[])[],
    }
  }

  /** Rows are appended value by value; `appendVarchar` takes what `Buffer.latin1Slice` gives fastest. */
  async appender(table: string): Promise<RowAppender> {
    return this.#connection.createAppender(table)
  }

  /**
   * Makes a function that statements on any connection can call. DuckDB calls it in this thread, once for each row that gets to it, in
   * their order, and neither moves nor repeats the call. What it throws is the error of the statement.
   */
  register({ name, parameters, decide }: RowFunction): void {
    const made = DuckDBScalarFunction.create({
      name,
      parameterTypes: parameters.map((type) => argumentTypes[type]),
      returnType: BOOLEAN,
      volatile: true,
      // Not only where all arguments are there.
      specialHandling: true,
      mainFunction: (_, rows, answers) => {
        const { rowCount } = rows
        const columns = parameters.map((_, position) => rows.getColumnVector(position))
        let row = 0
        const argument = (position: number): unknown => columns[position]?.getItem(row)
        for (; row < rowCount; row += 1) answers.setItem(row, decide(argument))
        answers.flush()
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
      if (timedOut) throw new StatementTimeout(`not done within ${timeoutMs} ms`, { cause: error })
      if (error instanceof Error && isOutOfMemory(error.message)) throw new OutOfMemory(error.message)
      throw error
    } finally {
      cancelTimer()
      signal?.removeEventListener('abort', interrupt)
    }
  }
}

function isOutOfMemory(message: string): boolean {
  return message.startsWith('Out of Memory Error') && !message.includes('max_temp_directory_size')
}
