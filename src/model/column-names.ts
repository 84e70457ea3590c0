/**
 * Names that a column cannot have, and those that make work for readers.
 *
 * Law: only new definitions are checked. A version that was published before a rule keeps delivering: its files can be read.
 */
import type { FieldError } from '#errors.ts'
import { dayFolder } from './artifact.ts'
import type { Definition } from './definition.ts'
import { reservingEngines } from './reserved-words.ts'

/** Readers take the folder of a file for a column, and prefer it to the one in the file. */
const taken =
  'is the name of the folders (dt=2026-11-20): readers such as DuckDB, Spark and Athena would return the date of the folder instead of your values. Use another name, such as event_date, or name this DATE column in partition_by: its values then have that place'

/** For a column of the name that is in `partition_by`. */
const notDay =
  'must be DATE: this column of partition_by takes the place of the date in the names of folders (dt=2026-11-20). Make it a DATE, such as with the value CAST(sent_at AS DATE), or use another name'

/** BigQuery rejects columns whose names begin so, regardless of case. */
const bigQueryPrefixes = ['_TABLE_', '_FILE_', '_PARTITION', '_ROW_TIMESTAMP', '__ROOT__', '_COLIDENTIFIER', '_CHANGE_']

/** Spark does not write them to Parquet and Delta tables without an extra setting. */
const rejectedBySpark = /[ ,;{}()\n\t=]/
const rejectedByBigQuery = /[!"$()*,./;?@[\\\]^`{}~]/
const plainName = /^[A-Za-z_][A-Za-z0-9_]*$/

export const nameWarningCodes = ['reserved_word', 'reserved_prefix', 'name_characters'] as const

export type NameWarning = {
  readonly path: string
  readonly code: (typeof nameWarningCodes)[number]
  readonly message: string
  readonly name: string
}

export function isTakenName(name: string): boolean {
  return name.toLowerCase() === dayFolder
}

/** Returns an error for each column whose name is taken. */
export function takenNames({ columns, partition_by = [] }: Definition): readonly FieldError[] {
  return columns.flatMap(({ name, type }, index) => {
    if (!isTakenName(name)) return []
    const isPartition = name === dayFolder && partition_by.includes(name)
    if (!isPartition) return [{ path: `columns.${index}.name`, message: taken }]
    return type.toUpperCase() === 'DATE' ? [] : [{ path: `columns.${index}.type`, message: notDay }]
  })
}

/** Returns a warning for each column whose name needs care in queries. */
export function nameWarnings({ columns }: Definition): readonly NameWarning[] {
  return columns.flatMap(({ name }, index) => {
    const found = warningOf(name)
    return found === undefined ? [] : [{ path: `columns.${index}.name`, name, ...found }]
  })
}

function warningOf(name: string): Pick<NameWarning, 'code' | 'message'> | undefined {
  const engines = reservingEngines(name)
  if (engines.length > 0) {
    const message = `is a reserved word in ${listed(engines)}: queries there must quote it. Another name, such as ${name.toLowerCase()}_, needs no quotes`
    return { code: 'reserved_word', message }
  }
  const prefix = bigQueryPrefixes.find((each) => name.toUpperCase().startsWith(each))
  if (prefix !== undefined)
    return { code: 'reserved_prefix', message: `begins with ${prefix}, which BigQuery does not accept: use another name` }
  if (plainName.test(name)) return undefined
  const refusing = [
    ...(rejectedBySpark.test(name) ? ['Delta tables in Spark'] : []),
    ...(rejectedByBigQuery.test(name) ? ['BigQuery'] : []),
  ]
  const refused =
    refusing.length === 0
      ? ''
      : `, and ${refusing.join(' and ')} ${refusing.length > 1 || refusing[0] !== 'BigQuery' ? 'do' : 'does'} not accept it`
  const message = `needs quotes in queries${refused}: use letters from a to z, digits and underscores, and begin with a letter`
  return { code: 'name_characters', message }
}

function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}
