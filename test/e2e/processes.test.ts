/** One process dies and the others continue: every record that is acknowledged meanwhile is committed exactly once. */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Sender } from '../support/acknowledged.ts'
import { describeWith } from '../support/deployment.ts'
import { type EndpointSettings, Installation } from '../support/installation.ts'
import { isRunning } from '../support/is-running.ts'
import { ownSettings } from '../support/own-settings.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { runs } from '../support/thorough.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)
const program = resolve(import.meta.dirname, '../../src/main.ts')
const compileCache = { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] }
const secrets = {
  INLET_NODE_TOKEN: 'n'.repeat(32),
  INLET_OPERATOR_TOKEN: 'o'.repeat(32),
  AWS_SECRET_ACCESS_KEY: 'a'.repeat(40),
  PGPASSWORD: 'p'.repeat(20),
}
const definition = { columns: [{ name: 'n', type: 'INTEGER', path: '$.number', required: true }] }

type Target = { readonly id: string; readonly bucket: string }
let targets = 0

/** Creates an endpoint with a view and a bucket of its own. */
async function newTarget(installation: Installation, settings: Partial<EndpointSettings> = {}): Promise<Target> {
  targets += 1
  const bucket = `bucket-${targets}`
  const view = { name: `numbers_${targets}`, definition }
  const { id } = await installation.endpoint({ bucket, view, ...settings })
  return { id, bucket }
}

/** Posts one record after the other. A steady load: at full speed it would take the processors from the processes that restart. */
function sendTo(installation: Installation, endpointId: string): Sender {
  const sender = new Sender(installation, endpointId, { recordsPerRequest: 1, pauseMs: runs(5, 2) })
  sender.start()
  return sender
}

const numbersOf = ({ acknowledged }: Sender) => acknowledged.map(({ number }) => number)

async function committedNumbers(installation: Installation, { id, bucket }: Target): Promise<readonly number[]> {
  const raw = await readWithDuckDb(installation.artifacts(bucket, id, 'parquet'))
  return raw.map(({ payload }) => JSON.parse(String(payload)).number)
}

/** Returns the process id of a child of the supervisor. */
async function childOf(supervisor: number | undefined, name: string): Promise<number> {
  const { stdout } = await run('pgrep', ['-P', String(supervisor), '-f', `main.ts ${name}$`])
  return Number(stdout.trim())
}

async function childrenOf(pid: number | undefined): Promise<readonly number[]> {
  const { stdout } = await run('pgrep', ['-P', String(pid)]).catch(() => ({ stdout: '' }))
  return stdout.split('\n').filter(Boolean).map(Number)
}

/** Returns the variables that a process was started with. */
function environmentOf(pid: number): Readonly<Record<string, string>> {
  const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').filter(Boolean)
  return Object.fromEntries(variables.map((text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]))
}

