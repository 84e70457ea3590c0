/**
 * The memory that an idle connection costs. The bound is generous, and the figure is printed.
 *
 * `INLET_TEST_IDLE_CONNECTIONS=19500 npx vitest run --project ingest test/ingest/mqtt-idle.test.ts` opens as many as a limit of
 * 20 000 open files allows.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { generate } from 'mqtt-packet'
import { expect, test } from 'vitest'
import { KiB, MiB } from '#lib/bytes.ts'
import { connectPacket } from '../support/mqtt-client.ts'
import type { ChildMessage } from '../support/mqtt-node-child.ts'
import { runs } from '../support/thorough.ts'

const count = Number(process.env['INLET_TEST_IDLE_CONNECTIONS'] ?? runs(500, 2_000))
const parallel = 200
const upgrade = [
  'GET /mqtt HTTP/1.1',
  'Host: 127.0.0.1',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Protocol: mqtt',
  '\r\n',
].join('\r\n')

/** Connects with little memory: no parser, no retained buffers. */
async function idle(port: number, transport: 'tcp' | 'tls' | 'ws', clientId: string): Promise<Socket> {
  const socket =
    transport === 'tls' ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }) : connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  const connectBytes = generate(connectPacket(4, { clientId, keepalive: 0 }))
  let received = Buffer.alloc(0)
  const answered = (length: number) =>
    new Promise<void>((resolve, reject) => {
      socket.on('close', () => reject(new Error(`a connection was closed after ${received.length} bytes`)))
      socket.on('data', (chunk: Buffer) => {
        received = Buffer.concat([received, chunk])
        if (received.length >= length) resolve()
      })
    })
  if (transport === 'ws') {
    socket.write(upgrade)
    await new Promise<void>((resolve) => {
      socket.on('data', function take(chunk: Buffer) {
        if (!chunk.includes('\r\n\r\n')) return
        socket.off('data', take)
        resolve()
      })
    })
    const head = Buffer.from([0x82, 0x80 | connectBytes.length, 0, 0, 0, 0])
    socket.write(Buffer.concat([head, connectBytes]))
    await answered(6)
    expect(received.toString('hex')).toBe('820420020000')
  } else {
    socket.write(connectBytes)
    await answered(4)
    expect(received.toString('hex')).toBe('20020000')
  }
  socket.removeAllListeners('data').removeAllListeners('close').resume()
  return socket
}

test.each([
  { transport: 'tcp', kibMax: 16 },
  { transport: 'ws', kibMax: 32 },
  { transport: 'tls', kibMax: 128 },
] as const)(
  `${count} idle connections over $transport cost less than $kibMax KiB each`,
  { timeout: 120_000 },
  async ({ transport, kibMax }) => {
    const certificate = ['crt', 'key'].map((suffix) => join(import.meta.dirname, `../fixtures/tls/first.${suffix}`))
    const child = fork(join(import.meta.dirname, '../support/mqtt-node-child.ts'), transport === 'tls' ? certificate : [], {
      // A small young generation: its growth, some 16 MiB once, would be counted as memory of the connections.
      execArgv: ['--expose-gc', '--max-semi-space-size=1'],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    const ask = async () => {
      child.send('memory')
      const [message] = (await once(child, 'message')) as [ChildMessage]
      return 'rss' in message ? message.rss : 0
    }
    const sockets: Socket[] = []
    try {
      const [started] = (await once(child, 'message')) as [ChildMessage]
      if (!('url' in started)) throw new Error('the node did not start')
      const port = transport === 'ws' ? Number(new URL(started.url).port) : started.mqttPort
      const more = async (howMany: number) => {
        for (let made = 0; made < howMany; made += parallel) {
          const batch = Array.from({ length: Math.min(parallel, howMany - made) }, (_, index) =>
            idle(port, transport, `device-${sockets.length + index}`),
          )
          sockets.push(...(await Promise.all(batch)))
        }
      }
      // The first connections also pay for compiled code and for pools.
      await more(300)
      const before = await ask()
      await more(count)
      const after = await ask()
      const each = (after - before) / count
      process.stdout.write(
        `${count} idle MQTT connections over ${transport}: ${(each / KiB).toFixed(1)} KiB each, ${(after / MiB).toFixed(0)} MiB in all\n`,
      )
      expect(each).toBeLessThan(kibMax * KiB)
      // Each of them got a response and none was closed since.
      expect(sockets.filter(({ closed }) => closed)).toHaveLength(0)
      expect(sockets).toHaveLength(count + 300)
    } finally {
      for (const socket of sockets) socket.destroy()
      const exited = once(child, 'exit')
      child.send('stop')
      await exited
    }
  },
)
