/** The database is an older copy, or gone: nodes keep what they know, control says so, and nothing is lost or doubled. */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { describeWith } from '../support/deployment.ts'
import { Installation } from '../support/installation.ts'
import { until } from '../support/until.ts'

const processes = ['control', 'ingest', 'delivery'] as const

describeWith('processes', 'a database that went back', () => {
  let inlet: Installation
  let elsewhere: string

  beforeEach(async () => {
    inlet = await Installation.create()
    elsewhere = await mkdtemp(join(tmpdir(), 'inlet-older-'))
  })
  afterEach(async () => {
    await inlet[Symbol.asyncDispose]()
    await rm(elsewhere, { recursive: true, force: true })
  })

  const databaseFiles = (directory: string) => readdirSync(directory).filter((name) => /^inlet\.db(-wal|-shm)?$/.test(name))

  function removeDatabase(): void {
    for (const name of databaseFiles(inlet.directory)) rmSync(join(inlet.directory, name))
  }

  function copyDatabase(from: string, to: string): void {
    for (const name of databaseFiles(from)) cpSync(join(from, name), join(to, name))
  }

  /** Copies the database as it is now; all processes are stopped. */
  async function keepCopy(): Promise<void> {
    for (const name of processes) await inlet.end(name, 'SIGTERM')
    copyDatabase(inlet.directory, elsewhere)
  }

  async function putCopyBack(): Promise<void> {
    for (const name of processes) await inlet.kill(name)
    removeDatabase()
    copyDatabase(elsewhere, inlet.directory)
  }

  const endpointOf = (id: string) => inlet.ok('GET', `/v1/endpoints/${id}`)
  const commitsOf = (id: string) => inlet.ok('GET', `/v1/endpoints/${id}/commits`)

  test('nodes keep the newer configuration and say so, until an operator accepts the older database', async () => {
    await inlet.start(...processes)
    const { id } = await inlet.endpoint({ bucket: 'lake' })
    const first = (await inlet.ingest(id, '{"n":1}')).body
    await inlet.committed(id, [first.segment_seq])
    await keepCopy()
    await inlet.start(...processes)
    const { destination_id } = await endpointOf(id)
    const { id: newer } = await inlet.endpoint({ bucket: 'lake', destination_id })
    const sent = (await inlet.ingest(newer, '{"n":2}')).body
    await inlet.committed(newer, [sent.segment_seq])
    const second = (await inlet.ingest(id, '{"n":3}')).body
    await inlet.committed(id, [second.segment_seq])
    await putCopyBack()
    await inlet.start(...processes)

    // Senders notice nothing.
    expect((await inlet.ingest(newer, '{"n":4}')).status).toBe(202)
    await until('the node to refuse', async () => {
      const { status, status_reasons } = await endpointOf(id)
      const reasons = status_reasons.join('\n')
      return status !== 'active' && reasons.includes('keeps its configuration') && reasons.includes('may be missing')
    })
    expect(inlet.log).toContain('configuration of control refused; keeping the last one')
    expect(inlet.log).toContain('the database went back to an older state')
    const since = (await commitsOf(id)).may_lack_commits_since
    expect(Date.parse(since)).toBeLessThan(Date.now())
    expect((await inlet.run('nodes', 'list')).log).toContain('keeps epoch')
    const shown = (await inlet.run('database', 'show')).log
    expect(shown).toMatch(/keeps its configuration of epoch \d+/)
    const compact = await inlet.api('POST', `/v1/endpoints/${id}/compact`, {})
    expect([compact.status, compact.body.detail]).toEqual([409, expect.stringContaining('inlet commits rebuild')])

    // The configuration changes beyond the epoch that the node knows: it still means something else.
    for (let changes = 0; changes < 20; changes += 1)
      await inlet.ok('PATCH', `/v1/endpoints/${id}`, { segment_bytes: 8_000_000 + changes })
    for (const name of ['ingest', 'delivery'] as const) {
      await inlet.kill(name)
      await inlet.start(name)
    }
    expect((await inlet.ingest(newer, '{"n":5}')).status).toBe(202)

    expect((await inlet.run('database', 'accept')).exitCode).toBe(0)
    await until('the node to follow', async () => (await inlet.ingest(newer, '{"n":6}')).status === 404)
    expect((await inlet.run('commits', 'rebuild')).exitCode).toBe(0)
    const after = await commitsOf(id)
    expect(after.may_lack_commits_since).toBeNull()
    expect(after.items.map(({ seq }: { seq: number }) => seq)).toEqual(
      expect.arrayContaining([first.segment_seq, second.segment_seq]),
    )
    // Both processes of the node follow, and report it, on a machine that runs other tests.
    await until('the endpoint to be active', async () => (await endpointOf(id)).status === 'active', 60_000)
    expect((await inlet.run('database', 'show')).log).not.toMatch(/may be missing\n$/)
  })

  test('nodes follow the newer database again once it is put back, also with a lease on credentials', async () => {
    inlet.configure({ INLET_CREDENTIAL_LEASE: '5s' })
    const newest = join(elsewhere, 'newest')
    mkdirSync(newest)
    await inlet.start(...processes)
    const { id } = await inlet.endpoint({ bucket: 'lake' })
    await keepCopy()
    await inlet.start(...processes)
    const key = await inlet.ok('POST', '/v1/keys', { name: 'till', scopes: ['ingest'] })
    const send = async () => {
      const headers = { 'x-api-key': key.api_key, 'content-type': 'application/json' }
      return (await fetch(`${inlet.ingestUrl}/v1/ingest?endpoint=${id}`, { method: 'POST', headers, body: '1' })).status
    }
    await until('the key on the node', async () => (await send()) === 202)
    /** As the files say that a start without control reads: the last line is a checksum. */
    const stored = () =>
      ['ingest', 'delivery'].map((name) => {
        const lines = readFileSync(join(inlet.directory, 'node', `${name}-snapshot.ndjson`), 'utf8')
          .trimEnd()
          .split('\n')
        return JSON.parse(lines.at(-2) ?? '') as { readonly epoch: number; readonly refusing?: true }
      })
    const refusing = () => stored().filter((each) => each.refusing === true)
    const before = Math.max(...stored().map(({ epoch }) => epoch))
    // Delivery has no keys.
    await inlet.ok('PATCH', `/v1/endpoints/${id}`, { segment_bytes: 8_000_000 })
    await until('both processes to know it', () => stored().every(({ epoch }) => epoch > before), 30_000)
    await inlet.end('control', 'SIGTERM')
    copyDatabase(inlet.directory, newest)
    removeDatabase()
    copyDatabase(elsewhere, inlet.directory)
    await inlet.start('control')
    await until('both processes to refuse', () => refusing().length === 2, 30_000)
    await until('the lease to end', async () => (await send()) === 503, 30_000)

    await inlet.end('control', 'SIGTERM')
    removeDatabase()
    copyDatabase(newest, inlet.directory)
    await inlet.start('control')
    await until('the key to be accepted again', async () => (await send()) === 202, 30_000)
    await until('both processes to follow', () => refusing().length === 0, 30_000)
    const shown = async () => (await inlet.run('database', 'show')).log
    await until('the node to say so', async () => !(await shown()).includes('keeps its configuration'))
  })

  test('an older copy with the same configuration is noticed by its commits', async () => {
    await inlet.start(...processes)
    const { id } = await inlet.endpoint({ bucket: 'lake' })
    await keepCopy()
    await inlet.start(...processes)
    const { segment_seq } = (await inlet.ingest(id, '{"n":1}')).body
    await inlet.committed(id, [segment_seq])
    await inlet.end('delivery', 'SIGTERM')
    await putCopyBack()
    await inlet.start(...processes)
    // Control records it again by itself, from the marker in the bucket.
    await until('the commit', async () => (await commitsOf(id)).items.length === 1)
    await until('nothing to be missing', async () => (await commitsOf(id)).may_lack_commits_since === null)
    expect(inlet.log).toMatch(/the database went back to an older state.*lost commits recorded again/s)
    expect((await inlet.run('commits', 'rebuild')).exitCode).toBe(0)
    expect((await commitsOf(id)).items).toMatchObject([{ seq: segment_seq }])
    await inlet.kill('delivery')
    await inlet.start('delivery')
    expect((await inlet.ingest(id, '{"n":2}')).status).toBe(202)
    await until('both commits', async () => (await commitsOf(id)).items.length === 2)
    expect((await commitsOf(id)).may_lack_commits_since).toBeNull()
  })

  test('a flipped bit in the log of SQLite is noticed, although the node knows no newer state', async () => {
    await inlet.start(...processes)
    const { id } = await inlet.endpoint({ bucket: 'lake' })
    const log = join(inlet.directory, 'inlet.db-wal')
    // Emptied, which writes the configuration to the database.
    await until('a checkpoint', () => statSync(log).size < 50_000, 30_000)
    const { segment_seq } = (await inlet.ingest(id, '{"n":1}')).body
    await inlet.committed(id, [segment_seq])
    for (const name of ['delivery', 'ingest', 'control'] as const) await inlet.kill(name)
    const bytes = readFileSync(log)
    bytes[1_000] = (bytes[1_000] ?? 0) ^ 1
    writeFileSync(log, bytes)
    await inlet.start(...processes)
    expect((await commitsOf(id)).may_lack_commits_since).not.toBeNull()
    expect(inlet.log).toContain('the log of the database is damaged')
    expect((await inlet.run('commits', 'rebuild')).exitCode).toBe(0)
    expect(await commitsOf(id)).toMatchObject({ items: [{ seq: segment_seq }], may_lack_commits_since: null })
  })

  test('beside a used node an empty database gets no first account, until an operator accepts it', async () => {
    await inlet.start(...processes)
    const { id } = await inlet.endpoint({ bucket: 'lake' })
    for (const name of processes) await inlet.kill(name)
    removeDatabase()
    await inlet.start(...processes)
    await until('the reason', () => inlet.log.includes('the database is empty, but the node of this data directory was in use'))
    await until('the refusal', () => inlet.log.includes('control has another database'))
    expect((await inlet.ingest(id, '{"n":1}')).status).toBe(202)
    expect((await inlet.run('keys', 'list')).log).toContain('there is no account yet')
    expect((await inlet.run('database', 'accept')).exitCode).toBe(0)
    await inlet.kill('control')
    await inlet.start('control')
    await until('the first account', async () => (await inlet.run('keys', 'list')).log.includes('bootstrap'))
    await until('the node to follow', async () => (await inlet.ingest(id, '{"n":2}')).status === 404)
  })
})
