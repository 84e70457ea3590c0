import { DatabaseSync } from 'node:sqlite'
import { engineLimits } from './limits.ts'
import { explained } from './sqlite.ts'

const SQLITE_FULL = 13

/**
 * Writes one consistent state of an SQLite database to a new file, while others use it. Syncs nothing. If there is no room for the file,
 * the error has the code ENOSPC.
 */
export function copySqlite(from: string, to: string): void {
  const database = new DatabaseSync(from, { readOnly: true, timeout: engineLimits.sqliteBusyTimeoutMs })
  try {
    explained(() => database.prepare('vacuum into ?').run(to))
  } catch (error) {
    if (!(error instanceof Error && 'errcode' in error && error.errcode === SQLITE_FULL)) throw error
    throw Object.assign(new Error(`no room for ${to}`, { cause: error }), { code: 'ENOSPC' })
  } finally {
    database.close()
  }
}
