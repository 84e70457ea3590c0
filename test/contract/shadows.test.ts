import { describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { EndpointSection } from '#model/snapshot-sections.ts'
import { newRegion, useControl } from '../support/control.ts'
import { aLag } from '../support/lags.ts'
import { aPublishedView } from '../support/set-up.ts'
import { aCommit, TestNode } from '../support/test-node.ts'

const control = useControl()

const definition = { columns: [{ name: 'event', type: 'VARCHAR', path: '$.event' }] }

async function furnished() {
  const account = await control().newAccount()
  const region = newRegion()
  const { body: draft } = await account.post('/v1/views', { name: 'events', definition })
  const { body: endpoint } = await account.post('/v1/endpoints', { region, name: 'shop' })
  const node = await TestNode.register(control(), region)
  return { account, draft, endpoint, node, path: `/v1/endpoints/${endpoint.id}/shadows` }
}

describe('POST /v1/endpoints/{endpoint_id}/shadows', () => {
  test('201 for a draft, and its view and endpoint list it', async () => {
    const { account, draft, endpoint, path } = await furnished()
    const shadow = {
      ...{ endpoint_id: endpoint.id, endpoint_name: 'shop', view_id: draft.id, view_name: 'events', view_version: 1 },
      ...{ id: expect.any(String), started_at: expect.any(String), started_by: `key:${account.key_id}` },
    }
    expect(await account.post(path, { view_id: draft.id })).toMatchObject({ status: 201, body: shadow })
    expect((await account.get(path)).body).toEqual({ items: [shadow] })
    expect((await account.get(`/v1/views/${draft.id}`)).body).toMatchObject({
      endpoints: [],
      shadows: [{ endpoint_id: endpoint.id, endpoint_name: 'shop' }],
    })
  })

  test('409 for one that is there, for a third, and for an endpoint that is being deleted', async () => {
    const { account, draft, endpoint, node, path } = await furnished()
    await account.post(path, { view_id: draft.id })
    const others = [1, 2].map((n) => account.post('/v1/views', { name: `other_${n}`, definition }))
    const [second, third] = (await Promise.all(others)).map(({ body }) => body.id)
    expect(await account.post(path, { view_id: draft.id })).toMatchObject({ status: 409 })
    expect(await account.post(path, { view_id: second })).toMatchObject({ status: 201 })
    const full = await account.post(path, { view_id: third })
    expect([full.status, full.body.detail]).toEqual([409, expect.stringContaining('end one of them first')])
    // The deletion waits for what the node holds.
    await node.heartbeat({}, { lag: [aLag(endpoint.id)] })
    await account.delete(`/v1/endpoints/${endpoint.id}`)
    expect((await account.post(path, { view_id: third })).status).toBe(409)
  })

  test('409 for a version that is attached there; attaching one ends its shadow', async () => {
    const { account, draft, endpoint, path } = await furnished()
    await account.post(path, { view_id: draft.id })
    await account.post(`/v1/views/${draft.id}/publish`)
    expect((await account.get(path)).body.items).toHaveLength(1)
    const attached = await account.post(`/v1/endpoints/${endpoint.id}/views`, { view_id: draft.id })
    expect([attached.status, (await account.get(path)).body.items]).toEqual([201, []])
    const refused = await account.post(path, { view_id: draft.id })
    expect([refused.status, refused.body.detail]).toEqual([409, expect.stringContaining('is attached to the endpoint')])
  })

  test('422 for a view that hashes with a secret', async () => {
    const { account, path } = await furnished()
    await account.post('/v1/secrets', { name: 'key' })
    const hashed = { columns: [...definition.columns, { name: 'h', type: 'VARCHAR', value: "hmac_sha256('key', event)" }] }
    const { body: view } = await account.post('/v1/views', { name: 'hashed', definition: hashed })
    const answer = await account.post(path, { view_id: view.id })
    expect([answer.status, answer.body.detail]).toEqual([422, expect.stringContaining('attach it as a canary')])
  })

  test('422 for a view of another account, and for an archived one', async () => {
    const [mine, theirs] = [await furnished(), await furnished()]
    const wrong = await mine.account.post(mine.path, { view_id: theirs.draft.id })
    expect(wrong).toMatchObject({ status: 422, body: { errors: [{ path: 'view_id' }] } })
    await mine.account.post(`/v1/views/${mine.draft.id}/publish`)
    await mine.account.post(`/v1/views/${mine.draft.id}/archive`)
    expect((await mine.account.post(mine.path, { view_id: mine.draft.id })).status).toBe(422)
  })

  test('404 for an endpoint of another account', async () => {
    const [mine, theirs] = [await furnished(), await furnished()]
    expect((await mine.account.post(theirs.path, { view_id: mine.draft.id })).status).toBe(404)
    expect((await mine.account.get(theirs.path)).status).toBe(404)
  })
})

describe('DELETE /v1/endpoints/{endpoint_id}/shadows/{shadow_id}', () => {
  test('204 once, and 404 then', async () => {
    const { account, draft, path } = await furnished()
    const { body } = await account.post(path, { view_id: draft.id })
    expect((await account.delete(`${path}/${body.id}`)).status).toBe(204)
    expect((await account.delete(`${path}/${body.id}`)).status).toBe(404)
    expect((await account.delete(`${path}/${newId()}`)).status).toBe(404)
    expect((await account.get(path)).body).toEqual({ items: [] })
  })
})

type Furnished = Awaited<ReturnType<typeof furnished>>

/** Records a commit in which the draft, as a shadow, processed ten records. */
async function count({ node, endpoint, draft }: Furnished, seq: number, sealed_at = new Date(Date.now() + 1_000)): Promise<void> {
  const counts = { processed: 10, accepted: 10, dropped: 0, dlq: 0, failed: 0, cast_nulls: 0, errors: {}, last_error: null }
  const outcome = { view_id: draft.id, view_name: 'events', view_version: 1, ...counts, is_shadow: true as const }
  const commit = aCommit(node.id, endpoint.id, seq, { views: [outcome], sealed_at: sealed_at.toISOString() })
  expect((await node.call('POST', 'commits', { commits: [commit] })).status).toBe(200)
}

async function processed({ account, draft }: Furnished): Promise<number> {
  return (await account.get(`/v1/views/${draft.id}/metrics`)).body.aggregated.all_time?.processed ?? 0
}

async function acceptedByShadows(): Promise<number> {
  const { body } = await control().call('GET', '/metrics')
  return Number(/inlet_shadow_records_total\{[^}]*outcome="accepted"[^}]*\} (\d+)/.exec(body)?.[1])
}

