/** The examples that the console shows for a new key, run as they are shown. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { examplesFor } from '../../console/src/pages/keys/examples.ts'
import { anEndpoint, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { MqttNode, mqttEndpoint } from '../support/mqtt-node.ts'
import { isThorough } from '../support/thorough.ts'

const run = promisify(execFile)

function exampleOf(id: string, target: Parameters<typeof examplesFor>[0]): string {
  return examplesFor(target).find((each) => each.id === id)?.code ?? ''
}

async function isInstalled(program: string): Promise<boolean> {
  return run('which', [program]).then(
    () => true,
    () => false,
  )
}

describe('over HTTP', () => {
  test.for([
    { id: 'curl', program: 'sh', file: 'send.sh', parameters: [] },
    { id: 'javascript', program: process.execPath, file: 'send.mjs', parameters: [] },
    { id: 'python', program: 'python3', file: 'send.py', parameters: [] },
    // Compiles the libraries that it uses.
    ...(isThorough ? [{ id: 'go', program: 'go', file: 'send.go', parameters: ['run'] }] : []),
  ])('$id', { timeout: 120_000 }, async ({ id, program, file, parameters }, { skip }) => {
    skip(!(await isInstalled(program)), `${program} is not installed`)
    const endpoints = [anEndpoint(), anEndpoint()]
    await using node = await IngestNode.start({ snapshot: aSnapshot({ endpoints }) })
    const [endpointId = ''] = endpoints.map((endpoint) => endpoint.id)
    const code = exampleOf(id, { host: new URL(node.url).host, isSecure: false, endpointId, key: secretOf('a') })
    const directory = await mkdtemp(join(tmpdir(), 'inlet-example-'))
    try {
      await writeFile(join(directory, file), code)
      const { stdout } = await run(program, [...parameters, file], { cwd: directory })
      expect(stdout).toMatch(/accepted_records"?: ?1\b/)
    } finally {
      await rm(directory, { recursive: true })
    }
  })

  test('Fluent Bit and others: with the address of the endpoint, whether or not it has a name and TLS', () => {
    const key = secretOf('a')
    const named = { host: 'k3v9.fra.ingest.example.com', isSecure: false, endpointId: 'e1', key }
    expect(parse(exampleOf('fluent-bit', { ...named, host: '127.0.0.1:8081' })).pipeline.outputs).toMatchObject([
      { host: '127.0.0.1', port: 8081, uri: '/v1/ingest?endpoint=e1', tls: 'off' },
    ])
    const secure = { ...named, host: '127.0.0.1:8443', isSecure: true }
    expect(parse(exampleOf('fluent-bit', secure)).pipeline.outputs).toMatchObject([{ port: 8443, tls: 'on' }])
    expect(exampleOf('curl', secure)).toContain('https://127.0.0.1:8443/v1/ingest?endpoint=e1')
    expect(exampleOf('mosquitto', secure)).toContain(
      '-p 8883 -V mqttv5 \\\n  --tls-use-os-certs -D connect user-property endpoint e1',
    )
  })
})

test('over MQTT: mosquitto_pub', async ({ skip }) => {
  skip(!(await isInstalled('mosquitto_pub')), 'mosquitto_pub is not installed')
  await using mqtt = await MqttNode.start({ endpoint: mqttEndpoint() })
  const { hostname, host } = new URL(mqtt.node.url)
  const target = { host, isSecure: false, endpointId: mqtt.endpoint.id, key: secretOf('a'), mqttPort: mqtt.node.mqttPort ?? 0 }
  const code = exampleOf('mosquitto', target)
  expect(code).toContain(`-h ${hostname} `)
  await run('sh', ['-c', code])
  expect(await mqtt.stored()).toEqual(['plant/7/temperature {"event":"reading","amount":21.5}'])
})
