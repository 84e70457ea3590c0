/** Tokens with which nodes join: the operator creates, lists and revokes them, and control lets no more nodes in than they say. */
import { describe, expect, test } from 'vitest'
import { newNodeSecret } from '#auth/node-credential.ts'
import { newId } from '#model/id.ts'
import { type ApiClient, clientOf, newRegion, nodeToken, operatorToken, useControl } from '../support/control.ts'

const control = useControl()
const operator = (): ApiClient => clientOf(control().call, operatorToken)

const create = async (settings: object = {}) => {
  const { status, body } = await operator().post('/v1/join-tokens', { name: 'rack 4', ...settings })
  expect(status).toBe(201)
  return body
}
const find = async (id: string) =>
  (await operator().get('/v1/join-tokens?limit=200')).body.items.find((token: { id: string }) => token.id === id)

/** A machine that asks to join. */
function machine(region = newRegion(), node_id = newId()) {
  const secret = newNodeSecret()
  const request = { node_id, region, secret, previous_secret: null, ipv4: [], ipv6: [], ingest_address: 'node.test:443' }
  return {
    node_id,
    region,
    join: (token: string, more: object = {}) =>
      control().call('POST', '/internal/v1/join', { ...request, ...more }, { authorization: `Bearer ${token}` }),
    works: async () =>
      (
        await control().call('GET', `/internal/v1/committed-seqs?node_id=${node_id}`, undefined, {
          authorization: `Bearer ${node_id}.${secret}`,
        })
      ).status,
  }
}
const joined = { status: 200, body: { joined: true } }

describe('POST /v1/join-tokens', () => {
  test('201 returns the token once; a token is for one node and a day, unless said otherwise', async () => {
    const { status, headers, body } = await operator().post('/v1/join-tokens', { name: 'rack 4' })
    const { join_token, root_sha256, ...token } = body
    expect([status, headers.get('cache-control'), root_sha256]).toEqual([201, 'no-store', null])
    expect(join_token).toMatch(/^ing_join_[0-9A-Za-z]{32}$/)
    expect(token).toMatchObject({ name: 'rack 4', region: null, status: 'active', uses: 0, uses_max: 1, revoked_at: null })
    expect(Date.parse(token.expires_at) - Date.parse(token.created_at)).toBe(86_400_000)
    const listed = await operator().get('/v1/join-tokens?limit=200')
    expect(listed.body.items).toContainEqual(token)
    expect(JSON.stringify(listed.body)).not.toContain(join_token)
    const { body: events } = await operator().get('/v1/installation/audit-events?operation=createJoinToken')
    expect(events.items[0]).toMatchObject({ actor: 'operator', account_id: null, resource_id: token.id, status: 201 })
  })

  test.each<[object, string]>([
    [{ name: '' }, 'name'],
    [{ region: 'Frankfurt' }, 'region'],
    [{ uses_max: 0 }, 'uses_max'],
    [{ uses_max: 100_001 }, 'uses_max'],
    [{ ttl: '59s' }, 'ttl'],
    [{ ttl: '8761h' }, 'ttl'],
    [{ ttl: 'soon' }, 'ttl'],
    [{ secret: 'mine' }, 'secret'],
  ])('422 for %j', async (settings, path) => {
    expect(await operator().post('/v1/join-tokens', { name: 'x', ...settings })).toMatchObject({
      status: 422,
      body: { errors: [{ path }] },
    })
  })
})

describe('GET /v1/join-tokens', () => {
  test('200 in pages, newest first', async () => {
    const [older, newer] = [await create(), await create()]
    control().clock.advance(1)
    const newest = await create()
    expect((await operator().get('/v1/join-tokens?limit=1')).body).toMatchObject({ items: [{ id: newest.id }], next_offset: 1 })
    const { items } = (await operator().get('/v1/join-tokens?limit=200')).body
    for (const { id } of [older, newer]) expect(items.map((token: { id: string }) => token.id)).toContain(id)
  })
})

describe('DELETE /v1/join-tokens/{id}', () => {
  test('204, 404; nobody joins with it any more, and who joined stays', async () => {
    const { id, join_token } = await create({ uses_max: null })
    const [early, late] = [machine(), machine()]
    expect(await early.join(join_token)).toMatchObject(joined)
    expect(await operator().delete(`/v1/join-tokens/${id}`)).toMatchObject({ status: 204 })
    const { revoked_at } = await find(id)
    expect(revoked_at).toMatch(/Z$/)
    expect(await late.join(join_token)).toMatchObject({
      status: 401,
      body: { detail: `the join token was revoked at ${revoked_at}` },
    })
    expect([await early.works(), await late.works()]).toEqual([200, 401])
    await operator().delete(`/v1/join-tokens/${id}`)
    expect(await find(id)).toMatchObject({ status: 'revoked', revoked_at, uses: 1 })
    expect(await operator().delete(`/v1/join-tokens/${newId()}`)).toMatchObject({ status: 404 })
  })
})

