/** A real Postgres and a real control process with the configuration of a large installation. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore, type Store } from '../../src/store/store.ts'
import { startPostgres } from '../services/postgres.ts'
import { end, freePort, waitUntilUp } from '../services/processes.ts'
import { type FilledEndpoint, type Filling, fill } from './fill.ts'

export type Scale = Omit<Filling, 'regions'> & { readonly nodes: number; readonly regions: number }

export type Installation = {
  readonly store: Store
  readonly controlPid: number
  readonly apiUrl: string
  readonly nodeApiUrl: string
  readonly joinSecret: string
  readonly regions: readonly string[]
  readonly endpoints: readonly FilledEndpoint[]
  /** A key of the account of the first endpoint. */
  readonly apiKey: string
  stop(): Promise<void>
}

const startTimeoutMs = 60_000
const root = join(import.meta.dirname, '../..')

export async function startInstallation(scale: Scale, progress: (what: string) => void): Promise<Installation> {
  const directory = mkdtempSync(join(tmpdir(), 'inlet-scale-'))
  const undo: (() => Promise<unknown>)[] = [async () => rmSync(directory, { recursive: true, force: true })]
  const stop = async () => {
    for (const each of undo.reverse()) await each()
  }
  try {
    progress('starting Postgres and control')
    const postgres = await startPostgres({ durable: true, settings: { shared_preload_libraries: 'pg_stat_statements' } })
    undo.push(() => postgres.stop())
    const [api, nodes] = [await freePort(), await freePort()]
    const joinSecret = randomBytes(32).toString('hex')
    const control = startControl(directory, {
      INLET_DATABASE_URL: postgres.url,
      INLET_CONTROL_LISTEN: `127.0.0.1:${api}`,
      INLET_NODE_API_LISTEN: `127.0.0.1:${nodes}`,
      INLET_NODE_TOKEN: joinSecret,
      INLET_BASE_DOMAIN: 'ingest.example.com',
    })
    undo.push(() => end(control, 'SIGTERM'))
    const apiUrl = `http://127.0.0.1:${api}`
    await waitUntilUp('control', () => isReady(apiUrl), { needs: [control], timeoutMs: startTimeoutMs })
    const store = await openStore(postgres.url)
    undo.push(() => store.close())
    const regions = Array.from({ length: scale.regions }, (_, index) => regionName(index))
    const { endpoints, apiKeys } = await fill(store, { ...scale, regions }, progress)
    const nodeApiUrl = `http://127.0.0.1:${nodes}`
    const [apiKey = ''] = apiKeys
    return { store, controlPid: control.pid ?? 0, apiUrl, nodeApiUrl, joinSecret, regions, endpoints, apiKey, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function startControl(directory: string, environment: Readonly<Record<string, string>>): ChildProcess {
  return spawn(process.execPath, [join(root, 'src/main.ts'), 'control'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      PATH: process.env['PATH'],
      INLET_DATA_DIR: directory,
      INLET_LOG_LEVEL: 'error',
      INLET_API_REQUESTS_PER_MINUTE: '1000000',
      ...environment,
    },
  })
}

async function isReady(url: string): Promise<boolean> {
  return fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  )
}

/** Returns `aaa`, `aab` and so on. */
function regionName(index: number): string {
  const letter = (value: number) => String.fromCharCode(97 + (value % 26))
  return letter(index / 676) + letter(index / 26) + letter(index)
}
