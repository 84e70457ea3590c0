import { describe, expect, test } from 'vitest'
import { isoTimestamp } from '#lib/clock.ts'
import { newId } from '#model/id.ts'
import { newRegion, useControl } from '../support/control.ts'
import { aLag } from '../support/lags.ts'
import { aPublishedView } from '../support/set-up.ts'
import { TestNode } from '../support/test-node.ts'
import { until } from '../support/until.ts'

const control = useControl()

const definition = { columns: [{ name: 'event', type: 'VARCHAR', path: '$.event' }] }

async function attachable() {
  const account = await control().newAccount()
  const view = await aPublishedView(account, 'events', definition)
  const { body: endpoint } = await account.post('/v1/endpoints', { region: 'loc' })
  return { account, view, endpoint, path: `/v1/endpoints/${endpoint.id}/views` }
}

describe('POST /v1/endpoints/{endpoint_id}/views', () => {
  test('201 is active, optional and without a canary by default', async () => {
    const { account, view, endpoint, path } = await attachable()
    await account.patch(`/v1/endpoints/${endpoint.id}`, { name: 'checkout' })
    expect(await account.post(path, { view_id: view.id })).toMatchObject({
      status: 201,
      body: {
        endpoint_name: 'checkout',
        ...{ endpoint_id: endpoint.id, view_id: view.id, view_name: 'events', view_version: 1, is_required: false },
        ...{ status: 'active', deactivated_at: null, canary_start_ts: null, activated_by: `key:${account.key_id}` },
      },
    })
  })

  test('201 with a canary start in any offset', async () => {
    const { account, view, path } = await attachable()
    const answer = await account.post(path, { view_id: view.id, is_required: true, canary_start_ts: '2026-11-20T09:15:30+01:00' })
    expect(answer).toMatchObject({ status: 201, body: { is_required: true, canary_start_ts: '2026-11-20T08:15:30.000Z' } })
  })

  test('201 with the rule of a canary: the default, one of its own, or none', async () => {
    const { account, view, endpoint, path } = await attachable()
    const byDefault = { min_records: 1_000, dead_letters_pct: 1, failed_pct: 1, nulls_pct: 5, window_minutes: 60 }
    const start = { canary_start_ts: '2026-11-20T08:15:30Z' }
    for (const [given, canary_rule] of [
      [{}, null],
      [start, byDefault],
      [{ ...start, canary_rule: null }, null],
      [{ canary_rule: {} }, byDefault],
      [{ canary_rule: { nulls_pct: null, min_records: 5 } }, { ...byDefault, nulls_pct: null, min_records: 5 }],
    ] as const) {
      const { status, body } = await account.post(path, { view_id: view.id, ...given })
      expect({ status, canary_rule: body.canary_rule, stopped_reason: body.stopped_reason }).toEqual({
        ...{ status: 201, canary_rule, stopped_reason: null },
      })
      const detail = (await account.get(`/v1/views/${view.id}`)).body
      expect(detail).toMatchObject({ endpoints: [{ id: endpoint.id, canary_rule }], stopped_canaries: [] })
      await account.delete(`${path}/${body.id}`)
    }
  })

  test.each([{ min_records: 0 }, { nulls_pct: 101 }, { dead_letters_pct: '1' }, { window_minutes: 4 }, { wrong: 1 }])(
    '422 for the rule %j',
    async (rule) => {
      const { account, view, path } = await attachable()
      const answer = await account.post(path, { view_id: view.id, canary_rule: rule })
      expect(answer).toMatchObject({ status: 422, body: { errors: [{ path: `canary_rule.${Object.keys(rule)[0]}` }] } })
    },
  )

  test.each(['0000-01-01T00:00:00+23:59', '9999-12-31T23:59:59-23:59'])(
    '422 for a canary start beyond what a timestamp can say: %s',
    async (start) => {
      const { account, view, path } = await attachable()
      const answer = await account.post(path, { view_id: view.id, canary_start_ts: start })
      expect(answer).toMatchObject({ status: 422, body: { errors: [{ path: 'canary_start_ts' }] } })
    },
  )

  test('201 for two versions of one view at once', async () => {
    const { account, view, path } = await attachable()
    await account.post(path, { view_id: view.id })
    const { body: next } = await account.post(`/v1/views/${view.id}/versions`)
    await account.post(`/v1/views/${next.id}/publish`)
    expect(await account.post(path, { view_id: next.id })).toMatchObject({ status: 201, body: { view_version: 2 } })
  })

  test('409 if the view is already attached; 201 after it was detached', async () => {
    const { account, view, path } = await attachable()
    const { body: binding } = await account.post(path, { view_id: view.id })
    const again = await account.post(path, { view_id: view.id })
    expect(again).toMatchObject({ status: 409, body: { error: 'view_already_attached', title: 'Conflict' } })
    await account.delete(`${path}/${binding.id}`)
    expect(await account.post(path, { view_id: view.id })).toMatchObject({ status: 201 })
  })

  test('one of ten concurrent requests succeeds', async () => {
    const { account, view, path } = await attachable()
    const all = await Promise.all(Array.from({ length: 10 }, () => account.post(path, { view_id: view.id })))
    expect(all.map(({ status }) => status).toSorted()).toEqual([201, ...Array(9).fill(409)])
  })

  test('no archived view stays attached if attaching and archiving run concurrently', async () => {
    for (let round = 0; round < 10; round += 1) {
      const { account, view, path } = await attachable()
      await Promise.all([account.post(path, { view_id: view.id }), account.post(`/v1/views/${view.id}/archive`)])
      const { body } = await account.get(path)
      expect(body.items.filter(({ status }: { status: string }) => status === 'active')).toEqual([])
    }
  })

  test('201 warns if no output format asks for views, and the status says so without being degraded', async () => {
    const { account, view } = await attachable()
    const region = newRegion()
    const { body: endpoint } = await account.post('/v1/endpoints', { region, output_formats: ['parquet'] })
    const node = await TestNode.register(control(), region)
    await node.heartbeat()
    const reasons = async () => (await account.get(`/v1/endpoints/${endpoint.id}`)).body.status_reasons
    const before = await reasons()
    const path = `/v1/endpoints/${endpoint.id}/views`
    const { body: binding } = await account.post(path, { view_id: view.id })
    const warning = expect.stringContaining('leaves out parquet_views')
    expect(binding.warnings).toEqual([warning])
    const { status } = (await account.get(`/v1/endpoints/${endpoint.id}`)).body
    expect(await reasons()).toEqual([...before, warning])
    await account.patch(`/v1/endpoints/${endpoint.id}`, { output_formats: ['parquet', 'parquet_views'] })
    expect((await account.get(`/v1/endpoints/${endpoint.id}`)).body).toMatchObject({ status, status_reasons: before })
    await account.delete(`${path}/${binding.id}`)
    expect(await account.post(path, { view_id: view.id })).toMatchObject({ status: 201, body: { warnings: [] } })
  })

  test('201 warns of facts about senders that the view reads and the endpoint does not keep', async () => {
    const account = await control().newAccount()
    const columns = [
      { name: 'sender', type: 'VARCHAR', path: '$$.key_name' },
      { name: 'network', type: 'VARCHAR', value: 'mask_ip($$.address)' },
      { name: 'event', type: 'VARCHAR', value: `$$.headers['x-test'] || $$.headers."X-Event"` },
    ]
    const view = await aPublishedView(account, 'senders', { columns })
    const attachedWith = async (kept_fields: readonly string[], kept_headers: readonly string[] = []) => {
      const { body: endpoint } = await account.post('/v1/endpoints', { region: newRegion(), kept_fields, kept_headers })
      return { endpoint, ...(await account.post(`/v1/endpoints/${endpoint.id}/views`, { view_id: view.id })) }
    }
    const named = ({ body }: { readonly body: { readonly warnings: readonly string[] } }) =>
      body.warnings.map((warning) => warning.replace(/^.*? reads (\S+), .* add (.*) with PATCH .*$/, '$1: $2'))
    const [address, name] = ['$$.address: address_masked or address to kept_fields', '$$.key_name: key_name to kept_fields']
    const headers = ['x-event', 'x-test'].map((header) => `$$.headers.${header}: ${header} to kept_headers`)
    expect(named(await attachedWith([]))).toEqual([address, ...headers, name])
    expect(named(await attachedWith(['address_masked'], ['X-Test']))).toEqual([address, headers[0], name].slice(1))
    const { endpoint, ...whole } = await attachedWith(['address', 'key_name'], ['x-test', 'x-event'])
    expect(named(whole)).toEqual([])
    const change = (body: object) => account.patch(`/v1/endpoints/${endpoint.id}`, body)
    expect(named(await change({ kept_fields: ['address_masked'], kept_headers: null }))).toEqual([...headers, name])
    expect(named(await change({ name: 'other' }))).toEqual([])
    expect((await change({ kept_fields: ['key_name'], kept_headers: ['x-event', 'x-test'] })).body.warnings).toEqual([
      'version 1 of "senders" reads $$.address, which this endpoint does not keep, so it is NULL: add address_masked or address to kept_fields with PATCH /v1/endpoints/{id}',
    ])
  })

  test('422 for a draft, an unknown view and invalid fields', async () => {
    const { account, path } = await attachable()
    const { body: draft } = await account.post('/v1/views', { name: 'draft', definition })
    for (const body of [{ view_id: draft.id }, { view_id: newId() }, { view_id: 'x' }, {}]) {
      expect(await account.post(path, body)).toMatchObject({ status: 422, body: { errors: [{ path: 'view_id' }] } })
    }
    const answer = await account.post(path, { view_id: draft.id, is_required: 'yes', canary_start_ts: 'tomorrow', extra: 1 })
    expect(answer.body.errors.map(({ path }: { path: string }) => path)).toEqual(['is_required', 'canary_start_ts', 'extra'])
  })
})

