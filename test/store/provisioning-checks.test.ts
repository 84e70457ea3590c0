import { expect } from 'vitest'
import { newId } from '#model/id.ts'
import { inNewEpoch } from '#store/cluster/epoch.ts'
import {
  drainEndpoint,
  getEndpoint,
  listLabelsByRegion,
  listUnprovisionedEndpoints,
  markProvisioned,
  removeDrainingEndpoint,
} from '#store/endpoints/endpoints.ts'
import { listCertificateChecks, recordCertificateChecks } from '#store/naming/certificate-checks.ts'
import {
  isRecorded,
  listDnsChecks,
  listEndpointsToLookUp,
  listUnservedToLookUp,
  recordDnsChecks,
} from '#store/naming/dns-checks.ts'
import { listTlsNodes, newestHeartbeat, recordHeartbeat, registerNode } from '#store/nodes/nodes.ts'
import { type Store, transact } from '#store/store.ts'
import { aStoredEndpoint, describeStores, iso, t0 } from './fixtures.ts'

async function aNode(store: Store, tls_ports?: number[]): Promise<string> {
  const node_id = newId()
  const addresses = { region: 'loc', ipv4: ['192.0.2.1'], ipv6: [], ingest_address: 'node:443' }
  await registerNode(store.db, { node_id, ...addresses, ...(tls_ports === undefined ? {} : { tls_ports }) }, t0)
  return node_id
}

const answer = { server: '198.51.100.1', A: ['192.0.2.1'], AAAA: [], error: null }

describeStores('checks of names and certificates', (test) => {
  test('what was seen of a certificate is replaced, and goes with its node', async ({ store }) => {
    await aNode(store)
    const node_id = await aNode(store, [443, 8883])
    expect(await listTlsNodes(store.db)).toMatchObject([{ id: node_id, tls_ports: [443, 8883] }])
    const seen = {
      ...{ node_id, address: '192.0.2.1', port: 443, names: 'DNS:*.loc.inlet.test' },
      ...{ not_before: iso(t0 - 1), not_after: iso(t0 + 1), error: null },
    }
    const failed = { ...seen, names: '', not_before: null, not_after: null, error: 'no response\0' }
    await recordCertificateChecks(store.db, [seen, { ...failed, port: 8883 }], t0)
    await recordCertificateChecks(store.db, [{ ...seen, port: 8883 }, failed], t0 + 1)
    const checks = await listCertificateChecks(store.db, [node_id, newId()])
    expect(checks.toSorted((a, b) => a.port - b.port)).toEqual([
      { ...failed, error: 'no response\uFFFD', checked_at: iso(t0 + 1) },
      { ...seen, port: 8883, checked_at: iso(t0 + 1) },
    ])
    await store.db.deleteFrom('nodes').where('id', '=', node_id).execute()
    expect(await listCertificateChecks(store.db, [node_id])).toEqual([])
  })

  test('names have turns by id, never served ones by look-up; deleted endpoints are forgotten', async ({ store, account }) => {
    const [old, recent, served] = [
      await aStoredEndpoint(store, account),
      await aStoredEndpoint(store, account),
      await aStoredEndpoint(store, account),
    ]
    const check = { name: 'a.loc.inlet.test', answers: [answer] }
    await recordDnsChecks(store.db, [{ endpoint_id: recent.id, ...check }], t0 + 5_000)
    await recordDnsChecks(store.db, [{ endpoint_id: old.id, ...check }], t0)
    await markProvisioned(store.db, [served.id], t0)
    const unserved = async (limit = 10) => (await listUnservedToLookUp(store.db, limit)).map(({ id }) => id)
    expect(await unserved()).toEqual([old.id, recent.id])
    const fresh = await aStoredEndpoint(store, account)
    expect(await unserved(1)).toEqual([fresh.id])
    const page = await listEndpointsToLookUp(store.db, '', 3)
    const ids = [...page, ...(await listEndpointsToLookUp(store.db, page.at(-1)?.id ?? '', 3))].map(({ id }) => id)
    expect(ids).toEqual([old, recent, served, fresh].map(({ id }) => id).toSorted())

    const [oldest] = await listUnservedToLookUp(store.db, 10).then((all) => all.filter(({ id }) => id === old.id))
    expect(oldest).toMatchObject({ label: old.label, region: 'loc', checked_at: t0 })
    expect(oldest && isRecorded(oldest, check)).toBe(true)
    expect(oldest && isRecorded(oldest, { ...check, answers: [] })).toBe(false)
    expect(await listDnsChecks(store.db, [old.id, served.id])).toEqual([{ endpoint_id: old.id, ...check, checked_at: iso(t0) }])
    await inNewEpoch(store, async (db, epoch) => {
      await drainEndpoint(db, account, old.id, { epoch, now: t0 })
      await removeDrainingEndpoint(db, old.id, t0)
    })
    expect(await unserved()).toEqual([fresh.id, recent.id])
    expect(await listDnsChecks(store.db, [old.id])).toEqual([])
  })

  test('an endpoint is provisioned once', async ({ store, account }) => {
    const { id } = await aStoredEndpoint(store, account, { label: 'abc', region: 'fra' })
    await aStoredEndpoint(store, account, { label: 'abb', region: 'fra' })
    expect(await listUnprovisionedEndpoints(store.db, 10)).toHaveLength(2)
    await markProvisioned(store.db, [id], t0)
    await markProvisioned(store.db, [id], t0 + 1)
    expect((await getEndpoint(store.db, account, id)).provisioned_at).toBe(iso(t0))
    expect((await listUnprovisionedEndpoints(store.db, 10)).map(({ label }) => label)).toEqual(['abb'])
    expect(await listLabelsByRegion(store.db)).toEqual(new Map([['fra', 'abc']]))
  })

  test('the newest heartbeat of all nodes', async ({ store }) => {
    expect(await newestHeartbeat(store.db)).toBeNull()
    for (const at of [t0 + 5, t0]) {
      const node_id = await aNode(store)
      const beat = { process: 'delivery' as const, node_id, applied_epoch: 1, healthy: true, reasons: [], lag: [] }
      await transact(store, (db) => recordHeartbeat(db, beat, at))
    }
    expect(await newestHeartbeat(store.db)).toBe(t0 + 5)
  })
})
