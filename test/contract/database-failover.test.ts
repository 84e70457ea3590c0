/** The database fails over to a standby: both APIs return 503 with Retry-After meanwhile, and continue on the new primary by themselves. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { rebuildRegion } from '#cli/commits/rebuild-region.ts'
import type { RebuildRegion } from '#control/upkeep/lost-commits.ts'
import { must } from '#lib/assert.ts'
import { insertDestination } from '#store/endpoints/destinations.ts'
import { databaseErrorKind } from '#store/engines/database-error.ts'
import { migrate } from '#store/migrations/migrate.ts'
import { prepareDatabase } from '#store/migrations/prepare.ts'
import { openStore } from '#store/store.ts'
import { type Postgres, startPostgres } from '../../tools/services/postgres.ts'
import { aDestination } from '../store/fixtures.ts'
import { runCli } from '../support/cli.ts'
import { type Answer, newControl, newRegion, type TestControl } from '../support/control.ts'
import { postgresUrl, type TestDatabase } from '../support/databases.ts'
import { deliverCommit } from '../support/deliver-commit.ts'
import { secretKey } from '../support/keyring.ts'
import { aCommit, TestNode } from '../support/test-node.ts'
import { until } from '../support/until.ts'

function expectUnavailable(answer: Answer): void {
  expect(answer).toMatchObject({ status: 503, body: { error: 'unavailable', retry: true } })
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
}

async function replicated({ url }: Postgres): Promise<void> {
  const direct = await openStore(url)
  // As of now: control writes on.
  const { rows } = await sql<{ end: string }>`select pg_current_wal_insert_lsn()::text as end`.execute(direct.db)
  const isCopied = sql<{ yes: boolean }>`select replay_lsn >= ${rows[0]?.end}::pg_lsn as yes from pg_stat_replication`
  await until('the standby has everything', async () => (await isCopied.execute(direct.db)).rows[0]?.yes === true)
  await direct.close()
}

const metric = async (control: TestControl, pattern: RegExp): Promise<number> =>
  Number(pattern.exec((await control.call('GET', '/metrics')).body)?.[1] ?? Number.NaN)

const leads = async (control: TestControl) => (await metric(control, /^inlet_control_leader\{[^}]*\} (\d)$/m)) === 1
const olderServers = (control: TestControl) => metric(control, /^inlet_database_servers\{[^}]*state="older"[^}]*\} (\d)$/m)

const kept = (url: string): TestDatabase => ({ url, [Symbol.asyncDispose]: async () => undefined })

/** A standby takes no writes until then, so no store can be opened on it. */
async function promote({ url }: Postgres): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('select pg_promote()')
  await client.end()
}

async function rowsIn<T>({ url }: Postgres, query: string): Promise<readonly T[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query(query)
  await client.end()
  return rows
}

const endpointsIn = async (server: Postgres) =>
  (await rowsIn<{ id: string }>(server, 'select id from endpoints')).map(({ id }) => id)
const locksIn = async (server: Postgres) =>
  (await rowsIn(server, `select 1 from pg_locks where locktype = 'advisory' and objid = 'epoch'::regclass::oid`)).length
