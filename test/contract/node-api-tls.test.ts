/** The API for nodes over TLS: nodes check who control is. */
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { ControlClient } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'
import { Registration } from '#node/registration.ts'
import { newControl, newRegion, nodeToken } from '../support/control.ts'

const fixture = (name: string) => join(import.meta.dirname, '../fixtures/tls', name)
const signal = new AbortController().signal

test('a node registers over TLS if it trusts the certificate, and never in plaintext', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-node-tls-'))
  const [certificate, key] = [join(directory, 'crt'), join(directory, 'key')]
  await copyFile(fixture('first.crt'), certificate)
  await copyFile(fixture('first.key'), key)
  await using control = await newControl({
    environment: { INLET_NODE_API_CERTIFICATE_FILE: certificate, INLET_NODE_API_KEY_FILE: key },
  })
  const { nodeApiUrl } = control.app
  expect(nodeApiUrl).toMatch(/^https:/)
  expect(control.url).toMatch(/^http:/)
  const credential = await NodeCredential.open(newId(), join(directory, 'credential'))
  const connect = (caFile: string | null, url = nodeApiUrl) => ControlClient.open({ url, caFile, credential, timeoutMs: 5_000 })
  const register = async (client: ControlClient) => {
    const node = { region: newRegion(), ipv4: [], ipv6: [], ingest_address: 'node.example:443' }
    const logger = createLogger('test', 'silent')
    await new Registration({ client, credential, joinSecret: nodeToken, node, logger }).register(signal, false)
  }
  await expect(register(await connect(null))).rejects.toMatchObject({ status: 0, cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' } })
  await expect(register(await connect(fixture('renewed.crt')))).rejects.toMatchObject({ status: 0 })
  await expect(register(await connect(certificate, nodeApiUrl.replace('https', 'http')))).rejects.toMatchObject({ status: 0 })
  await expect(connect('/nowhere')).rejects.toThrow('INLET_CONTROL_CA_FILE: cannot read /nowhere')
  const client = await connect(certificate)
  await register(client)
  expect(await client.fetchCommittedSeqs(credential.nodeId, signal)).toEqual({ seqs: {} })
  await rm(directory, { recursive: true })
})
