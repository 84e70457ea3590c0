import { type Connection, Database, OutOfMemory, StatementTimeout, type Value } from '#duckdb/database.ts'
import { quoteIdentifier, quoteLiteral } from '#duckdb/quote.ts'
import type { Json } from '#lib/json.ts'
import { queryLimits } from '#model/limits.ts'
import type { QueryResult } from '#model/query.ts'
import { type ColumnType, ColumnTypeError, parseType, printType } from '#model/types/column-type.ts'
import { typeInFile } from '#model/types/file-form.ts'
import { jsonForm } from '#model/types/json-form.ts'
import { placeError } from './error-place.ts'
import type { FetchedTable, TableFile } from './query-protocol.ts'
import { StatementRefused } from './statement.ts'

export type RunOptions = {
  /** The only directory that the statement can read. */
  readonly directory: string
  readonly tables: readonly FetchedTable[]
  readonly maxRows: number
  readonly timeoutMs?: number
}

/** Runs a statement that was inspected, over tables whose files are in the directory. Throws StatementRefused with a message for the caller. */
export async function runStatement(sql: string, options: RunOptions): Promise<QueryResult> {
  const { directory, tables, maxRows, timeoutMs = queryLimits.timeoutMs } = options
  const database = await Database.open({
    directories: [directory],
    memoryBytes: queryLimits.memoryBytes,
    optimizesFully: true,
  })
  try {
    const connection = await database.connect()
    for (const table of tables) await createTable(connection, directory, table)
    const result = new BoundedResult(maxRows)
    const startedAt = performance.now()
    await connection.read(sql, result, { timeoutMs })
    const elapsed_ms = Math.round(performance.now() - startedAt)
    return { ...result.finish(), tables: tables.map(({ summary }) => summary), elapsed_ms }
  } catch (error) {
    throw refusalOf(error, sql, timeoutMs)
  } finally {
    database.close()
  }
}

export type TableFiles = Omit<FetchedTable, 'summary'>

/** Makes the files of a table readable under its name. */
export async function createTable(connection: Connection, directory: string, fetched: TableFiles): Promise<void> {
  const { schema, table } = fetched.name
  if (schema !== '') await connection.run(`CREATE SCHEMA IF NOT EXISTS ${quoteIdentifier(schema)}`)
  const source = await sourceOf(connection, directory, fetched)
  await connection.run(`CREATE VIEW ${quoteIdentifier(schema === '' ? 'main' : schema)}.${quoteIdentifier(table)} AS ${source}`)
}

async function sourceOf(connection: Connection, directory: string, { files, columns }: TableFiles): Promise<string> {
  const options = 'union_by_name = true, hive_partitioning = false'
  const ofParts: string[] = []
  for (const { file, ranges, partition } of files) {
    if (ranges === undefined) continue
    const rows = ranges.map(({ first_row, rows: count }) => `${rowNumber} BETWEEN ${first_row} AND ${first_row + count - 1}`)
    const path = quoteLiteral(`${directory}/${file}`)
    const hasName = columns.some(({ name }) => name.toLowerCase() === rowNumber)
    const select = hasName
      ? await renamedSql(connection, path)
      : { values: `* EXCLUDE (${rowNumber})`, from: `read_parquet(${path}, ${options}, ${rowNumber} = true)` }
    ofParts.push(`SELECT ${select.values}${valuesOf(partition, columns)} FROM ${select.from} WHERE ${rows.join(' OR ')}`)
  }
  const whole = files.filter(({ ranges }) => ranges === undefined)
  const ofPartitions = Map.groupBy(whole, ({ partition }) => JSON.stringify(partition))
  const ofFiles = [...ofPartitions.values()].map((ofPartition) => {
    const list = ofPartition.map(({ file }) => quoteLiteral(`${directory}/${file}`)).join(', ')
    return `SELECT *${valuesOf(ofPartition[0]?.partition ?? [], columns)} FROM read_parquet([${list}], ${options})`
  })
  const selects = [...ofFiles, ...ofParts]
  if (selects.length === 0) return `SELECT ${columns.map(emptyColumn).join(', ')} WHERE false`
  const all = selects.join(' UNION ALL BY NAME ')
  if (files.every(({ partition }) => partition.length === 0)) return all
  return `SELECT ${columns.map(({ name }) => quoteIdentifier(name)).join(', ')} FROM (${all})`
}

