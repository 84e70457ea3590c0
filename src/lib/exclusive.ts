import { DatabaseSync } from 'node:sqlite'

const SQLITE_BUSY = 5

/** Somebody else holds it. */
export class HeldElsewhereError extends Error {
  override readonly name = 'HeldElsewhereError'
}

/**
 * Holds a lock file for as long as the process lives, or until disposed; the system lets go of it even at `kill -9`.
 * Node has no lock call of its own; SQLite's exclusive transaction is one, on every system and across containers on one disk.
 * The lock file stays empty.
 */
export function holdExclusively(path: string): Disposable {
  const database = new DatabaseSync(path)
  try {
    database.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if (!(error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY)) throw error
    throw new HeldElsewhereError(`${path} is held by another process: is another Inlet running on this data directory?`, {
      cause: error,
    })
  }
  return { [Symbol.dispose]: () => database.close() }
}
