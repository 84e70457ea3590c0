import { expect } from 'vitest'
import { newId } from '#model/id.ts'
import { findCommit, insertAddition } from '#store/commits/commit-additions.ts'
import { recordCommit } from '#store/commits/commits.ts'
import { deliveredFiles, type FilesWanted, listEndpointsOfView, type TimeRange } from '#store/commits/delivered-files.ts'
import { findQueriedColumns, listQueriedEndpoints, listQueriedVersions } from '#store/commits/query-tables.ts'
import { transact } from '#store/store.ts'
import type { TestStore } from '../support/databases.ts'
import { aCommit, anAccount, anOutcome, aPublishedView, aStoredEndpoint, attach, describeStores, iso, t0 } from './fixtures.ts'

const file = (key: string, view_id: string) => ({ key, bytes: 10, rows: 1, sha256: 'ab', view_id, view_version: 1 })

async function keys(store: TestStore, endpoint: string, wanted: FilesWanted, range: TimeRange = {}, max = 1_000) {
  const found: string[] = []
  for await (const { key } of deliveredFiles(store.db, endpoint, wanted, range, max)) found.push(key)
  return found
}

describeStores('delivered files', (test) => {
  test('are of one view version or raw, newest first, on any number of pages', async ({ store, account }) => {
    const { id: endpoint } = await aStoredEndpoint(store, account)
    const view = await aPublishedView(store, account)
    const seqs = Array.from({ length: 120 }, (_, seq) => seq)
    for (const seq of seqs) {
      const raw = { key: `raw-${seq}`, bytes: 10, rows: 1, sha256: 'ab' }
      const artifacts = {
        parquet: raw,
        'views/events/v1': file(`view-${seq}`, view.id),
        'dlq/events/v1': file(`dlq-${seq}`, view.id),
        'views/other/v1': file('other', newId()),
      }
      await transact(store, (db) => recordCommit(db, aCommit(endpoint, seq, { artifacts }), t0 + seq))
    }
    const newestFirst = seqs.toReversed()
    expect(await keys(store, endpoint, 'raw')).toEqual(newestFirst.map((seq) => `raw-${seq}`))
    expect(await keys(store, endpoint, { view_id: view.id })).toEqual(newestFirst.map((seq) => `view-${seq}`))
    expect(await keys(store, endpoint, 'raw', { since: iso(t0 + 3), until: iso(t0 + 6) })).toEqual(['raw-5', 'raw-4', 'raw-3'])
    expect(await keys(store, endpoint, 'raw', {}, 50)).toHaveLength(50)
    const [all, some] = [deliveredFiles(store.db, endpoint, 'raw', {}, 1_000), deliveredFiles(store.db, endpoint, 'raw', {}, 50)]
    expect([await returned(all), await returned(some)]).toEqual([true, false])
    expect(await keys(store, newId(), 'raw')).toEqual([])
  })

  test('include what a backfill added, also without a binding', async ({ store, account }) => {
    const { id: endpoint } = await aStoredEndpoint(store, account)
    const view = await aPublishedView(store, account)
    const commit = aCommit(endpoint, 1)
    await transact(store, async (db) => {
      await recordCommit(db, commit, t0)
      const stored = await findCommit(db, commit.id)
      if (stored === undefined) throw new Error('the commit is missing')
      const artifacts = { 'views/events/v1/redrive-v2': file('added', view.id) }
      const outcome = anOutcome(view.id)
      await insertAddition(db, { commit: stored, view_id: view.id, from_view_id: null, job_id: newId(), artifacts, outcome }, t0)
    })
    expect(await keys(store, endpoint, { view_id: view.id })).toEqual(['added'])
  })

  test('endpoints of a view are those of the account that have it or had it, with commits', async ({ store }) => {
    const [account, other] = [await anAccount(store), await anAccount(store)]
    const view = await aPublishedView(store, account)
    const endpoints = [
      await aStoredEndpoint(store, account),
      await aStoredEndpoint(store, account),
      await aStoredEndpoint(store, account),
    ]
    for (const [index, { id }] of endpoints.entries()) {
      if (index < 2) await attach(store, account, id, view.id)
      await transact(store, (db) => recordCommit(db, aCommit(id, 1), t0 + index))
    }
    expect(await listEndpointsOfView(store.db, account, view.id, null, 10)).toEqual([endpoints[1]?.id, endpoints[0]?.id])
    expect(await listEndpointsOfView(store.db, account, view.id, null, 1)).toEqual([endpoints[1]?.id])
    const [, , unbound] = endpoints.map(({ id }) => id)
    expect(await listEndpointsOfView(store.db, account, view.id, [String(unbound), String(endpoints[0]?.id)], 10)).toEqual([
      endpoints[0]?.id,
    ])
    expect(await listEndpointsOfView(store.db, other, view.id, null, 10)).toEqual([])
  })

  test('tables are found only in the account', async ({ store }) => {
    const [account, other] = [await anAccount(store), await anAccount(store)]
    const view = await aPublishedView(store, account)
    const endpoint = await aStoredEndpoint(store, account, { name: 'Line 1' })
    const versions = async (of: string) => (await listQueriedVersions(store.db, of, view.name)).map(({ id }) => id)
    expect([await versions(account), await versions(other)]).toEqual([[view.id], []])
    expect(await findQueriedColumns(store.db, view.id)).toMatchObject([{ name: expect.any(String) }])
    const odd = await aStoredEndpoint(store, account, { name: 'Öfen' })
    const endpoints = async (of: string, name: string) => (await listQueriedEndpoints(store.db, of, name)).map(({ id }) => id)
    expect(await endpoints(account, 'Öfen')).toEqual([odd.id])
    for (const name of ['Line 1', 'line 1', endpoint.id.toUpperCase()]) {
      expect(await endpoints(account, name)).toEqual([endpoint.id])
      expect(await endpoints(other, name)).toEqual([])
    }
  })
})

/** Reads a generator to its end. */
async function returned<T>(generator: AsyncGenerator<unknown, T>): Promise<T> {
  for (;;) {
    const next = await generator.next()
    if (next.done === true) return next.value
  }
}
