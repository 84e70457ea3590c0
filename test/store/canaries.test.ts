/** Canaries stop by their rule, never alone, and with a reason that stays. */
import { expect } from 'vitest'
import { stopBrokenCanaries } from '#control/upkeep/canaries.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { CanaryRule } from '#model/canary-rule.ts'
import { newId } from '#model/id.ts'
import { listAuditEvents } from '#store/accounts/audit-events.ts'
import { inNewEpoch } from '#store/cluster/epoch.ts'
import { recordCommit } from '#store/commits/commits.ts'
import { detachBinding, insertBinding, listBindings } from '#store/endpoints/bindings.ts'
import { insertVersion, publishView } from '#store/endpoints/views.ts'
import { transact } from '#store/store.ts'
import type { TestStore } from '../support/databases.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { aCommit, anAccount, anOutcome, aPublishedView, aStoredEndpoint, attach, describeStores, iso, t0 } from './fixtures.ts'

const minuteMs = 60_000
const start = t0 + 10 * minuteMs
const never = new AbortController().signal

/** Version 1 of a view, and version 2 as a canary beside it. */
async function setUp(store: TestStore, canary_rule?: CanaryRule | null) {
  const account = await anAccount(store)
  const endpoint = await aStoredEndpoint(store, account)
  const first = await aPublishedView(store, account)
  const second = await transact(store, async (db) => {
    const { id } = await insertVersion(db, account, first.id, { id: newId(), created_by: 'ci' }, undefined, t0)
    return publishView(db, account, id, t0)
  })
  const old = await attach(store, account, endpoint.id, first.id)
  const binding = { id: newId(), endpoint_id: endpoint.id, view_id: second.id, is_required: false, activated_by: 'ci' }
  const canary = await inNewEpoch(store, (db) =>
    insertBinding(db, account, { ...binding, canary_start_ts: iso(start), canary_rule }, t0),
  )
  const lines: unknown[] = []
  const log = (fields: object, message: string) => lines.push({ message, ...fields })
  const logger = { info: log, warn: log } as unknown as Logger
  let seq = 0
  type Figures = { readonly records: number; readonly dlq?: number; readonly failed?: number; readonly nulls?: number }
  const count = (view_id: string, at: number, { records, dlq = 0, failed = 0, nulls = 0 }: Figures) => {
    seq += 1
    const accepted = records - dlq - failed
    const column = { name: 'type', type: 'VARCHAR', values: accepted - nulls, nulls }
    const quality = {
      columns: [{ ...column, cast_nulls: 0, cast_dlq: 0, missing: 0, min: null, max: null }],
      ...{ sampled_records: 0, unmapped: [] },
    }
    const outcome = anOutcome(view_id, {
      processed: records,
      accepted,
      dropped: 0,
      dlq,
      failed,
      errors: {},
      last_error: null,
      quality,
    })
    return transact(store, (db) => recordCommit(db, aCommit(endpoint.id, seq, { views: [outcome] }), at))
  }
  const check = (now: number) => {
    const applyChange = <T>(work: Parameters<typeof inNewEpoch<T>>[1]) => inNewEpoch(store, work)
    return stopBrokenCanaries({ store, applyChange, clock: new ManualClock(now), logger }, never)
  }
  const state = async () => {
    const bindings = await listBindings(store.db, account, endpoint.id)
    return bindings.find(({ id }) => id === canary.id)
  }
  return { account, endpoint, first, second, old, canary, count, check, state, lines }
}

