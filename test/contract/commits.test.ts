import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { newNodeSecret } from '#auth/node-credential.ts'
import type { SegmentCommit } from '#model/commit.ts'
import { newId } from '#model/id.ts'
import { newRegion, useControl } from '../support/control.ts'
import { aLag } from '../support/lags.ts'
import { anEndpointWithNode } from '../support/set-up.ts'
import { aCommit, TestNode } from '../support/test-node.ts'

const control = useControl()

async function delivered(count: number, more: Partial<SegmentCommit> = {}) {
  const account = await control().newAccount()
  const region = newRegion()
  const { body: endpoint } = await account.post('/v1/endpoints', { region })
  const node = await TestNode.register(control(), region)
  const commits = Array.from({ length: count }, (_, seq) => aCommit(node.id, endpoint.id, seq, more))
  if (count > 0) expect(await node.call('POST', 'commits', { commits })).toMatchObject({ status: 200, body: { new: count } })
  return { account, endpoint, node, commits, path: `/v1/endpoints/${endpoint.id}/commits` }
}

describe('GET /v1/endpoints/{id}/commits', () => {
  test('200 lists delivered segments', async () => {
    const { account, node, commits, path } = await delivered(1)
    const answer = await account.as('metrics').get(path)
    expect(answer).toMatchObject({ status: 200, body: { next_cursor: null } })
    const { id } = commits[0] ?? {}
    expect(answer.body.items).toEqual([
      {
        ...{ id, node_id: node.id, seq: 0, records: 10, records_damaged: 3, wal_bytes: 1000, duration_ms: 5 },
        ...{ sealed_at: commits[0]?.sealed_at, bucket: 'lake' },
        uploaded_at: expect.stringMatching(/\.\d{3}Z$/),
        artifacts: { parquet: { key: `p/${id}.parquet`, bytes: 400, sha256: commits[0]?.artifacts['parquet']?.sha256 } },
      },
    ])
  })

  test('200 pages newest first; commits of the same time are neither repeated nor skipped', async () => {
    const { account, commits, path } = await delivered(25)
    const seen: string[] = []
    let before = ''
    for (let page = 0; page < 10 && (page === 0 || before !== ''); page += 1) {
      const { status, body } = await account.get(`${path}?limit=4${before === '' ? '' : `&before=${encodeURIComponent(before)}`}`)
      expect(status).toBe(200)
      seen.push(...body.items.map(({ id }: { id: string }) => id))
      before = body.next_cursor ?? ''
    }
    expect(seen).toEqual(commits.map(({ id }) => id).toReversed())
  })

  test('200 has no cursor after a full last page, and no items without commits', async () => {
    const { account, path } = await delivered(4)
    expect(await account.get(`${path}?limit=4`)).toMatchObject({ status: 200, body: { next_cursor: null } })
    const none = await delivered(0)
    expect(await none.account.get(none.path)).toMatchObject({ status: 200, body: { items: [], next_cursor: null } })
  })

  test('200 finds the commit of a receipt, and none before its segment is delivered', async () => {
    const { account, node, commits, path } = await delivered(3)
    const find = (node_id: string, seq: number) => account.as('metrics').get(`${path}?node_id=${node_id}&segment_seq=${seq}`)
    expect(await find(node.id, 1)).toMatchObject({
      status: 200,
      body: { items: [{ id: commits[1]?.id, seq: 1 }], next_cursor: null },
    })
    expect(await find(node.id, 3)).toMatchObject({ status: 200, body: { items: [], next_cursor: null } })
    expect(await find(newId(), 1)).toMatchObject({ status: 200, body: { items: [] } })
  })

  test.each([
    [`node_id=${newId()}`, 'segment_seq'],
    ['segment_seq=1', 'node_id'],
    [`node_id=${newId()}&segment_seq=-1`, 'segment_seq'],
    [`node_id=${newId()}&segment_seq=`, 'segment_seq'],
    ['node_id=mine&segment_seq=1', 'node_id'],
  ])('422 for ?%s names %s', async (query, where) => {
    const { account, path } = await delivered(0)
    expect(await account.get(`${path}?${query}`)).toMatchObject({ status: 422, body: { errors: [{ path: where }] } })
  })

  test('200 for a deleted endpoint, 404 for another account', async () => {
    const { account, endpoint, commits, path } = await delivered(2)
    expect(await account.delete(`/v1/endpoints/${endpoint.id}?force=true`)).toMatchObject({ status: 200 })
    expect(await account.get(`/v1/endpoints/${endpoint.id}`)).toMatchObject({ status: 404 })
    const { status, body } = await account.get(path)
    expect(status).toBe(200)
    expect(body.items.map(({ id }: { id: string }) => id)).toEqual(commits.map(({ id }) => id).toReversed())
    expect(await (await control().newAccount()).get(path)).toMatchObject({ status: 404 })
  })

  test.each(['before=yesterday', 'before=2026-11-20'])('422 for ?%s', async (query) => {
    const { account, path } = await delivered(0)
    expect(await account.get(`${path}?${query}`)).toMatchObject({ status: 422 })
  })
})

