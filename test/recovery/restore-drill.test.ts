/**
 * The database is older, newer than the node, or gone, with compaction and removal on, and an operator follows the documented steps in any
 * order: afterwards every record can be read exactly once, and until then no count is taken for the whole.
 */
import { cpSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeWith } from '../support/deployment.ts'
import { Installation } from '../support/installation.ts'
import { until } from '../support/until.ts'

const processes = ['control', 'ingest', 'delivery'] as const
const definition = { columns: [{ name: 'n', type: 'INTEGER', path: '$.n', required: true }] }

describeWith('processes', 'a restore drill', () => {
  let inlet: Installation
  let elsewhere: string
  let id = ''
  let sent = 0

  beforeAll(async () => {
    inlet = await Installation.create()
    elsewhere = await mkdtemp(join(tmpdir(), 'inlet-drill-'))
    await inlet.start(...processes)
    const view = { name: 'numbers', definition }
    ;({ id } = await inlet.endpoint({ bucket: 'lake', view, output_formats: ['parquet', 'parquet_views'] }))
    await inlet.ok('PATCH', `/v1/endpoints/${id}`, { compaction: { period: 'day', remove_after_hours: 1 } })
  })
  afterAll(async () => {
    await inlet?.[Symbol.asyncDispose]()
    if (elsewhere !== undefined) await rm(elsewhere, { recursive: true, force: true })
  })

  async function send(): Promise<void> {
    for (let segments = 0; segments < 2; segments += 1) {
      const { body } = await inlet.ingest(id, `{"n":${sent++}}\n{"n":${sent++}}`)
      await inlet.committed(id, [body.segment_seq])
    }
  }

  async function ended(job: { readonly id: string }): Promise<void> {
    await until('the end of the job', async () => (await inlet.ok('GET', `/v1/jobs/${job.id}`)).finished_at !== null, 60_000)
    expect((await inlet.ok('GET', `/v1/jobs/${job.id}`)).status).toBe('succeeded')
  }

  const requestCompaction = () =>
    inlet.api('POST', `/v1/endpoints/${id}/compact`, { to: new Date(Date.now() + 60_000).toISOString() })

  /** Merges what was sent, and removes the merged files, as if two hours had passed. */
  async function compactAndRemove(): Promise<void> {
    await ended((await requestCompaction()).body)
    {
      using db = new DatabaseSync(join(inlet.directory, 'inlet.db'), { timeout: 10_000 })
      db.exec(`UPDATE compactions SET published_at = published_at - 7200000`)
    }
    await ended((await requestCompaction()).body)
  }

  const killAll = async () => {
    for (const name of processes) await inlet.kill(name)
  }

  async function run(...args: readonly [string, ...string[]]): Promise<void> {
    const { exitCode, log } = await inlet.run(...args)
    expect(exitCode, `inlet ${args.join(' ')}: ${log}`).toBe(0)
  }

  function putDatabase(from: string): void {
    for (const name of readdirSync(inlet.directory).filter((each) => each.startsWith('inlet.db')))
      rmSync(join(inlet.directory, name))
    cpSync(join(from, 'inlet.db'), join(inlet.directory, 'inlet.db'))
  }

  const count = async () => {
    const { rows, tables } = await inlet.ok('POST', '/v1/query', { sql: 'SELECT count(*), count(DISTINCT n) FROM numbers' })
    return { counts: rows[0].map(Number), complete: tables[0].complete, mayLack: tables[0].may_lack_commits_since !== null }
  }

  /** Once the nodes have reported. Before that, nobody knows. */
  async function isNoticed(): Promise<void> {
    const since = Date.now()
    // An accepted database has noted the loss already; a node that reports after the rebuild would note it again.
    await until(
      'both processes of the node to report',
      () => {
        using db = new DatabaseSync(join(inlet.directory, 'inlet.db'), { timeout: 10_000 })
        const reported = db.prepare('SELECT count(*) AS count FROM node_processes WHERE last_seen_at > ?').get(since)
        return Number(reported?.['count']) >= 2
      },
      30_000,
    )
    await until('the loss to be noticed', async () => (await count()).mayLack)
    expect(await count()).toMatchObject({ complete: false })
    expect((await requestCompaction()).status).toBe(409)
  }

  /** Everything is there, exactly once, and the next rebuild has nothing to do. */
  async function isWhole(): Promise<void> {
    await until('all commits', async () => (await count()).counts[0] === sent)
    expect(await count()).toEqual({ counts: [sent, sent], complete: true, mayLack: false })
    expect((await inlet.run('commits', 'rebuild')).log).toMatch(/0 recorded, \d+ already known, 0 rejected/)
    expect(await count()).toEqual({ counts: [sent, sent], complete: true, mayLack: false })
    await send()
    await until('new records', async () => (await count()).counts[0] === sent)
  }

  /** Makes a backup, and then delivers, merges and removes what it does not know. Returns its directory. */
  async function backUpAndGoOn(name: string): Promise<string> {
    await send()
    const backup = join(elsewhere, name)
    await run('backup', backup)
    await send()
    await compactAndRemove()
    await send()
    return backup
  }

  test('an older database, accepted before the start', async () => {
    const backup = await backUpAndGoOn('accepted')
    await killAll()
    putDatabase(backup)
    await run('database', 'accept')
    await inlet.start(...processes)
    await isNoticed()
    await run('commits', 'rebuild')
    await isWhole()
  })

  test('an older database that is started first: a compaction may be planned before nodes report', async () => {
    const backup = await backUpAndGoOn('started')
    await inlet.ok('PATCH', `/v1/endpoints/${id}`, { segment_bytes: 8_000_000 + sent })
    await killAll()
    putDatabase(backup)
    await inlet.start('control')
    // Some of these files are merged and removed.
    expect([202, 409]).toContain((await requestCompaction()).status)
    await inlet.start('ingest', 'delivery')
    await isNoticed()
    await run('commits', 'rebuild')
    await run('database', 'accept')
    await isNoticed()
    await run('commits', 'rebuild')
    await isWhole()
  })

  test('an older database that is rebuilt before the start', async () => {
    const backup = await backUpAndGoOn('rebuilt')
    await killAll()
    putDatabase(backup)
    await run('database', 'accept')
    await run('commits', 'rebuild')
    await inlet.start(...processes)
    await isWhole()
  })

  test('a whole machine from its backup', async () => {
    const backup = await backUpAndGoOn('machine')
    await killAll()
    await rename(join(inlet.directory, 'buckets'), join(elsewhere, 'buckets'))
    for (const name of readdirSync(inlet.directory)) rmSync(join(inlet.directory, name), { recursive: true })
    await run('restore', backup)
    await rename(join(elsewhere, 'buckets'), join(inlet.directory, 'buckets'))
    await inlet.start(...processes)
    await isNoticed()
    await run('commits', 'rebuild')
    await isWhole()
  })

  test('a database that is newer than its node', async () => {
    const backup = await backUpAndGoOn('node')
    await killAll()
    rmSync(join(inlet.directory, 'node'), { recursive: true })
    mkdirSync(join(inlet.directory, 'node'))
    cpSync(join(backup, 'node'), join(inlet.directory, 'node'), { recursive: true })
    await inlet.start(...processes)
    await isWhole()
  })

  test('a database that is gone: nothing is created, and a backup brings it back', async () => {
    const backup = await backUpAndGoOn('gone')
    await killAll()
    rmSync(join(inlet.directory, 'inlet.db'))
    for (const name of readdirSync(inlet.directory).filter((each) => each.startsWith('inlet.db-')))
      rmSync(join(inlet.directory, name))
    await inlet.start(...processes)
    const { status } = await inlet.ingest(id, `{"n":${sent++}}`)
    expect(status).toBe(202)
    expect((await inlet.run('keys', 'list')).log).toContain('there is no account yet')
    await killAll()
    putDatabase(backup)
    await run('database', 'accept')
    await inlet.start(...processes)
    await isNoticed()
    await run('commits', 'rebuild')
    await isWhole()
  })
})
