import { Socket } from 'node:net'
import { generate } from 'mqtt-packet'
import { expect, test } from 'vitest'
import { assert } from '#lib/assert.ts'
import { systemClock } from '#lib/clock.ts'
import { system } from '#lib/system.ts'
import type { Logger } from '#lib/telemetry.ts'
import { aGate, manyConnections } from '../../../test/support/gate.ts'
import { MqttCounters } from './metrics.ts'
import { Sessions } from './sessions.ts'
import type { Wire } from './wire/wire.ts'

function started() {
  const lines: unknown[] = []
  const sessions = new Sessions({
    ...system,
    gate: aGate({ endpoints: [] }),
    packetMsMax: 1_000,
    counters: new MqttCounters(),
    clock: systemClock,
    logger: { warn: (line: unknown) => lines.push(line) } as unknown as Logger,
  })
  const written: Buffer[] = []
  const nothing = () => undefined
  const wire: Wire = {
    address: '192.0.2.7',
    unsentBytes: 0,
    write: (bytes) => written.push(bytes),
    pause: nothing,
    resume: nothing,
    end: nothing,
    destroy: nothing,
  }
  const slot = manyConnections().accept(new Socket())
  assert(slot !== undefined, 'the budget has a place')
  return { connection: sessions.open(wire, { host: undefined, query: '' }, slot), written, lines }
}

test('a refused 3.1.1 client gets a return code; the log has the client and the reason', () => {
  const { connection, written, lines } = started()
  const packet = {
    cmd: 'connect',
    protocolId: 'MQTT',
    protocolVersion: 4,
    clean: true,
    clientId: 'sensor-7',
    keepalive: 60,
  } as const
  connection.receive(generate({ ...packet, username: 'anybody', password: Buffer.from('ing_live_wrong') }))
  expect(Buffer.concat(written).toString('hex')).toBe('20020004')
  expect(lines).toEqual([
    {
      reason: 'bad_credentials',
      why: 'the password is not a valid API key',
      address: '192.0.2.7',
      clientId: 'sensor-7',
      username: 'anybody',
    },
  ])
})

test('bytes that are not MQTT get no response; the log has the address', () => {
  const { connection, written, lines } = started()
  connection.receive(Buffer.from('GET / HTTP/1.1\r\n\r\n'))
  expect(written).toEqual([])
  expect(lines).toMatchObject([{ reason: 'protocol_error', address: '192.0.2.7' }])
})
