import { expect } from 'vitest'
import { AuditTrail } from '#control/resources/audit-trail.ts'
import { createLogger } from '#lib/telemetry.ts'
import { lowestUuidAt } from '#lib/uuid.ts'
import { newId } from '#model/id.ts'
import { eventOutsideApi, insertAuditEvent, listAuditEvents, removeAuditEventsBeyond } from '#store/accounts/audit-events.ts'
import { type Db, skipCompanion, transact, withCompanion } from '#store/store.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { anAccount, describeStores, iso, t0 } from './fixtures.ts'

const keptMs = 365 * 86_400_000

const anEvent = (account_id: string | null, at: number) =>
  eventOutsideApi({ actor: 'cli', operation: 'createKey', account_id, resource_id: newId() }, at)
const timesOf = async (db: Db, account_id?: string) =>
  (await listAuditEvents(db, account_id, { limit: 200 })).items.map(({ at }) => at)

describeStores('audit events', (test) => {
  test('are committed with the transactions of their call, once, or not at all', async ({ store }) => {
    const event = anEvent(null, t0)
    const change = () => transact(store, async () => undefined)
    const failing = () => transact(store, async () => Promise.reject(new Error('a failed change')))
    const companion = { write: (db: Db) => insertAuditEvent(db, event), isSkipped: false }
    await expect(withCompanion(companion, failing)).rejects.toThrow('a failed change')
    expect(await timesOf(store.db)).toEqual([])
    const unchanged = { ...companion, isSkipped: false }
    await withCompanion(unchanged, () => transact(store, async () => skipCompanion()))
    expect([await timesOf(store.db), unchanged.isSkipped]).toEqual([[], true])
    await withCompanion(companion, async () => {
      await change()
      await change()
    })
    expect(await timesOf(store.db)).toEqual([iso(t0)])
    const broken = { write: () => Promise.reject(new Error('not recorded')), isSkipped: false }
    const insert = () => transact(store, (db) => insertAuditEvent(db, anEvent(null, t0 + 1)))
    await expect(withCompanion(broken, insert)).rejects.toThrow('not recorded')
    await change()
    expect(await timesOf(store.db)).toEqual([iso(t0)])
  })

  test('ids that sort by time make pages and bounds', async ({ store, account }) => {
    for (const at of [3, 1, 2]) await insertAuditEvent(store.db, anEvent(account, t0 + at))
    await insertAuditEvent(store.db, anEvent(await anAccount(store), t0 + 4))
    expect(await timesOf(store.db, account)).toEqual([3, 2, 1].map((at) => iso(t0 + at)))
    const since = await listAuditEvents(store.db, account, { limit: 10, since: iso(t0 + 2) })
    expect(since.items.map(({ at }) => at)).toEqual([iso(t0 + 3), iso(t0 + 2)])
    const before = await listAuditEvents(store.db, account, { limit: 10, before: lowestUuidAt(t0 + 3) })
    expect(before.items).toHaveLength(2)
  })

  test('too many of one result go, oldest first, a batch at a time', async ({ store, account }) => {
    for (let at = 0; at < 10; at += 1) {
      await insertAuditEvent(store.db, anEvent(account, t0 + at))
      await insertAuditEvent(store.db, { ...anEvent(account, t0 + 100 + at), result: 'failed', error: 'conflict' })
    }
    const remove = () => removeAuditEventsBeyond(store.db, account, { result: 'succeeded', max: 3, limit: 5 })
    expect([await remove(), await remove(), await remove()]).toEqual([5, 2, 0])
    const { items } = await listAuditEvents(store.db, account, { limit: 200 })
    expect(items.filter(({ result }) => result === 'succeeded').map(({ at }) => at)).toEqual([9, 8, 7].map((at) => iso(t0 + at)))
    expect(items).toHaveLength(13)
  })

  test('a call that failed because the database was away is not recorded; any other is', async ({ store }) => {
    const trail = new AuditTrail({ store, keptMs, clock: new ManualClock(t0), logger: createLogger('control', 'silent') })
    const attempt = {
      actor: 'operator',
      account_id: null,
      resource_id: null,
      address: null,
      operation: 'x',
      request_id: 'r',
    } as const
    for (const error of ['unavailable', 'conflict']) await trail.finish(trail.begin(attempt, undefined), { status: 500, error })
    const { items } = await listAuditEvents(store.db, undefined, { limit: 10 })
    expect(items.map(({ error }) => error)).toEqual(['conflict'])
  })

  test('old ones go, of every account and of none', async ({ store, account }) => {
    for (const owner of [account, null]) for (const at of [0, 1, 2]) await insertAuditEvent(store.db, anEvent(owner, t0 + at))
    const trail = new AuditTrail({
      store,
      keptMs,
      clock: new ManualClock(t0 + 1 + keptMs),
      logger: createLogger('control', 'silent'),
    })
    await trail.prune()
    expect((await timesOf(store.db)).toSorted()).toEqual([1, 1, 2, 2].map((at) => iso(t0 + at)))
  })
})
