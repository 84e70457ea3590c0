import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { expect, test } from 'vitest'
import { KiB, MiB } from '#lib/bytes.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { RawClient } from '../../../test/support/raw-http.ts'
import { until } from '../../../test/support/until.ts'
import { Discards } from './discards.ts'
import { httpLimits } from './limits.ts'

test('owners take turns, however many connections each has', async () => {
  const clock = new ManualClock()
  const discards = new Discards(clock)
  const sockets: { owner: string; socket: Socket }[] = []
  const server = createServer((request) => {
    const owner = String(request.headers['x-owner'])
    sockets.push({ owner, socket: request.socket })
    discards.add(request, owner)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  await using clients = new AsyncDisposableStack()
  clients.defer(() => void server.close())
  for (const owner of [...Array.from({ length: 9 }, () => 'many'), 'one']) {
    const client = clients.use(await RawClient.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
    void client.send(`POST / HTTP/1.1\r\nHost: a\r\nX-Owner: ${owner}\r\nContent-Length: ${64 * MiB}\r\n\r\n`)
    void client.send(new Uint8Array(8 * MiB))
  }
  await until('all heads to be read', () => sockets.length === 10)
  const readBy = (wanted: string) =>
    sockets.reduce((sum, { owner, socket }) => sum + (owner === wanted ? socket.bytesRead : 0), 0)
  const before = { one: readBy('one'), many: readBy('many') }
  let turns = 0
  await until('the only connection of an owner to be read', () => {
    clock.advance(httpLimits.discardTurnMs)
    turns += 1
    return readBy('one') - before.one > MiB
  })
  const many = readBy('many') - before.many
  expect(many).toBeGreaterThan(0)
  expect(readBy('one') + many - before.one).toBeLessThanOrEqual(turns * httpLimits.discardReadsPerTurn * 64 * KiB)
  // In a turn of four reads the others get at most as much as three of them, plus what they began.
  expect(many).toBeLessThan(turns * (httpLimits.discardReadsPerTurn - 1) * 64 * KiB)
})
