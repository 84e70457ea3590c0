import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { errorMessage } from './error-message.ts'
import { UserError } from './user-error.ts'

const SQLITE_BUSY = 5
const SQLITE_NOTADB = 26

/** Another process has the lock. */
export class LockHeldError extends UserError {
  override readonly name = 'LockHeldError'
}

/**
 * Locks a file until disposed or until the process exits. The operating system releases the lock even after `kill -9`.
 * Node has no file locks. An exclusive transaction of SQLite is one, on every system and across containers that share a disk.
 * The lock file stays empty. `hint` is appended to the error message: what to check.
 */
export function lockExclusively(path: string, hint = 'is another Inlet running on this data directory?'): Disposable {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path)
    database.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE')
  } catch (error) {
    database?.close()
    const code = error instanceof Error && 'errcode' in error ? error.errcode : undefined
    if (code === SQLITE_BUSY) throw new LockHeldError(`${path} is locked by another process: ${hint}`, { cause: error })
    const wrong = code === SQLITE_NOTADB ? 'is not a lock file' : `cannot be used as a lock file (${errorMessage(error)})`
    const remedy =
      code === SQLITE_NOTADB ? 'Stop Inlet, delete the file, and start again' : 'Make the file and its directory writable'
    throw new UserError(`${path} ${wrong}. ${remedy}`, { cause: error })
  }
  const held = database
  return { [Symbol.dispose]: () => held.close() }
}
