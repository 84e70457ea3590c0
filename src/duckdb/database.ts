/**
 * A sandboxed in-memory DuckDB, and its connections.
 *
 * Owns: the sandbox (only files below the given directories, no network, no extensions, locked settings), the memory limit, the single
 * thread, and ending statements on timeout or abort. Does not own: the statements.
 * Law: a statement is interrupted repeatedly until it ends; `run` never settles while DuckDB is still working on it.
 */
import type { DuckDBAppender, DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { assert } from '#lib/assert.ts'
import { MiB } from '#lib/bytes.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import type { Json } from '#lib/json.ts'
import { StorageFailure } from '#lib/storage-failure.ts'
import { type Bindings, type Library, loadLibrary } from './library.ts'
import { quoteLiteral } from './quote.ts'

export type DatabaseOptions = {
  /** The only directories that statements may read and write. */
  readonly directories: readonly string[]
  /** Where DuckDB may spill to disk, and how much. Without it, nothing is spilled. */
  readonly spill?: { readonly directory: string; readonly bytesMax: number }
  readonly memoryBytes: number
  /** How often `connectOrdered` can be called. */
  readonly orderedConnections?: number
  /** Lets DuckDB reorder joins and share subexpressions. Statements of views depend on neither being done. */
  readonly optimizesFully?: boolean
  /** One if not set. With more, rows have no order of their own. */
  readonly threads?: number
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
  /** Awaited after some rows, for a reader that passes them on. */
  readonly drain?: () => Promise<void>
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

/** Returns the value of a cell: a list is packed integers of the machine's byte order, text is UTF-8. Bytes are copied before the next row. */
export type TableFunction<Column extends string = string> = {
  readonly name: string
  readonly columns: Readonly<Record<Column, 'BIGINT' | 'BOOLEAN' | 'VARCHAR' | 'BIGINT[]' | 'INTEGER[]'>>
  /** Called when a statement starts to read `name(from, to)`. Returns a function that returns the next row, and undefined after the last. */
  readonly open: (from: number, to: number) => () => readonly (number | boolean | Uint8Array)[] | undefined
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

/** An error that a table function threw. DuckDB keeps only its text. */
type FailedFunction = { error?: unknown }

export class Database {
  readonly #library: Library
  readonly #bindings: Bindings
  readonly #instance: DuckDBInstance
  readonly #ordered: DuckDBConnection[]
  readonly #clock: Clock
  readonly #connections = new Set<Connection>()
  readonly #failed: FailedFunction = {}

  private constructor(library: Library, bindings: Bindings, instance: DuckDBInstance, ordered: DuckDBConnection[], clock: Clock) {
    this.#library = library
    this.#bindings = bindings
    this.#instance = instance
    this.#ordered = ordered
    this.#clock = clock
  }

  static async open(options: DatabaseOptions): Promise<Database> {
    const {
      directories,
      spill,
      memoryBytes,
      orderedConnections = 0,
      optimizesFully = false,
      threads = 1,
      clock = systemClock,
    } = options
    const ordered: DuckDBConnection[] = []
    const { library, bindings } = await loadLibrary()
    const instance = await library.DuckDBInstance.create(':memory:', {
      // With one thread, rows nearly keep their order without `preserve_insertion_order`, which would cost memory: see `connectOrdered`.
      threads: String(threads),
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
      for (let made = 0; made < orderedConnections; made += 1) {
        const connection = await instance.connect()
        // Only a connection has this setting, and the lock is for all.
        await connection.run('SET enable_caching_operators = false')
        ordered.push(connection)
      }
      await connection.run('SET lock_configuration = true')
      connection.closeSync()
    } catch (error) {
      instance.closeSync()
      throw error
    }
    return new Database(library, bindings, instance, ordered, clock)
  }

  async connect(): Promise<Connection> {
    return this.#opened(await this.#instance.connect())
  }

  /** Returns a connection whose statements keep the order of rows: no operator holds back a few rows of one vector until after the next one. */
  connectOrdered(): Connection {
    const connection = this.#ordered.pop()
    assert(connection !== undefined, 'the database was opened for fewer ordered connections')
    return this.#opened(connection)
  }

  #opened(opened: DuckDBConnection): Connection {
    const connection: Connection = new Connection({
      library: this.#library,
      bindings: this.#bindings,
      connection: opened,
      clock: this.#clock,
      failed: this.#failed,
      closed: () => this.#connections.delete(connection),
    })
    this.#connections.add(connection)
    return connection
  }

  /** Closes all connections: an open one would keep everything in memory until the next garbage collection. */
  close(): void {
    for (const connection of this.#connections) connection.close()
    for (const connection of this.#ordered) connection.closeSync()
    this.#instance.closeSync()
  }
}

type ConnectionParts = {
  readonly library: Library
  readonly bindings: Bindings
  readonly connection: DuckDBConnection
  readonly clock: Clock
  readonly failed: FailedFunction
  readonly closed: () => void
}

/** Runs one statement at a time. */
export class Connection {
  readonly #library: Library
  readonly #bindings: Bindings
  readonly #connection: DuckDBConnection
  readonly #clock: Clock
  readonly #failed: FailedFunction
  readonly #closed: () => void

  constructor({ library, bindings, connection, clock, failed, closed }: ConnectionParts) {
    this.#library = library
    this.#bindings = bindings
    this.#connection = connection
    this.#clock = clock
    this.#failed = failed
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
  async read(sql: string, { columns, take, drain }: RowReader, options: StatementOptions = {}): Promise<void> {
    const { JsonDuckDBValueConverter } = this.#library
    await this.#bounded(async () => {
      const result = await this.#connection.stream(sql)
      columns(result.deduplicatedColumnNames(), result.columnTypes().map(String))
      for (let chunk = await result.fetchChunk(); chunk !== null && chunk.rowCount > 0; chunk = await result.fetchChunk()) {
        for (let row = 0; row < chunk.rowCount; row += 1) {
          if (!take(chunk.convertRowValues(row, JsonDuckDBValueConverter) as unknown as readonly Value[])) return
        }
        await drain?.()
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
   * Registers a table function that statements on any connection can call with two numbers. DuckDB calls it on this thread, and processes the
   * rows in order, one at a time. An error that it throws fails the statement, and is what `run` throws.
   */
  registerTable({ name, columns, open }: TableFunction): void {
    const { BIGINT, BOOLEAN, DuckDBTableFunction, INTEGER, LIST, VARCHAR } = this.#library
    const types = { BIGINT, BOOLEAN, VARCHAR, 'BIGINT[]': LIST(BIGINT), 'INTEGER[]': LIST(INTEGER) }
    const columnTypes = Object.values(columns)
    const made = DuckDBTableFunction.create({
      name,
      parameterTypes: [BIGINT, BIGINT],
      bindFunction: (bound) => {
        for (const [column, type] of Object.entries(columns)) bound.addResultColumn(column, types[type])
        bound.setBindData({ from: Number(bound.getParameter(0)), to: Number(bound.getParameter(1)) })
      },
      initFunction: (scan) => {
        const { from, to } = scan.bindData as { readonly from: number; readonly to: number }
        scan.setInitData({ next: open(from, to) })
        scan.setMaxThreads(1)
      },
      mainFunction: (scan, chunk) => {
        const { next } = scan.initData as { readonly next: ReturnType<TableFunction['open']> }
        try {
          const row = next()
          chunk.rowCount = row === undefined ? 0 : 1
          for (const [column, cell] of (row ?? []).entries()) {
            writeCell(this.#bindings, this.#bindings.data_chunk_get_vector(chunk.chunk, column), cell, columnTypes[column])
          }
        } catch (error) {
          this.#failed.error = toKnownError(error)
          throw error
        }
      },
    })
    this.#connection.registerTableFunction(made)
    made.destroySync()
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
      const { error: thrown } = this.#failed
      this.#failed.error = undefined
      signal?.throwIfAborted()
      if (timedOut) throw new StatementTimeout(`statement timed out after ${timeoutMs} ms`, { cause: error })
      throw thrown ?? toKnownError(error)
    } finally {
      cancelTimer()
      signal?.removeEventListener('abort', interrupt)
    }
  }
}

/** Writes the only cell of a vector. */
function writeCell(
  bindings: Bindings,
  vector: Parameters<Bindings['vector_get_data']>[0],
  cell: number | boolean | Uint8Array,
  type: TableFunction['columns'][string] | undefined,
): void {
  if (typeof cell === 'number') bindings.copy_data_to_vector(vector, 0, BigInt64Array.of(BigInt(cell)).buffer, 0, 8)
  else if (typeof cell === 'boolean') bindings.copy_data_to_vector(vector, 0, Uint8Array.of(Number(cell)).buffer, 0, 1)
  else if (type === 'VARCHAR') bindings.vector_assign_string_element_len(vector, 0, cell)
  else {
    const items = cell.byteLength / (type === 'BIGINT[]' ? 8 : 4)
    bindings.list_vector_reserve(vector, items)
    bindings.list_vector_set_size(vector, items)
    const child = bindings.list_vector_get_child(vector)
    bindings.copy_data_to_vector(child, 0, cell.buffer as ArrayBuffer, cell.byteOffset, cell.byteLength)
    // The entry of a list is where it begins in the vector of items, and their number.
    bindings.copy_data_to_vector(vector, 0, BigUint64Array.of(0n, BigInt(items)).buffer, 0, 16)
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
  const message = textOf(error)
  if (message.startsWith('Out of Memory Error') || memoryWithoutKind.test(message) || failedAllocation.test(message))
    return new OutOfMemory(message)
  if (!message.startsWith('IO Error') && !fileWithoutKind.test(message)) return error
  if (message.includes('File too large')) return new FileTooLarge('a file is larger than a process may write')
  return new StorageFailure(message.split('\n')[0], { cause: error })
}

const inJson = /^\{"exception_type":"([^"\\]+)","exception_message":"((?:[^"\\\n]|\\.)*?)(?:\\n|")/

/** Returns the text of an error. Calls that are no statements have it in JSON; of that, its first line. */
function textOf({ message }: Error): string {
  const [, kind, text] = inJson.exec(message) ?? []
  return kind === undefined ? message : `${kind} Error: ${text}`
}