describe('POST /internal/v1/commits/lookup', () => {
  test('200 returns those of the commits that are recorded', async () => {
    const { node, commits } = await delivered(2)
    const [, commit] = commits
    if (commit === undefined) throw new Error('no commit')
    expect(await node.call('POST', 'commits/lookup', { ids: ['unknown', commit.id] })).toMatchObject({
      status: 200,
      body: { commits: [{ id: commit.id, records: commit.records, keys: [`p/${commit.id}.parquet`] }] },
    })
  })

  test('422 without ids, and for too many', async () => {
    const node = await TestNode.register(control(), 'loc')
    for (const ids of [[], Array.from({ length: 101 }, String)])
      expect(await node.call('POST', 'commits/lookup', { ids })).toMatchObject({ status: 422 })
  })
})

describe('POST /internal/v1/commits/delivered', () => {
  test('200 returns the segments of any node of the region that are delivered, with the keys of their records', async () => {
    const { endpoint, node, commits } = await delivered(2, { records_damaged: 0 })
    const other = await TestNode.register(control(), endpoint.region)
    const segment = { endpoint_id: endpoint.id, node_id: node.id }
    const segments = [0, 1, 2].map((seq) => ({ ...segment, seq }))
    const { status, body } = await other.call('POST', 'commits/delivered', { segments })
    expect(status).toBe(200)
    expect(body.delivered.toSorted((a: { seq: number }, b: { seq: number }) => a.seq - b.seq)).toEqual(
      commits.map(({ id, seq }) => ({ ...segment, seq, commit_id: id, keys: [`p/${id}.parquet`] })),
    )
  })

  test('200 leaves out segments of which the bucket has not all records', async () => {
    const { endpoint, node } = await delivered(1)
    const held = [{ first_seq: 1, last_seq: 1, segments: 1, records: 12, bytes: 9 }]
    const counts = { undelivered_segments: 1, undelivered_bytes: 9, records: 12, first_seq: 1, last_seq: 1 }
    await node.heartbeat({}, { lag: [aLag(endpoint.id, { ...counts, held })] })
    const secret = newNodeSecret()
    expect((await node.call('POST', 'adopt', { secret })).status).toBe(204)
    node.secret = secret
    // The adopted copy of the disk was made before the last two records.
    const commit = aCommit(node.id, endpoint.id, 1, { records: 10, records_damaged: 0 })
    expect(await node.call('POST', 'commits', { commits: [commit] })).toMatchObject({ status: 200 })
    const segments = [0, 1].map((seq) => ({ endpoint_id: endpoint.id, node_id: node.id, seq }))
    expect(await node.call('POST', 'commits/delivered', { segments })).toMatchObject({ status: 200, body: { delivered: [] } })
  })

  test('200 says nothing of endpoints in other regions, and of those that do not exist', async () => {
    const { endpoint, node } = await delivered(1)
    const elsewhere = await TestNode.register(control(), newRegion())
    for (const endpoint_id of [endpoint.id, newId()]) {
      const segments = [{ endpoint_id, node_id: node.id, seq: 0 }]
      expect(await elsewhere.call('POST', 'commits/delivered', { segments })).toMatchObject({ body: { delivered: [] } })
    }
  })
})

