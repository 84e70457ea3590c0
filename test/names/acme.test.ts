/** Certificates from a real ACME server, with challenges at a real name server. */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { AcmeIssuer, type AcmeOptions, readAccountKey } from '#naming/certificates/acme.ts'
import { ServiceUnavailable } from '#naming/certificates/acme-requests.ts'
import { OrderRejected } from '#naming/certificates/issuer.ts'
import type { TextRecord } from '#naming/dns/provider.ts'
import { Rfc2136Provider } from '#naming/dns/rfc2136.ts'
import { listCertificates } from '#store/naming/certificates.ts'
import { type BindDescription, resolverOf, startBind, updateZone } from '../../tools/services/bind.ts'
import { type PebbleDescription, startPebble } from '../../tools/services/pebble.ts'
import { newControl } from '../support/control.ts'
import { newStore } from '../support/databases.ts'
import { handshake, portOf } from '../support/handshake.ts'
import { keyring } from '../support/keyring.ts'
import { describeAcme, freshDomain } from '../support/name-server.ts'
import { TestNode } from '../support/test-node.ts'
import { until } from '../support/until.ts'

const signal = new AbortController().signal

function provider({ server, tsig }: BindDescription) {
  const [host = '', port = ''] = server.split(':')
  const { name, algorithm, secret } = tsig
  const real = new Rfc2136Provider({ server: { host, port: Number(port) }, key: { name, algorithm, secret }, clock: systemClock })
  const removed: TextRecord[] = []
  return {
    removed,
    // There is one server, which shows a change as soon as it has confirmed it.
    settleSeconds: 0,
    setText: async (record: TextRecord, isPublished: boolean, signal: AbortSignal) => {
      await real.setText(record, isPublished, signal)
      if (!isPublished) removed.push(record)
    },
  }
}

/** The account of every test, as that of an installation. */
async function accountKey(): Promise<string> {
  await using store = await newStore('sqlite')
  const key = await readAccountKey(store.db, keyring)
  expect(await readAccountKey(store.db, keyring)).toBe(key)
  return key
}

