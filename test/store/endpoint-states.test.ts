import { expect } from 'vitest'
import { EndpointStates } from '#control/status/endpoint-states.ts'
import { noteProvisioned } from '#control/upkeep/new-endpoints.ts'
import { newId } from '#model/id.ts'
import { getEndpoint, type StoredEndpoint } from '#store/endpoints/endpoints.ts'
import { recordDnsChecks } from '#store/naming/dns-checks.ts'
import { claimNodeId } from '#store/nodes/node-credentials.ts'
import { recordHeartbeat, registerNode } from '#store/nodes/nodes.ts'
import { type Store, transact } from '#store/store.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { anAccount, aStoredEndpoint, describeStores } from './fixtures.ts'

const baseDomain = 'inlet.test'

/** A node that serves every endpoint of its region. */
async function aServingNode(store: Store, now: number): Promise<void> {
  const node_id = newId()
  await registerNode(store.db, { node_id, region: 'loc', ipv4: ['192.0.2.1'], ipv6: [], ingest_address: 'node:443' }, now)
  // Only a node with a credential counts as serving.
  await transact(store, (db) => claimNodeId(db, node_id, { hash: node_id, previousHash: null, joinTokenId: null }))
  const well = { node_id, applied_epoch: 9, healthy: true, reasons: [] }
  await transact(store, (db) => recordHeartbeat(db, { process: 'ingest', ...well, disk_full: false, blocked: [] }, now))
  await transact(store, (db) => recordHeartbeat(db, { process: 'delivery', ...well, lag: [] }, now))
}

describeStores('an endpoint whose record is removed', (test) => {
  test('is deploying if nobody saw it served, and degraded at once if a reader or the leader did', async ({ store }) => {
    const clock = new ManualClock()
    const account = await anAccount(store)
    await aServingNode(store, clock.now())
    const hosts = { baseDomain, ingestAddressDefault: 'node:443' }
    const outages = { recent: [{ fromMs: clock.now(), toMs: clock.now() }] }
    const endpointStates = new EndpointStates({
      store,
      clock,
      hosts,
      baseUrl: 'http://127.0.0.1:8080',
      dnsKeeper: 'operator',
      outages,
    })
    const see = (endpoints: readonly StoredEndpoint[], ...A: string[]) =>
      recordDnsChecks(
        store.db,
        endpoints.map(({ id, label }) => ({
          endpoint_id: id,
          name: `${label}.loc.${baseDomain}`,
          answers: [{ server: '198.51.100.1', A, AAAA: [], error: null }],
        })),
        clock.now(),
      )
    const told = async ({ id }: StoredEndpoint) => {
      const states = await endpointStates.computeStates([await getEndpoint(store.db, account, id)])
      return states.get(id)?.status
    }
    const unseen = await aStoredEndpoint(store, account, { region: 'loc' })
    await see([unseen])
    expect(await told(unseen)).toBe('deploying')

    const read = await aStoredEndpoint(store, account, { region: 'loc' })
    await see([read], '192.0.2.1')
    // Without a destination it is not active.
    expect(await told(read)).toBe('degraded')
    await see([read])
    expect(await told(read)).toBe('degraded')

    const led = await aStoredEndpoint(store, account, { region: 'loc' })
    await see([led], '192.0.2.1')
    await noteProvisioned({ store, endpointStates })
    await see([led])
    expect(await told(led)).toBe('degraded')
    expect(await told(unseen)).toBe('deploying')
  })
})
