/**
 * Looks up keys in an index.
 *
 * Owns: the index that was read last, which stays open. Does not own: the tables (key-index.ts).
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { isDeepStrictEqual } from 'node:util'
import { keyBytes } from '#records/key-hashes.ts'
import { explained, type KeyRange } from './key-index.ts'
import { windowLimits } from './limits.ts'

/** The keys of earlier segments that count for a segment. */
export type KeyWindow = KeyRange & { readonly path: string }

type Opened = { readonly window: KeyWindow; readonly database: DatabaseSync; readonly find: StatementSync }

let last: Opened | undefined

/** Returns a byte for each key, of 16 bytes: 1 if an earlier segment wrote it. Throws IndexDamaged or StorageFailure. */
export function findKeys(window: KeyWindow, keys: Uint8Array): Uint8Array {
  const view = Buffer.from(keys.buffer, keys.byteOffset, keys.byteLength)
  return explained(window.path, () => {
    const { database, find } = openFor(window)
    const found = new Uint8Array(keys.length / keyBytes)
    // Without a transaction, each statement would lock the file.
    database.exec('BEGIN')
    try {
      for (let at = 0; at < keys.length; at += keyBytes)
        if (find.get(view.readBigInt64BE(at), view.readBigInt64BE(at + 8)) !== undefined) found[at / keyBytes] = 1
    } finally {
      database.exec('COMMIT')
    }
    return found
  })
}

/** Closes the index that was read last. Call it before an index is changed. */
export function closeLookup(): void {
  last?.database.close()
  last = undefined
}

function openFor(window: KeyWindow): Opened {
  if (last !== undefined && isDeepStrictEqual(last.window, window)) return last
  closeLookup()
  const database = openToRead(window.path)
  const { slices, from, own } = window
  const counts = `slice IN (${slices.map(String).join(', ')}) AND high = ? AND low = ? AND segment >= ${from} AND segment <> ${own}`
  last = { window, database, find: database.prepare(`SELECT 1 FROM keys WHERE ${counts} LIMIT 1`) }
  return last
}

function openToRead(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { readOnly: true, timeout: windowLimits.busyTimeoutMs })
  database.exec(`PRAGMA cache_size = -${windowLimits.cacheKiB}`)
  return database
}
