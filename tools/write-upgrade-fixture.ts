/**
 * Writes the data directory that a version of Inlet leaves when its machine loses power: `node tools/write-upgrade-fixture.ts OUT.tgz
 * [PROGRAM]`. It has commits in the database, commits in the outbox, sealed and open segments. test/recovery/upgrade.test.ts starts it.
 *
 * PROGRAM is `src/main.ts` of that version: of an unpacked package, or of `git archive COMMIT src package.json` beside a link to node_modules.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { freePort } from './services/processes.ts'

const root = resolve(import.meta.dirname, '..')
const [out, program = join(root, 'src/main.ts')] = process.argv.slice(2)
if (out === undefined) throw new Error('usage: node tools/write-upgrade-fixture.ts OUT.tgz [PROGRAM]')

const scratch = mkdtempSync(join(tmpdir(), 'inlet-fixture-'))
const data = join(scratch, 'data')
const apiKey = `ing_live_${'upgrade'.padEnd(32, '0')}`
const [controlPort, nodeApiPort, ingestPort] = [await freePort(), await freePort(), await freePort()]
const control = `http://127.0.0.1:${controlPort}`
const ingest = `http://127.0.0.1:${ingestPort}`
const running = new Map<string, ChildProcess>()
/** Options that the docs recommend for every installation. An older version has some of them. */
const recommended: Readonly<Record<string, string>> = {
  INLET_SECRET_KEY: Buffer.alloc(32, 'upgrade').toString('base64'),
  INLET_OPERATOR_TOKEN: 'operator-token-of-the-upgrade-0123456789',
  INLET_NODE_TOKEN: 'node-token-of-the-upgrade-0123456789abcdef',
  INLET_METRICS_TOKEN: 'metrics-token-of-the-upgrade-0123456789',
  INLET_TRUST_PROXY: '127.0.0.1',
  INLET_BOOTSTRAP_API_KEY: apiKey,
}
const [options] = ['config/config.ts', 'config/config.js', 'config.ts', 'config.js']
  .map((name) => join(program, '..', name))
  .filter((path) => existsSync(path))
  .map((path) => readFileSync(path, 'utf8'))
const settings = Object.fromEntries(Object.entries(recommended).filter(([name]) => options?.includes(`'${name}'`)))
const view = {
  name: 'numbers',
  definition: {
    columns: [
      { name: 'n', type: 'BIGINT', path: '$.n', required: true, cast_failures: 'dlq' },
      { name: 'price', type: 'DECIMAL(12,2)', path: '$.price' },
      { name: 'at', type: 'TIMESTAMP', path: '$.at' },
    ],
  },
}

try {
  await write(out)
} finally {
  for (const name of running.keys()) await kill(name)
  rmSync(scratch, { recursive: true, force: true })
}

async function write(path: string): Promise<void> {
  for (const name of ['control', 'ingest', 'delivery']) start(name)
  for (const url of [control, ingest]) await until(`${url} to be ready`, async () => (await fetch(`${url}/readyz`)).ok)
  const { access_token } = await call('POST', '/v1/token/exchange', { api_key: apiKey, scope: 'admin' })
  const token = String(access_token)
  const [destination] = (await call('GET', '/v1/destinations', undefined, token)).items
  const endpoint = await call(
    'POST',
    '/v1/endpoints',
    { name: 'shop', region: 'loc', destination_id: destination.id, segment_max_age_seconds: 1 },
    token,
  )
  const { id } = await call('POST', '/v1/views', view, token)
  await call('POST', `/v1/views/${id}/publish`, undefined, token)
  await call('POST', `/v1/endpoints/${endpoint.id}/views`, { view_id: id }, token)
  let records = 0
  const send = async (count: number) => {
    const lines = Array.from({ length: count }, () => {
      const n = records++
      return `{"n":${n % 10 === 9 ? '"none"' : n},"number":${n},"price":${n}.5,"at":"2026-11-20T08:15:30Z"}\n`
    })
    const headers = { 'x-api-key': apiKey, 'content-type': 'application/x-ndjson' }
    const request = () => fetch(`${ingest}/v1/ingest?endpoint=${endpoint.id}`, { method: 'POST', headers, body: lines.join('') })
    let response = await request()
    // Nodes know a new endpoint within seconds.
    await until('the endpoint to accept', async () => {
      if (response.status === 202) return true
      response = await request()
      return response.status === 202
    })
  }
  await send(100)
  // An older version does not say how many records a commit has.
  const commits = async () => (await call('GET', `/v1/endpoints/${endpoint.id}/commits`, undefined, token)).items.length
  await until('the first commit', async () => (await commits()) === 1)
  await kill('control')
  await send(100)
  const outbox = join(data, 'node/outbox')
  await until('a commit in the outbox', async () => existsSync(outbox) && readdirSync(outbox).length > 0)
  await kill('delivery')
  await send(100)
  const log = join(data, 'node/wal', endpoint.id)
  await until('a sealed segment', async () => readdirSync(log).filter((name) => name.endsWith('.wal')).length === 2)
  await send(50)
  await kill('ingest')
  const { version } = JSON.parse(readFileSync(join(program, '../../package.json'), 'utf8'))
  writeFileSync(
    join(scratch, 'fixture.json'),
    `${JSON.stringify({ version, apiKey, settings, endpoint: endpoint.id, records })}\n`,
  )
  execFileSync('tar', [
    '--create',
    '--gzip',
    '--owner=0',
    '--group=0',
    '--file',
    resolve(path),
    '--directory',
    scratch,
    'data',
    'fixture.json',
  ])
  console.log(`${path}: data of Inlet ${version}, ${records} records`)
}

function start(name: string): void {
  const child = spawn(process.execPath, ['--disable-sigusr1', program, name], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      PATH: process.env['PATH'],
      INLET_DATA_DIR: data,
      INLET_CONTROL_LISTEN: `127.0.0.1:${controlPort}`,
      INLET_NODE_API_LISTEN: `127.0.0.1:${nodeApiPort}`,
      INLET_INGEST_LISTEN: `127.0.0.1:${ingestPort}`,
      ...settings,
      INLET_DISK_RESERVE_BYTES: '0B',
    },
  })
  running.set(name, child)
}

async function kill(name: string): Promise<void> {
  const child = running.get(name)
  running.delete(name)
  if (child === undefined || child.exitCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}

// biome-ignore lint/suspicious/noExplicitAny: the API of another version
async function call(method: string, path: string, body?: object, token?: string): Promise<any> {
  const headers = {
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  }
  const sent = body === undefined ? {} : { body: JSON.stringify(body) }
  const response = await fetch(`${control}${path}`, { method, headers, ...sent })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return response.status === 204 ? undefined : await response.json()
}

async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 60_000
  while (!(await condition().catch(() => false))) {
    if (performance.now() > deadline) throw new Error(`waited a minute for ${what}`)
    await setTimeout(50)
  }
}