describe.skipIf(postgresUrl === undefined)(
  'a primary and a standby (skipped without INLET_TEST_POSTGRES)',
  { timeout: 60_000 },
  () => {
    let servers: { readonly primary: Postgres; readonly standby: Postgres; readonly url: string } | undefined
    beforeEach(async () => {
      const primary = await startPostgres()
      const standby = await startPostgres({ standbyOf: primary.url })
      // The standby first: it is not used as long as it takes no writes.
      const [other, first] = [new URL(standby.url), new URL(primary.url)]
      servers = { primary, standby, url: `postgres://inlet@${other.host},${first.host}/postgres` }
    }, 60_000)
    afterEach(async () => {
      await servers?.standby.stop()
      await servers?.primary.stop()
    })

    test('control continues on the standby once it is promoted, and leads again', async () => {
      const { primary, standby, url } = must(servers, 'servers')
      await using control = await newControl({ database: kept(url) })
      const [account, region] = [await control.newAccount(), newRegion()]
      const node = await TestNode.register(control, region)
      await node.heartbeat()
      await primary.stop()
      await until('the outage shows', async () => (await account.get('/v1/endpoints')).status === 503)
      expectUnavailable(await account.get('/v1/endpoints'))
      expectUnavailable(await account.post('/v1/endpoints', { region }))
      expectUnavailable(await control.call('POST', '/v1/token/exchange', { api_key: account.api_key, scope: 'metrics' }))
      expectUnavailable(await node.call('POST', 'heartbeat', {}))
      expectUnavailable(await node.askSnapshot())
      await promote(standby)
      await until('control is ready again', async () => (await control.call('GET', '/readyz')).status === 200)
      const created = await account.post('/v1/endpoints', { region })
      expect(created).toMatchObject({ status: 201 })
      expect((await node.snapshot(2_000)).endpoints.map(({ id }) => id)).toEqual([created.body.id])
      await until('control leads', () => leads(control))
      // A start finds the new primary behind a host that is gone.
      const [gone, promoted] = [new URL(primary.url), new URL(standby.url)]
      const store = await openStore(`postgres://inlet@${gone.host},${promoted.host}/postgres`)
      expect(await prepareDatabase(store, url)).toBe(0)
      await store.close()
    })

    test('a primary that takes no more writes is left at the first one that it refuses', async () => {
      const { primary, standby, url } = must(servers, 'servers')
      const store = await openStore(url)
      await migrate(store)
      const write = () => sql`update epoch set value = value + 1`.execute(store.db)
      await write()
      await replicated(primary)
      const direct = await openStore(primary.url)
      await promote(standby)
      await sql`alter system set default_transaction_read_only = on`.execute(direct.db)
      await sql`select pg_reload_conf()`.execute(direct.db)
      await direct.close()
      let failure: unknown
      await until('a write is refused', () =>
        write().then(
          () => false,
          (error: unknown) => {
            failure = error
            return true
          },
        ),
      )
      expect(databaseErrorKind(failure)).toBe('unavailable')
      await write()
      await store.close()
    })

    test('an old primary that returns is not used, and control says so; not even a control that starts beside it alone uses it', async () => {
      const { primary, standby, url } = must(servers, 'servers')
      const directory = mkdtempSync(join(tmpdir(), 'inlet-timelines-'))
      const environment = { INLET_DATABASE_URL: url, INLET_DATA_DIR: directory, INLET_SECRET_KEY: secretKey }
      const lines: string[] = []
      {
        await using control = await newControl({ database: kept(url), directory, onLog: (line) => lines.push(line) })
        const [account, region] = [await control.newAccount(), newRegion()]
        await replicated(primary)
        // So that some connections are idle: one that is in use fails with its query, and no line says so.
        await Promise.all(Array.from({ length: 5 }, () => account.get('/v1/endpoints')))
        await primary.kill()
        await promote(standby)
        await until('control is ready again', async () => (await control.call('GET', '/readyz')).status === 200)
        expect(await olderServers(control)).toBe(0)
        const lost = () => lines.filter((line) => line.includes('database connection lost'))
        await until('a line about it', () => lost().length > 0)
        expect(lost().join()).not.toContain('"client"')
        await primary.start()
        await until('the old primary is seen', async () => (await olderServers(control)) === 1, 20_000)
        expect((await control.call('GET', '/readyz')).body).toMatchObject({
          status: 'ok',
          notes: expect.arrayContaining([expect.stringContaining('two servers of the database take writes')]),
        })
        const created = await account.post('/v1/endpoints', { region })
        expect(created.status).toBe(201)
        expect(await endpointsIn(standby)).toContain(created.body.id)
        expect(await endpointsIn(primary)).not.toContain(created.body.id)
        await until('control leads on the new primary', async () => (await leads(control)) && (await locksIn(standby)) === 1)
        expect(await locksIn(primary)).toBe(0)
        expect(lines.filter((line) => line.includes('two servers of the database take writes'))).toHaveLength(1)
        const shown = await runCli(['database', 'show', '--json'], { environment })
        expect(JSON.parse(shown.out)).toMatchObject({
          servers: [
            { state: 'writable', timeline: 2, used: true },
            { state: 'older', timeline: 1, used: false },
          ],
          problems: expect.arrayContaining([expect.objectContaining({ kind: 'two_writable' })]),
        })
      }
      await standby.kill()
      await expect(newControl({ database: kept(url), directory })).rejects.toThrow(/timeline 1, .* used timeline 2/)
      expect((await runCli(['nodes', 'list'], { environment })).err).toMatch(/primary from before a failover/)
      const alone = { ...environment, INLET_DATABASE_URL: primary.url }
      expect((await runCli(['database', 'show'], { environment: alone })).out).toMatch(/control refuses it \(timeline 1\)/)
      expect(await runCli(['database', 'accept'], { environment: alone })).toMatchObject({ code: 0 })
      {
        await using control = await newControl({ database: kept(url), directory })
        await until('control leads on the accepted database', () => leads(control))
        // The other one is the older one now, whatever its timeline.
        await standby.start()
        await until('the other one is older', async () => (await olderServers(control)) === 1, 20_000)
        expect(await locksIn(standby)).toBe(0)
      }
      rmSync(directory, { recursive: true })
    })

    test('a control that uses a primary while its standby is promoted leaves it and its lock', async () => {
      const { primary, standby, url } = must(servers, 'servers')
      await using control = await newControl({ database: kept(url) })
      await until('control leads', async () => (await leads(control)) && (await locksIn(primary)) === 1)
      await replicated(primary)
      await promote(standby)
      await until('the primary is given up', async () => (await locksIn(primary)) === 0 && (await locksIn(standby)) === 1, 20_000)
      expect((await control.call('GET', '/readyz')).status).toBe(200)
    })

    test('a start takes the newest of two that take writes, in whatever order they are named', async () => {
      const { primary, standby } = must(servers, 'servers')
      const [first, second] = [new URL(primary.url), new URL(standby.url)]
      await promote(standby)
      for (const hosts of [`${first.host},${second.host}`, `${second.host},${first.host}`]) {
        const store = await openStore(`postgres://inlet@${hosts}/postgres`)
        const { rows } = await sql<{ port: number }>`select inet_server_port() as port`.execute(store.db)
        expect(rows[0]?.port).toBe(Number(second.port))
        await store.close()
      }
    })

    test('commits that an asynchronous standby lacked are recorded again by themselves, and shown until they are', async () => {
      const { primary, standby, url } = must(servers, 'servers')
      const { promise: mayRead, resolve: letRead } = Promise.withResolvers<void>()
      const rebuild: RebuildRegion = (options) => mayRead.then(() => rebuildRegion(options))
      await using control = await newControl({ database: kept(url), rebuildRegion: rebuild })
      const [account, region] = [await control.newAccount(), newRegion()]
      const destination = await insertDestination(control.store.db, account.account_id, aDestination(), Date.now())
      const { body: endpoint } = await account.post('/v1/endpoints', { region, destination_id: destination.id })
      const node = await TestNode.register(control, region)
      await node.heartbeat()
      const deliver = async (seq: number) => {
        const commit = await deliverCommit(control.directory, destination, aCommit(node.id, endpoint.id, seq))
        const { status, body } = await node.call('POST', 'commits', { commits: [commit] })
        expect(status).toBe(200)
        return body.total
      }
      await deliver(1)
      await replicated(primary)
      // The connection between the two is lost, and then the primary.
      await rowsIn(standby, `alter system set primary_conninfo = ''`)
      await rowsIn(standby, 'select pg_reload_conf()')
      await until('no replication', async () => (await rowsIn(primary, 'select 1 from pg_stat_replication')).length === 0)
      await deliver(2)
      const recorded = await deliver(3)
      expect(recorded.commits).toBe(3)
      await primary.kill()
      await promote(standby)
      await until('control is ready again', async () => (await control.call('GET', '/readyz')).status === 200)
      const commits = async () => (await account.get(`/v1/endpoints/${endpoint.id}/commits`)).body
      expect((await commits()).items).toHaveLength(1)
      await node.heartbeat({}, { recorded })
      expect((await commits()).may_lack_commits_since).not.toBeNull()
      expect((await account.get(`/v1/endpoints/${endpoint.id}`)).body.status_reasons.join()).toContain(
        'control records it from the buckets',
      )
      expect(await metric(control, /^inlet_commits_missing_regions\{[^}]*\} (\d)$/m)).toBe(1)
      letRead()
      await until('all commits', async () => (await commits()).items.length === 3)
      await until('nothing to be missing', async () => (await commits()).may_lack_commits_since === null)
      await node.heartbeat({}, { recorded })
      expect((await commits()).may_lack_commits_since).toBeNull()
      expect(await metric(control, /^inlet_commits_missing_regions\{[^}]*\} (\d)$/m)).toBe(0)
    })

    test('a database that forbids to ask for timelines works, and says that an old primary is not recognised', async () => {
      const { primary, standby, url } = must(servers, 'servers')
      const direct = await openStore(primary.url)
      await sql`create role plain login`.execute(direct.db)
      await sql`grant create on schema public to plain`.execute(direct.db)
      await sql`revoke execute on function pg_walfile_name(pg_lsn) from public`.execute(direct.db)
      await direct.close()
      const asPlain = url.replace('inlet@', 'plain@')
      await using control = await newControl({ database: kept(asPlain) })
      await until('the note', async () =>
        (await control.call('GET', '/readyz')).body.notes?.some((note: string) => note.includes('tells no timeline')),
      )
      await until('control leads', () => leads(control))
      await replicated(primary)
      await primary.kill()
      await promote(standby)
      await until('control is ready again', async () => (await control.call('GET', '/readyz')).status === 200)
    })
  },
)

