import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { newControl } from '../support/control.ts'
import { TestNode } from '../support/test-node.ts'

test('a stop finishes requests in flight, rejects later ones, and ends', async () => {
  const control = await newControl()
  const node = await TestNode.register(control, 'loc')
  await node.snapshot()
  const waiting = node.askSnapshot(30_000)
  const { hostname, port } = new URL(control.url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.setEncoding('utf8')
  let received = ''
  socket.on('data', (part) => (received += part))
  const request = 'GET /v1/endpoints HTTP/1.1\r\nHost: x\r\n'
  socket.write(`${request}\r\n`)
  await once(socket, 'data')
  expect(received).toMatch(/^HTTP\/1\.1 401 /)
  received = ''
  // Half of a request head is sent when the stop begins.
  socket.write(request)
  await control.call('GET', '/healthz')
  const stopped = control.app.stop(AbortSignal.timeout(10_000))
  socket.write('\r\n')
  await once(socket, 'close')
  expect(received).toMatch(/^HTTP\/1\.1 503 [\s\S]*application\/problem\+json[\s\S]*"error":"unavailable"/)
  // The long poll ends, so that its node polls another control process.
  expect(await waiting).toMatchObject({ status: 204 })
  await stopped
  await expect(control.call('GET', '/healthz')).rejects.toThrow()
  await control[Symbol.asyncDispose]()
})
