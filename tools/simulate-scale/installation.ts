/** A real Postgres and a real control process with the configuration of a large installation. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newApiKey, newExternalId } from '../../src/auth/secrets.ts'
import { newId, newLabel } from '../../src/model/id.ts'
import { applyChange } from '../../src/store/epoch.ts'
import { type Db, openStore, type Store } from '../../src/store/store.ts'
import { startPostgres } from '../services/postgres.ts'
import { end, freePort, waitUntilUp } from '../services/processes.ts'

export type Scale = {
  readonly nodes: number
  readonly regions: number
  readonly accounts: number
  readonly endpoints: number
  readonly keys: number
}

export type SimulatedEndpoint = {
  readonly id: string
  readonly account: string
  readonly region: string
  readonly destination: string
  readonly view: string
}

export type Installation = {
  readonly store: Store
  readonly controlPid: number
  readonly apiUrl: string
  readonly nodeApiUrl: string
  readonly joinSecret: string
  readonly regions: readonly string[]
  readonly endpoints: readonly SimulatedEndpoint[]
  /** A key of the account of the first endpoint. */
  readonly apiKey: string
  stop(): Promise<void>
}

const startTimeoutMs = 60_000
/** Columns of each view. */
export const columnNames = Array.from({ length: 10 }, (_, index) => `column_${index}`)
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
    const filled = await fill(store, scale, progress)
    const nodeApiUrl = `http://127.0.0.1:${nodes}`
    return { store, controlPid: control.pid ?? 0, apiUrl, nodeApiUrl, joinSecret, ...filled, stop }
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

/** Creates the accounts with their keys, destinations, views and endpoints. An account has all of its endpoints in one region. */
async function fill(store: Store, scale: Scale, progress: (what: string) => void) {
  const now = Date.now()
  const regions = Array.from({ length: scale.regions }, (_, index) => regionName(index))
  const accounts = Array.from({ length: scale.accounts }, () => ({ id: newId(), destination: newId(), view: newId() }))
  const secret = newApiKey()
  progress(`creating ${scale.accounts} accounts and ${scale.keys} keys`)
  await insertAll(store, 'accounts', accounts, ({ id }, index) => ({
    ...{ id, name: `account ${index}`, external_id: newExternalId(), status: 'active', weight: 1, quotas: null },
    created_at: now + index,
  }))
  await insertAll(store, 'destinations', accounts, ({ id, destination }) => ({
    ...{
      id: destination,
      account_id: id,
      name: 'lake',
      bucket: `lake-${newLabel(8)}`,
      prefix: 'raw/events',
      region: 'eu-central-1',
    },
    ...{
      role_arn: 'arn:aws:iam::123456789012:role/ingest',
      kms_key_arn: null,
      path_style: 0,
      status: 'valid',
      validated_at: now,
    },
    ...{ last_error: null, revision: 1, validation_claimed_at: null, created_at: now, updated_at: now },
  }))
  await insertAll(store, 'api_keys', Array.from({ length: scale.keys }), (_, index) => {
    const { prefix, hash } = index === 0 ? secret : newApiKey()
    const account_id = accounts[index % accounts.length]?.id ?? ''
    const scopes = JSON.stringify(index === 0 ? ['admin'] : ['ingest'])
    return { id: newId(), account_id, name: `key ${index}`, prefix, hash, scopes, created_at: now, revoked_at: null }
  })
  progress(`creating ${scale.endpoints} endpoints with a view each`)
  const columns = columnNames.map((name) => ({ name, type: 'VARCHAR', path: `$.${name}` }))
  await insertAll(store, 'views', accounts, ({ id, view }) => ({
    ...{
      id: view,
      account_id: id,
      name: 'events',
      version: 1,
      definition: JSON.stringify({ columns, filters: [] }),
      format: 'json',
    },
    ...{ status: 'published', description: '', tags: '[]', created_by: 'simulation', created_at: now, published_at: now },
  }))
  const endpoints = Array.from({ length: scale.endpoints }, (_, index): SimulatedEndpoint => {
    const { id: account = '', destination = '', view = '' } = accounts[index % accounts.length] ?? {}
    return { id: newId(), account, region: regions[(index % accounts.length) % regions.length] ?? '', destination, view }
  })
  await insertAll(store, 'endpoints', endpoints, ({ id, account, region, destination }) => {
    const label = newLabel(12)
    return {
      id,
      account_id: account,
      region,
      label,
      name: label,
      desired_state: 'active',
      destination_id: destination,
      since_epoch: 1,
      provisioned_at: now,
      created_at: now,
    }
  })
  await insertAll(store, 'bindings', endpoints, ({ id, account, view }) => ({
    ...{ id: newId(), account_id: account, endpoint_id: id, view_id: view, is_required: 0, activated_at: now },
    activated_by: 'simulation',
  }))
  await applyChange(store, (db) => touchEverything(db, regions))
  return { regions, endpoints, apiKey: secret.secret }
}

/** What the changes of the API do for the sections that they concern, at once for all: rows that were inserted in bulk touched none. */
async function touchEverything(db: Db, regions: readonly string[]): Promise<void> {
  const { version } = await db.selectFrom('epoch').select('version').executeTakeFirstOrThrow()
  const shards = Array.from({ length: 256 }, (_, shard) => shard.toString(16).padStart(2, '0'))
  const sections = ['keys', 'endpoints', 'views'].flatMap((kind) => shards.map((shard) => `${kind}/${shard}`))
  for (const region of regions)
    await db
      .insertInto('snapshot_sections')
      .values(sections.map((section) => ({ region, section, version })))
      .execute()
}

/** Returns `aaa`, `aab` and so on. */
function regionName(index: number): string {
  const letter = (value: number) => String.fromCharCode(97 + (value % 26))
  return letter(index / 676) + letter(index / 26) + letter(index)
}

async function insertAll<T>(
  { db }: Store,
  table: 'accounts' | 'destinations' | 'api_keys' | 'views' | 'endpoints' | 'bindings',
  items: readonly T[],
  toRow: (item: T, index: number) => Readonly<Record<string, unknown>>,
): Promise<void> {
  const rowsAtOnce = 1_000
  const rows = items.map(toRow)
  for (let at = 0; at < rows.length; at += rowsAtOnce) {
    await db
      .insertInto(table)
      .values(rows.slice(at, at + rowsAtOnce) as never)
      .execute()
  }
}
