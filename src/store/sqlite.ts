import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { type SqliteDatabase, SqliteDialect, type SqliteStatement } from 'kysely'
import { LRUCache } from 'lru-cache'
import { storeLimits } from './limits.ts'

/**
 * Adapts `node:sqlite` to Kysely's SqliteDialect.
 *
 * Law: a commit is on disk when it returns (`synchronous=FULL`). A transaction takes the write lock at its start, so it cannot
 * fail later because another process changed rows that it read.
 */
export function sqliteDialect(path: string): SqliteDialect {
  return new SqliteDialect({ database: async () => openDatabase(path) })
}

function openDatabase(path: string): SqliteDatabase {
  if (path !== ':memory:') {
    mkdirSync(dirname(path), { recursive: true })
    // Only the owner may read the file, because it contains signing keys. SQLite creates its other files with the same mode.
    closeSync(openSync(path, 'a', 0o600))
  }
  const database = new DatabaseSync(path, { timeout: storeLimits.sqliteBusyTimeoutMs, enableForeignKeyConstraints: true })
  database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on')
  const statements = new LRUCache<string, SqliteStatement>({ max: storeLimits.sqliteStatementsMax })
  return {
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
}

function prepareStatement(database: DatabaseSync, sql: string): SqliteStatement {
  const statement = database.prepare(sql)
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...parameters.map(toInputValue)),
    run: (parameters) => statement.run(...parameters.map(toInputValue)),
    iterate: (parameters) => statement.iterate(...parameters.map(toInputValue)),
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
