import { expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { applyChange } from '#store/epoch.ts'
import { transact } from '#store/store.ts'
import {
  archiveView,
  findView,
  getView,
  getViewDetail,
  insertVersion,
  insertView,
  listViews,
  publishView,
  removeDraft,
  updateDraft,
  type ViewFilter,
} from '#store/views.ts'
import { describeDatabases, newStore, type TestStore } from '../support/databases.ts'
import { anAccount, aPublishedView, aStoredEndpoint, attach, aView, iso, t0 } from './fixtures.ts'

const code = (name: string) => expect.objectContaining({ code: name })
const validationError = (message: string) => expect.objectContaining({ code: 'validation_error', message })

const aDraft = (store: TestStore, account: string, change: Parameters<typeof aView>[0] = {}, now = t0) =>
  transact(store, (db) => insertView(db, account, aView(change), now))
const aVersion = (store: TestStore, account: string, id: string, from?: number, description?: string) =>
  transact(store, (db) => insertVersion(db, account, id, { id: newId(), created_by: 'me', description }, from, t0))

describeDatabases('views', (kind) => {
  test('start as a draft of version 1', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const input = aView({ tags: ['b', 'a', 'b'], description: 'all events', format: 'yaml' })
    const made = await transact(store, (db) => insertView(db, account, input, t0))
    expect(made).toEqual({ ...input, version: 1, status: 'draft', created_at: iso(t0), published_at: null })
    expect(await getView(store.db, account, input.id)).toEqual(made)
  })

  test('store a definition unchanged', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const definition = { columns: [{ name: 'a', type: 'VARCHAR', path: '$."\0 \u2028 漢"', required: false }] }
    const { id } = await aDraft(store, account, { definition })
    expect((await getView(store.db, account, id)).definition).toEqual(definition)
  })

  test('a name is one lineage in an account', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const { name, id } = await aDraft(store, account)
    await aDraft(store, await anAccount(store), { name })
    await expect(aDraft(store, account, { name })).rejects.toThrow(code('validation_error'))
    // Even after its first version was deleted.
    await aVersion(store, account, id)
    await removeDraft(store.db, account, id)
    await expect(aDraft(store, account, { name })).rejects.toThrow(code('validation_error'))
  })

  test('a page of large definitions is short, and the next one goes on after it', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
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

  test('a new version copies the latest or the given one, and gets the next number', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const first = await aDraft(store, account, { description: 'first', tags: ['x'], format: 'yaml' })
    const second = await aVersion(store, account, first.id, undefined, 'second')
    expect(second).toMatchObject({ name: first.name, version: 2, status: 'draft', description: 'second', created_by: 'me' })
    expect(second).toMatchObject({ definition: first.definition, tags: ['x'], format: 'yaml', published_at: null })
    expect(second.id).not.toBe(first.id)
    const definition = { columns: [{ name: 'n', type: 'DOUBLE', path: '$.n' }] }
    await transact(store, (db) => updateDraft(db, account, second.id, { definition }))
    expect(await aVersion(store, account, first.id)).toMatchObject({ version: 3, definition, description: 'second' })
    expect(await aVersion(store, account, second.id, 1)).toMatchObject({ version: 4, definition: first.definition })
    await expect(aVersion(store, account, first.id, 9)).rejects.toThrow(
      expect.objectContaining({ code: 'validation_error', errors: [expect.objectContaining({ path: 'copy_from_version' })] }),
    )
    await expect(aVersion(store, account, newId())).rejects.toThrow(code('not_found'))
  })

  test('a draft changes only the given fields', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const made = await aDraft(store, account, { description: 'old', tags: ['a', 'b'] })
    const change = { description: 'new', tags: ['b', 'c'] }
    const changed = await transact(store, (db) => updateDraft(db, account, made.id, change))
    expect(changed).toEqual({ ...made, ...change })
    expect(await transact(store, (db) => updateDraft(db, account, made.id, {}))).toEqual(changed)
    const page = { limit: 10, offset: 0 }
    expect((await listViews(store.db, account, { tags: ['a'] }, page)).total).toBe(0)
    expect((await listViews(store.db, account, { tags: ['c'] }, page)).total).toBe(1)
  })

  test('the only transitions are draft → published → archived', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const { id } = await aDraft(store, account)
    const change = () => transact(store, (db) => updateDraft(db, account, id, { description: 'x' }))
    const archive = () => applyChange(store, (db) => archiveView(db, account, id, t0 + 3))
    await expect(archive()).rejects.toThrow(validationError('only a published view can be archived; this version is draft'))
    expect(await publishView(store.db, account, id, t0 + 2)).toMatchObject({ status: 'published', published_at: iso(t0 + 2) })
    await expect(publishView(store.db, account, id, t0)).rejects.toThrow(
      validationError('only a draft can be published; this version is published'),
    )
    await expect(change()).rejects.toThrow(code('validation_error'))
    await expect(removeDraft(store.db, account, id)).rejects.toThrow(code('validation_error'))
    expect(await archive()).toMatchObject({ status: 'archived', published_at: iso(t0 + 2) })
    await expect(archive()).rejects.toThrow(validationError('only a published view can be archived; this version is archived'))
    await expect(publishView(store.db, account, id, t0)).rejects.toThrow(code('validation_error'))
    await expect(change()).rejects.toThrow(code('validation_error'))
    await expect(removeDraft(store.db, account, id)).rejects.toThrow(code('validation_error'))
  })

  test('a removed draft is not found', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const { id } = await aDraft(store, account, { tags: ['x'] })
    await removeDraft(store.db, account, id)
    expect(await findView(store.db, account, id)).toBeUndefined()
    await expect(removeDraft(store.db, account, id)).rejects.toThrow(code('not_found'))
  })

  test('of another account are not found', async () => {
    await using store = await newStore(kind)
    const [account, other] = [await anAccount(store), await anAccount(store)]
    const { id } = await aDraft(store, account)
    await expect(getView(store.db, other, id)).rejects.toThrow(code('not_found'))
    await expect(getViewDetail(store.db, other, id)).rejects.toThrow(code('not_found'))
    await expect(publishView(store.db, other, id, t0)).rejects.toThrow(code('not_found'))
    await expect(removeDraft(store.db, other, id)).rejects.toThrow(code('not_found'))
    await expect(aVersion(store, other, id)).rejects.toThrow(code('not_found'))
    await expect(transact(store, (db) => updateDraft(db, other, id, {}))).rejects.toThrow(code('not_found'))
    await expect(applyChange(store, (db) => archiveView(db, other, id, t0))).rejects.toThrow(code('not_found'))
    expect(await getView(store.db, account, id)).toMatchObject({ status: 'draft' })
  })

  test('archiving detaches from all endpoints', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const [view, other] = [await aPublishedView(store, account), await aPublishedView(store, account)]
    for (const { id } of [await aStoredEndpoint(store, account), await aStoredEndpoint(store, account)]) {
      await attach(store, account, id, view.id)
      await attach(store, account, id, other.id)
    }
    await applyChange(store, (db) => archiveView(db, account, view.id, t0 + 1))
    expect((await getViewDetail(store.db, account, view.id)).endpoints).toEqual([])
    expect((await getViewDetail(store.db, account, other.id)).endpoints).toHaveLength(2)
  })

  test('the detail lists the lineage, latest first, and the endpoints of this version', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const first = await aPublishedView(store, account)
    const second = await aVersion(store, account, first.id)
    const endpoint = await aStoredEndpoint(store, account)
    const binding = await attach(store, account, endpoint.id, first.id, t0 + 5)
    expect(await getViewDetail(store.db, account, first.id)).toEqual({
      ...first,
      versions: [
        { id: second.id, version: 2, status: 'draft', published_at: null, created_by: 'me' },
        { id: first.id, version: 1, status: 'published', published_at: iso(t0), created_by: 'ci' },
      ],
      endpoints: [
        {
          ...{
            id: endpoint.id,
            endpoint_name: endpoint.label,
            region: 'loc',
            binding_id: binding.id,
            is_required: false,
          },
          ...{ activated_at: iso(t0 + 5), canary_start_ts: null },
        },
      ],
    })
    expect((await getViewDetail(store.db, account, second.id)).endpoints).toEqual([])
  })

  test('a list filters by status, name and every tag, and counts the usage', async () => {
    await using store = await newStore(kind)
    const account = await anAccount(store)
    const used = await aPublishedView(store, account, { tags: ['web', 'eu'] })
    const drafted = await aDraft(store, account, { tags: ['web', '100%', "o'clock", 'WEB'] }, t0 + 1)
    await aDraft(store, await anAccount(store), { tags: ['web'] })
    await attach(store, account, (await aStoredEndpoint(store, account)).id, used.id)
    const ids = async (filter: ViewFilter) => {
      const { items, total } = await listViews(store.db, account, filter, { limit: 10, offset: 0 })
      expect(total).toBe(items.length)
      return items.map(({ id }) => id)
    }
    expect(await ids({})).toEqual([drafted.id, used.id])
    expect(await ids({ status: 'published' })).toEqual([used.id])
    expect(await ids({ status: 'archived' })).toEqual([])
    expect(await ids({ name: drafted.name })).toEqual([drafted.id])
    expect(await ids({ name: drafted.name.slice(0, -1) })).toEqual([])
    expect(await ids({ tags: ['web'] })).toEqual([drafted.id, used.id])
    expect(await ids({ tags: ['web', 'eu', 'web'] })).toEqual([used.id])
    expect(await ids({ tags: ['WEB'] })).toEqual([drafted.id])
    expect(await ids({ tags: ['100%', "o'clock"] })).toEqual([drafted.id])
    expect(await ids({ tags: ['100_'] })).toEqual([])
    const { items, next_offset } = await listViews(store.db, account, {}, { limit: 1, offset: 1 })
    expect(items).toEqual([{ ...used, usage_count: 1 }])
    expect(next_offset).toBeNull()
    await expect(ids({ name: 'a\0b' })).rejects.toThrow(code('validation_error'))
  })
})