describe('a node joins with a token', () => {
  test('once, and GET /v1/nodes and the audit trail say with which', async () => {
    const { id, join_token } = await create()
    const node = machine()
    expect(await node.join(join_token)).toMatchObject(joined)
    expect(await node.works()).toBe(200)
    expect(await find(id)).toMatchObject({ status: 'used_up', uses: 1 })
    expect(await machine().join(join_token)).toMatchObject({
      status: 401,
      body: { detail: 'the join token is used up: 1 of 1 nodes have joined with it' },
    })
    const { items } = (await operator().get('/v1/nodes?limit=200')).body
    expect(items).toContainEqual(expect.objectContaining({ id: node.node_id, join_token_id: id, credential: 'active' }))
    const { body } = await operator().get('/v1/installation/audit-events?operation=joinNode&limit=1')
    expect(body.items).toMatchObject([{ actor: `join-token:${id}`, resource_id: node.node_id, result: 'succeeded' }])
  })

  test('and repeats it after a lost response without using it again, also once it is used up', async () => {
    const { id, join_token } = await create()
    const node = machine()
    for (let attempt = 0; attempt < 3; attempt++) expect(await node.join(join_token)).toMatchObject(joined)
    expect(await find(id)).toMatchObject({ uses: 1 })
    // Another region is not a repetition.
    expect(await node.join(join_token, { region: newRegion() })).toMatchObject({ status: 401 })
  })

  test('and is refused with another token that nobody may join with; one that is active counts the node', async () => {
    const [first, usedUp, revoked, open] = [await create(), await create(), await create(), await create()]
    const node = machine()
    expect(await node.join(first.join_token)).toMatchObject(joined)
    expect(await machine().join(usedUp.join_token)).toMatchObject(joined)
    await operator().delete(`/v1/join-tokens/${revoked.id}`)
    for (const { join_token } of [usedUp, revoked]) expect(await node.join(join_token)).toMatchObject({ status: 401 })
    expect(await node.join(open.join_token)).toMatchObject(joined)
    expect(await find(open.id)).toMatchObject({ uses: 1 })
    // The first one is another token by now.
    expect(await node.join(first.join_token)).toMatchObject({ status: 401 })
    expect(await node.works()).toBe(200)
  })

  test('under the same id in upper case', async () => {
    const { id, join_token } = await create()
    const node = machine()
    expect(await node.join(join_token)).toMatchObject(joined)
    expect(await node.join(join_token, { node_id: node.node_id.toUpperCase() })).toMatchObject(joined)
    expect(await find(id)).toMatchObject({ uses: 1 })
    expect(await machine(node.region, node.node_id.toUpperCase()).join(nodeToken)).toMatchObject({
      body: { joined: false, reason: 'taken' },
    })
  })

  test('in its region only', async () => {
    const region = newRegion()
    const { id, join_token } = await create({ region })
    expect(await machine().join(join_token)).toMatchObject({
      status: 403,
      body: { detail: expect.stringContaining(`the join token is for region ${region}, and this node is in region`) },
    })
    expect(await find(id)).toMatchObject({ uses: 0 })
    expect(await machine(region).join(join_token)).toMatchObject(joined)
  })

  test('not after it expired', async () => {
    const { id, join_token, expires_at } = await create({ ttl: '1m', uses_max: null })
    control().clock.advance(60_000)
    expect(await machine().join(join_token)).toMatchObject({
      status: 401,
      body: { detail: `the join token expired at ${expires_at}` },
    })
    expect(await find(id)).toMatchObject({ status: 'expired', uses: 0 })
  })

  test('not more nodes at once than it allows', async () => {
    const { id, join_token } = await create({ uses_max: 3 })
    const answers = await Promise.all(Array.from({ length: 10 }, () => machine().join(join_token)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([...Array(3).fill(200), ...Array(7).fill(401)])
    expect(await find(id)).toMatchObject({ status: 'used_up', uses: 3 })
  })

  test('but not under the id of another node, which does not use the token', async () => {
    const { id, join_token } = await create({ uses_max: 2 })
    const owner = machine()
    await owner.join(join_token)
    const answer = await machine(owner.region, owner.node_id).join(join_token)
    expect(answer).toMatchObject({ status: 200, body: { joined: false, reason: 'taken' } })
    expect(await find(id)).toMatchObject({ uses: 1 })
  })

  test('that nobody made: 401, whatever its form', async () => {
    const { join_token } = await create()
    for (const token of [`ing_join_${'0'.repeat(32)}`, `${join_token}0`, join_token.slice(0, -1), 'x', nodeToken.slice(1)])
      expect(await machine().join(token)).toMatchObject({ status: 401, body: { error: 'unauthorized' } })
  })

  test('which opens nothing but that', async () => {
    const { join_token } = await create({ uses_max: null })
    const authorization = `Bearer ${join_token}`
    for (const [method, path] of [
      ['POST', 'heartbeat'],
      ['POST', 'snapshot'],
      ['GET', 'committed-seqs'],
    ] as const)
      expect(
        await control().call(method, `/internal/v1/${path}`, method === 'POST' ? {} : undefined, { authorization }),
      ).toMatchObject({ status: 401 })
    expect(await control().call('GET', '/v1/nodes', undefined, { authorization })).toMatchObject({ status: 401 })
  })
})
