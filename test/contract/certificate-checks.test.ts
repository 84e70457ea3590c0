import { expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import type { Register } from '#model/node-protocol.ts'
import { checkCertificates } from '#naming/checks/certificate-checks.ts'
import { checkLimits } from '#naming/checks/limits.ts'
import { listCertificateChecks } from '#store/naming/certificate-checks.ts'
import { recordHeartbeat, registerNode } from '#store/nodes/nodes.ts'
import { type Store, transact } from '#store/store.ts'
import { describeDatabases, newStore } from '../support/databases.ts'

const now = Date.parse('2026-11-22T08:00:00.000Z')

async function register(store: Store, node_id: string, more: Partial<Register>, at = now): Promise<void> {
  const node = { region: 'loc', ipv4: ['127.0.0.1'], ipv6: [], ingest_address: 'node:443', tls_ports: [1], ...more }
  await registerNode(store.db, { node_id, ...node }, at)
  const beat = {
    process: 'ingest' as const,
    node_id,
    applied_epoch: 1,
    healthy: true,
    reasons: [],
    disk_full: false,
    blocked: [],
  }
  await transact(store, (db) => recordHeartbeat(db, beat, at))
}

async function check(store: Store, at = now): Promise<void> {
  const clock = { now: () => at } as Parameters<typeof checkCertificates>[0]['clock']
  await checkCertificates({ store, baseDomain: null, clock }, new AbortController().signal)
}

const seenAt = async (store: Store, ...ids: string[]) =>
  (await listCertificateChecks(store.db, ids)).map(({ address, port }) => `${address}:${port}`)

describeDatabases('the check of certificates', (kind) => {
  test('looks once at an address that a node names twice', async () => {
    await using store = await newStore(kind)
    const [twice, other] = [newId(), newId()]
    await register(store, twice, { ipv4: ['127.0.0.1', '127.0.0.1'], tls_ports: [1, 1] })
    await register(store, other, {})
    await check(store)
    expect(await seenAt(store, twice)).toEqual(['127.0.0.1:1'])
    expect(await seenAt(store, other)).toEqual(['127.0.0.1:1'])
  })

  test('forgets addresses that a node does not have any more', async () => {
    await using store = await newStore(kind)
    const id = newId()
    await register(store, id, { tls_ports: [1, 2] })
    await check(store)
    expect((await seenAt(store, id)).toSorted()).toEqual(['127.0.0.1:1', '127.0.0.1:2'])
    await register(store, id, { ipv4: ['127.0.0.2'], tls_ports: [2] })
    await check(store)
    expect(await seenAt(store, id)).toEqual(['127.0.0.2:2'])
  })

  test('has time for every node, however many addresses one of them names', async () => {
    await using store = await newStore(kind)
    const [greedy, other] = [newId(), newId()]
    const many = Array.from({ length: 500 }, (_, index) => `127.1.${Math.floor(index / 250)}.${1 + (index % 250)}`)
    await register(store, greedy, { ipv4: many, tls_ports: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] })
    await register(store, other, {})
    for (let round = 0; round < 2; round += 1) await check(store, now + round)
    expect(await seenAt(store, other)).toEqual(['127.0.0.1:1'])
    expect(await seenAt(store, greedy)).toHaveLength(checkLimits.nodeAddressesMax)
  })
})
