/** Committed data is on disk: the settings on SQLite, and a killed server on Postgres. */
import { copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { systemFiles } from '#lib/files.ts'
import { newId } from '#model/id.ts'
import { listCommits, recordCommit } from '#store/commits/commits.ts'
import { engineLimits } from '#store/engines/limits.ts'
import { hasDamagedLog } from '#store/engines/sqlite-log.ts'
import { migrate } from '#store/migrations/migrate.ts'
import { openStore, transact } from '#store/store.ts'
import { startPostgres } from '../../tools/services/postgres.ts'
import { newDatabase, openTestStore, type TestStore } from '../support/databases.ts'
import { aCommit, t0 } from './fixtures.ts'

/** Inlet creates the file itself: a copied one has the mode of its copier, and already has a journal. */
async function createStore(): Promise<TestStore> {
  const store = await openTestStore(await newDatabase('sqlite'))
  await migrate(store)
  return store
}

describe('durability on SQLite', () => {
  test('a commit is synced before it returns, and references are enforced', async () => {
    await using store = await createStore()
    const pragma = async (name: string) => (await sql<Record<string, unknown>>`pragma ${sql.raw(name)}`.execute(store.db)).rows[0]
    expect(await pragma('journal_mode')).toEqual({ journal_mode: 'wal' })
    // 2 is FULL. https://www.sqlite.org/pragma.html#pragma_synchronous
    expect(await pragma('synchronous')).toEqual({ synchronous: 2 })
    expect(await pragma('foreign_keys')).toEqual({ foreign_keys: 1 })
  })

  test('a checkpoint empties the write-ahead log, and gives up at once if somebody uses it', async () => {
    await using store = await createStore()
    const endpoint = newId()
    await transact(store, (db) => recordCommit(db, aCommit(endpoint, 1), t0))
    expect(statSync(`${store.url}-wal`).size).toBeGreaterThan(0)
    const reader = new DatabaseSync(store.url, { readOnly: true })
    reader.exec('begin; select count(*) from commits')
    await transact(store, (db) => recordCommit(db, aCommit(endpoint, 2), t0))
    const begunAt = performance.now()
    expect(store.checkpoint?.()).toBe(false)
    expect(performance.now() - begunAt).toBeLessThan(1_000)
    reader.close()
    // In a transaction of its own connection it does nothing either.
    await transact(store, async () => expect(store.checkpoint?.()).toBe(false))
    expect(store.checkpoint?.()).toBe(true)
    expect(statSync(`${store.url}-wal`).size).toBe(0)
    expect((await listCommits(store.db, endpoint, { limit: 9 })).items).toHaveLength(2)
    expect(await sql`pragma busy_timeout`.execute(store.db)).toMatchObject({
      rows: [{ timeout: engineLimits.sqliteBusyTimeoutMs }],
    })
  })

  test('a log that lost transactions is told from one that a crash cut off', async () => {
    await using store = await createStore()
    const endpoint = newId()
    expect(store.checkpoint?.()).toBe(true)
    expect(await hasDamagedLog(systemFiles, store.url)).toBe(false)
    for (let seq = 0; seq < 4; seq += 1) await transact(store, (db) => recordCommit(db, aCommit(endpoint, seq), t0))
    const whole = readFileSync(`${store.url}-wal`)
    const copy = `${store.url}-copy`
    const judge = async (log: Uint8Array) => {
      writeFileSync(`${copy}-wal`, log)
      return hasDamagedLog(systemFiles, copy)
    }
    const flipped = (at: number) => whole.map((byte, index) => (index === at ? byte ^ 0x10 : byte))
    expect(await judge(whole)).toBe(false)
    // In the header, and in the header and the page of the first frame.
    for (const at of [0, 13, 17, 30, 33, 41, 50, 60, 1000]) expect([at, await judge(flipped(at))]).toEqual([at, true])
    // SQLite opens it without an error, and the commits are gone.
    copyFileSync(store.url, copy)
    await judge(flipped(1000))
    // A command would empty the log, and control would not learn of it.
    await expect(openStore(copy, { mustExist: true })).rejects.toThrow('start control first')
    const opened = await openStore(copy)
    expect((await listCommits(opened.db, endpoint, { limit: 9 })).items).toEqual([])
    await opened.close()
    // A write that did not end, or of which the disk has some pages only.
    for (let bytes = 0; bytes < whole.length; bytes += 1789)
      expect([bytes, await judge(whole.subarray(0, bytes))]).toEqual([bytes, false])
    expect(await judge(flipped(whole.length - 5))).toBe(false)
    // After a restart of the log, the end of the former one is behind the new one.
    expect((await sql<{ busy: number }>`pragma wal_checkpoint(restart)`.execute(store.db)).rows[0]?.busy).toBe(0)
    await transact(store, (db) => recordCommit(db, aCommit(endpoint, 9), t0))
    const restarted = readFileSync(`${store.url}-wal`)
    expect(restarted.length).toBe(whole.length)
    expect(await judge(restarted)).toBe(false)
  })

  test('only the owner can read the file, because it contains signing keys', async () => {
    await using store = await createStore()
    for (const name of ['', '-wal', '-shm']) expect(statSync(store.url + name).mode & 0o777).toBe(0o600)
  })
})

const postgres = describe.skipIf(process.env['INLET_TEST_POSTGRES'] === undefined)
const reason = process.env['INLET_TEST_POSTGRES'] === undefined ? ' (skipped: INLET_TEST_POSTGRES is not set)' : ''

postgres(`durability on Postgres with its own settings${reason}`, () => {
  test('commits survive a killed server, and the store reconnects by itself', async () => {
    const server = await startPostgres({ durable: true })
    const lost: Error[] = []
    const store = await openStore(server.url, { onConnectionLost: (error) => lost.push(error) })
    try {
      await migrate(store)
      const { rows } = await sql<{ fsync: string }>`select current_setting('fsync') as fsync`.execute(store.db)
      expect(rows).toEqual([{ fsync: 'on' }])
      const endpoint = newId()
      const record = (seq: number) => transact(store, (db) => recordCommit(db, aCommit(endpoint, seq), t0))
      for (let seq = 0; seq < 5; seq += 1) await record(seq)
      await server.crash()
      expect(lost.length).toBeGreaterThan(0)
      expect((await listCommits(store.db, endpoint, { limit: 50 })).items).toHaveLength(5)
      expect(await record(4)).toBe('known')
      expect(await record(5)).toBe('new')
    } finally {
      await store.close()
      await server.stop()
    }
  })
})