test.skipIf(postgresUrl === undefined)(
  'while two equally new servers take writes, commands change nothing, and an operator has to name the right one',
  { timeout: 60_000 },
  async () => {
    const primary = await startPostgres()
    let copy: Postgres | undefined
    try {
      {
        await using control = await newControl({ database: kept(primary.url) })
        await control.newAccount()
      }
      copy = await startPostgres({ copyOf: primary.url })
      const [right, wrong] = [new URL(primary.url).host, new URL(copy.url).host]
      const url = `postgres://inlet@${wrong},${right}/postgres`
      const environment = { INLET_DATABASE_URL: url, INLET_SECRET_KEY: secretKey }
      const run = (...args: readonly string[]) => runCli(args, { environment })
      const both = `2 servers of the database take writes, and none is older: ${wrong} (timeline 1) and ${right} (timeline 1)`
      const listed = await run('accounts', 'list')
      expect(listed).toMatchObject({ code: 0, err: expect.stringContaining(`warning: ${both}`) })
      const [id] = /[0-9a-f-]{36}/.exec(listed.out) ?? []
      for (const change of [
        ['accounts', 'create', '--name', 'new'],
        ['accounts', 'rename', '--name', 'new', must(id, 'account')],
        ['keys', 'create', '--name', 'new', '--scope', 'admin'],
        ['join-tokens', 'create', '--name', 'new'],
        ['sign-in-link'],
        ['commits', 'rebuild'],
      ])
        expect(await run(...change)).toMatchObject({ code: 1, out: '', err: expect.stringContaining(both) })
      const refused = await run('database', 'accept')
      expect(refused).toMatchObject({ code: 1, out: '', err: expect.stringContaining('--server HOST:PORT') })
      for (const server of [primary, copy])
        expect(await rowsIn(server, `select 1 from epoch where generation > 0`)).toHaveLength(0)

      expect(await run('database', 'accept', '--server', 'db-9:5432')).toMatchObject({
        err: expect.stringContaining(`db-9:5432 is not in INLET_DATABASE_URL, which names ${wrong}, ${right}`),
      })
      const accepted = await run('database', 'accept', '--server', right)
      expect(accepted).toMatchObject({ code: 0, out: expect.stringContaining(`the database at ${right} from now on`) })
      // The other one is older now.
      expect(await run('accounts', 'create', '--name', 'new')).toMatchObject({ code: 0, err: '' })
      const accounts = `select 1 from accounts where name = 'new'`
      expect([await rowsIn(primary, accounts), await rowsIn(copy, accounts)]).toMatchObject([[{}], []])
    } finally {
      await copy?.stop()
      await primary.stop()
    }
  },
)

