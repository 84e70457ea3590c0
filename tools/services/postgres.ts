/**
 * A real Postgres for tests, with its own files, port and processes.
 *
 * Law: when `stop` resolves, all processes have ended and all files are removed.
 */
import { execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { end, freePort, waitUntilUp } from './processes.ts'

const postgresInstallations = '/usr/lib/postgresql'
const startTimeoutMs = 30_000

export type Postgres = {
  /** URL of the maintenance database, for a user who may create databases. */
  readonly url: string
  /** Kills it, as close to a power failure as processes allow, and starts it again on the same files. */
  crash(): Promise<void>
  stop(): Promise<void>
}

/** With `durable` it syncs to disk as in production. Without, it is faster and loses data if the machine stops. */
export async function startPostgres({ durable = false } = {}): Promise<Postgres> {
  const binaries = postgresBinaries()
  const account = postgresAccount()
  const directory = mkdtempSync(join(tmpdir(), 'inlet-postgres-'))
  if ('uid' in account) chownSync(directory, account.uid, account.gid)
  const files = join(directory, 'data')
  const port = await freePort()
  const url = `postgres://inlet@127.0.0.1:${port}/postgres`
  const settings = { listen_addresses: '127.0.0.1', port, unix_socket_directories: directory, max_connections: 200 }
  const speed = durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }
  const options = Object.entries({ ...settings, ...speed }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const run = async () => {
    const server = spawn(join(binaries, 'postgres'), ['-D', files, ...options], { ...account, cwd: directory, stdio: 'ignore' })
    try {
      await waitUntilUp('Postgres', () => accepts(url), { needs: [server], timeoutMs: startTimeoutMs })
    } catch (error) {
      await end(server, 'SIGQUIT')
      throw error
    }
    return server
  }
  try {
    const initialise = ['-D', files, '-U', 'inlet', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync']
    execFileSync(join(binaries, 'initdb'), initialise, { ...account, cwd: directory, stdio: ['ignore', 'ignore', 'inherit'] })
    let server = await run()
    return {
      url,
      async crash() {
        await end(server, 'SIGQUIT')
        server = await run()
      },
      async stop() {
        await end(server, 'SIGINT')
        rmSync(directory, { recursive: true, force: true })
      },
    }
  } catch (error) {
    rmSync(directory, { recursive: true, force: true })
    throw error
  }
}

function postgresBinaries(): string {
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
function postgresAccount(): { readonly uid: number; readonly gid: number } | Record<string, never> {
  if (process.getuid?.() !== 0) return {}
  const number = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: number('-u'), gid: number('-g') }
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