describeAcme('an ACME server', (acme, nameServer) => {
  const dns = provider(nameServer)
  const issuerWith = async (change: Partial<AcmeOptions> = {}) =>
    new AcmeIssuer({
      ...{ directoryUrl: acme.directoryUrl, email: 'operator@inlet.test', ca: readFileSync(acme.caFile), dns },
      ...{ accountKey: await accountKey(), clock: systemClock },
      ...change,
    })

  test('issues a wildcard that chains to its root, with a new key each time, and the challenge is removed', async () => {
    const issuer = await issuerWith()
    const domain = `fra.${freshDomain(nameServer)}`
    const first = await issuer.issue(`*.${domain}`, signal)
    const second = await issuer.issue(`*.${domain}`, signal)
    expect(second.key).not.toBe(first.key)
    const certificate = new X509Certificate(first.chain)
    expect(certificate.checkHost(`orders.${domain}`)).toBeDefined()
    expect(certificate.checkHost('orders.other.test')).toBeUndefined()
    const [, intermediate = ''] = first.chain.split(/(?<=-----END CERTIFICATE-----\n)/)
    expect(new X509Certificate(intermediate).checkIssued(new X509Certificate(acme.root))).toBe(true)
    expect(dns.removed.at(-1)).toMatchObject({ name: `_acme-challenge.${domain}` })
    await expect(resolverOf(nameServer).resolveTxt(`_acme-challenge.${domain}`)).rejects.toMatchObject({ code: 'ENOTFOUND' })
  })

  test('issues beside other orders for the same name, whose challenges stay', async () => {
    const domain = `fra.${freshDomain(nameServer)}`
    const name = `_acme-challenge.${domain}`
    await updateZone(nameServer, [`add ${name} 60 TXT "of another client"`])
    const issuers = [await issuerWith(), await issuerWith()]
    await Promise.all(issuers.map((issuer) => issuer.issue(`*.${domain}`, signal)))
    expect(await resolverOf(nameServer).resolveTxt(name)).toEqual([['of another client']])
  })

  test('that was away when a challenge should be removed: the next order removes it', async () => {
    const domain = `fra.${freshDomain(nameServer)}`
    let isAway = true
    const forgetful: AcmeOptions['dns'] = {
      settleSeconds: 0,
      setText: async (record, isPublished, within) => {
        if (!isPublished && isAway) throw new Error('away')
        await dns.setText(record, isPublished, within)
      },
    }
    const issuer = await issuerWith({ dns: forgetful })
    await issuer.issue(`*.${domain}`, signal)
    expect(await resolverOf(nameServer).resolveTxt(`_acme-challenge.${domain}`)).toHaveLength(1)
    isAway = false
    await issuer.issue(`*.${domain}`, signal)
    await expect(resolverOf(nameServer).resolveTxt(`_acme-challenge.${domain}`)).rejects.toMatchObject({ code: 'ENOTFOUND' })
  })

  test('that does not find the challenge refuses the order, with its reason', async () => {
    const issuer = await issuerWith({ dns: { settleSeconds: 0, setText: async () => undefined } })
    const failure = await issuer.issue(`*.fra.${freshDomain(nameServer)}`, signal).catch((error: Error) => error)
    expect(failure).toBeInstanceOf(OrderRejected)
    expect(failure).toMatchObject({ cause: { message: expect.stringMatching(/TXT record/) } })
  })

  test.each([
    ['cannot be reached', { directoryUrl: 'https://127.0.0.1:1/dir' }, /ECONNREFUSED/],
    ['has a certificate of an unknown CA', { ca: undefined }, /self-signed/],
  ] as const)('that %s is worth a retry soon', async (_, change, reason) => {
    const failure = await (await issuerWith(change)).issue('*.fra.inlet.test', signal).catch((error: Error) => error)
    expect(failure).toBeInstanceOf(ServiceUnavailable)
    expect(failure).toMatchObject({ cause: { message: expect.stringMatching(reason) } })
  })

  test('that stops responding does not hold an order that is ended', async () => {
    const pebble = await startPebble({ nameServer: nameServer.server })
    try {
      const { directoryUrl, caFile } = pebble.described
      const issuer = await issuerWith({ directoryUrl, ca: readFileSync(caFile) })
      pebble.pause()
      const ended = new AbortController()
      const order = issuer.issue('*.fra.inlet.test', ended.signal)
      ended.abort()
      await expect(order).rejects.toMatchObject({ name: 'AbortError' })
    } finally {
      pebble.resume()
      await pebble.stop()
    }
  })

  test('is asked again once the name server is back', async () => {
    const bind = await startBind()
    const pebble = await startPebble({ nameServer: bind.described.server })
    try {
      await bind.kill()
      const domain = freshDomain(bind.described)
      const environment = { ...environmentOf(pebble.described, bind.described, domain), INLET_BASE_URL: 'http://inlet.test' }
      await using control = await newControl({ environment })
      const node = await TestNode.register(control, 'fra')
      const state = async () => (await listCertificates(control.store.db))[0]
      await until('the order to fail', async () => (await state())?.failures === 1)
      expect(await state()).toMatchObject({
        last_error: expect.stringMatching(/cannot be published.*ECONNREFUSED/),
        fingerprint: null,
      })
      await bind.start()
      await until('the certificate', async () => (await node.snapshot()).certificate !== null, 40_000)
      expect(await state()).toMatchObject({ failures: 0, last_error: null })
    } finally {
      await pebble.stop()
      await bind.stop()
    }
  })

  test('serves control and its nodes, and every certificate is renewed after two thirds of its life', async () => {
    const pebble = await startPebble({ nameServer: nameServer.server, validitySeconds: 30 })
    try {
      const domain = freshDomain(nameServer)
      await using control = await newControl({ environment: environmentOf(pebble.described, nameServer, domain) })
      const node = await TestNode.register(control, 'fra')
      const handed = async (before: string | null) => {
        await until(
          'a certificate for the region',
          async () => ((await node.snapshot()).certificate ?? before) !== before,
          50_000,
        )
        return (await node.call('GET', 'certificate')).body
      }
      const first = await handed(null)
      expect(new X509Certificate(first.chain).checkHost(`orders.fra.${domain}`)).toBeDefined()
      const ask = () =>
        handshake(portOf(control.app.url), { servername: `inlet.${domain}`, ca: pebble.described.root }).then(
          ({ serial }) => serial,
          () => '',
        )
      await until('the certificate of control', async () => (await ask()) !== '', 20_000)
      const before = await ask()
      const second = await handed(first.fingerprint)
      expect(second.key).not.toBe(first.key)
      await until('the next certificate of control', async () => ![before, ''].includes(await ask()), 20_000)
    } finally {
      await pebble.stop()
    }
  })
})

function environmentOf({ directoryUrl, caFile }: PebbleDescription, { server, tsig }: BindDescription, domain: string) {
  return {
    INLET_CERTIFICATES: 'acme',
    INLET_ACME_DIRECTORY: directoryUrl,
    INLET_ACME_CA_FILE: caFile,
    INLET_BASE_DOMAIN: domain,
    INLET_BASE_URL: `https://inlet.${domain}`,
    INLET_DNS_PROVIDER: 'rfc2136',
    INLET_DNS_SERVER: server,
    INLET_DNS_TSIG_NAME: tsig.name,
    INLET_DNS_TSIG_SECRET: tsig.secret,
  }
}
