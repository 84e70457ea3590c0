/** Everything over TLS with certificates that control issues: the management API, a node that joins, HTTP and MQTT of its clients. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { request } from 'node:https'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import mqtt, { type IClientOptions } from 'mqtt'
import { expect, test } from 'vitest'
import { freePort } from '../../tools/services/processes.ts'
import { Installation } from '../support/installation.ts'
import { until } from '../support/until.ts'

const program = resolve(import.meta.dirname, '../../src/main.ts')

type Call = { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string }
type Answer = { readonly status: number | undefined; readonly body: string }

test('one root is enough for operators, nodes and clients', { timeout: 120_000 }, async () => {
  await using installation = await Installation.create()
  const { directory, apiKey } = installation
  const apiUrl = installation.apiUrl.replace('http://127.0.0.1', 'https://localhost')
  const nodeApiPort = new URL(installation.nodeApiUrl).port
  const port = Number(new URL(installation.ingestUrl).port)
  const mqttPort = await freePort()
  const environment = {
    INLET_CERTIFICATES: 'development',
    INLET_BASE_DOMAIN: 'ingest.test',
    INLET_BASE_URL: apiUrl,
    INLET_NODE_API_LISTEN: `0.0.0.0:${nodeApiPort}`,
    INLET_MQTT_LISTEN: `127.0.0.1:${mqttPort}`,
  }
  installation.configure(environment)
  installation.spawn('control')
  const rootFile = join(directory, 'development-ca.pem')
  await until('the root', () => existsSync(rootFile), 60_000)
  const ca = readFileSync(rootFile)

  /** Connects to this machine, whatever the host of the URL, and accepts only a certificate for that host. */
  const call = (url: string, { method = 'GET', headers = {}, body }: Call = {}) => {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const { hostname } = new URL(url)
    const lookup = (_host: string, _options: object, done: (...found: unknown[]) => void) =>
      done(null, [{ address: '127.0.0.1', family: 4 }])
    const sent = request(url, { method, headers, ca, servername: hostname, agent: false, lookup: lookup as never })
    sent.on('response', (response) => text(response).then((body) => resolve({ status: response.statusCode, body }), reject))
    sent.on('error', reject)
    sent.end(body)
    return promise
  }
  const isReady = (url: string) =>
    call(`${url}/readyz`).then(
      ({ status }) => status === 200,
      () => false,
    )
  const inlet = async (...args: readonly string[]) => {
    const env = { INLET_DATA_DIR: directory, NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...environment }
    return (await promisify(execFile)(process.execPath, [program, ...args], { env })).stdout
  }
  await until('control', () => isReady(apiUrl), 60_000)
  expect(await inlet('certificates', 'root')).toBe(ca.toString())

  // The join token pins the root, so the node needs no file of it.
  const [token = ''] = (await inlet('join-tokens', 'create', '--name', 'node', '--region', 'fra')).split('\n')
  const place = ['--region', 'fra', '--control', `https://localhost:${nodeApiPort}`, '--data-dir', join(directory, 'node-data')]
  installation.configure({ INLET_CERTIFICATES: 'control', INLET_NODE_API_LISTEN: '127.0.0.1:1' })
  const { pid } = installation.spawn('node', { args: [...place, '--join-token', token] })

  const json = { 'content-type': 'application/json' }
  const exchange = await call(`${apiUrl}/v1/token/exchange`, {
    ...{ method: 'POST', headers: json },
    body: JSON.stringify({ api_key: apiKey, scope: 'admin' }),
  })
  const headers = { ...json, authorization: `Bearer ${JSON.parse(exchange.body).access_token}` }
  const created = await call(`${apiUrl}/v1/endpoints`, {
    ...{ method: 'POST', headers },
    body: JSON.stringify({ region: 'fra', mqtt_config: { enabled: true } }),
  })
  const { ingest_host: host } = JSON.parse(created.body)
  expect(host).toMatch(/^[^.]+\.fra\.ingest\.test$/)

  await until('the node under the name of the endpoint', () => isReady(`https://${host}:${port}`), 60_000)
  expect(await inlet('join-tokens', 'list')).toMatch(/ used_up +1 of 1 /)
  // Other users of the machine can read this.
  expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).not.toContain('ing_join')
  const sent = await call(`https://${host}:${port}/v1/ingest`, {
    ...{ method: 'POST', headers: { 'x-api-key': apiKey, 'content-type': 'application/x-ndjson' } },
    body: '{"n":1}\n',
  })
  expect(sent).toMatchObject({ status: 202 })

  const client = { host: '127.0.0.1', ca, servername: host, username: 'somebody', password: apiKey, reconnectPeriod: 0 }
  const publish = async (options: IClientOptions) => {
    const connected = await mqtt.connectAsync(options)
    await connected.publishAsync('plant/7', '{"n":2}', { qos: 1 })
    await connected.endAsync()
  }
  await publish({ ...client, protocol: 'mqtts', port: mqttPort })
  await publish({ ...client, protocol: 'wss', port, path: '/mqtt', wsOptions: { ca, servername: host } as object })
  await expect(
    publish({ ...client, protocol: 'mqtts', port: mqttPort, servername: 'orders.iad.ingest.test' }),
  ).rejects.toMatchObject({
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  })
})
