/** The database fails over to a standby: both APIs return 503 with Retry-After meanwhile, and continue on the new primary by themselves. */
import { sql } from 'kysely'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { must } from '#lib/assert.ts'
import { databaseErrorKind } from '#store/engines/database-error.ts'
import { migrate } from '#store/migrations/migrate.ts'
import { prepareDatabase } from '#store/migrations/prepare.ts'
import { openStore } from '#store/store.ts'
import { type Postgres, startPostgres } from '../../tools/services/postgres.ts'
import { type Answer, newControl, newRegion } from '../support/control.ts'
import { postgresUrl } from '../support/databases.ts'
import { TestNode } from '../support/test-node.ts'
import { until } from '../support/until.ts'

function expectUnavailable(answer: Answer): void {
  expect(answer).toMatchObject({ status: 503, body: { error: 'unavailable', retry: true } })
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
}

/** A standby takes no writes until then, so no store can be opened on it. */
async function promote({ url }: Postgres): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('select pg_promote()')
  await client.end()
}

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
      await using control = await newControl({ database: { url, [Symbol.asyncDispose]: async () => undefined } })
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
      await until('control leads', async () =>
        /^inlet_control_leader\{[^}]*\} 1$/m.test((await control.call('GET', '/metrics')).body),
      )
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
      const direct = await openStore(primary.url)
      const isCopied = sql<{ yes: boolean }>`select replay_lsn >= pg_current_wal_insert_lsn() as yes from pg_stat_replication`
      await until('the standby has everything', async () => (await isCopied.execute(direct.db)).rows[0]?.yes === true)
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
  },
)
