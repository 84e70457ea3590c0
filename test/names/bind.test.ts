/** Checks that the name server behaves as the suites of this folder assume. */
import { expect, test } from 'vitest'
import { resolverOf, startBind, updateZone } from '../../tools/services/bind.ts'
import { describeNameServer, freshDomain } from '../support/name-server.ts'

describeNameServer('the name server', (nameServer) => {
  test('a signed update is visible at once, also for a name that was looked up before', async () => {
    const name = `www.${freshDomain(nameServer)}`
    const resolver = resolverOf(nameServer)
    await expect(resolver.resolve4(name)).rejects.toMatchObject({ code: 'ENOTFOUND' })
    await updateZone(nameServer, [`add ${name} 30 A 192.0.2.1`, `add ${name} 30 AAAA 2001:db8::1`])
    expect(await resolver.resolve4(name, { ttl: true })).toEqual([{ address: '192.0.2.1', ttl: 30 }])
    expect(await resolver.resolve6(name)).toEqual(['2001:db8::1'])
    await updateZone(nameServer, [`delete ${name} A`])
    await expect(resolver.resolve4(name)).rejects.toMatchObject({ code: 'ENODATA' })
  })

  test('it refuses an update with another key', async () => {
    const name = `www.${freshDomain(nameServer)}`
    const tsig = { ...nameServer.tsig, secret: Buffer.alloc(32, 7).toString('base64') }
    await expect(updateZone({ ...nameServer, tsig }, [`add ${name} 30 A 192.0.2.1`])).rejects.toThrow(/NOTAUTH/)
    await expect(resolverOf(nameServer).resolve4(name)).rejects.toMatchObject({ code: 'ENOTFOUND' })
  })

  test('it names itself as the server of its zone', async () => {
    const [zone = ''] = nameServer.zones
    const resolver = resolverOf(nameServer)
    const [name = ''] = await resolver.resolveNs(zone)
    expect(await resolver.resolve4(name)).toEqual([nameServer.server.split(':')[0]])
  })

  test('what it confirmed survives a kill', async () => {
    const bind = await startBind({ zones: ['kill.test', 'other.test'] })
    try {
      await updateZone(bind.described, ['add www.kill.test 30 A 192.0.2.1'])
      await bind.kill()
      await expect(resolverOf(bind.described).resolve4('www.kill.test')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
      await bind.start()
      expect(await resolverOf(bind.described).resolve4('www.kill.test')).toEqual(['192.0.2.1'])
    } finally {
      await bind.stop()
    }
  })
})
