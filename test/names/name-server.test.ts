import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { decode, encode } from 'dns-packet'
import { expect, test } from 'vitest'
import { checkLimits } from '#naming/checks/limits.ts'
import { NameServer } from '#naming/checks/name-server.ts'
import { until } from '../support/until.ts'

test('a server that does not respond delays some look-ups, and is asked again until it does', async () => {
  const socket = createSocket('udp4')
  let isSilent = true
  let questions = 0
  socket.on('message', (message, { address, port }) => {
    questions++
    if (isSilent) return
    const { id, questions: asked = [] } = decode(message)
    const answers = asked.flatMap(({ type, name }) => (type === 'A' ? [{ type, name, ttl: 30, data: '192.0.2.1' }] : []))
    socket.send(encode({ type: 'response', id: id ?? 0, questions: asked, answers }), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  try {
    const server = `127.0.0.1:${socket.address().port}`
    const nameServer = new NameServer(server)
    const silence = { server, A: [], AAAA: [], error: 'no response' }
    const ask = (count: number) =>
      Promise.all(Array.from({ length: count }, (_, index) => nameServer.ask(`e${index}.inlet.test`)))
    expect(await ask(checkLimits.timeoutsMax)).toEqual(Array.from({ length: checkLimits.timeoutsMax }, () => silence))
    const asked = questions
    expect(new Set((await ask(1_000)).map(({ error }) => error))).toEqual(new Set(['no response']))
    // One probe: a question for each of two types, and both once more.
    await until('the end of the probe', () => questions >= asked + 4)
    expect(questions).toBe(asked + 4)
    isSilent = false
    const right = { server, A: ['192.0.2.1'], AAAA: [], error: null }
    await until('an answer', async () => (await nameServer.ask('e.inlet.test')).error === null)
    expect(await nameServer.ask('e.inlet.test')).toEqual(right)
  } finally {
    socket.close()
  }
})
