import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { runOpenLoop } from './open-loop.ts'

const stall = { fromMs: 500, ms: 200 }

test('a stall of the server shows in every request that was due meanwhile', async () => {
  let firstAt: number | undefined
  const server = createServer((incoming, response) => {
    const now = performance.now()
    firstAt ??= now
    const leftMs = firstAt + stall.fromMs + stall.ms - now
    const isStalled = leftMs > 0 && leftMs <= stall.ms
    incoming.resume().once('end', () => setTimeout(() => response.writeHead(202).end(), isStalled ? leftMs : 0))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const request = Buffer.from('POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}')
  const schedule = { perSecond: 400, warmUpMs: 100, measureMs: 1_500 }
  try {
    const outcome = await runOpenLoop({ url: `http://127.0.0.1:${port}`, connections: 4, request, ...schedule })
    // The stall does not make the load less.
    expect(outcome.requests).toBeGreaterThan(400)
    expect(outcome.fromDue.p99).toBeGreaterThan(0.75 * stall.ms)
    // Only one request of each connection waited for its response: less than 1 in 100.
    expect(outcome.fromDue.p99).toBeGreaterThan(outcome.fromSent.p99)
  } finally {
    server.closeAllConnections()
    server.close()
  }
})