test.skipIf(postgresUrl === undefined)(
  'without a synchronous standby control warns that a failover may lose changes, until there is one',
  { timeout: 60_000 },
  async () => {
    // The others confirm what is not on disk, to be faster.
    const primary = await startPostgres({ durable: true })
    const standby = await startPostgres({ standbyOf: primary.url })
    try {
      const url = `postgres://inlet@${new URL(primary.url).host},${new URL(standby.url).host}/postgres`
      await using control = await newControl({ database: kept(url) })
      const account = await control.newAccount()
      const notes = async (): Promise<string> => JSON.stringify((await control.call('GET', '/readyz')).body.notes ?? [])
      await until('the warning', async () => (await notes()).includes('synchronous_standby_names is empty'))
      const environment = { INLET_DATABASE_URL: url, INLET_SECRET_KEY: secretKey, INLET_DATA_DIR: control.directory }
      expect(JSON.parse((await runCli(['doctor', '--json'], { environment })).out)).toContainEqual(
        expect.objectContaining({
          ...{ check: 'database servers', status: 'warn' },
          next_step: 'set synchronous_standby_names and synchronous_commit as in docs/machines.md',
        }),
      )
      await rowsIn(primary, `alter system set synchronous_standby_names = 'ANY 1 (*)'`)
      await rowsIn(primary, 'select pg_reload_conf()')
      await until('no warning', async () => (await notes()) === '[]', 20_000)
      expect((await account.post('/v1/endpoints', { region: newRegion() })).status).toBe(201)
      expect(await rowsIn(primary, `select 1 from pg_stat_replication where sync_state = 'quorum'`)).toHaveLength(1)
    } finally {
      await standby.stop()
      await primary.stop()
    }
  },
)

