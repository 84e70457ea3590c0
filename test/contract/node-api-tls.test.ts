/** The API for nodes over TLS: nodes check who control is, before they say who they are. */
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { parseJoinToken } from '#auth/join-token.ts'
import { parseCertificates } from '#lib/root-certificate.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { ControlClient } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'
import { Registration } from '#node/registration.ts'
import { writeCertificate } from '../support/certificates.ts'
import { clientOf, newControl, newRegion, nodeToken, operatorToken, type TestControl } from '../support/control.ts'

const fixture = (name: string) => join(import.meta.dirname, '../fixtures/tls', name)
const signal = new AbortController().signal

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-node-tls-'))
})
afterEach(() => rm(directory, { recursive: true }))

/** Starts control with a certificate of its own, which is copied, so that a test may replace it. */
async function secureControl(name: string): Promise<TestControl> {
  const [certificate, key] = [join(directory, 'crt'), join(directory, 'key')]
  await copyFile(fixture(`${name}.crt`), certificate)
  await copyFile(fixture(`${name}.key`), key)
  return newControl({ environment: { INLET_NODE_API_CERTIFICATE_FILE: certificate, INLET_NODE_API_KEY_FILE: key } })
}

async function newToken(control: TestControl): Promise<string> {
  const { body } = await clientOf(control.call, operatorToken).post('/v1/join-tokens', { name: 'rack 4' })
  return body.join_token
}

type Machine = { readonly url: string; readonly caFile?: string | null; readonly token?: string; readonly folder?: string }

/** A node as far as its registration goes. Without a token it has the join secret. */
async function machine({ url, caFile = null, token, folder = 'node' }: Machine) {
  const rootFile = join(directory, folder, 'control-ca.pem')
  const credential = await NodeCredential.open(newId(), join(directory, folder, 'credential'), system)
  const { secret: joinSecret, pin } = (token === undefined ? undefined : parseJoinToken(token)) ?? {
    secret: nodeToken,
    pin: null,
  }
  const client = await ControlClient.open({ ...system, url, caFile, rootFile, pin, credential, timeoutMs: 5_000 })
  const logged: string[] = []
  const logger = createLogger('test', 'silent')
  logger.error = (_: object, text?: string) => void logged.push(String(text))
  const node = { region: newRegion(), ipv4: [], ipv6: [], ingest_address: 'node.example:443' }
  const registration = new Registration({ client, credential, joinSecret, node, logger })
  return { ...{ client, credential, logged, rootFile }, register: () => registration.register(signal, false) }
}