/** DuckDB's name for the position of a row in its file. */
const rowNumber = 'file_row_number'

/** Returns SQL for the columns of a file that has a column with the name of the row number: that is only there if no column hides it. */
async function renamedSql(connection: Connection, path: string) {
  const { rows } = await connection.query(
    `SELECT column_name FROM (DESCRIBE FROM read_parquet(${path}, hive_partitioning = false))`,
  )
  const values = rows.map(([name], index) => `column_${index} AS ${quoteIdentifier(String(name))}`)
  const names = rows.map((_, index) => `column_${index}`)
  return {
    values: values.join(', '),
    from: `read_parquet(${path}, hive_partitioning = false) AS file(${names.join(', ')})`,
  }
}

/** SQL for the columns that are in the names of folders only. */
function valuesOf(partition: TableFile['partition'], columns: TableFiles['columns']): string {
  const values = partition.map(({ column, value }) => {
    const type = printType(parseType(columns.find(({ name }) => name === column)?.type ?? 'VARCHAR'))
    return `, CAST(${value === null ? 'NULL' : quoteLiteral(value)} AS ${type}) AS ${quoteIdentifier(column)}`
  })
  return values.join('')
}

/** The column as Parquet would have it. */
function emptyColumn({ name, type, parquet }: FetchedTable['columns'][number]): string {
  return `CAST(NULL AS ${typeInFile(parseType(type), parquet)}) AS ${quoteIdentifier(name)}`
}

/** Takes rows until the result has as many as it may. */
class BoundedResult {
  readonly #maxRows: number
  readonly #rows: Json[][] = []
  #columns: QueryResult['columns'] = []
  #types: KnownTypes = []
  #bytes = 0
  #truncated: QueryResult['truncated'] = null

  constructor(maxRows: number) {
    this.#maxRows = maxRows
  }

  readonly columns = (names: readonly string[], types: readonly string[]): void => {
    if (names.length > queryLimits.columnsMax)
      throw new StatementRefused(`the result has ${names.length} columns: select at most ${queryLimits.columnsMax}`)
    this.#columns = names.map((name, index) => ({ name, type: types[index] ?? '' }))
    this.#types = knownTypes(types)
  }

  readonly take = (values: readonly Value[]): boolean => {
    if (this.#rows.length === this.#maxRows) this.#truncated = 'rows'
    else {
      const row = inJson(values, this.#types)
      this.#bytes += Buffer.byteLength(JSON.stringify(row))
      if (this.#bytes > queryLimits.resultBytesMax) this.#truncated = 'bytes'
      else this.#rows.push(row)
    }
    return this.#truncated === null
  }

  finish(): Pick<QueryResult, 'columns' | 'rows' | 'row_count' | 'truncated'> {
    return { columns: this.#columns, rows: this.#rows, row_count: this.#rows.length, truncated: this.#truncated }
  }
}

type KnownTypes = readonly (ColumnType | undefined)[]

/** Returns a row as previews show it. */
export function inJson(values: readonly Value[], types: KnownTypes): Json[] {
  return values.map((value, index) => {
    const type = types[index]
    return type === undefined ? value : jsonForm(value, type)
  })
}

/** Returns the types of the columns that views know: then their values look as they do in previews. */
export function knownTypes(types: readonly string[]): KnownTypes {
  return types.map((type) => {
    try {
      return parseType(type)
    } catch (error) {
      if (error instanceof ColumnTypeError) return undefined
      throw error
    }
  })
}

const useWarehouse = 'Queries here are for looking: read fewer rows or columns, or a shorter time range, or use a warehouse'

function refusalOf(error: unknown, sql: string, timeoutMs: number): unknown {
  if (error instanceof StatementTimeout)
    return new StatementRefused(`the statement ran longer than ${timeoutMs / 1_000} s. ${useWarehouse}`)
  if (error instanceof OutOfMemory)
    return new StatementRefused(`the statement needs more memory than ${queryLimits.memoryBytes} bytes. ${useWarehouse}`)
  return statementError(error, sql) ?? error
}

/** Returns what is wrong with a statement if that is what the error says: DuckDB names the kind of its errors. */
export function statementError(error: unknown, sql: string): StatementRefused | undefined {
  if (!(error instanceof Error) || !/^[A-Z][A-Za-z ]+ Error: /.test(error.message)) return undefined
  return new StatementRefused(placeError(error.message, sql))
}