test.skipIf(postgresUrl === undefined)(
  'while a synchronous standby is away control says that nothing is confirmed, and commands end instead of waiting for it',
  { timeout: 60_000 },
  async () => {
    const primary = await startPostgres({ durable: true })
    let standby: Postgres | undefined
    try {
      standby = await startPostgres({ standbyOf: primary.url })
      const host = new URL(primary.url).host
      const url = `postgres://inlet@${host},${new URL(standby.url).host}/postgres`
      await using control = await newControl({ database: kept(url) })
      const [account, region] = [await control.newAccount(), newRegion()]
      const { body: endpoint } = await account.post('/v1/endpoints', { region })
      const node = await TestNode.register(control, region)
      const waits = () => metric(control, /^inlet_database_waits_for_standby\{[^}]*\} (\d)$/m)
      expect(await waits()).toBe(0)
      await rowsIn(primary, `alter system set synchronous_standby_names = 'ANY 1 (*)'`)
      await rowsIn(primary, 'select pg_reload_conf()')
      await until('replication', async () => (await rowsIn(primary, 'select 1 from pg_stat_replication')).length === 1)
      await node.heartbeat()
      const heardAt = performance.now()
      await standby.kill()

      const environment = { INLET_DATABASE_URL: url, INLET_SECRET_KEY: secretKey, INLET_DATA_DIR: control.directory }
      const message = `${host} confirms no change: 0 of 1 synchronous standbys are connected`
      await until('the metric', async () => (await waits()) === 1, 20_000)
      const shown = JSON.parse((await runCli(['database', 'show', '--json'], { environment })).out)
      expect(shown.problems).toMatchObject([{ kind: 'no_standby', message }])
      expect(JSON.parse((await runCli(['doctor', '--json'], { environment })).out)).toContainEqual(
        expect.objectContaining({ check: 'database servers', status: 'fail' }),
      )
      for (const change of [
        ['keys', 'create', '--account', account.account_id, '--name', 'new', '--scope', 'admin'],
        ['database', 'accept'],
        ['database', 'accept', '--server', host],
      ])
        expect(await runCli(change, { environment })).toMatchObject({ code: 1, out: '', err: expect.stringContaining(message) })

      await until('a silence that no node may have', async () => performance.now() - heardAt > 10_000, 20_000)
      const asked = account.get(`/v1/endpoints/${endpoint.id}`)
      await rowsIn(primary, `alter system set synchronous_standby_names = ''`)
      await rowsIn(primary, 'select pg_reload_conf()')
      expect((await asked).body.status_reasons.join()).not.toContain('heartbeat')
      await until('the end', async () => (await waits()) === 0, 20_000)
      expect(await runCli(['database', 'accept', '--server', host], { environment })).toMatchObject({ code: 0 })
    } finally {
      await standby?.stop()
      await primary.stop()
    }
  },
)