describeStores('canaries', (test) => {
  test('one with more dead letters is stopped, once, with its reason everywhere', async ({ store }) => {
    const { account, canary, first, second, count, check, state, lines } = await setUp(store)
    expect(canary.canary_rule).toEqual({
      min_records: 1_000,
      dead_letters_pct: 1,
      failed_pct: 1,
      nulls_pct: 5,
      window_minutes: 60,
    })
    await count(first.id, start + minuteMs, { records: 2_000, dlq: 20 })
    await count(second.id, start + minuteMs, { records: 999, dlq: 50 })
    await check(start + 2 * minuteMs)
    expect(await state()).toMatchObject({ status: 'active', stopped_reason: null })
    await count(second.id, start + 3 * minuteMs, { records: 1_001, dlq: 50 })
    const at = start + 4 * minuteMs
    await check(at)
    const stopped_reason =
      '5 % of its records became dead letters, and 1 % with version 1: the rule of the canary allows 1 percentage point more'
    expect(await state()).toMatchObject({ status: 'detached', deactivated_at: iso(at), stopped_reason })
    await check(at + minuteMs)
    expect(lines).toEqual([expect.objectContaining({ message: 'canary stopped', binding_id: canary.id, reason: stopped_reason })])
    const { items } = await listAuditEvents(store.db, account, { limit: 10 })
    expect(items).toMatchObject([{ actor: 'inlet', operation: 'stopCanary', resource_id: canary.id, result: 'succeeded' }])
  })

  test('failures and NULLs stop it too', async ({ store }) => {
    for (const worse of [{ failed: 500 }, { nulls: 500 }]) {
      const { first, second, count, check, state } = await setUp(store)
      await count(first.id, start, { records: 2_000 })
      await count(second.id, start, { records: 2_000, ...worse })
      await check(start + minuteMs)
      expect(await state()).toMatchObject({ status: 'detached', stopped_reason: expect.stringContaining('25 %') })
    }
  })

  test('what came before the canary does not count', async ({ store }) => {
    const { first, second, count, check, state } = await setUp(store)
    await count(first.id, start - 6 * minuteMs, { records: 1_000_000 })
    await count(first.id, start, { records: 2_000, dlq: 1_000 })
    await count(second.id, start, { records: 2_000, dlq: 1_000 })
    await check(start - 1)
    await check(start + minuteMs)
    expect(await state()).toMatchObject({ status: 'active' })
  })

  test('one that is good for hours and then bad is stopped by its window', async ({ store }) => {
    const good = async ({ first, second, count }: Awaited<ReturnType<typeof setUp>>) => {
      for (let hour = 0; hour < 11; hour += 1)
        for (const { id } of [first, second]) await count(id, start + hour * 60 * minuteMs, { records: 1_000_000 })
    }
    const now = start + 12 * 60 * minuteMs
    const bad = { records: 2_000, dlq: 100 }
    const sliding = await setUp(store)
    await good(sliding)
    await sliding.count(sliding.first.id, now - 10 * minuteMs, { records: 2_000 })
    await sliding.count(sliding.second.id, now - 10 * minuteMs, { ...bad, records: 900 })
    await sliding.check(now)
    expect(await sliding.state(), 'too few records in the window').toMatchObject({ status: 'active' })
    await sliding.count(sliding.second.id, now - 5 * minuteMs, bad)
    await sliding.check(now + 61 * minuteMs)
    expect(await sliding.state(), 'after the window').toMatchObject({ status: 'active' })
    await sliding.check(now)
    expect(await sliding.state()).toMatchObject({
      status: 'detached',
      stopped_reason: expect.stringContaining('in the last 60 minutes, 6.9 % of its records became dead letters, and 0 %'),
    })
    const whole = await setUp(store, {
      min_records: 1_000,
      dead_letters_pct: 1,
      failed_pct: 1,
      nulls_pct: 5,
      window_minutes: null,
    })
    await good(whole)
    for (const [id, figures] of [[whole.first.id, { records: 2_000 }] as const, [whole.second.id, bad] as const])
      await whole.count(id, now - 5 * minuteMs, figures)
    await whole.check(now)
    expect(await whole.state()).toMatchObject({ status: 'active' })
  })

  test('a version that is alone goes on', async ({ store }) => {
    const { account, endpoint, old, first, second, count, check, state } = await setUp(store)
    await count(first.id, start, { records: 2_000 })
    await count(second.id, start, { records: 2_000, dlq: 1_000 })
    await inNewEpoch(store, (db) => detachBinding(db, account, endpoint.id, old.id, start))
    await check(start + minuteMs)
    expect(await state()).toMatchObject({ status: 'active', stopped_reason: null })
  })

  test('a rule can be changed, and turned off', async ({ store }) => {
    const lenient = { min_records: 10, dead_letters_pct: null, failed_pct: 1, nulls_pct: 1, window_minutes: null }
    for (const [rule, status] of [
      [null, 'active'],
      [lenient, 'active'],
      [{ ...lenient, dead_letters_pct: 0 }, 'detached'],
    ] as const) {
      const { first, second, count, check, state } = await setUp(store, rule)
      await count(first.id, start, { records: 100 })
      await count(second.id, start, { records: 100, dlq: 1 })
      await check(start + minuteMs)
      expect(await state()).toMatchObject({ status, canary_rule: rule })
    }
  })
})