describe('POST /internal/v1/commits', () => {
  test('200 reports a repeated batch as durable and not new', async () => {
    const { account, node, commits, path } = await delivered(3)
    expect(await node.call('POST', 'commits', { commits })).toMatchObject({
      status: 200,
      body: { recorded: commits.map(({ id }) => id), new: 0 },
    })
    expect((await account.get(path)).body.items).toHaveLength(3)
  })

  test('200 records a batch once if it is sent twice concurrently', async () => {
    const { account, endpoint, node, path } = await delivered(0)
    const commits = Array.from({ length: 10 }, (_, seq) => aCommit(node.id, endpoint.id, seq))
    const all = await Promise.all([1, 2, 3].map(() => node.call('POST', 'commits', { commits })))
    expect(all.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(all.reduce((sum, { body }) => sum + body.new, 0)).toBe(10)
    expect((await account.get(path)).body.items).toHaveLength(10)
  })

  test('200 records commits of an unknown endpoint, so that they do not block later ones', async () => {
    const { account, endpoint, node, path } = await delivered(0)
    const commits = [aCommit(node.id, newId(), 0), aCommit(node.id, endpoint.id, 1)]
    expect(await node.call('POST', 'commits', { commits })).toMatchObject({ status: 200, body: { new: 2 } })
    expect((await account.get(path)).body.items).toHaveLength(1)
  })

  test('only the node of a commit receives its committed seq', async () => {
    const { endpoint, node } = await delivered(3)
    const other = await TestNode.register(control(), node.region)
    const seqsOf = async (asking: TestNode) => (await asking.call('GET', `committed-seqs?node_id=${asking.id}`)).body.seqs
    expect(await seqsOf(node)).toEqual({ [endpoint.id]: 2 })
    expect(await seqsOf(other)).toEqual({})
  })

  test('422 for an empty batch, a long one, and one without commits', async () => {
    const { endpoint, node } = await delivered(0)
    const many = Array.from({ length: 101 }, (_, seq) => aCommit(node.id, endpoint.id, seq))
    for (const commits of [[], many, [{}]]) expect(await node.call('POST', 'commits', { commits })).toMatchObject({ status: 422 })
  })

  test('accepts bodies larger than the limit of the management API', async () => {
    const { endpoint, node } = await delivered(0)
    const artifacts = Object.fromEntries(
      Array.from({ length: 100 }, (_, index) => [
        `views/view_${index}/v1`,
        { key: 'k'.repeat(300), bytes: 1, rows: 1, sha256: 'a'.repeat(64) },
      ]),
    )
    const commits = Array.from({ length: 100 }, (_, seq) => aCommit(node.id, endpoint.id, seq, { artifacts }))
    expect(JSON.stringify({ commits }).length).toBeGreaterThan(2 ** 20)
    expect(await node.call('POST', 'commits', { commits })).toMatchObject({ status: 200, body: { new: 100 } })
  })
})

describe('GET /v1/endpoints/{id}/commits/{commit_id}/files', () => {
  async function deliveredFile(key = 'p/1.parquet') {
    const account = await control().newAccount()
    const { region, bucket, destination, endpoint, node, place, pathOf } = await anEndpointWithNode(control(), account)
    const commit = aCommit(node.id, endpoint.id, 1, {
      destination: place,
      artifacts: { parquet: { key, bytes: 4, rows: 1, sha256: 'ab' } },
    })
    expect(await node.call('POST', 'commits', { commits: [commit] })).toMatchObject({ status: 200 })
    const path = `/v1/endpoints/${endpoint.id}/commits/${commit.id}/files`
    return { account, region, bucket, destination, endpoint, commit, path, file: pathOf(key), key }
  }

  test('200 with a link to each file, which needs no credentials', async () => {
    const { account, bucket, commit, path, file, key } = await deliveredFile()
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, 'PAR1')
    const { status, body } = await account.as('query').get(path)
    expect(status).toBe(200)
    expect(body).toMatchObject({ id: commit.id, seq: 1, bucket, files: [{ kind: 'parquet', key, bytes: 4, sha256: 'ab' }] })
    const response = await fetch(body.files[0].download_url.replace('http://inlet.test', control().url))
    expect({ status: response.status, text: await response.text() }).toEqual({ status: 200, text: 'PAR1' })
    expect(response.headers.get('content-disposition')).toContain('1.parquet')
  })

  test('200 for a deleted endpoint; without links once the destination is deleted', async () => {
    const { account, destination, endpoint, path } = await deliveredFile()
    expect(await account.delete(`/v1/endpoints/${endpoint.id}?force=true`)).toMatchObject({ status: 200 })
    expect((await account.get(path)).body.files[0].download_url).toMatch(/^http/)
    expect(await account.delete(`/v1/destinations/${destination.id}`)).toMatchObject({ status: 204 })
    expect(await account.get(path)).toMatchObject({ status: 200, body: { files: [{ download_url: null }] } })
  })

  test('404 for a commit of another endpoint or account, and for what cannot be one', async () => {
    const { account, region, endpoint, commit, path } = await deliveredFile()
    const { body: other } = await account.post('/v1/endpoints', { region })
    const commits = (id: string) => `/v1/endpoints/${id}/commits`
    for (const wrong of [
      `${commits(other.id)}/${commit.id}/files`,
      `${commits(endpoint.id)}/${commit.id}0/files`,
      `${commits(endpoint.id)}/..%2f..%2fsecret/files`,
      `${commits(newId())}/${commit.id}/files`,
    ]) {
      expect(await account.get(wrong), wrong).toMatchObject({ status: 404 })
    }
    expect(await (await control().newAccount()).get(path)).toMatchObject({ status: 404 })
  })
})