describeWith('processes', 'one supervisor', () => {
  let installation: Installation
  beforeAll(async () => {
    installation = await Installation.create({ environment: secrets })
    installation.configure({ INLET_DATABASE_URL: join(installation.directory, 'inlet.db') })
    await installation.start('start')
  })
  afterAll(() => installation[Symbol.asyncDispose]())

  test('each process has only the secrets that it uses, and no signal opens an inspector', async () => {
    const supervisor = installation.pid('start') ?? 0
    const preview = { definition, samples: ['{"number":1}'] }
    const [control, ingest, delivery] = await Promise.all(
      ['control', 'ingest', 'delivery'].map((name) => childOf(supervisor, name)),
    )
    const started: number[] = []
    // A preview that takes too long ends its worker.
    await until('a worker of previews', async () => {
      expect((await installation.api('POST', '/v1/views/preview', preview)).status).toBe(200)
      started.push(...(await childrenOf(control)))
      return started.length > 0
    })
    const held = (pid = 0) =>
      Object.keys(environmentOf(pid)).filter(
        (name) => /INLET_.*(KEY|TOKEN|URL)|^AWS|^PG|SECRET/.test(name) && !(name in ownSettings()),
      )
    expect(held(control).toSorted()).toEqual(
      ['INLET_BOOTSTRAP_API_KEY', 'INLET_DATABASE_URL', ...Object.keys(secrets)].toSorted(),
    )
    expect(held(ingest)).toEqual(['INLET_NODE_TOKEN'])
    expect(held(delivery)).toEqual(['AWS_SECRET_ACCESS_KEY'])
    for (const worker of started) expect(held(worker)).toEqual([])
    const processes = [supervisor, control, ingest, delivery]
    for (const pid of [...processes, ...started]) process.kill(pid ?? 0, 'SIGUSR1')
    // Answers of each process after the signal: it had the time to open the inspector.
    expect((await installation.api('POST', '/v1/views/preview', preview)).status).toBe(200)
    expect((await installation.ingest(randomUUID(), '{}')).status).toBeGreaterThan(0)
    expect(processes.every((pid) => isRunning(pid ?? 0))).toBe(true)
    expect(installation.log).not.toMatch(/debugger|inspector/i)
  })

  test('the metrics of control and ingest have the memory of every process', async () => {
    const read = async (url: string, pattern: RegExp) => {
      const text = await (await fetch(`${url}/metrics`)).text()
      return Number(pattern.exec(text)?.[1])
    }
    const { apiUrl, ingestUrl } = installation
    const pid = installation.pid('start') ?? 0
    const residentBytes = (of: number) =>
      Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${of}/status`, 'utf8'))?.[1]) * 1024
    const isNear = (bytes: number, of: number) => Math.abs(bytes - residentBytes(of)) < bytes / 2
    const supervisor = await read(ingestUrl, /^inlet_supervisor_resident_memory_bytes\{.*\} (\d+)$/m)
    expect(isNear(supervisor, pid)).toBe(true)
    const delivery = await childOf(pid, 'delivery')
    await until('a heartbeat of delivery', async () =>
      isNear(await read(apiUrl, /^inlet_delivery_resident_memory_bytes\{.*\} (\d+)$/m), delivery),
    )
  })

  test('ingest does not notice kill -9 of delivery', async () => {
    const target = await newTarget(installation)
    const { id } = target
    const sender = sendTo(installation, id)
    for (let kills = 0; kills < runs(1, 3); kills++) {
      const before = sender.acknowledged.length
      process.kill(await childOf(installation.pid('start'), 'delivery'), 'SIGKILL')
      await until('100 more acknowledgements', () => sender.acknowledged.length > before + 100, 30_000)
      await until('a new delivery process', () =>
        childOf(installation.pid('start'), 'delivery').then(
          (pid) => pid > 0,
          () => false,
        ),
      )
    }
    await sender.stop()
    expect([sender.refusals, sender.unknown.size]).toEqual([0, 0])
    await installation.committed(id, sender.seqs)
    expect(await committedNumbers(installation, target)).toEqual(numbersOf(sender))
  })

  test('a revoked key, a suspended account and a quota stop at the node with the next epoch', async () => {
    const { id } = await newTarget(installation)
    const { id: keyId, api_key: key } = await installation.ok('POST', '/v1/keys', { name: 'device', scopes: ['ingest'] })
    const { account_id } = await installation.ok('GET', '/v1/quotas')
    const asOperator = async (body: object) => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${secrets.INLET_OPERATOR_TOKEN}` }
      const sent = { method: 'PATCH', headers, body: JSON.stringify(body) }
      expect((await fetch(`${installation.apiUrl}/v1/accounts/${account_id}`, sent)).status).toBe(200)
    }
    const post = async () => (await installation.ingest(id, '{"number":1}', { 'x-api-key': key })).status
    await until('the key to work', async () => (await post()) === 202)
    const headers = { 'content-type': 'application/json' }
    const exchange = { method: 'POST', headers, body: JSON.stringify({ api_key: key }) }
    const token = await (await fetch(`${installation.apiUrl}/v1/token/exchange`, exchange)).json()
    const authorization = `Bearer ${Object(token).access_token}`
    const postWithToken = async () => {
      const sent = { method: 'POST', headers: { ...headers, authorization }, body: '{"number":1}' }
      return (await fetch(`${installation.ingestUrl}/v1/ingest?endpoint=${id}`, sent)).status
    }
    expect(await postWithToken()).toBe(202)
    await installation.ok('POST', `/v1/keys/${keyId}/revoke`)
    const revokedAt = performance.now()
    await until('the key to be rejected', async () => (await post()) === 401, 30_000)
    // Usually within two seconds.
    expect(performance.now() - revokedAt).toBeLessThan(10_000)
    expect(await postWithToken()).toBe(202)
    await installation.ok('POST', `/v1/keys/${keyId}/revoke?now=true`)
    await until('its token to be rejected', async () => (await postWithToken()) === 401, 30_000)
    const last = await installation.ingest(id, '{"number":2}')
    expect(last.status).toBe(202)

    await asOperator({ status: 'suspended' })
    await until('data to be refused', async () => (await installation.ingest(id, '{"number":3}')).status === 403, 30_000)
    expect(await installation.ingest(id, '{"number":3}')).toMatchObject({ body: { error: 'account_suspended' } })
    await installation.committed(id, [last.body.segment_seq])
    await asOperator({ status: 'active' })
    await until('data to be accepted', async () => (await installation.ingest(id, '{"number":4}')).status === 202, 30_000)

    const used = async () => (await installation.ok('GET', '/v1/quotas')).quotas.bytes_per_day.used
    await until('the use of the account', async () => (await used()) > 0, 30_000)
    await asOperator({ quotas: { bytes_per_day: 1 } })
    await until('data to be refused', async () => (await installation.ingest(id, '{"number":5}')).status === 429, 30_000)
    expect(await installation.ingest(id, '{"number":5}')).toMatchObject({
      body: { error: 'quota_exceeded', quota: 'bytes_per_day' },
    })
    await asOperator({ quotas: { bytes_per_day: null } })
    await until('data to be accepted', async () => (await installation.ingest(id, '{"number":6}')).status === 202, 30_000)
  })

  test('a node whose credential is revoked gets another one, and both of its processes go on with it', async () => {
    const { id } = await newTarget(installation)
    const credential = () => readFileSync(join(installation.directory, 'node/credential'), 'utf8').split('\n')
    const [revoked] = credential()
    const nodeId = readFileSync(join(installation.directory, 'node/id'), 'utf8').trim()
    const headers = { authorization: `Bearer ${secrets.INLET_OPERATOR_TOKEN}` }
    const { status } = await fetch(`${installation.apiUrl}/v1/nodes/${nodeId}/credential`, { method: 'DELETE', headers })
    expect(status).toBe(204)
    const { body } = await installation.ingest(id, '{"number":1}')
    await installation.committed(id, [body.segment_seq])
    expect(credential()[0]).not.toBe(revoked)
    expect(credential()[1]).toBe(revoked)
    const lines = installation.log.split('\n').filter((line) => line.includes('it has registered again'))
    expect(lines).toHaveLength(1)
    expect(installation.log).not.toContain('ing_node_')
  })

  test('a second installation refuses to start, with one sentence, and touches nothing', async () => {
    const { directory } = installation
    const elsewhere = join(directory, 'elsewhere')
    const [controlListen, ingestListen] = [new URL(installation.apiUrl).host, new URL(installation.ingestUrl).host]
    const anyPorts = {
      INLET_CONTROL_LISTEN: '127.0.0.1:0',
      INLET_NODE_API_LISTEN: '127.0.0.1:0',
      INLET_INGEST_LISTEN: '127.0.0.1:0',
      ...compileCache,
    }
    for (const [name, environment, message] of [
      ['ingest', { INLET_DATA_DIR: directory, ...anyPorts }, 'another Inlet running on this data directory'],
      ['delivery', { INLET_DATA_DIR: directory, ...anyPorts }, 'another Inlet running on this data directory'],
      ['control', { INLET_DATA_DIR: directory, ...anyPorts }, 'another control process running on this SQLite database'],
      ['start', { INLET_DATA_DIR: directory, ...anyPorts }, 'another Inlet running on this data directory'],
      ['start', { ...anyPorts, INLET_DATA_DIR: elsewhere, INLET_CONTROL_LISTEN: controlListen }, `${controlListen} is in use`],
      ['start', { ...anyPorts, INLET_DATA_DIR: elsewhere, INLET_INGEST_LISTEN: ingestListen }, `${ingestListen} is in use`],
    ] as const) {
      const failed = await run(process.execPath, [program, name], { env: environment }).then(
        () => Promise.reject(new Error('it started')),
        (error: { code: number; stdout: string; stderr: string }) => error,
      )
      expect(failed).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^.*\n$/) })
      expect(JSON.parse(failed.stderr)).toMatchObject({ level: 'fatal', reason: expect.stringContaining(message) })
    }
    expect(existsSync(elsewhere)).toBe(false)
  })

  // The last one here, because it replaces the supervisor.
  test('after kill -9 of the supervisor its processes drain and end, and a new one takes over', async () => {
    const target = await newTarget(installation, { segment_max_age_seconds: 3600 })
    const { id } = target
    const { body } = await installation.ingest(id, '{"number":1}')
    const supervisor = installation.pid('start')
    const children = await Promise.all(['control', 'ingest', 'delivery'].map((name) => childOf(supervisor, name)))
    await installation.kill('start')
    await until('the old ones to be gone', () => children.every((pid) => !isRunning(pid)), 30_000)
    await installation.start('start')
    await installation.committed(id, [body.segment_seq])
    expect(await committedNumbers(installation, target)).toEqual([1])
    expect((await installation.ingest(id, '{"number":2}')).status).toBe(202)
  })
})

describeWith('processes', 'npm start', () => {
  // As systemd does. npm signals the supervisor as well, and the others must still stop in order.
  test('SIGTERM to every process drains: everything acknowledged is committed before they end', async () => {
    await using installation = await Installation.create()
    await installation.startWithNpm()
    const target = await newTarget(installation, { segment_max_age_seconds: 3600 })
    const { id } = target
    const sender = sendTo(installation, id)
    await until('100 acknowledgements', () => sender.acknowledged.length > 100, 30_000)
    expect(await installation.end('start', 'SIGTERM', { group: true })).toBe(0)
    await sender.stop()
    expect(await committedNumbers(installation, target)).toEqual(numbersOf(sender))
    expect(installation.walFiles(id)).toEqual([])
    expect(readdirSync(join(installation.directory, 'node/outbox')).filter((name) => name.endsWith('.json'))).toEqual([])
    await installation.start('start')
    expect((await installation.commits(id)).length).toBe(installation.markers(target.bucket, id).length)
  })
})