/** A server that is not control: it has a certificate for the same names, and keeps what it is sent. */
async function impostor(certificateFile = fixture('first.crt'), keyFile = fixture('first.key')) {
  const requests: string[] = []
  const [cert, key] = [await readFile(certificateFile), await readFile(keyFile)]
  const server = createServer({ cert, key }, (request, response) => {
    requests.push(`${request.method} ${request.url} ${request.headers.authorization ?? ''}`)
    response.end(cert)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

test('a node registers over TLS if it trusts the certificate, and never in plaintext', async () => {
  await using control = await secureControl('first')
  const { nodeApiUrl: url } = control.app
  expect(url).toMatch(/^https:/)
  expect(control.url).toMatch(/^http:/)
  const refused = async (options: Machine) => (await machine(options)).register().catch((error: unknown) => error)
  expect(await refused({ url })).toMatchObject({
    status: 0,
    message: expect.stringContaining('set INLET_CONTROL_CA_FILE'),
    cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
  })
  expect(await refused({ url, caFile: fixture('renewed.crt') })).toMatchObject({ status: 0 })
  expect(await refused({ url: url.replace('https', 'http'), caFile: fixture('first.crt') })).toMatchObject({ status: 0 })
  await expect(machine({ url, caFile: '/nowhere' })).rejects.toThrow('INLET_CONTROL_CA_FILE: cannot read /nowhere')
  const { client, credential, register } = await machine({ url, caFile: fixture('first.crt') })
  await register()
  expect(await client.fetchCommittedSeqs(credential.nodeId, signal)).toEqual({ seqs: {} })
})

test.each([
  ['expired', -2, -1, /\(renew the certificate of control, or set the clock of this machine by NTP\)$/],
  ['not valid yet', 1, 2, /\(set the clock of this machine by NTP\)$/],
])('says what to do about a certificate of control that is %s', async (_, fromHours, toHours, message) => {
  const files = { certificateFile: join(directory, 'crt'), keyFile: join(directory, 'key') }
  const [fromMs, toMs] = [Date.now() + fromHours * 3_600_000, Date.now() + toHours * 3_600_000]
  await writeCertificate(files, { name: '127.0.0.1', fromMs, toMs })
  await using server = await impostor(files.certificateFile, files.keyFile)
  const { register } = await machine({ url: server.url, caFile: files.certificateFile })
  await expect(register()).rejects.toThrow(message)
})

test('says what to do about a certificate of control for another name', async () => {
  const files = { certificateFile: join(directory, 'crt'), keyFile: join(directory, 'key') }
  const [fromMs, toMs] = [Date.now() - 3_600_000, Date.now() + 3_600_000]
  await writeCertificate(files, { name: 'control.example', fromMs, toMs })
  await using server = await impostor(files.certificateFile, files.keyFile)
  const { register } = await machine({ url: server.url, caFile: files.certificateFile })
  await expect(register()).rejects.toThrow(
    /\(set INLET_CONTROL_URL to an address that the certificate of control is valid for\)$/,
  )
})

test('a join token pins the root: the node fetches and keeps it, and needs no file of the operator', async () => {
  await using control = await secureControl('chain')
  const { nodeApiUrl: url } = control.app
  const node = await machine({ url, token: await newToken(control) })
  // As delivery of the same node, which starts at the same time.
  const delivery = await machine({ url })
  await node.register()
  const [, root] = parseCertificates(await readFile(fixture('chain.crt')))
  expect(await readFile(node.rootFile, 'utf8')).toBe(String(root))
  const call = () => delivery.client.fetchCommittedSeqs(delivery.credential.nodeId, signal)
  await expect(call()).rejects.toMatchObject({ status: 0 })
  await expect(call()).rejects.toMatchObject({ status: 401 })
  // A later start has the root, and no token.
  const later = await machine({ url })
  await expect(later.client.fetchCommittedSeqs(newId(), signal)).rejects.toMatchObject({ status: 401 })
})

test('a node with a pin sends nothing secret to another server, and says once what is wrong', async () => {
  await using control = await secureControl('chain')
  await using other = await impostor()
  const node = await machine({ url: other.url, token: await newToken(control) })
  for (let attempt = 0; attempt < 2; attempt++) await expect(node.register()).rejects.toThrow('is not the control that made')
  expect(node.logged).toEqual([expect.stringContaining('check the address, or create another token')])
  expect(other.requests).toEqual(Array(2).fill('GET /internal/v1/ca '))
  // Once it has the root, it does not even ask.
  const joined = await machine({ url: control.app.nodeApiUrl, token: await newToken(control) })
  await joined.register()
  const misled = await machine({ url: other.url })
  await expect(misled.register()).rejects.toMatchObject({ status: 0 })
  expect(other.requests).toHaveLength(2)
})

test('a token with another pin replaces the root that a node keeps', async () => {
  const token = await (async () => {
    await using control = await secureControl('chain')
    const token = await newToken(control)
    await (await machine({ url: control.app.nodeApiUrl, token })).register()
    return token
  })()
  await using control = await secureControl('first')
  const { nodeApiUrl: url } = control.app
  await expect((await machine({ url, token })).register()).rejects.toMatchObject({ status: 0 })
  await (await machine({ url, token: await newToken(control) })).register()
})

test('control without TLS has no root, and its tokens pin none', async () => {
  await using control = await newControl()
  expect(await control.call('GET', '/internal/v1/ca')).toMatchObject({ status: 404, body: { error: 'not_found' } })
  expect(await newToken(control)).not.toContain('.')
})
