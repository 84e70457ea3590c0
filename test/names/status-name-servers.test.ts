/** How control finds and asks the name servers of a zone: real servers and processes. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'vitest'
import { startBind, updateZone } from '../../tools/services/bind.ts'
import { Fleet } from '../support/fleet.ts'
import { describeNameServer, freshDomain } from '../support/name-server.ts'

const minuteMs = 60_000
/** Only root listens on port 53, which the resolvers of a machine have. */
const isRoot = process.getuid?.() === 0

describeNameServer('the name servers of a zone', () => {
  test('one that drops packets is named, and does not delay what is said of the other', { timeout: 2 * minuteMs }, async () => {
    await using bind = await startDisposableBind()
    const { described } = bind
    const [zone = ''] = described.zones
    await using other = await startForwarder('127.0.0.7', described.server)
    await updateZone(described, [`add ns2.${zone} 30 A 127.0.0.7`, `add ${zone} 30 NS ns2.${zone}.`])
    await using fleet = await Fleet.start({
      INLET_BASE_DOMAIN: freshDomain(described),
      INLET_DNS_PROVIDER: 'static',
      INLET_DNS_SERVER: described.server,
    })
    await (await fleet.startNode('127.0.0.2')).untilReady()
    const { id, ingest_host: name } = await fleet.newEndpoint()
    await updateZone(described, [`add ${name} 30 A 127.0.0.2`])
    await fleet.told(id, 'active')

    other.drop(true)
    const silence = `name server ${other.server} gave no answer about ${name}: no response`
    await fleet.told(id, 'degraded', [silence])
    await updateZone(described, [`delete ${name} A`])
    await fleet.told(id, 'degraded', [silence, `the A record of ${name} is missing at name server ${described.server}`])
    await updateZone(described, [`add ${name} 30 A 127.0.0.2`])
    other.drop(false)
    await fleet.told(id, 'active')
  })

  test.skipIf(!isRoot)('are found by the resolvers of the machine', { timeout: 2 * minuteMs }, async () => {
    using scratch = mkdtempDisposableSync(join(tmpdir(), 'inlet-resolvers-'))
    await using bind = await startDisposableBind({ port: 53 })
    const resolvers = join(scratch.path, 'resolv.conf')
    writeFileSync(resolvers, 'nameserver 127.0.0.1\n')
    const enter = ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" /etc/resolv.conf && exec "$@"', resolvers]
    const settings = { INLET_BASE_DOMAIN: freshDomain(bind.described), INLET_DNS_PROVIDER: 'static' }
    await using fleet = await Fleet.start(settings, enter)
    await (await fleet.startNode('127.0.0.2')).untilReady()
    const { id, ingest_host: name } = await fleet.newEndpoint()
    await fleet.told(id, 'deploying', [`the A record of ${name} is missing: it should be 127.0.0.2`])
    await updateZone(bind.described, [`add ${name} 30 A 127.0.0.2`])
    await fleet.told(id, 'active')
  })
})

async function startDisposableBind(options?: Parameters<typeof startBind>[0]) {
  const bind = await startBind(options)
  return { ...bind, [Symbol.asyncDispose]: () => bind.stop() }
}

/** A name server at another address with the same port, which may drop packets. */
async function startForwarder(address: string, target: string) {
  const [host = '', port = ''] = target.split(':')
  const socket = createSocket('udp4')
  let isDropping = false
  socket.on('message', (question, client) => {
    if (isDropping) return
    const asking = createSocket('udp4')
    asking.unref()
    asking.once('message', (answer) => {
      socket.send(answer, client.port, client.address)
      asking.close()
    })
    asking.send(question, Number(port), host)
  })
  socket.bind(Number(port), address)
  await once(socket, 'listening')
  return {
    server: `${address}:${port}`,
    drop: (wanted: boolean) => {
      isDropping = wanted
    },
    [Symbol.asyncDispose]: async () => void socket.close(),
  }
}
