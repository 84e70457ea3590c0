/** A database that lacks commits which nodes remember: nodes say so, and every answer that is made from commits. */
import { describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { parseUpdates } from '#node/snapshot-sections.ts'
import { accountsLacking, listMissingCommits, narrowMissingCommits, noteMissingCommits } from '#store/commits/missing-commits.ts'
import { transact } from '#store/store.ts'
import { newRegion, useControl } from '../support/control.ts'
import { readMarkers } from '../support/read-markers.ts'
import { aPublishedView } from '../support/set-up.ts'
import { aCommit, everyKind, TestNode } from '../support/test-node.ts'

const control = useControl()

async function furnished() {
  const account = await control().newAccount()
  const region = newRegion()
  const { body: endpoint } = await account.post('/v1/endpoints', { region, output_formats: ['parquet'] })
  const node = await TestNode.register(control(), region)
  const commit = async (seq: number) => {
    const { status, body } = await node.call('POST', 'commits', { commits: [aCommit(node.id, endpoint.id, seq)] })
    expect(status).toBe(200)
    return body
  }
  const compare = async (recorded: object | null, more: object = {}) => {
    const well = { node_id: node.id, applied_epoch: 1, healthy: true, reasons: [], lag: [] }
    const { status, body } = await node.call('POST', 'heartbeat', { process: 'delivery', ...well, recorded, ...more })
    expect(status).toBe(200)
    return body.recorded
  }
  const commits = async () => (await account.get(`/v1/endpoints/${endpoint.id}/commits`)).body
  const status = async () => (await account.get(`/v1/endpoints/${endpoint.id}`)).body
  return { account, endpoint, node, commit, compare, commits, status }
}

const rebuilt = () => readMarkers(control().store)

describe('what a node remembers of the database', () => {
  test('is what control told it: commits are counted once', async () => {
    const { commit, compare, commits } = await furnished()
    const { total } = await commit(1)
    expect(await commit(1)).toMatchObject({ new: 0, total })
    expect(await commit(2)).toMatchObject({ new: 1, total: { ...total, commits: total.commits + 1 } })
    const recorded = { ...total, commits: 2 }
    expect(await compare(null)).toEqual(recorded)
    expect(await compare(recorded)).toEqual(recorded)
    // It may have missed a response.
    expect(await compare(total)).toEqual(recorded)
    // A count for another database changes nothing.
    expect(await compare({ database: newId(), commits: 9 })).toEqual(recorded)
    expect((await commits()).may_lack_commits_since).toBeNull()
  })

  test('shows in every answer if the database has fewer, and jobs wait', async () => {
    const { account, endpoint, node, commit, compare, commits, status } = await furnished()
    const { total } = await commit(1)
    await compare(null)
    const before = Date.now()
    expect(await compare({ ...total, commits: 5 })).toEqual(total)
    const since = (await commits()).may_lack_commits_since
    // The last heartbeat that this database knows.
    expect(Date.parse(since)).toBeGreaterThan(before - 10_000)
    expect(Date.parse(since)).toBeLessThanOrEqual(before)
    const receipt = await account.get(`/v1/endpoints/${endpoint.id}/commits?node_id=${newId()}&segment_seq=1`)
    expect(receipt.body).toMatchObject({ items: [], may_lack_commits_since: since })
    expect((await status()).status_reasons.join()).toContain(`commits since ${since} may be missing`)
    const view = await aPublishedView(account, 'orders')
    expect((await account.get(`/v1/views/${view.id}/dlq-files`)).body.may_lack_commits_since).toBe(since)
    const query = { sql: `select count(*) from raw."${endpoint.name}"` }
    const { body: answer } = await account.post('/v1/query', query)
    expect(answer.tables).toMatchObject([{ complete: false, may_lack_commits_since: since }])
    const asView = await account.post('/v1/query', { sql: 'select count(*) from orders' })
    expect(asView.body.tables).toMatchObject([{ complete: false, may_lack_commits_since: since }])
    for (const job of [`/v1/endpoints/${endpoint.id}/compact`, `/v1/views/${view.id}/backfill`]) {
      const { status, body } = await account.post(job, job.endsWith('backfill') ? { endpoint_id: endpoint.id } : {})
      expect([status, body.detail], job).toEqual([
        409,
        expect.stringContaining(`may lack commits since ${since}: control records them from the buckets`),
      ])
    }
    const lookup = async () => (await node.call('POST', 'commits/lookup', { ids: ['unknown'] })).body
    expect(await lookup()).toMatchObject({ commits: [], may_lack: true })
    // The node was told, and does not claim it again.
    await rebuilt()
    await compare(total)
    expect(await lookup()).toMatchObject({ commits: [], may_lack: false })
    expect((await commits()).may_lack_commits_since).toBeNull()
    expect((await status()).status_reasons.join()).not.toContain('may be missing')
  })

  test('concerns the region of the node alone', async () => {
    const [mine, others] = [await furnished(), await furnished()]
    const { total } = await mine.commit(1)
    await mine.compare({ ...total, commits: 1_000_000 })
    expect((await mine.commits()).may_lack_commits_since).not.toBeNull()
    expect((await others.commits()).may_lack_commits_since).toBeNull()
    await rebuilt()
  })

  test('a node that refuses the configuration has applied nothing, and is noted once', async () => {
    const { account, node, compare, commits, status } = await furnished()
    await node.heartbeat()
    expect((await status()).status).not.toBe('deploying')
    const { position } = await node.snapshot()
    const kept_position = { ...position, epoch: (position?.epoch ?? 0) + 7, version: 'later' }
    const refusing = { applied_epoch: -1, kept_position }
    await node.heartbeat(refusing, refusing)
    expect((await status()).status_reasons.join()).toContain(
      `node ${node.id} keeps its configuration of epoch ${kept_position.epoch}`,
    )
    expect((await commits()).may_lack_commits_since).not.toBeNull()
    await rebuilt()
    await node.heartbeat(refusing, refusing)
    expect((await commits()).may_lack_commits_since).toBeNull()
    // It is sent no configuration, at once, however long it would wait.
    const answer = await node.call('POST', 'snapshot', {
      ...{ node_id: node.id, epoch: kept_position.epoch, kinds: ['keys'], have: {}, wait_ms: 30_000, position: kept_position },
    })
    expect(
      String(answer.body)
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).kind),
    ).toEqual(['end'])
    // The state that it has is back: it is told at once, although no section differs.
    await node.snapshot()
    const back = await node.call('POST', 'snapshot', {
      ...{ node_id: node.id, epoch: node.current.epoch, kinds: everyKind, digest: node.digest, wait_ms: 30_000 },
      ...{ position: node.current.position, refusing: true },
    })
    expect(parseUpdates(Buffer.from(back.body))).toMatchObject([{ sections: [], end: { position: node.current.position } }])
    await node.heartbeat()
    await compare(null)
    expect((await account.get('/v1/endpoints')).status).toBe(200)
    expect((await status()).status_reasons.join()).not.toContain('keeps its configuration')
  })
})

test('what was not read of one account concerns no other one', async () => {
  const [mine, other] = [await furnished(), await furnished()]
  const { store } = control()
  const region = mine.endpoint.region
  await store.db.updateTable('endpoints').set({ region }).where('id', '=', other.endpoint.id).execute()
  const since = Date.now()
  const note = () => transact(store, (db) => noteMissingCommits(db, region, since, since, { isAutomatic: true }))
  const lacks = async ({ commits }: typeof mine) => (await commits()).may_lack_commits_since !== null
  await note()
  expect([await lacks(mine), await lacks(other)]).toEqual([true, true])
  await narrowMissingCommits(store.db, await listMissingCommits(store.db), [other.account.account_id])
  expect([await lacks(mine), await lacks(other)]).toEqual([false, true])
  const says = async ({ status }: typeof mine) => (await status()).status_reasons.join().includes('may be missing')
  expect([await says(mine), await says(other)]).toEqual([false, true])
  expect(accountsLacking(await listMissingCommits(store.db), region)).toEqual([other.account.account_id])
  await note()
  expect([await lacks(mine), await lacks(other)]).toEqual([true, true])
  await rebuilt()
})
