import { expect } from 'vitest'
import { readConfig } from '#config/config.ts'
import { inNewEpoch } from '#store/cluster/epoch.ts'
import { listCertificates, recordCertificate, recordOrderFailure } from '#store/naming/certificates.ts'
import { runCli } from '../support/cli.ts'
import type { TestStore } from '../support/databases.ts'
import { keyring } from '../support/keyring.ts'
import { describeStores, iso, t0 } from './fixtures.ts'

const day = 86_400_000
const name = '*.fra.ingest.test'

function certificates(url: string, ...args: string[]) {
  return runCli(['certificates', ...args], { config: readConfig({ INLET_DATABASE_URL: url }) })
}

function issue(store: TestStore, issuer: string) {
  const block = (text: string) => `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`
  const issued = { name, issuer, chain: `${block('leaf')}${block('root')}`, key: 'the key' }
  const times = { not_before: t0, not_after: t0 + 90 * day, due_at: t0 + 60 * day }
  return inNewEpoch(store, (db) => recordCertificate(db, keyring, { ...issued, ...times }))
}

describeStores('inlet certificates', (test) => {
  test('list shows the end and the next order of each, and why the last one failed', async ({ store }) => {
    expect((await certificates(store.url, 'list')).out).toBe('Control has issued no certificates.\n')
    await issue(store, 'acme https://acme.test')
    await recordOrderFailure(store.db, { name, due_at: t0 + 61 * day, error: 'the zone is gone' })
    const { out } = await certificates(store.url, 'list')
    for (const text of [name, iso(t0 + 90 * day), `${iso(t0 + 61 * day)}, after 1 failed`, 'the zone is gone'])
      expect(out).toContain(text)
    expect(out).not.toContain('the key')
  })

  test('renew makes one due now', async ({ store }) => {
    await issue(store, 'acme https://acme.test')
    expect((await certificates(store.url, 'renew', name)).code).toBe(0)
    expect(await listCertificates(store.db)).toMatchObject([{ name, due_at: 0 }])
    const missing = await certificates(store.url, 'renew', '*.iad.ingest.test')
    expect(missing).toMatchObject({ code: 1, err: expect.stringContaining('there is no certificate *.iad.ingest.test') })
  })

  test('root prints the root of a development CA, and says where that of another issuer is', async ({ store }) => {
    expect((await certificates(store.url, 'root')).err).toContain('start control with INLET_CERTIFICATES=development')
    await issue(store, 'acme https://acme.test')
    const { code, out, err } = await certificates(store.url, 'root')
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/come from the ACME server https:\/\/acme.test, .* get the root from there, .*INLET_CONTROL_CA_FILE/)
    await issue(store, 'development CN=Inlet development CA 1')
    expect((await certificates(store.url, 'root')).out).toBe('-----BEGIN CERTIFICATE-----\nroot\n-----END CERTIFICATE-----\n')
  })
})
