import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { readConfig } from '#config/config.ts'
import { checkStart } from './check-start.ts'

const nowhere = {
  INLET_DATA_DIR: '/nowhere',
  INLET_CONTROL_LISTEN: '127.0.0.1:0',
  INLET_NODE_API_LISTEN: '127.0.0.1:0',
  INLET_INGEST_LISTEN: '127.0.0.1:0',
}

test('every listener of the processes to start needs a free port of its own', async () => {
  await using server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const taken = `127.0.0.1:${(server.address() as AddressInfo).port}`
  for (const setting of ['INLET_CONTROL_LISTEN', 'INLET_NODE_API_LISTEN', 'INLET_INGEST_LISTEN', 'INLET_MQTT_LISTEN']) {
    const config = readConfig({ ...nowhere, [setting]: taken })
    await expect(checkStart(config, ['control', 'delivery', 'ingest'])).rejects.toMatchObject({ code: 'EADDRINUSE', setting })
    // A node does not listen where control does.
    if (/CONTROL|NODE_API/.test(setting)) await checkStart(config, ['delivery', 'ingest'])
  }
})

test('two listeners with one address are refused', async () => {
  const config = readConfig({ ...nowhere, INLET_CONTROL_LISTEN: '127.0.0.1:65530', INLET_INGEST_LISTEN: '127.0.0.1:65530' })
  await expect(checkStart(config, ['control', 'ingest'])).rejects.toThrow(
    'INLET_INGEST_LISTEN and INLET_CONTROL_LISTEN are both 127.0.0.1:65530: set another port for one of them',
  )
})

test('a node of a control process elsewhere needs a token until it has a credential', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-check-start-'))
  try {
    const settings = { ...nowhere, INLET_DATA_DIR: join(directory, 'data'), INLET_CONTROL_URL: 'https://control.test:8082' }
    const start = (more: object = {}) => checkStart(readConfig({ ...settings, ...more }), ['delivery', 'ingest'])
    await expect(start()).rejects.toThrow(/^INLET_JOIN_TOKEN \(--join-token\): required .* inlet join-tokens create$/)
    await start({ INLET_JOIN_TOKEN: `ing_join_${'a'.repeat(32)}` })
    await start({ INLET_NODE_TOKEN: 'n'.repeat(32) })
    await start({ INLET_CONTROL_URL: '' })
    const { nodeCredential } = readConfig(settings).paths
    await mkdir(dirname(nodeCredential), { recursive: true })
    await writeFile(nodeCredential, '')
    await start()
  } finally {
    await rm(directory, { recursive: true })
  }
})
