/**
 * The layout of a view's files: which columns tell a row from another, which name folders, and the order of rows.
 *
 * Owns: which columns may do that. Does not own: the files (records/lay-out.ts), their keys (model/artifact.ts).
 */
import { quoteIdentifier } from '#duckdb/quote.ts'
import type { FieldError } from '#errors.ts'
import { nearestName } from '#lib/nearest-name.ts'
import type { Definition } from '#model/definition.ts'
import { parseDurationSeconds } from '#model/duration.ts'
import { type ColumnType, descriptorOf, printType } from '#model/types/column-type.ts'
import type { Layout } from './compiled-view.ts'
import type { ReadColumn } from './computed-columns.ts'
import { columnIndex } from './filter.ts'

/** Readers of Hive's folders take other names, and longer ones, for something else. */
const folderName = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/

/** Returns the layout. Problems are added to the errors. `columns` may have more than those of the definition. */
export function readLayout(definition: Definition, columns: readonly ReadColumn[], errors: FieldError[]): Layout {
  const own = columns.slice(0, definition.columns.length)
  const { dedupe_by = [], partition_by = [], sort_by = [], bloom_filters: bloomFilters = true } = definition
  const find = (
    field: 'dedupe_by' | 'partition_by' | 'sort_by',
    names: readonly string[],
    problemOf: (column: ReadColumn) => string | undefined,
  ) => {
    const found: number[] = []
    for (const [at, name] of names.entries()) {
      const index = columnIndex(own, name)
      const column = own[index]
      const message =
        column === undefined ? unknown(name, own) : found.includes(index) ? 'must not name a column twice' : problemOf(column)
      if (message !== undefined) errors.push({ path: `${field}.${at}`, message })
      found.push(index)
    }
    return found
  }
  const dedupeBy = find('dedupe_by', dedupe_by, keyProblem)
  const partitionBy = find('partition_by', partition_by, partitionProblem)
  const inFolders = (column: ReadColumn) => partitionBy.includes(own.indexOf(column))
  const sortBy = find('sort_by', sort_by, (column) => sortProblem(column, inFolders(column)))
  if (partitionBy.length > 0 && own.every((column) => column.hidden || inFolders(column)))
    errors.push({
      path: 'partition_by',
      message: 'must leave a column that is in the files: those of partition_by are only in the names of folders',
    })
  const dedupeWithinMs = readWindow(definition, errors)
  if (dedupeWithinMs !== undefined)
    for (const [at, index] of dedupeBy.entries()) {
      const column = own[index]
      const message = column && windowProblem(column, inFolders(column))
      if (message !== undefined) errors.push({ path: `dedupe_by.${at}`, message })
    }
  return { dedupeBy, partitionBy, sortBy, bloomFilters, ...(dedupeWithinMs !== undefined && { dedupeWithinMs }) }
}

function readWindow({ dedupe_by, dedupe_within }: Definition, errors: FieldError[]): number | undefined {
  if (dedupe_within === undefined) return undefined
  if (dedupe_by === undefined)
    errors.push({ path: 'dedupe_within', message: 'must be beside dedupe_by, which names the columns that are compared' })
  return (parseDurationSeconds(dedupe_within) ?? 0) * 1000
}

/** A node that loses its index reads the keys from the files again. */
function windowProblem({ name, type, hidden }: ReadColumn, isInFolders: boolean): string | undefined {
  const said = JSON.stringify(name)
  if (hidden)
    return `must not name a hidden column, such as ${said}, beside dedupe_within: its index is rebuilt from the files, which do not have it`
  if (isInFolders)
    return `must not name a column of partition_by, such as ${said}, beside dedupe_within: its index is rebuilt from the files, which do not have it`
  return type !== undefined && floating.has(type.scalar)
    ? `must not name a column of type ${printType(type)}, such as ${said}, beside dedupe_within: use a DECIMAL, an integer or text`
    : undefined
}

const floating: ReadonlySet<string> = new Set(['FLOAT', 'DOUBLE'])

function unknown(name: string, columns: readonly ReadColumn[]): string {
  const near = nearestName(
    name,
    columns.map((column) => column.name),
  )
  return `${JSON.stringify(name)} is not a column of this view${near === undefined ? '' : `: did you mean ${JSON.stringify(near)}?`}`
}

function keyProblem({ name, type }: ReadColumn): string | undefined {
  return type === undefined || hasOrder(type) ? undefined : notOrdered(name, type)
}

function partitionProblem({ name, type, hidden }: ReadColumn): string | undefined {
  if (hidden) return `must not name a hidden column: the folders show the values of ${JSON.stringify(name)}`
  if (!folderName.test(name))
    return `${JSON.stringify(name)} cannot be the name of a folder: use at most 64 letters from a to z, digits and underscores, and begin with a letter`
  if (type === undefined || canNameFolders(type)) return undefined
  const instead = type.scalar.startsWith('TIMESTAMP')
    ? `: add a DATE column with the value CAST(${quoteIdentifier(name)} AS DATE)`
    : ''
  return `must name a column of type VARCHAR, DATE, BOOLEAN or an integer, and ${JSON.stringify(name)} is of type ${printType(type)}${instead}`
}

const folderTypes: ReadonlySet<string> = new Set(['VARCHAR', 'DATE', 'BOOLEAN', 'TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT'])

function canNameFolders({ scalar, depth }: ColumnType): boolean {
  return depth === 0 && folderTypes.has(scalar)
}

function sortProblem({ name, type, hidden }: ReadColumn, isInFolders: boolean): string | undefined {
  if (hidden) return `must not name a hidden column, such as ${JSON.stringify(name)}: its values are not in the files`
  if (isInFolders) return `must not name a column of partition_by: all rows of a file have the same ${name}`
  return type === undefined || hasOrder(type) ? undefined : notOrdered(name, type)
}

function hasOrder({ scalar, depth }: ColumnType): boolean {
  return depth === 0 && descriptorOf(scalar).order !== undefined
}

function notOrdered(name: string, type: ColumnType): string {
  return `must name a column whose values can be compared, and ${JSON.stringify(name)} is of type ${printType(type)}`
}
