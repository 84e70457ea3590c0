/** Machines come and go: nodes restart one after another under load, and one dies for good and is delivered from its disk. */
import { execFile } from 'node:child_process'
import { readFileSync, symlinkSync } from 'node:fs'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../../tools/services/processes.ts'
import { describeWith } from '../support/deployment.ts'
import { HttpFollower, MqttFollower } from '../support/follower.ts'
import { Installation } from '../support/installation.ts'
import { isRunning } from '../support/is-running.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { until } from '../support/until.ts'

const [joinSecret, operatorToken] = ['n'.repeat(32), 'o'.repeat(32)]
const bucket = 'rolling'

/** Kills a supervisor and its children at once: none of them can finish anything. */
async function killMachine(pid = 0): Promise<void> {
  const { stdout } = await promisify(execFile)('pgrep', ['-P', String(pid)])
  const all = [pid, ...stdout.split('\n').filter(Boolean).map(Number)]
  for (const each of all) process.kill(each, 'SIGKILL')
  await until('the processes to be gone', () => !all.some(isRunning))
}

describeWith('processes', 'two nodes and control', () => {
  let control: Installation
  let ports: { readonly http: number; readonly mqtt: number }
  const nodes: Installation[] = []
  let endpointId = ''

  beforeAll(async () => {
    control = await Installation.create({ environment: { INLET_NODE_TOKEN: joinSecret, INLET_OPERATOR_TOKEN: operatorToken } })
    await control.start('control')
    ports = { http: await freePort(), mqtt: await freePort() }
    for (const address of ['127.0.0.2', '127.0.0.3']) nodes.push(await newNode(address))
    for (const node of nodes) node.spawn('node')
    await until('both nodes', async () => (await healthyNodes()).length === 2, 60_000)
    const mqtt_config = { enabled: true, max_connections: 100, keepalive_max_s: 60, qos_max: 1 }
    endpointId = (await control.endpoint({ bucket, mqtt_config })).id
    await until('both nodes to serve it', async () => (await resolve()).length === 2, 30_000)
  }, 120_000)
  afterAll(async () => {
    // Their children would go on writing into the directories.
    await Promise.all(nodes.map((node) => killMachine(node.pid('node')).catch(() => undefined)))
    await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()))
    await control[Symbol.asyncDispose]()
  })

  /** A node with a directory and an address of its own, on the ports of all nodes. */
  async function newNode(address: string): Promise<Installation> {
    const node = await Installation.create({
      environment: {
        INLET_NODE_TOKEN: joinSecret,
        INLET_CONTROL_URL: control.nodeApiUrl,
        INLET_NODE_ADDRESSES: address,
        INLET_INGEST_LISTEN: `${address}:${ports.http}`,
        INLET_MQTT_LISTEN: `${address}:${ports.mqtt}`,
        // As long as a resolver here keeps an address.
        INLET_LEAVE_SECONDS_MIN: '1',
      },
    })
    // Directory buckets are on one machine.
    symlinkSync(control.buckets, join(node.directory, 'buckets'))
    return node
  }

  type KnownNode = {
    readonly id: string
    readonly healthy: boolean
    readonly ipv4: readonly string[]
    readonly ingest: { leaving: boolean }
  }

  async function operator(method: string, path: string): Promise<Response> {
    return fetch(`${control.apiUrl}${path}`, { method, headers: { authorization: `Bearer ${operatorToken}` } })
  }

  async function healthyNodes(): Promise<readonly KnownNode[]> {
    const { items } = (await (await operator('GET', '/v1/nodes')).json()) as { items: readonly KnownNode[] }
    return items.filter(({ healthy, ingest }) => healthy && !ingest.leaving)
  }

  async function resolve(): Promise<readonly string[]> {
    return (await control.ok('GET', `/v1/endpoints/${endpointId}`)).dns_ipv4
  }

  async function committed(): Promise<readonly string[]> {
    const rows = await readWithDuckDb(control.artifacts(bucket, endpointId, 'parquet'))
    return rows.map(({ payload }) => String(payload))
  }

  async function untilCommitted(records: readonly string[]): Promise<readonly string[]> {
    let found: readonly string[] = []
    await until(
      'every acknowledged record to be committed',
      async () => {
        found = await committed()
        const known = new Set(found)
        return records.every((record) => known.has(record))
      },
      60_000,
    )
    return found
  }

  test('restart one after another under HTTP and MQTT load: nothing is refused, and nothing acknowledged is lost', async () => {
    let addresses = await resolve()
    let turn = 0
    const resolver = setInterval(() => void resolve().then((found) => (addresses = found)), 200)
    const follower = { endpointId, apiKey: control.apiKey, resolve: () => addresses[turn++ % addresses.length] ?? '' }
    const http = Array.from(
      { length: 4 },
      (_, at) => new HttpFollower(`http-${at}`, { ...follower, port: ports.http, pauseMs: 5 }),
    )
    const mqtt = Array.from(
      { length: 4 },
      (_, at) => new MqttFollower(`mqtt-${at}`, { ...follower, port: ports.mqtt, pauseMs: 5 }),
    )
    const all = [...http, ...mqtt]
    await until('every client to send', () => all.every(({ acknowledged }) => acknowledged.length > 10), 30_000)
    for (let round = 0; round < 3; round += 1) {
      for (const node of nodes) {
        const before = all.map(({ acknowledged }) => acknowledged.length)
        expect(await node.end('node', 'SIGTERM')).toBe(0)
        node.spawn('node')
        await until('both nodes', async () => (await resolve()).length === 2, 30_000)
        expect(all.map(({ acknowledged }, at) => acknowledged.length > (before[at] ?? 0))).not.toContain(false)
      }
    }
    await Promise.all(all.map((client) => client.stop()))
    clearInterval(resolver)
    expect(all.flatMap(({ failures }) => failures)).toEqual([])
    expect(mqtt.map(({ connections }) => connections > 1)).toContain(true)
    const acknowledged = all.flatMap((client) => client.acknowledged)
    const found = await untilCommitted(acknowledged)
    // A message that was in flight when its connection ended is sent again, and may be stored twice.
    expect(found.length - acknowledged.length).toBeLessThanOrEqual(mqtt.reduce((sum, { connections }) => sum + connections, 0))
  })

  /** A copy of its disk, while the node runs: what it goes on accepting would not be in there. */
  async function expectRefusal(running: Installation): Promise<void> {
    const copy = await mkdtemp(join(tmpdir(), 'inlet-copy-'))
    await cp(join(running.directory, 'node'), join(copy, 'node'), { recursive: true })
    await using adopting = await newNode('127.0.0.5')
    const { exitCode, log } = await adopting.run('node', '--adopt', copy)
    expect([exitCode, log]).toEqual([1, expect.stringContaining('still runs')])
    await rm(copy, { recursive: true })
  }

  test('a machine dies: the volume with its log is mounted elsewhere and delivered under its id, beside another node', async () => {
    const [dead, other] = nodes
    if (dead === undefined || other === undefined) throw new Error('there are two nodes')
    const known = (await healthyNodes()).find(({ ipv4 }) => ipv4.includes('127.0.0.2'))
    await control.ok('PATCH', `/v1/endpoints/${endpointId}`, { segment_max_age_seconds: 3_600 })
    const snapshot = join(dead.directory, 'node/ingest-snapshot.ndjson')
    await until('the node to keep segments open', () => readFileSync(snapshot, 'utf8').includes('"segment_max_age_seconds":3600'))
    const record = '{"from":"the dead"}'
    const headers = { 'content-type': 'application/json', 'x-api-key': control.apiKey }
    const url = `http://127.0.0.2:${ports.http}/v1/ingest?endpoint=${endpointId}`
    expect((await fetch(url, { method: 'POST', headers, body: record })).status).toBe(202)
    await expectRefusal(dead)
    await killMachine(dead.pid('node'))
    const volume = await mkdtemp(join(tmpdir(), 'inlet-volume-'))
    await cp(join(dead.directory, 'node/wal'), volume, { recursive: true })
    await rm(join(dead.directory, 'node'), { recursive: true })
    // Losing the credential of a node loses its id, until the operator releases it.
    expect((await operator('DELETE', `/v1/nodes/${known?.id}/credential?release=true&force=true`)).status).toBe(204)

    await using adopting = await newNode('127.0.0.4')
    adopting.configure({ INLET_DATA_DIR: other.directory })
    const { exitCode, log } = await adopting.run('node', '--region', 'loc', '--adopt', volume)
    expect([exitCode, log]).toEqual([0, expect.stringContaining('nothing is left')])
    expect(await committed()).toContain(record)
    const commits = await control.commits(endpointId)
    expect(commits[0]).toMatchObject({ node_id: known?.id })
    expect((await healthyNodes()).map(({ ipv4 }) => ipv4)).toEqual([['127.0.0.3']])
    const { items } = (await (await operator('GET', `/v1/nodes/${known?.id}/segments`)).json()) as { items: unknown[] }
    expect(items).toEqual([])
    await rm(volume, { recursive: true })
  })
})