const another = { columns: [{ name: 'other', type: 'BIGINT', path: '$.other' }] }

describe('a shadow', () => {
  test('of a changed draft begins at zero, and what an earlier one counted late is left out', async () => {
    const place = await furnished()
    const { account, draft, path } = place
    const { body: first } = await account.post(path, { view_id: draft.id })
    await count(place, 0)
    await account.patch(`/v1/views/${draft.id}`, { definition: another })
    expect(await processed(place)).toBe(10)
    await account.delete(`${path}/${first.id}`)
    expect(await processed(place)).toBe(10)
    await account.post(path, { view_id: draft.id })
    expect(await processed(place)).toBe(0)
    await count(place, 1, new Date(Date.now() - 60_000))
    expect(await processed(place)).toBe(0)
    await count(place, 2)
    expect(await processed(place)).toBe(10)
    const { body: series } = await account.get(`/v1/views/${draft.id}/series`)
    expect(
      series.versions.flatMap(({ buckets }: { buckets: { accepted: number }[] }) => buckets.map((each) => each.accepted)),
    ).toEqual([10])
  })

  test('keeps its figures when its draft is published as it is, and ends, without them, if the draft was changed', async () => {
    const [same, changed] = [await furnished(), await furnished()]
    for (const place of [same, changed]) {
      await place.account.post(place.path, { view_id: place.draft.id })
      await count(place, 0)
    }
    await changed.account.patch(`/v1/views/${changed.draft.id}`, { definition: another })
    for (const place of [same, changed]) await place.account.post(`/v1/views/${place.draft.id}/publish`)
    expect((await same.account.get(same.path)).body.items).toHaveLength(1)
    expect(await processed(same)).toBe(10)
    expect((await changed.account.get(changed.path)).body.items).toEqual([])
    expect(await processed(changed)).toBe(0)
  })

  test('keeps its definition, whatever becomes of the draft, which cannot be deleted', async () => {
    const { account, draft, path } = await furnished()
    const { body: shadow } = await account.post(path, { view_id: draft.id })
    const change = (body: object) => account.patch(`/v1/views/${draft.id}`, body)
    const warning = { path: 'definition', code: 'shadow_not_changed', message: expect.stringContaining('at "shop"') }
    expect(await change({ definition: another })).toMatchObject({ status: 200, body: { warnings: [warning] } })
    expect((await change({ description: 'still another' })).body.warnings).toEqual([])
    expect((await change({ definition })).body.warnings).toEqual([])
    const refused = await account.delete(`/v1/views/${draft.id}`)
    expect([refused.status, refused.body.detail]).toEqual([409, expect.stringContaining('end its shadows first')])
    await account.delete(`${path}/${shadow.id}`)
    expect((await account.delete(`/v1/views/${draft.id}`)).status).toBe(204)
  })

  test('ends when its version is archived', async () => {
    const { account, draft, path } = await furnished()
    await account.post(`/v1/views/${draft.id}/publish`)
    await account.post(path, { view_id: draft.id })
    await account.post(`/v1/views/${draft.id}/archive`)
    expect((await account.get(path)).body).toEqual({ items: [] })
  })

  test('is nothing to a node of the release before: it delivers without it, and nothing is counted', async () => {
    const { account, draft, endpoint, node, path } = await furnished()
    const view = await aPublishedView(account, 'attached', definition)
    await account.post(`/v1/endpoints/${endpoint.id}/views`, { view_id: view.id })
    await account.post(path, { view_id: draft.id })
    const { sections = [] } = (await node.update()) ?? {}
    const sent = sections.flatMap((section) => (section.kind === 'endpoints' ? section.endpoints : []))
    const Earlier = EndpointSection.omit({ shadows: true })
    const [read] = sent.filter(({ id }) => id === endpoint.id).map((each) => Earlier.parse(each))
    expect(read).not.toHaveProperty('shadows')
    expect(read?.bindings).toMatchObject([{ view_id: view.id }])
    const counts = { processed: 10, accepted: 10, dropped: 0, dlq: 0, failed: 0, cast_nulls: 0, errors: {}, last_error: null }
    const outcome = { view_id: view.id, view_name: 'attached', view_version: 1, ...counts }
    const sealed_at = new Date(Date.now() - 60_000).toISOString()
    const commit = aCommit(node.id, endpoint.id, 0, { views: [outcome], sealed_at })
    expect((await node.call('POST', 'commits', { commits: [commit] })).status).toBe(200)
    const processed = async (id: string) =>
      (await account.get(`/v1/views/${id}/metrics`)).body.aggregated.last_24h?.processed ?? 0
    expect([await processed(view.id), await processed(draft.id)]).toEqual([10, 0])
  })

  test('is counted in the metrics of its version, and a backfill still has its segments to write', async () => {
    const { account, draft, endpoint, node, path } = await furnished()
    const before = await acceptedByShadows()
    await account.post(path, { view_id: draft.id })
    const counts = { processed: 10, accepted: 7, dropped: 1, dlq: 2, failed: 0, cast_nulls: 0 }
    const outcome = {
      ...{ view_id: draft.id, view_name: 'events', view_version: 1, ...counts, is_shadow: true as const },
      ...{ errors: { cast_failed: 2 }, last_error: null },
    }
    const sealed_at = new Date(Date.now() + 1_000).toISOString()
    const commit = aCommit(node.id, endpoint.id, 0, { views: [outcome], sealed_at })
    expect((await node.call('POST', 'commits', { commits: [commit] })).status).toBe(200)
    const { body: metrics } = await account.get(`/v1/views/${draft.id}/metrics`)
    expect(metrics.aggregated.last_24h).toMatchObject({ processed: 10, accepted: 7, dropped: 1, dlq: 2 })
    await account.post(`/v1/views/${draft.id}/publish`)
    const { body: job } = await account.post(`/v1/views/${draft.id}/backfill`, { endpoint_id: endpoint.id })
    expect(job.segments.total).toBe(1)
    expect(await acceptedByShadows()).toBe(before + 7)
  })
})
