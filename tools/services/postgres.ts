/**
 * A real Postgres for tests, with its own files, port and processes.
 *
 * Law: when `stop` resolves, all processes have ended and all files are removed.
 */
import { type ChildProcess, execFileSync } from 'node:child_process'
import { appendFileSync, chownSync, existsSync, mkdtempSync, openSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { commandAt, end, freePort, loopback, type Place, spawnAt, waitUntilUp } from './processes.ts'

const postgresInstallations = '/usr/lib/postgresql'
const startTimeoutMs = 30_000

export type Postgres = {
  /** URL of the maintenance database, for a user who may create databases. */
  readonly url: string
  /** Ends it, as close to a power failure as processes allow. */
  kill(): Promise<void>
  /** Starts it again on the same files. */
  start(): Promise<void>
  /** Kills and starts it. */
  crash(): Promise<void>
  stop(): Promise<void>
}

export type PostgresOptions = {
  /** Syncs to disk as in production. Without, it is faster and loses data if the machine stops. */
  readonly durable?: boolean
  readonly place?: Place
  readonly port?: number
  /** URL of a server to copy and follow. */
  readonly standbyOf?: string
  /** URL of a server to copy: the copy takes writes on the same timeline. */
  readonly copyOf?: string
  /** More settings, as in postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>
}

export async function startPostgres({
  durable = false,
  place = loopback,
  standbyOf,
  copyOf,
  settings: more = {},
  ...given
}: PostgresOptions = {}): Promise<Postgres> {
  const binaries = postgresBinaries()
  const { account, enter } = postgresAccount()
  const within: Place = { ...place, enter: [...place.enter, ...enter] }
  const directory = mkdtempSync(join(tmpdir(), 'inlet-postgres-'))
  if (account !== undefined) chownSync(directory, account.uid, account.gid)
  const files = join(directory, 'data')
  const port = given.port ?? (await freePort())
  const url = `postgres://inlet@${place.address}:${port}/postgres`
  const settings = { listen_addresses: place.address, port, unix_socket_directories: directory, max_connections: 200 }
  const speed = durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }
  const options = Object.entries({ ...settings, ...speed, ...more }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const prepare = (program: string, ...args: readonly string[]) => {
    execFileSync(...commandAt(within, join(binaries, program), args), { cwd: directory, stdio: ['ignore', 'ignore', 'inherit'] })
  }
  let server: ChildProcess | undefined
  const start = async () => {
    const log = openSync(join(directory, 'postgres.out'), 'a')
    const started = spawnAt(within, join(binaries, 'postgres'), ['-D', files, ...options], {
      cwd: directory,
      stdio: ['ignore', log, log],
    })
    server = started
    try {
      await waitUntilUp('Postgres', () => accepts(url), { needs: [started], timeoutMs: startTimeoutMs })
    } catch (error) {
      await end(started, 'SIGQUIT')
      throw error
    }
  }
  const kill = async () => {
    if (server !== undefined) await end(server, 'SIGQUIT')
  }
  try {
    const source = standbyOf ?? copyOf
    if (source === undefined) {
      prepare('initdb', '-D', files, '-U', 'inlet', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync')
      // Also for clients and standbys on other hosts.
      appendFileSync(join(files, 'pg_hba.conf'), 'host all,replication all all trust\n')
    } else {
      const follow = standbyOf === undefined ? [] : ['-R']
      prepare('pg_basebackup', '-D', files, '-d', source, ...follow, '-X', 'stream', '-c', 'fast', '--no-sync')
    }
    await start()
    return {
      url,
      kill,
      start,
      async crash() {
        await kill()
        await start()
      },
      async stop() {
        if (server !== undefined) await end(server, 'SIGINT')
        rmSync(directory, { recursive: true, force: true })
      },
    }
  } catch (error) {
    rmSync(directory, { recursive: true, force: true })
    throw error
  }
}

export function postgresBinaries(): string {
  const versions = existsSync(postgresInstallations) ? readdirSync(postgresInstallations).map(Number) : []
  const newest = versions.filter((version) => existsSync(binariesOf(version))).sort((a, b) => b - a)[0]
  if (newest === undefined) {
    throw new Error(`Postgres is not under ${postgresInstallations}: install the Debian package postgresql-15`)
  }
  return binariesOf(newest)
}

function binariesOf(version: number): string {
  return join(postgresInstallations, String(version), 'bin')
}

/** Postgres refuses to run as root. Then it runs as the user that the package created. */
export function postgresAccount(): {
  readonly account?: { readonly uid: number; readonly gid: number }
  readonly enter: readonly string[]
} {
  if (process.getuid?.() !== 0) return { enter: [] }
  const number = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  const account = { uid: number('-u'), gid: number('-g') }
  return { account, enter: ['setpriv', `--reuid=${account.uid}`, `--regid=${account.gid}`, '--clear-groups'] }
}

async function accepts(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url })
  try {
    await client.connect()
    await client.end()
    return true
  } catch {
    return false
  }
}
