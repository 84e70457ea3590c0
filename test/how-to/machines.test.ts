/** Pastes the steps of docs/machines.md with two Postgres servers on loopback: a failover, and the return of the old primary. */
import { execFileSync } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { must } from '#lib/assert.ts'
import { postgresAccount, postgresBinaries } from '../../tools/services/postgres.ts'
import { freePort } from '../../tools/services/processes.ts'
import { blocksOf } from '../support/page.ts'
import { until } from '../support/until.ts'

/** Their first line says where they are pasted. */
const blocks = blocksOf('machines.md').flatMap(({ language, text }) => {
  const [, servers] = /^(?:--|#) (db-.*)\n/.exec(text) ?? []
  return servers === undefined ? [] : [{ language, text, servers: servers.split(' and ') }]
})

/** Two servers that keep what they have in one directory. */
class Servers implements AsyncDisposable {
  readonly #directory = mkdtempSync(join(tmpdir(), 'inlet-machines-'))
  readonly #account = postgresAccount()
  readonly #ports: Readonly<Record<string, number>>

  constructor(ports: Readonly<Record<string, number>>) {
    this.#ports = ports
    if (this.#account.account !== undefined) chownSync(this.#directory, this.#account.account.uid, this.#account.account.gid)
  }

  run(server: string, script: string): string {
    const directory = this.#directory
    const environment = {
      PATH: `${postgresBinaries()}:${process.env['PATH']}`,
      PGDATA: join(directory, server),
      PGPORT: String(this.#ports[server]),
      PGHOST: directory,
      PGUSER: 'postgres',
      PGDATABASE: 'postgres',
    }
    const [program, ...args] = [...this.#account.enter, 'bash', '-ec', script]
    return execFileSync(must(program, 'program'), args, {
      cwd: directory,
      env: environment,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    })
  }

  sql(server: string, statements: string): string {
    return this.run(server, `psql -XqAt -v ON_ERROR_STOP=1 <<'SQL'\n${statements}\nSQL`).trim()
  }

  paste({ language, text, servers }: (typeof blocks)[number]): void {
    const here = text
      .replaceAll('…', 'password')
      .replaceAll('192.0.2.0/24', '127.0.0.0/8')
      .replaceAll(/host=(db-\d)/g, (_, name: string) => `host=127.0.0.1 port=${this.#ports[name]}`)
    for (const server of servers) language === 'sql' ? this.sql(server, here) : this.run(server, here)
  }

  /** As packages leave it: only a superuser on the machine itself is let in. */
  initialise(server: string): void {
    this.run(
      server,
      `initdb -U postgres -A trust --no-sync
sed -i '/^host/d' $PGDATA/pg_hba.conf
echo "unix_socket_directories = '$PGHOST'" >> $PGDATA/postgresql.conf
pg_ctl -l postgres.log start`,
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of Object.keys(this.#ports)) this.run(server, 'pg_ctl -m immediate stop || true')
    rmSync(this.#directory, { recursive: true })
  }
}

test.each(['fast', 'immediate'])(
  'docs/machines.md: a failover after a stop (%s), and the return of the old primary as a standby',
  { timeout: 120_000 },
  async (mode) => {
    await using servers = new Servers({ 'db-1': await freePort(), 'db-2': await freePort() })
    const standbyOf = (server: string) => servers.sql(server, 'select application_name, sync_state from pg_stat_replication')
    const [prepare, admit, copy, synchronise, promote, bring, wait, ...others] = blocks.map((block) => () => servers.paste(block))
    expect([wait, ...others]).toEqual([expect.any(Function)])
    servers.initialise('db-1')
    for (const step of [prepare, admit, copy]) step?.()
    await until('a standby', async () => standbyOf('db-1') === 'db2|async')
    synchronise?.()
    await until('a synchronous standby', async () => standbyOf('db-1') === 'db2|quorum')
    servers.sql('db-1', 'create table changes as select 1 as id')
    servers.run('db-1', `pg_ctl -m ${mode} stop`)
    promote?.()
    servers.sql('db-2', 'insert into changes values (2)')
    if (mode === 'immediate') {
      // It comes back as a primary, and confirms what the other one does not have.
      servers.run('db-1', 'pg_ctl -l postgres.log start')
      servers.sql('db-1', 'set synchronous_commit = local; insert into changes values (99)')
    }
    bring?.()
    await until('a standby', async () => standbyOf('db-2') === 'db1|async')
    wait?.()
    await until('a synchronous standby', async () => standbyOf('db-2') === 'db1|quorum')
    servers.sql('db-2', 'insert into changes values (3)')
    await until(
      'the change',
      async () => servers.sql('db-1', `select string_agg(id::text, ' ' order by id) from changes`) === '1 2 3',
    )
  },
)