describe('GET /v1/endpoints/{endpoint_id}/views', () => {
  test('200 lists active and detached bindings, for any token', async () => {
    const { account, view, path } = await attachable()
    const { body: first } = await account.post(path, { view_id: view.id })
    await account.delete(`${path}/${first.id}`)
    const { body: second } = await account.post(path, { view_id: view.id })
    const answer = await account.as('ingest').get(path)
    expect(Object.keys(answer.body)).toEqual(['items'])
    const byId = Object.fromEntries(answer.body.items.map((item: { id: string; status: string }) => [item.id, item.status]))
    expect(byId).toEqual({ [first.id]: 'detached', [second.id]: 'active' })
  })

  test('200 with a limit or an offset is a page', async () => {
    const { account, view, path } = await attachable()
    const ids: string[] = []
    for (let index = 0; index < 3; index += 1) {
      const { body } = await account.post(path, { view_id: view.id })
      ids.push(body.id)
      await account.delete(`${path}/${body.id}`)
    }
    const first = await account.get(`${path}?limit=2`)
    expect(first).toMatchObject({ status: 200, body: { total: 3, limit: 2, offset: 0, next_offset: 2 } })
    const rest = await account.get(`${path}?offset=2`)
    expect(rest).toMatchObject({ status: 200, body: { total: 3, limit: 50, offset: 2, next_offset: null } })
    expect([...first.body.items, ...rest.body.items].map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
  })
})

describe('DELETE /v1/endpoints/{endpoint_id}/views/{binding_id}', () => {
  test('204 detaches without changing the view; 404 afterwards', async () => {
    const { account, view, path } = await attachable()
    const { body: binding } = await account.post(path, { view_id: view.id })
    expect(await account.delete(`${path}/${binding.id}`)).toMatchObject({ status: 204 })
    expect(await account.delete(`${path}/${binding.id}`)).toMatchObject({ status: 404 })
    expect(await account.get(`/v1/views/${view.id}`)).toMatchObject({ body: { status: 'published', endpoints: [] } })
  })

  test('nodes keep the binding until all have reported that they hold no segment from before', async () => {
    const { account, view } = await attachable()
    const region = newRegion()
    const { body: endpoint } = await account.post('/v1/endpoints', { region })
    const path = `/v1/endpoints/${endpoint.id}/views`
    const nodes = [await TestNode.register(control(), region), await TestNode.register(control(), region)] as const
    for (const node of nodes) await node.heartbeat()
    const { body: binding } = await account.post(path, { view_id: view.id })
    await account.post(`/v1/views/${view.id}/archive`)
    const [{ deactivated_at }] = (await account.get(path)).body.items
    const viewsOf = async () => (await nodes[0].snapshot()).endpoints.find(({ id }) => id === endpoint.id)?.views
    expect(await viewsOf()).toMatchObject([{ binding_id: binding.id, deactivated_at, definition }])

    control().clock.advance(120_000)
    const held = (oldest_sealed_at: string) => ({ lag: [aLag(endpoint.id, { oldest_sealed_at })] })
    await nodes[0].heartbeat()
    await nodes[1].heartbeat({}, held(isoTimestamp(Date.parse(deactivated_at) - 1)))
    const other = await attachable()
    const { body: sentinel } = await other.account.post(other.path, { view_id: other.view.id })
    await other.account.delete(`${other.path}/${sentinel.id}`)
    control().clock.advance(120_000)
    // No node serves the region of the sentinel, so it is settled with the next check, which the other is not.
    const unsettled = async () =>
      control().store.db.selectFrom('bindings').select('id').where('unsettled_epoch', 'is not', null).execute()
    await until('a check', async () => !(await unsettled()).some(({ id }) => id === sentinel.id))
    expect(await viewsOf()).toHaveLength(1)

    await nodes[1].heartbeat({}, held(deactivated_at))
    await until('the settlement', async () => (await viewsOf())?.length === 0)
    expect(await unsettled()).not.toContainEqual({ id: binding.id })
  })

  test('404 under another endpoint', async () => {
    const { account, view, path } = await attachable()
    const { body: binding } = await account.post(path, { view_id: view.id })
    const { body: other } = await account.post('/v1/endpoints', { region: 'loc' })
    expect(await account.delete(`/v1/endpoints/${other.id}/views/${binding.id}`)).toMatchObject({ status: 404 })
    expect(await account.delete(`${path}/${newId()}`)).toMatchObject({ status: 404 })
  })
})
