/** Bare DuckDB on one core, doing the same work as Inlet for a segment. */
import { writeFile } from 'node:fs/promises'
import { DuckDBInstance } from '@duckdb/node-api'
import { forEachRecord } from '#log/records.ts'
import type { Definition } from '#model/definition.ts'
import { otherView, type Workload } from './events.ts'
import { coreSeconds } from './measure.ts'

export type Floor = {
  readonly load: number
  readonly extract: number
  readonly raw: number
  /** From a file of lines, which is already there: the definition, and another one of the same columns. */
  readonly readJson: number
  readonly readJsonOther: number
}

export async function floor({ lines, definition }: Workload, directory: string): Promise<Floor> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  await connection.run('CREATE TABLE records (payload VARCHAR)')
  const load = await coreSeconds(async () => {
    const appender = await connection.createAppender('records')
    forEachRecord({ layout: 'lines', payload: lines }, (start, end) => {
      appender.appendVarchar(lines.toString('latin1', start, end))
      appender.endRow()
    })
    appender.closeSync()
  })
  // JSON pointers are the fastest kind of path in DuckDB.
  const paths = definition.columns.map(({ path = '' }) => `'${path.slice(1).replaceAll('.', '/')}'`).join(', ')
  const columns = definition.columns
    .map(({ name, type }, index) => `TRY_CAST(v[${index + 1}] AS ${type}) AS "${name}"`)
    .join(', ')
  const extracted = `SELECT ${columns} FROM (SELECT json_extract_string(payload, [${paths}]) AS v FROM records)`
  const extract = await coreSeconds(async () => {
    await connection.run(`COPY (${extracted}) TO '${directory}/floor.parquet' (FORMAT parquet, COMPRESSION zstd)`)
  })
  const raw = await coreSeconds(async () => {
    await connection.run(`COPY records TO '${directory}/floor-raw.parquet' (FORMAT parquet, COMPRESSION zstd)`)
  })
  await writeFile(`${directory}/lines.ndjson`, lines)
  const readJsonTo = (name: string, definition: Definition) => {
    const select = readJsonSql(definition, `${directory}/lines.ndjson`)
    return coreSeconds(() => connection.run(`COPY (${select}) TO '${directory}/${name}' (FORMAT parquet, COMPRESSION zstd)`))
  }
  const readJson = await readJsonTo('floor-json.parquet', definition)
  const readJsonOther = await readJsonTo('floor-json-other.parquet', otherView(definition))
  instance.closeSync()
  return { load, extract, raw, readJson, readJsonOther }
}

type Fields = { [name: string]: Fields | string }

/** Returns the statement with which a user of DuckDB reads the columns of a definition from a file of lines. UUIDs become text, as in our files. */
function readJsonSql({ columns, filters = [] }: Definition, path: string): string {
  const fields: Fields = {}
  for (const column of columns) {
    const names = (column.path ?? '').slice(2).split('.')
    const last = names.pop() ?? ''
    let into = fields
    for (const name of names) {
      const inner = into[name] ?? {}
      into[name] = inner
      into = inner as Fields
    }
    into[last] = column.type
  }
  const typeOf = (field: Fields | string): string =>
    typeof field === 'string'
      ? field
      : `STRUCT(${Object.entries(field)
          .map(([name, inner]) => `"${name}" ${typeOf(inner)}`)
          .join(', ')})`
  const types = Object.entries(fields).map(([name, field]) => `"${name}": '${typeOf(field)}'`)
  const selected = columns.map(({ name, path = '', type }) => {
    const value = path
      .slice(2)
      .split('.')
      .map((step) => `"${step}"`)
      .join('.')
    return `${type === 'UUID' ? `CAST(${value} AS VARCHAR)` : value} AS "${name}"`
  })
  const read = `SELECT ${selected.join(', ')} FROM read_json('${path}', format = 'newline_delimited', columns = {${types.join(', ')}})`
  return [`FROM (${read})`, ...filters.map(({ condition }) => `WHERE ${condition}`)].join(' ')
}
