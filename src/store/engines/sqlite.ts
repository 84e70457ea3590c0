import { closeSync, openSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { type SqliteDatabase, SqliteDialect, type SqliteStatement } from 'kysely'
import { LRUCache } from 'lru-cache'
import { engineLimits } from './limits.ts'

/**
 * Adapts `node:sqlite` to Kysely's SqliteDialect.
 *
 * Law: a commit is on disk when it returns (`synchronous=FULL`). A transaction takes the write lock at its start, so it cannot
 * fail later because another process changed rows that it read.
 */
export function openSqlite(path: string): { readonly dialect: SqliteDialect; readonly checkpoint: () => boolean } {
  let opened: { readonly adapter: SqliteDatabase; readonly database: DatabaseSync } | undefined
  const open = () => {
    opened = openDatabase(path)
    return opened.adapter
  }
  return {
    dialect: new SqliteDialect({ database: async () => open() }),
    checkpoint: () => opened !== undefined && checkpoint(opened.database),
  }
}

/**
 * Moves what is in the write-ahead log of SQLite into the database, and empties the log. SQLite ignores everything behind the first damaged
 * page of the log, without an error: the less there is, the less can be lost. Waits for nobody. Returns whether the log is empty.
 */
function checkpoint(database: DatabaseSync): boolean {
  if (!database.isOpen || database.isTransaction) return false
  database.exec('pragma busy_timeout = 0')
  try {
    const row = explained(() => database.prepare('pragma wal_checkpoint(truncate)').get())
    return row?.['busy'] === 0
  } finally {
    database.exec(`pragma busy_timeout = ${engineLimits.sqliteBusyTimeoutMs}`)
  }
}

function openDatabase(path: string): { readonly adapter: SqliteDatabase; readonly database: DatabaseSync } {
  if (path !== ':memory:') {
    // Only the owner may read the file, because it contains signing keys. SQLite creates its other files with the same mode.
    closeSync(openSync(path, 'a', 0o600))
  }
  const database = explained(() => {
    const opened = new DatabaseSync(path, { timeout: engineLimits.sqliteBusyTimeoutMs, enableForeignKeyConstraints: true })
    opened.exec('pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on')
    // Removed signing keys do not stay in the unused parts of pages.
    opened.exec('pragma secure_delete = fast')
    return opened
  })
  const statements = new LRUCache<string, SqliteStatement>({ max: engineLimits.sqliteStatementsMax })
  const adapter: SqliteDatabase = {
    close: () => {
      statements.clear()
      database.close()
    },
    prepare(sql) {
      const known = statements.get(sql)
      if (known !== undefined) return known
      const statement = prepareStatement(database, sql === 'begin' ? 'begin immediate' : sql)
      statements.set(sql, statement)
      return statement
    },
  }
  return { adapter, database }
}

function prepareStatement(database: DatabaseSync, sql: string): SqliteStatement {
  const statement = database.prepare(sql)
  // SQLite has already rolled back after some errors (full disk, I/O, memory). A rollback that then fails would hide the cause.
  const isDone = () => sql === 'rollback' && !database.isTransaction
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => explained(() => statement.all(...parameters.map(toInputValue))),
    run: (parameters) =>
      isDone() ? { changes: 0, lastInsertRowid: 0 } : explained(() => statement.run(...parameters.map(toInputValue))),
    iterate: (parameters) => statement.iterate(...parameters.map(toInputValue)),
  }
}

/** Primary codes (https://www.sqlite.org/rescode.html) that the operator has to act on, and what they mean. */
const explanations: Readonly<Record<number, string>> = {
  7: 'there is not enough memory for the database',
  8: 'the database cannot be written to: make its file and its disk writable',
  10: 'the disk of the database fails: check it',
  11: 'the database is damaged: restore a backup of it',
  13: 'the disk of the database is full: make room on it',
  14: 'the file of the database cannot be opened: give this user the right to read and write it and its directory',
  26: 'this file is not a database: restore a backup, or correct INLET_DATABASE_URL',
}

/** Says what the operator can do about an error, where that is known. */
export function explained<T>(run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (!(error instanceof Error && 'errcode' in error && typeof error.errcode === 'number')) throw error
    const { errcode, message } = error
    const explanation = explanations[errcode & 0xff]
    if (explanation === undefined) throw error
    throw Object.assign(new Error(`${explanation} (${message})`, { cause: error }), { errcode })
  }
}

/** Postgres cannot store U+0000 in text, so neither database does. */
export class BadTextError extends Error {
  override readonly name = 'BadTextError'
}

function toInputValue(value: unknown): SQLInputValue {
  if (typeof value === 'string' && value.includes('\0')) throw new BadTextError('text contains the character U+0000')
  if (typeof value === 'boolean') return value ? 1 : 0
  return value as SQLInputValue
}
