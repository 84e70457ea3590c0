/** Certificates that control issues: for its own listeners, and for nodes. */
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, get } from 'node:https'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { type Issuer, OrderRejected } from '#naming/certificates/issuer.ts'
import { orderDue, type RenewalOptions } from '#naming/certificates/renewals.ts'
import { inNewEpoch } from '#store/cluster/epoch.ts'
import { findCertificate, listCertificates } from '#store/naming/certificates.ts'
import { registerNode } from '#store/nodes/nodes.ts'
import { newControl, newRegion, type TestControl } from '../support/control.ts'
import { newDatabase, newStore, postgresUrl, type TestStore } from '../support/databases.ts'
import { handshake, portOf } from '../support/handshake.ts'
import { keyring } from '../support/keyring.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { TestNode } from '../support/test-node.ts'
import { until } from '../support/until.ts'

const day = 86_400_000
const environment = { INLET_CERTIFICATES: 'development', INLET_BASE_DOMAIN: 'ingest.test' }
const signal = new AbortController().signal
const rootOf = (control: TestControl) => readFileSync(join(control.directory, 'development-ca.pem'))

/** Makes a request, and returns the connection that it used. */
async function socketOf({ app }: TestControl, agent: Agent): Promise<Socket> {
  const sent = get(`${app.url}/healthz`, { agent })
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  expect(response.statusCode).toBe(200)
  response.resume()
  await once(response, 'end')
  return response.socket
}

/** Waits until the region has another certificate than `before`, and returns it as a node gets it. */
async function handed(node: TestNode, before: string | null = null) {
  await until('another certificate', async () => ((await node.snapshot()).certificate ?? before) !== before)
  const { status, body } = await node.call('GET', 'certificate')
  expect(status).toBe(200)
  expect(body.fingerprint).toBe((await node.snapshot()).certificate)
  return body
}

