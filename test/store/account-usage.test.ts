import { expect } from 'vitest'
import { newId } from '#model/id.ts'
import type { AccountUsage } from '#model/node-protocol.ts'
import { dayOf } from '#model/quota.ts'
import { listLargestUse, recordUsage, removeUsageBefore, sumUsage } from '#store/accounts/account-usage.ts'
import { readQuotaUse } from '#store/accounts/quotas.ts'
import { storeLimits } from '#store/limits.ts'
import { recordSnapshotsSent, registerNode } from '#store/nodes/nodes.ts'
import { readConsistently, transact } from '#store/store.ts'
import type { TestStore } from '../support/databases.ts'
import { anAccount, aStoredEndpoint, describeStores, t0 } from './fixtures.ts'

const dayMs = 86_400_000

async function aNode(store: TestStore, region: string): Promise<string> {
  const node_id = newId()
  await registerNode(store.db, { node_id, region, ipv4: [], ipv6: [], ingest_address: 'node:1' }, t0)
  await transact(store, (db) => recordSnapshotsSent(db, store.dialect, [{ node_id, region, epoch: 1 }]))
  return node_id
}

/** An account with an endpoint in a region, whose use nodes report. */
async function setUp(store: TestStore) {
  const account_id = await anAccount(store)
  const { region } = await aStoredEndpoint(store, account_id)
  const usage = (change: Partial<AccountUsage> = {}): AccountUsage => ({
    ...{ account_id, day: dayOf(t0), bytes: 100, records: 10, records_per_second: 5, ...change },
  })
  const report = (node_id: string, run: string, accounts: readonly AccountUsage[], now = t0) =>
    transact(store, (db) => recordUsage(db, { node_id, run, accounts: [...accounts] }, now))
  const used = async (now = t0) => {
    const { quotas } = await readConsistently(store, (db) => readQuotaUse(db, account_id, now))
    return [quotas.bytes_per_day.used, quotas.records_per_second.used]
  }
  return { account_id, region, usage, report, used }
}

describeStores('the use of accounts', (test) => {
  test('is the sum of all nodes; a report that arrives twice or late changes nothing', async ({ store }) => {
    const { account_id, region, usage, report, used } = await setUp(store)
    const [one, two] = [await aNode(store, region), await aNode(store, region)]
    const later = usage({ bytes: 9_000_000_000_000, records: 11, records_per_second: 7 })
    await report(one, 'a', [usage()])
    for (const accounts of [[later], [later], [usage()]]) await report(one, 'a', accounts)
    await report(two, 'b', [usage({ bytes: 1 }), usage({ bytes: 1 })])
    expect(await used()).toEqual([9_000_000_000_001, 12])
    expect(await sumUsage(store.db, [usage(), usage({ day: dayOf(t0 - dayMs) })])).toEqual([
      { account_id, day: dayOf(t0), bytes: 9_000_000_000_001 },
    ])
  })

  test('counts each start of a node, and each day for itself', async ({ store }) => {
    const { region, usage, report, used } = await setUp(store)
    const node = await aNode(store, region)
    await report(node, 'first', [usage({ bytes: 100 }), usage({ day: dayOf(t0 - dayMs), bytes: 7 })])
    await report(node, 'second', [usage({ bytes: 20 })])
    expect((await used())[0]).toBe(120)
    expect((await used(t0 - dayMs))[0]).toBe(7)
    expect(await used(t0 + dayMs)).toEqual([0, 0])
  })

  test('counts all starts of a node, but keeps rows for the newest only', async ({ store }) => {
    const { region, usage, report, used } = await setUp(store)
    const [node, other] = [await aNode(store, region), await aNode(store, region)]
    await report(other, 'run 0', [usage({ bytes: 1_000 })])
    for (let start = 0; start < 40; start++)
      for (const bytes of [1, 2]) await report(node, `run ${start}`, [usage({ bytes, records: bytes })], t0 + start)
    // Reported twice, and late.
    for (const start of [39, 35]) await report(node, `run ${start}`, [usage({ bytes: 1, records: 1 })], t0 + 100)
    expect((await used())[0]).toBe(1_000 + 40 * 2)
    const rows = await store.db.selectFrom('account_usage').select('run').where('node_id', '=', node).execute()
    expect(rows).toHaveLength(storeLimits.usageRunsMax)
    for (const start of ['x', 'y', 'z']) await report(node, start, [usage({ bytes: Number.MAX_SAFE_INTEGER })], t0 + 200)
  })

  test('the rate of an account that sends no more is over', async ({ store }) => {
    const { region, usage, report, used } = await setUp(store)
    await report(await aNode(store, region), 'a', [usage()])
    expect(await used(t0 + 10_000)).toEqual([100, 5])
    expect(await used(t0 + 10_001)).toEqual([100, 0])
  })

  test('lists the accounts that sent most first', async ({ store }) => {
    const [one, two] = [await setUp(store), await setUp(store)]
    const node = await aNode(store, one.region)
    await one.report(node, 'a', [one.usage({ bytes: 5 })])
    await one.report(node, 'b', [one.usage({ bytes: 6 })])
    await two.report(node, 'a', [two.usage({ bytes: 100 })], t0 - 60_000)
    const most = { account_id: two.account_id, bytes: 100, records_per_second: 0 }
    expect(await listLargestUse(store.db, t0, 20)).toEqual([
      most,
      { account_id: one.account_id, bytes: 11, records_per_second: 10 },
    ])
    expect(await listLargestUse(store.db, t0, 1)).toEqual([most])
  })

  test('a node cannot report accounts that it does not serve, or days far away', async ({ store }) => {
    const { region, usage, report, used } = await setUp(store)
    await report(await aNode(store, 'xyz'), 'a', [usage()])
    expect(await used()).toEqual([0, 0])
    const node = await aNode(store, region)
    const far = [usage({ day: dayOf(t0 + 2 * dayMs) }), usage({ day: dayOf(t0 - 2 * dayMs) }), usage({ account_id: newId() })]
    await report(node, 'a', [...far, usage({ bytes: 3 })])
    expect((await used())[0]).toBe(3)
    expect(await store.db.selectFrom('account_usage').select('bytes').execute()).toEqual([{ bytes: 3 }])
  })

  test('is removed when its day and the next one are over', async ({ store }) => {
    const { region, usage, report, used } = await setUp(store)
    await report(await aNode(store, region), 'a', [usage()])
    await removeUsageBefore(store.db, t0 + dayMs)
    expect((await used())[0]).toBe(100)
    await removeUsageBefore(store.db, t0 + 2 * dayMs)
    expect((await used())[0]).toBe(0)
  })
})
