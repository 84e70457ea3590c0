/**
 * The form of a column in Parquet: by default one that every engine reads, as docs/readers.md shows.
 *
 * Owns: SQL for it. Does not own: which types have another form (descriptors.ts). Values have their form in files only: conditions, previews and
 * quality work on values of the column's type.
 */
import { type ColumnType, descriptorOf, printType, storedType } from './column-type.ts'
import { descriptors, type FileForm, type TypeDescriptor } from './descriptors.ts'

/** Forms in Parquet that not every engine reads, or not in the same way. */
export const parquetForms = ['native', 'naive'] as const
export type ParquetForm = (typeof parquetForms)[number]

/**
 * SQL for COPY. Spark 3.5 refuses a whole file with one day before 1582 or one instant before 1900, such as the year 1 that programs send for "no
 * time", unless the file says that it is of Spark 3: then the calendar is known to be the one of ISO 8601.
 */
export const parquetMetadata = `KV_METADATA {'org.apache.spark.version': '3.5.0'}`

/** SQL for the value as its file has it. */
export function inFile(value: string, type: ColumnType, asked: ParquetForm | undefined): string {
  const form = formOf(type, asked)
  if (form === undefined) return value
  const { type: target, fromValue = (each: string) => `CAST(${each} AS ${target})` } = form
  // A list is cast as a whole if it can be.
  if (type.depth > 0 && form.fromValue === undefined) return `CAST(${value} AS ${target}${'[]'.repeat(type.depth)})`
  return eachIn(value, type.depth, fromValue)
}

/** Returns the type of the column in its file, as DuckDB names it. */
export function typeInFile(type: ColumnType, asked: ParquetForm | undefined): string {
  const form = formOf(type, asked)
  return form === undefined ? printType(storedType(type)) : form.type + '[]'.repeat(type.depth)
}

/** Returns why the type does not have the form; undefined if it has. The message is about the field `parquet`. */
export function formProblem({ scalar }: ColumnType, asked: ParquetForm | undefined): string | undefined {
  if (asked === undefined || descriptorOf(scalar).inFile?.unless === asked) return undefined
  const having = Object.entries<TypeDescriptor>(descriptors).flatMap(([name, { inFile }]) =>
    inFile?.unless === asked ? [name] : [],
  )
  return `must be left out for ${scalar}: ${JSON.stringify(asked)} is for ${having.join(', ')}`
}

function formOf({ scalar }: ColumnType, asked: ParquetForm | undefined): FileForm | undefined {
  const { inFile: form } = descriptorOf(scalar)
  return form?.unless === asked ? undefined : form
}

function eachIn(value: string, depth: number, of: (value: string) => string): string {
  if (depth === 0) return of(value)
  const item = `item_${depth}`
  return `list_transform(${value}, lambda ${item}: ${eachIn(item, depth - 1, of)})`
}
