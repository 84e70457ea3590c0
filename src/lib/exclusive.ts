import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

const SQLITE_BUSY = 5

/** Another process has the lock. */
export class LockHeldError extends Error {
  override readonly name = 'LockHeldError'
}

/**
 * Locks a file until disposed or until the process exits. The operating system releases the lock even after `kill -9`.
 * Node has no file locks. An exclusive transaction of SQLite is one, on every system and across containers that share a disk.
 * The lock file stays empty. `hint` is appended to the error message: what to check.
 */
export function lockExclusively(path: string, hint = 'is another Inlet running on this data directory?'): Disposable {
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 })
  const database = new DatabaseSync(path)
  try {
    database.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if (!(error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY)) throw error
    throw new LockHeldError(`${path} is locked by another process: ${hint}`, { cause: error })
  }
  return { [Symbol.dispose]: () => database.close() }
}
