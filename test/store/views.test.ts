import { expect } from 'vitest'
import { newId } from '#model/id.ts'
import { getView, insertVersion, insertView, listViews } from '#store/endpoints/views.ts'
import { transact } from '#store/store.ts'
import type { TestStore } from '../support/databases.ts'
import { aView, describeStores, t0 } from './fixtures.ts'

const aDraft = (store: TestStore, account: string, change: Parameters<typeof aView>[0]) =>
  transact(store, (db) => insertView(db, account, aView(change), t0))
const aVersion = (store: TestStore, account: string, id: string) =>
  transact(store, (db) => insertVersion(db, account, id, { id: newId(), created_by: 'me' }, undefined, t0))

describeStores('views', (test) => {
  test('store a definition unchanged', async ({ store, account }) => {
    const definition = { columns: [{ name: 'a', type: 'VARCHAR', path: '$."\0 \u2028 漢"', required: false }] }
    const { id } = await aDraft(store, account, { definition })
    expect((await getView(store.db, account, id)).definition).toEqual(definition)
  })

  test('a page of large definitions is short, and the next one goes on after it', async ({ store, account }) => {
    const columns = Array.from({ length: 100 }, (_, index) => ({
      name: `c${index}`,
      type: 'DATE',
      path: `$.${'x'.repeat(8_000)}`,
    }))
    const { id } = await aDraft(store, account, { definition: { columns } })
    for (let version = 2; version <= 5; version += 1) await aVersion(store, account, id)
    const pages = []
    for (let offset: number | null = 0; offset !== null; ) {
      const page = await listViews(store.db, account, {}, { limit: 200, offset })
      pages.push(page.items.map(({ version }) => version))
      expect(page.total).toBe(5)
      offset = page.next_offset
    }
    expect(pages.map(({ length }) => length)).toEqual([2, 2, 1])
    expect(pages.flat().toSorted()).toEqual([1, 2, 3, 4, 5])
  })
})
