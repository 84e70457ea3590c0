import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { aGate, manyConnections } from '../../../test/support/gate.ts'
import { MqttCounters } from './metrics.ts'
import { MqttServer } from './server.ts'
import { Sessions } from './sessions.ts'

const fixture = (name: string) => readFileSync(join(import.meta.dirname, '../../../test/fixtures/tls', name))

async function started(handshakeTimeout: number) {
  const connections = manyConnections()
  const sessions = new Sessions({
    ...system,
    gate: aGate(),
    packetMsMax: 1_000,
    counters: new MqttCounters(),
    clock: systemClock,
    logger: createLogger('ingest', 'silent'),
  })
  const server = new MqttServer({
    listen: { host: '127.0.0.1', port: 0 },
    connections,
    certificate: {
      options: { cert: fixture('first.crt'), key: fixture('first.key'), minVersion: 'TLSv1.2', handshakeTimeout },
      subscribe: () => undefined,
    },
    sessions,
    clock: systemClock,
  })
  await server.start()
  return { server, connections }
}

test.each([
  ['never begins', ''],
  ['stops in the middle', '1603010200010001'],
])('a TLS handshake that %s ends the connection', async (_, hello) => {
  const { server, connections } = await started(100)
  try {
    const socket = connect(server.address?.port ?? 0, '127.0.0.1')
    socket.resume().write(Buffer.from(hello, 'hex'))
    socket.on('error', () => undefined)
    await once(socket, 'close')
    await expect.poll(() => connections.open).toBe(0)
  } finally {
    await server.stop(AbortSignal.timeout(1_000))
  }
})
