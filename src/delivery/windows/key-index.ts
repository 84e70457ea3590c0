/**
 * The keys that a view version wrote to one log within its window, in an SQLite file.
 *
 * Owns: the tables, which keys count for a segment, and the removal of old ones. Does not own: when it is called (key-windows.ts), what a key is
 * (records/key-hashes.ts).
 * Law: a key is of the segment that first wrote it, and counts for segments that are sealed less than the window later. Segments have numbers in
 * the order of their commits, and times that never go back. What `register` has written is on the disk when it returns.
 */
import { closeSync, openSync, readSync, rmSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { errorMessage } from '#lib/error-message.ts'
import { StorageFailure } from '#lib/storage-failure.ts'
import { keyBytes } from '#records/key-hashes.ts'
import { windowLimits } from './limits.ts'

/** A view version in a log. */
export type IndexedView = { readonly path: string; readonly windowMicros: number }
export type IndexedSegment = { readonly id: string; readonly seq: number; readonly sealedAtMicros: number }

/** The part of an index that counts for one segment. */
export type KeyRange = {
  readonly slices: readonly number[]
  /** The first segment that counts, by its number. */
  readonly from: number
  /** The number of the segment itself, if it was converted before; -1 otherwise. */
  readonly own: number
}

export type IndexState = {
  /** Size of the file, without what is free in it. */
  readonly bytes: number
  readonly keys: number
  /** Time of the newest segment, by which the next one is judged at least. */
  readonly newestMicros: number
  /** The index has all keys of segments from then on; null before it was compared with the commits. */
  readonly sinceMicros: number | null
  /** The last segment that was registered. */
  readonly last: { readonly id: string; readonly seq: number; readonly isCommitted: boolean } | null
}

export type Check = { readonly found: 'intact' | 'new' | 'damaged'; readonly reason: string }

/** The index is damaged: it has to be built again. */
export class IndexDamaged extends Error {
  override readonly name = 'IndexDamaged'
}

const version = 1
/** By name, because SQLite keeps the text of each, where a flipped bit could give a column another name. */
const schema = {
  state: `CREATE TABLE state (id INTEGER PRIMARY KEY, slice_micros INTEGER NOT NULL, first_slice INTEGER NOT NULL, newest INTEGER NOT NULL,
    since INTEGER, last_id TEXT, last_seq INTEGER, last_committed INTEGER NOT NULL)`,
  segments:
    'CREATE TABLE segments (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, at INTEGER NOT NULL, slice INTEGER NOT NULL)',
  segments_at: 'CREATE INDEX segments_at ON segments (at)',
  keys: 'CREATE TABLE keys (slice INTEGER, high INTEGER, low INTEGER, segment INTEGER NOT NULL, PRIMARY KEY (slice, high, low)) WITHOUT ROWID',
  sums: 'CREATE TABLE sums (slice INTEGER PRIMARY KEY, keys INTEGER NOT NULL, total INTEGER NOT NULL)',
  // SQLite makes it for AUTOINCREMENT.
  sqlite_sequence: 'CREATE TABLE sqlite_sequence(name,seq)',
} as const

/** A prime: no flipped bit is a multiple of it. */
const modulus = 1_000_000_007
const weights = [3, 5, 7, 11, 13] as const
const lowBits = 0xffff_ffff
const sumSql = `sum((((high >> 32) & ${lowBits}) * ${weights[0]} + (high & ${lowBits}) * ${weights[1]} + ((low >> 32) & ${lowBits}) * ${weights[2]}
  + (low & ${lowBits}) * ${weights[3]} + segment * ${weights[4]}) % ${modulus})`

/** Makes sure that there is an intact index. One that is damaged is replaced by an empty one. Reads all of it. */
export function checkIndex({ path, windowMicros }: IndexedView): Check {
  const isNew = statSync(path, { throwIfNoEntry: false }) === undefined
  if (!isNew) {
    const problem = findProblem(path, windowMicros)
    if (problem === undefined) return { found: 'intact', reason: '' }
    discardIndex(path)
    create(path, windowMicros)
    return { found: 'damaged', reason: problem }
  }
  create(path, windowMicros)
  return { found: 'new', reason: '' }
}

export function discardIndex(path: string): void {
  for (const suffix of ['', '-journal']) rmSync(`${path}${suffix}`, { force: true })
}

function create(path: string, windowMicros: number): void {
  // Only the owner may read it. SQLite creates its journal with the same mode.
  closeSync(openSync(path, 'a', 0o600))
  use(path, (database) => {
    database.exec('PRAGMA auto_vacuum = incremental')
    transact(database, () => {
      for (const [name, statement] of Object.entries(schema)) if (!name.startsWith('sqlite_')) database.exec(statement)
      database.exec(`PRAGMA user_version = ${version}`)
      const slice = Math.ceil(windowMicros / windowLimits.slices)
      // Twice, so that a flipped bit shows.
      const insert = database.prepare(
        'INSERT INTO state (id, slice_micros, first_slice, newest, last_committed) VALUES (?, ?, 0, 0, 0)',
      )
      for (const id of [1, 2]) insert.run(id, slice)
    })
  })
}

function findProblem(path: string, windowMicros: number): string | undefined {
  if (!hasHeader(path)) return 'its header is damaged'
  try {
    return use(path, (database) => {
      const found = database.prepare('PRAGMA user_version').get()?.['user_version']
      if (found !== version) return `it has the version ${found}`
      const checked = database.prepare('PRAGMA integrity_check(1)').get()?.['integrity_check']
      if (checked !== 'ok') return String(checked)
      const tables = database.prepare('SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL').all()
      const isWhole = tables.every(({ name, sql }) => schema[name as keyof typeof schema] === sql)
      if (!isWhole || tables.length !== Object.keys(schema).length) return 'its tables differ'
      const states = 'SELECT slice_micros, first_slice, newest, since, last_id, last_seq, last_committed FROM state'
      const { states: different } = readRow<{ readonly states: number }>(
        database,
        `SELECT count(*) * 2 - (SELECT count(*) FROM state) AS states FROM (SELECT DISTINCT * FROM (${states}))`,
      )
      if (different !== 0) return 'its state differs from the copy'
      const { slice_micros } = readRow<State>(database, 'SELECT * FROM state')
      if (slice_micros !== Math.ceil(windowMicros / windowLimits.slices)) return 'it is of another window'
      const sums = `SELECT slice, count(*) AS keys, ${sumSql} AS total FROM keys WHERE slice >= (SELECT first_slice FROM state) GROUP BY slice`
      const wrong = `SELECT count(*) AS wrong FROM (SELECT * FROM (${sums} EXCEPT SELECT slice, keys, total FROM sums)
        UNION ALL SELECT * FROM (SELECT slice, keys, total FROM sums WHERE keys > 0 EXCEPT ${sums})
        UNION ALL SELECT number, at, slice FROM segments WHERE slice <> at / ${slice_micros})`
      return readRow<{ readonly wrong: number }>(database, wrong).wrong === 0 ? undefined : 'its sums differ'
    })
  } catch (error) {
    if (error instanceof IndexDamaged) return error.message
    throw error
  }
}

/** Whether the file says that it has a rollback journal. With other bytes SQLite would take it for a file that it may only read. */
function hasHeader(path: string): boolean {
  const header = Buffer.alloc(20)
  const file = openSync(path, 'r')
  try {
    readSync(file, header, 0, header.length, 0)
  } finally {
    closeSync(file)
  }
  return header[18] === 1 && header[19] === 1
}

export function readState({ path }: IndexedView): IndexState {
  return use(path, stateOf)
}

/** Returns the keys that count for a segment. */
export function rangeFor({ path, windowMicros }: IndexedView, { id, sealedAtMicros }: IndexedSegment): KeyRange {
  return use(path, (database) => {
    const { newest, slice_micros: width } = readRow<State>(database, 'SELECT * FROM state')
    const after = Math.max(sealedAtMicros, newest) - windowMicros
    const first = database.prepare('SELECT number FROM segments WHERE at > ? ORDER BY at, number LIMIT 1').get(after)
    const own = database.prepare('SELECT number FROM segments WHERE id = ?').get(id)
    const [from, to] = [Math.floor(after / width), Math.floor(Math.max(sealedAtMicros, newest) / width)]
    const filled = database.prepare('SELECT slice FROM sums WHERE slice BETWEEN ? AND ? AND keys > 0').all(from, to)
    const slices = filled.flatMap((row) => numberIn(row, 'slice') ?? [])
    return { slices, from: numberIn(first, 'number') ?? Number.MAX_SAFE_INTEGER, own: numberIn(own, 'number') ?? -1 }
  })
}

/** Adds the keys of a segment, of a file of 16 bytes for each; null for none. If it was added before, these are its keys now. */
export function registerKeys(
  { path, windowMicros }: IndexedView,
  { id, seq, sealedAtMicros }: IndexedSegment,
  keysPath: string | null,
): IndexState {
  return use(path, (database) =>
    transact(database, () => {
      removeSegment(database, id)
      const state = readRow<State>(database, 'SELECT * FROM state')
      const at = Math.max(sealedAtMicros, state.newest)
      const added = keysPath === null ? 0 : addKeys(database, id, at, Math.floor(at / state.slice_micros), keysPath)
      database
        .prepare('UPDATE state SET newest = ?, last_id = ?, last_seq = max(coalesce(last_seq, ?), ?), last_committed = 0')
        .run(at, id, seq, seq)
      removeExpired(database, at - windowMicros, state.slice_micros, added)
      return stateOf(database)
    }),
  )
}

/** Says that the segment is committed, if it is the last one that was registered. */
export function confirmSegment({ path }: IndexedView, id: string): void {
  use(path, (database) => {
    database.prepare('UPDATE state SET last_committed = 1 WHERE last_id = ? AND last_committed = 0').run(id)
  })
}

/** Takes out the keys of a segment that has no rows in any file: the last one, if nobody said that it is committed. */
export function forgetSegment({ path }: IndexedView, id: string): void {
  use(path, (database) =>
    transact(database, () => {
      const { last_id, last_committed } = readRow<State>(database, 'SELECT * FROM state')
      if (last_id !== id || last_committed === 1) return
      removeSegment(database, id)
      database.prepare('UPDATE state SET last_committed = 1 WHERE last_id = ?').run(id)
    }),
  )
}

/** Says that the index has all keys of segments from then on. */
export function completeIndex({ path }: IndexedView, sinceMicros: number): IndexState {
  return use(path, (database) => {
    database.prepare('UPDATE state SET since = ?').run(sinceMicros)
    return stateOf(database)
  })
}

/** Returns those of the ids that are registered with keys. */
export function findRegistered({ path }: IndexedView, ids: readonly string[]): readonly string[] {
  return use(path, (database) => {
    const find = database.prepare('SELECT 1 FROM segments WHERE id = ?')
    return ids.filter((id) => find.get(id) !== undefined)
  })
}

/** Removes the oldest part of the keys, so that the window is shorter. */
export function shortenIndex({ path }: IndexedView): IndexState {
  return use(path, (database) => {
    transact(database, () => {
      const { slice_micros: width } = readRow<State>(database, 'SELECT * FROM state')
      const { oldest } = readRow<{ readonly oldest: number | null }>(database, 'SELECT min(slice) AS oldest FROM sums')
      if (oldest === null) return
      database.prepare('DELETE FROM keys WHERE slice = ?').run(oldest)
      database.prepare('DELETE FROM sums WHERE slice = ?').run(oldest)
      database.prepare('DELETE FROM segments WHERE slice = ?').run(oldest)
      database
        .prepare('UPDATE state SET since = max(coalesce(since, 0), ?), first_slice = max(first_slice, ?)')
        .run((oldest + 1) * width, oldest + 1)
    })
    database.exec('PRAGMA incremental_vacuum')
    return stateOf(database)
  })
}

function addKeys(database: DatabaseSync, id: string, at: number, slice: number, keysPath: string): number {
  const { lastInsertRowid } = database.prepare('INSERT INTO segments (id, at, slice) VALUES (?, ?, ?)').run(id, at, slice)
  const number = Number(lastInsertRowid)
  const insert = database.prepare('INSERT OR IGNORE INTO keys (slice, high, low, segment) VALUES (?, ?, ?, ?)')
  let [added, total] = [0, 0n]
  for (const keys of readBlocks(keysPath)) {
    let sum = 0
    for (let start = 0; start < keys.length; start += keyBytes) {
      if (insert.run(slice, keys.readBigInt64BE(start), keys.readBigInt64BE(start + 8), number).changes === 0) continue
      added += 1
      const words = weights.slice(0, 4).reduce((mix, weight, word) => mix + keys.readUInt32BE(start + 4 * word) * weight, 0)
      sum += (words + number * weights[4]) % modulus
    }
    total += BigInt(sum)
  }
  database
    .prepare(
      'INSERT INTO sums (slice, keys, total) VALUES (?, ?, ?) ON CONFLICT (slice) DO UPDATE SET keys = keys + excluded.keys, total = total + excluded.total',
    )
    .run(slice, added, total)
  return added
}

function* readBlocks(path: string): Iterable<Buffer> {
  const file = openSync(path, 'r')
  try {
    const buffer = Buffer.alloc(windowLimits.readBytes)
    for (let position = 0; ; ) {
      const bytes = readSync(file, buffer, 0, buffer.length, position)
      if (bytes % keyBytes !== 0) throw new StorageFailure(`${path} ends within a key`)
      if (bytes === 0) return
      yield buffer.subarray(0, bytes)
      position += bytes
    }
  } finally {
    closeSync(file)
  }
}

function removeSegment(database: DatabaseSync, id: string): void {
  const known = database.prepare('SELECT number, slice FROM segments WHERE id = ?').get(id)
  const [number, slice] = [numberIn(known, 'number'), numberIn(known, 'slice')]
  if (number === undefined || slice === undefined) return
  const own = 'FROM keys WHERE slice = ? AND segment = ?'
  const statement = database.prepare(`SELECT count(*) AS keys, coalesce(${sumSql}, 0) AS total ${own}`)
  statement.setReadBigInts(true)
  const { keys = 0n, total = 0n } = statement.get(slice, number) ?? {}
  database.prepare(`DELETE ${own}`).run(slice, number)
  database.prepare('UPDATE sums SET keys = keys - ?, total = total - ? WHERE slice = ?').run(keys, total, slice)
  database.prepare('DELETE FROM segments WHERE number = ?').run(number)
}

/** Removes some of the keys that no segment is compared with any more, and what is known of their slices once they are gone. */
function removeExpired(database: DatabaseSync, beforeMicros: number, width: number, added: number): void {
  const first = Math.floor(beforeMicros / width)
  const count = windowLimits.expiredKeysMin + windowLimits.expiredKeysFactor * added
  const old = 'SELECT slice, high, low FROM keys WHERE slice < ? ORDER BY slice, high, low LIMIT ?'
  const { changes } = database.prepare(`DELETE FROM keys WHERE (slice, high, low) IN (${old})`).run(first, count)
  // Slices that are removed in part have no sum to compare with.
  database.prepare('DELETE FROM sums WHERE slice < ?').run(first)
  database.prepare('UPDATE state SET first_slice = max(first_slice, ?)').run(first)
  if (Number(changes) < count) {
    const segments = 'SELECT number FROM segments WHERE at < ? ORDER BY at LIMIT ?'
    database.prepare(`DELETE FROM segments WHERE number IN (${segments})`).run(first * width, windowLimits.expiredKeysMin)
  }
}

function stateOf(database: DatabaseSync): IndexState {
  const { newest, since, last_id, last_seq, last_committed } = readRow<State>(database, 'SELECT * FROM state')
  const { keys } = readRow<{ readonly keys: number }>(database, 'SELECT coalesce(sum(keys), 0) AS keys FROM sums')
  const pragma = (name: string) => numberIn(database.prepare(`PRAGMA ${name}`).get(), name) ?? 0
  return {
    bytes: (pragma('page_count') - pragma('freelist_count')) * pragma('page_size'),
    keys,
    newestMicros: newest,
    sinceMicros: since,
    last: last_id === null ? null : { id: String(last_id), seq: last_seq, isCommitted: last_committed === 1 },
  }
}

function transact<T>(database: DatabaseSync, work: () => T): T {
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = work()
    database.exec('COMMIT')
    return result
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

/** Opens the index for one use. Throws IndexDamaged or StorageFailure. */
function use<T>(path: string, work: (database: DatabaseSync) => T): T {
  return explained(path, () => {
    const database = new DatabaseSync(path, { timeout: windowLimits.busyTimeoutMs })
    try {
      // A rollback journal: a process that may only read the file needs no other.
      database.exec(`PRAGMA journal_mode = delete; PRAGMA synchronous = full; PRAGMA cache_size = -${windowLimits.cacheKiB}`)
      const result = work(database)
      database.exec(`PRAGMA incremental_vacuum(${windowLimits.vacuumPages})`)
      return result
    } finally {
      database.close()
    }
  })
}

/** Codes of SQLite for what the machine is to blame for: permissions, locks, memory, reads and writes that fail, a full disk. Others mean damage. */
const machineCodes: readonly number[] = [3, 5, 6, 7, 8, 9, 10, 13, 14, 15, 22]

/** Throws IndexDamaged or StorageFailure instead of an error of SQLite. */
export function explained<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    const code = error instanceof Error && 'errcode' in error ? Number(error.errcode) : undefined
    if (code === undefined) throw error
    const message = `${path}: ${errorMessage(error)}`
    const isOfMachine = machineCodes.includes(code & 0xff)
    throw isOfMachine ? new StorageFailure(message, { cause: error }) : new IndexDamaged(message, { cause: error })
  }
}

type State = {
  readonly slice_micros: number
  readonly newest: number
  readonly since: number | null
  readonly last_id: string | null
  readonly last_seq: number
  readonly last_committed: number
}

function readRow<Row>(database: DatabaseSync, sql: string): Row {
  const row = database.prepare(sql).get()
  if (row === undefined) throw new IndexDamaged('it has no state')
  return row as Row
}

function numberIn(row: Record<string, unknown> | undefined, column: string): number | undefined {
  const value = row?.[column]
  return typeof value === 'number' ? value : undefined
}