describe('a development CA', () => {
  test('serves both listeners of control over TLS 1.2 and 1.3, for the host of the base URL', async () => {
    await using control = await newControl({
      environment: { ...environment, INLET_BASE_URL: 'https://inlet.test', INLET_NODE_API_LISTEN: '0.0.0.0:0' },
    })
    const { url, nodeApiUrl } = control.app
    const ca = rootOf(control)
    for (const port of [portOf(url), portOf(nodeApiUrl)]) {
      const ask = (options: object) => handshake(port, { ca, servername: 'inlet.test', ...options })
      await until('the certificate', () => ask({}).then(Boolean, () => false))
      expect(await ask({ maxVersion: 'TLSv1.2' })).toMatchObject({ protocol: 'TLSv1.2' })
      expect(await ask({ minVersion: 'TLSv1.3' })).toMatchObject({ protocol: 'TLSv1.3' })
      await expect(ask({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1' })).rejects.toThrow()
      await expect(ask({ servername: 'other.test' })).rejects.toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
      await expect(ask({ ca: undefined })).rejects.toMatchObject({ code: 'SELF_SIGNED_CERT_IN_CHAIN' })
    }
  })

  test('hands each region its wildcard, and stores no key as plain text', async () => {
    await using control = await newControl({ environment })
    const [one, other] = [await TestNode.register(control, 'fra'), await TestNode.register(control, 'iad')]
    const ofOne = await handed(one)
    const ofOther = await handed(other)
    expect(ofOne.chain).not.toBe(ofOther.chain)
    const rows = await listCertificates(control.store.db)
    expect(rows.map(({ name }) => name)).toEqual(['*.fra.ingest.test', '*.iad.ingest.test'])
    const tables = [
      await control.store.db.selectFrom('certificates').selectAll().execute(),
      await control.store.db.selectFrom('secrets').selectAll().execute(),
    ]
    expect(JSON.stringify(tables)).not.toContain('PRIVATE KEY')
    expect(statSync(join(control.directory, 'development-ca.pem')).mode & 0o077).toBe(0)
    const { body } = await control.call('GET', '/metrics')
    expect(body).toMatch(/^inlet_certificate_remaining_seconds\{.*name="\*\.fra\.ingest\.test".*\} 77\d{5}/m)
    expect(body).toMatch(/^inlet_certificate_failed_orders\{.*name="\*\.iad\.ingest\.test".*\} 0$/m)
  })

  test('names localhost for a region only while every node is on this machine, and at once no more', async () => {
    await using database = await newDatabase()
    const isForLocalhost = async ({ store }: TestControl, name: string) => {
      const row = await store.db.selectFrom('certificates').select('chain').where('name', '=', name).executeTakeFirst()
      const certificate = row?.chain == null ? undefined : new X509Certificate(row.chain)
      return certificate && [certificate.checkHost('localhost'), certificate.checkIP('127.0.0.1')].every(Boolean)
    }
    const listens = (listen: string) =>
      newControl({
        environment: { ...environment, INLET_BASE_URL: 'https://inlet.test', INLET_NODE_API_LISTEN: listen },
        database,
      })
    {
      await using control = await listens('127.0.0.1:0')
      await handed(await TestNode.register(control, 'fra'))
      expect(await isForLocalhost(control, '*.fra.ingest.test')).toBe(true)
    }
    await using control = await listens('0.0.0.0:0')
    await until('another certificate', async () => (await isForLocalhost(control, '*.fra.ingest.test')) === false)
    // The key of this one stays on the machine of control.
    expect(await isForLocalhost(control, 'inlet.test')).toBe(true)
  })

  test('keeps its root and its certificates over a restart', async () => {
    await using database = await newDatabase()
    const region = newRegion()
    const root = { pem: Buffer.of() }
    let before = ''
    let node: TestNode | undefined
    for (const start of ['first', 'second']) {
      await using control = await newControl({ environment, database })
      node = node?.at(control) ?? (await TestNode.register(control, region))
      const { fingerprint } = await handed(node)
      if (start === 'second') expect([rootOf(control), fingerprint]).toEqual([root.pem, before])
      root.pem = rootOf(control)
      before = fingerprint
    }
  })

  test('renews after two thirds of the life, on open connections without a break', async () => {
    await using control = await newControl({ environment: { ...environment, INLET_BASE_URL: 'https://inlet.test' } })
    const node = await TestNode.register(control, newRegion())
    const port = portOf(control.app.url)
    const serial = () => handshake(port, { rejectUnauthorized: false }).then((found) => found.serial)
    const { fingerprint } = await handed(node)
    const before = await serial()
    const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false })
    const socket = await socketOf(control, agent)
    control.clock.advance(59 * day)
    await expect(handed(node, null)).resolves.toMatchObject({ fingerprint })
    control.clock.advance(6 * day)
    const renewed = await handed(node, fingerprint)
    expect(renewed.fingerprint).not.toBe(fingerprint)
    await until('the new certificate of control', async () => (await serial()) !== before)
    expect(await socketOf(control, agent)).toBe(socket)
    agent.destroy()
  })
})

test.skipIf(postgresUrl === undefined)(
  'two control processes serve the same certificate, and the next leader renews it',
  async () => {
    await using database = await newDatabase('postgres')
    const https = { ...environment, INLET_BASE_URL: 'https://inlet.test' }
    const start = () => newControl({ environment: https, database })
    const [one, other] = await Promise.all([start(), start()])
    const serial = ({ app }: TestControl) =>
      handshake(portOf(app.url), { rejectUnauthorized: false }).then(
        (found) => found.serial,
        () => '',
      )
    try {
      expect(rootOf(one)).toEqual(rootOf(other))
      await until('both to serve it', async () => (await serial(one)) !== '' && (await serial(one)) === (await serial(other)))
      const { fingerprint } = await handed(await TestNode.register(one, newRegion()))
      const node = await TestNode.register(other, newRegion())
      expect((await handed(node)).fingerprint).not.toBe(fingerprint)
      const [before, ofRegion] = [await serial(other), (await handed(node)).fingerprint]
      await one[Symbol.asyncDispose]()
      other.clock.advance(65 * day)
      await handed(node, ofRegion)
      await until('the next certificate', async () => (await serial(other)) !== before)
    } finally {
      await other[Symbol.asyncDispose]()
    }
  },
)

test('the management API takes its certificate from files, and its URL begins with https://', async () => {
  const file = (suffix: string) => join(import.meta.dirname, `../fixtures/tls/first.${suffix}`)
  const files = { INLET_CONTROL_CERTIFICATE_FILE: file('crt'), INLET_CONTROL_KEY_FILE: file('key') }
  await using control = await newControl({ environment: { ...files, INLET_BASE_URL: '' } })
  expect(control.app.url).toMatch(/^https:/)
  expect(control.app.nodeApiUrl).toMatch(/^http:/)
  const { serial } = await handshake(portOf(control.app.url), { rejectUnauthorized: false })
  expect(serial).toBe(new X509Certificate(readFileSync(file('crt'))).serialNumber)
})

test('without an issuer nodes are told of no certificate', async () => {
  await using control = await newControl({ environment: { INLET_BASE_DOMAIN: 'ingest.test' } })
  const node = await TestNode.register(control, newRegion())
  expect((await node.snapshot()).certificate).toBeNull()
  expect(await node.call('GET', 'certificate')).toMatchObject({ status: 404, body: { error: 'not_found' } })
})

test.each([
  [{ INLET_CERTIFICATES: 'development' }, /INLET_CERTIFICATES: needs INLET_BASE_DOMAIN/],
  [{ INLET_CERTIFICATES: 'control', INLET_BASE_DOMAIN: 'ingest.test' }, /INLET_CERTIFICATES: control is for nodes/],
  [{ INLET_CERTIFICATES: 'acme', INLET_BASE_DOMAIN: 'ingest.test' }, /INLET_CERTIFICATES: acme needs INLET_DNS_PROVIDER/],
  [
    { INLET_CERTIFICATES: 'acme', INLET_BASE_DOMAIN: 'ingest.test', INLET_BASE_URL: 'https://192.0.2.1' },
    /INLET_BASE_URL: an ACME server issues no certificate for the address 192\.0\.2\.1/,
  ],
])('control does not start with %j', async (environment, message) => {
  await expect(newControl({ environment })).rejects.toThrow(message)
})

describe('an issuer that fails', () => {
  /** Fails as told, and otherwise issues what a development CA does. */
  class FailingIssuer implements Issuer {
    readonly id = 'failing'
    readonly orders: string[] = []
    failure: Error | undefined

    async issue(name: string) {
      this.orders.push(name)
      if (this.failure !== undefined) throw this.failure
      return { chain: fixture('crt'), key: fixture('key') }
    }
  }
  const fixture = (suffix: string) => readFileSync(join(import.meta.dirname, `../fixtures/tls/first.${suffix}`), 'utf8')

  async function setUp(store: TestStore, regions: readonly string[]) {
    const clock = new ManualClock()
    for (const region of regions)
      await registerNode(store.db, { node_id: newId(), region, ipv4: [], ipv6: [], ingest_address: 'x:1' }, clock.now())
    const issuer = new FailingIssuer()
    const options: RenewalOptions = {
      ...{ store, keyring, issuer, clock, baseDomain: 'ingest.test', ownName: null },
      applyChange: (work) => inNewEpoch(store, work),
      logger: createLogger('test', 'silent'),
      random: () => 0,
    }
    return { clock, issuer, check: () => orderDue(options, signal) }
  }

  test('is asked again after growing pauses, and its error is kept until it succeeds', async () => {
    await using store = await newStore('sqlite')
    const { clock, issuer, check } = await setUp(store, ['fra'])
    issuer.failure = new Error('connect ECONNREFUSED')
    const pauses: number[] = []
    for (let order = 1; order <= 4; order += 1) {
      const startedAt = clock.now()
      while (issuer.orders.length < order) {
        await check()
        clock.advance(500)
      }
      pauses.push(clock.now() - startedAt)
    }
    expect(pauses).toEqual([500, 2_500, 5_000, 10_000])
    const [failed] = await listCertificates(store.db)
    expect(failed).toMatchObject({ failures: 4, last_error: 'connect ECONNREFUSED', fingerprint: null })
    issuer.failure = undefined
    clock.advance(20_000)
    await check()
    const [issued] = await listCertificates(store.db)
    expect(issued).toMatchObject({ failures: 0, last_error: null, issuer: 'failing' })
    expect((await findCertificate(store.db, keyring, '*.fra.ingest.test'))?.key).toBe(fixture('key'))
  })

  test('is not asked for a region without nodes', async () => {
    await using store = await newStore('sqlite')
    const { clock, issuer, check } = await setUp(store, ['fra', 'iad'])
    await check()
    await store.db.deleteFrom('nodes').where('region', '=', 'iad').execute()
    await check()
    expect(await listCertificates(store.db)).toHaveLength(2)
    clock.advance(70 * 365 * day)
    await check()
    expect((await listCertificates(store.db)).map(({ name }) => name)).toEqual(['*.fra.ingest.test'])
    expect(issuer.orders).toEqual(['*.fra.ingest.test', '*.iad.ingest.test', '*.fra.ingest.test'])
  })

  test('does not keep other regions from their certificate, and keeps the one that is in use', async () => {
    await using store = await newStore('sqlite')
    const { clock, issuer, check } = await setUp(store, ['fra', 'iad'])
    await check()
    const before = await findCertificate(store.db, keyring, '*.fra.ingest.test')
    issuer.failure = new OrderRejected('rateLimited')
    clock.advance(70 * 365 * day)
    await check()
    expect(issuer.orders).toHaveLength(4)
    expect(await findCertificate(store.db, keyring, '*.fra.ingest.test')).toEqual(before)
    clock.advance(30_000)
    await check()
    expect(issuer.orders).toHaveLength(4)
    clock.advance(60_000)
    await check()
    expect(issuer.orders).toHaveLength(6)
  })
})
