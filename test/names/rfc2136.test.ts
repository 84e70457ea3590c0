/** Dynamic updates of a real BIND. */
import { expect, test } from 'vitest'
import { type Clock, systemClock } from '#lib/clock.ts'
import { address } from '#lib/option-types.ts'
import { RecordsRejected } from '#naming/dns/provider.ts'
import { Rfc2136Provider } from '#naming/dns/rfc2136.ts'
import { type BindDescription, resolverOf, startBind, updateZone } from '../../tools/services/bind.ts'
import { describeNameServer, freshDomain } from '../support/name-server.ts'

const { signal } = new AbortController()

const providerOf = ({ server, tsig }: BindDescription, clock: Clock = systemClock) =>
  new Rfc2136Provider({ server: address(server), key: tsig, clock })

describeNameServer('dynamic updates', (nameServer) => {
  const resolver = resolverOf(nameServer)
  const provider = providerOf(nameServer)

  test('replace sets of every type, again and again, and remove them', async () => {
    const name = `abc.fra.${freshDomain(nameServer)}`
    const sets = [
      { name, type: 'A', values: ['192.0.2.1', '192.0.2.2'], ttl: 30 },
      { name, type: 'AAAA', values: ['2001:db8::1'], ttl: 30 },
    ] as const
    await provider.apply(sets, signal)
    await provider.apply(sets, signal)
    expect((await resolver.resolve4(name)).toSorted()).toEqual(['192.0.2.1', '192.0.2.2'])
    expect(await resolver.resolve6(name)).toEqual(['2001:db8::1'])
    await provider.apply(
      [
        { ...sets[0], values: ['192.0.2.3'], ttl: 60 },
        { ...sets[1], values: [] },
      ],
      signal,
    )
    expect(await resolver.resolve4(name, { ttl: true })).toEqual([{ address: '192.0.2.3', ttl: 60 }])
    await expect(resolver.resolve6(name)).rejects.toMatchObject({ code: 'ENODATA' })
    await provider.apply(
      sets.map((set) => ({ ...set, values: [] })),
      signal,
    )
    await provider.apply(
      sets.map((set) => ({ ...set, values: [] })),
      signal,
    )
    await expect(resolver.resolve4(name)).rejects.toMatchObject({ code: 'ENOTFOUND' })
  })

  test('add one text to those of others, and remove only it', async () => {
    const name = `_acme-challenge.fra.${freshDomain(nameServer)}`
    const texts = async () => (await resolver.resolveTxt(name)).map((parts) => parts.join('')).toSorted()
    const [own, other] = [
      { name, text: 'a "quoted" text', ttl: 5 },
      { name, text: 'x'.repeat(255), ttl: 5 },
    ]
    await updateZone(nameServer, [`add ${name} 60 TXT "of another client"`])
    for (const record of [own, other, own]) await provider.setText(record, true, signal)
    expect(await texts()).toEqual(['a "quoted" text', 'of another client', 'x'.repeat(255)])
    for (let repeat = 0; repeat < 2; repeat++) await provider.setText(own, false, signal)
    expect(await texts()).toEqual(['of another client', 'x'.repeat(255)])
    await provider.setText(other, false, signal)
    expect(await texts()).toEqual(['of another client'])
  })

  test('of many large sets go in several messages', async () => {
    const domain = freshDomain(nameServer)
    const values = Array.from({ length: 32 }, (_, index) => `2001:db8::${(index + 1).toString(16)}`)
    const sets = Array.from(
      { length: 100 },
      (_, index) => ({ name: `e${index}.fra.${domain}`, type: 'AAAA', values, ttl: 30 }) as const,
    )
    await provider.apply(sets, signal)
    for (const index of [0, 50, 99])
      expect((await resolver.resolve6(`e${index}.fra.${domain}`)).toSorted()).toEqual(values.toSorted())
  })

  test('leave a name alone that somebody made an alias', async () => {
    const domain = freshDomain(nameServer)
    await updateZone(nameServer, [`add alias.${domain} 30 CNAME elsewhere.test`])
    const sets = ['abc', 'alias'].map(
      (label) => ({ name: `${label}.${domain}`, type: 'A', values: ['192.0.2.1'], ttl: 30 }) as const,
    )
    // BIND confirms the message without the address: only a look-up shows it.
    await provider.apply(sets, signal)
    expect(await resolver.resolve4(`abc.${domain}`)).toEqual(['192.0.2.1'])
    expect(await resolver.resolveCname(`alias.${domain}`)).toEqual(['elsewhere.test'])
  })

  test.each([
    ['the secret is wrong', { secret: Buffer.alloc(32, 7).toString('base64') }, /check INLET_DNS_TSIG_SECRET/],
    ['the key is not known', { name: 'stranger' }, /the server has no TSIG key stranger .*check INLET_DNS_TSIG_NAME/],
    ['the algorithm is another', { algorithm: 'hmac-sha512' as const }, /with hmac-sha512: check INLET_DNS_TSIG_NAME and/],
  ])('say what to do if %s', async (_, wrong, message) => {
    const key = { ...nameServer.tsig, ...wrong }
    const other = new Rfc2136Provider({ server: address(nameServer.server), key, clock: systemClock })
    const name = `abc.${freshDomain(nameServer)}`
    const applied = other.apply([{ name, type: 'A', values: ['192.0.2.1'], ttl: 30 }], signal)
    await expect(applied).rejects.toMatchObject({ cause: expect.objectContaining({ message: expect.stringMatching(message) }) })
    await expect(applied).rejects.not.toThrow(RecordsRejected)
    await expect(resolver.resolve4(name)).rejects.toMatchObject({ code: 'ENOTFOUND' })
  })

  test('say by how much the clocks differ', async () => {
    const late = { ...systemClock, now: () => Date.now() - 3_600_000 }
    const applied = providerOf(nameServer, late).apply(
      [{ name: `a.${freshDomain(nameServer)}`, type: 'A', values: [], ttl: 30 }],
      signal,
    )
    await expect(applied).rejects.toMatchObject({
      cause: { message: expect.stringMatching(/differs from the one here by 3(599|600|601) s/) },
    })
  })

  test('say that a server does not have the zone', async () => {
    const applied = provider.apply([{ name: 'abc.fra.example.com', type: 'A', values: ['192.0.2.1'], ttl: 30 }], signal)
    await expect(applied).rejects.toThrow(/no zone for fra.example.com: INLET_DNS_SERVER must be the zone's primary server/)
  })

  test('survive the server: what was not confirmed can be repeated', async () => {
    const bind = await startBind({ zones: ['kill.test', 'fra.kill.test'] })
    try {
      const own = providerOf(bind.described)
      const set = { name: 'abc.fra.kill.test', type: 'A', values: ['192.0.2.1'], ttl: 30 } as const
      await bind.kill()
      await expect(own.apply([set], signal)).rejects.toThrow(/cannot be used/)
      await bind.start()
      await own.apply([set, { ...set, name: 'abc.iad.kill.test' }], signal)
      expect(await resolverOf(bind.described).resolve4('abc.fra.kill.test')).toEqual(['192.0.2.1'])
      expect(await resolverOf(bind.described).resolve4('abc.iad.kill.test')).toEqual(['192.0.2.1'])
    } finally {
      await bind.stop()
    }
  })
})
