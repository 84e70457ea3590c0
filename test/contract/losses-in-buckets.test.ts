/** Commits of a removed node that it had not reported, and that never comes back: control finds them by the loss. */
import { rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { searchEndpoint } from '#cli/commits/search-endpoint.ts'
import { must } from '#lib/assert.ts'
import { system } from '#lib/system.ts'
import { dayMs } from '#lib/time-units.ts'
import { objectKey } from '#model/artifact.ts'
import { newId } from '#model/id.ts'
import { DirectoryStores } from '#objects/directory.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { listMissingCommits, narrowMissingCommits, noteMissingCommits } from '#store/commits/missing-commits.ts'
import { transact } from '#store/store.ts'
import { clientOf, newControl, operatorToken } from '../support/control.ts'
import { deliverCommit } from '../support/deliver-commit.ts'
import { aLag } from '../support/lags.ts'
import { aDestination, anEndpointWithNode } from '../support/set-up.ts'
import { aCommit, TestNode } from '../support/test-node.ts'
import { until } from '../support/until.ts'

type Control = Awaited<ReturnType<typeof newControl>>

const held = { open_segments: 0, undelivered_segments: 2, records: 20, first_seq: 4, last_seq: 5 }

/** A node that reported two segments, and delivered the first of them since. */
async function inhabited(at: Control, account?: Awaited<ReturnType<Control['newAccount']>>, bucket?: string) {
  const owner = account ?? (await at.newAccount())
  const name = `checkout ${newId().slice(0, 8)}`
  const named = { post: (path: string, body?: unknown) => owner.post(path, { ...Object(body), name }) }
  const { endpoint, node, destination, place } = await anEndpointWithNode(at, named, bucket === undefined ? {} : { bucket })
  await node.snapshot()
  await node.heartbeat({}, { lag: [aLag(endpoint.id, held)] })
  const commitOf = (seq: number, by = node) => aCommit(by.id, endpoint.id, seq, { records_damaged: 0 })
  const losses = async () => (await owner.get('/v1/losses')).body.items
  return {
    ...{ account: owner, endpoint, node, destination, losses },
    deliver: (seq = 4, { by = node, to = destination } = {}) => deliverCommit(at.directory, to, commitOf(seq, by)),
    remove: (which = node) => clientOf(at.call, operatorToken).delete(`/v1/nodes/${which.id}?force=true`),
    reasons: async (): Promise<string> => (await owner.get(`/v1/endpoints/${endpoint.id}`)).body.status_reasons.join(),
    receipt: async (seq: number) => (await owner.get(`/v1/endpoints/${endpoint.id}/receipts/${node.id}-${seq}`)).body,
    commits: async () => (await owner.get(`/v1/endpoints/${endpoint.id}/commits`)).body,
    /** Control knows a commit whose marker is not in the bucket, as if its disk were not mounted. */
    report: () => node.call('POST', 'commits', { commits: [{ ...commitOf(3), destination: place }] }),
    searched: () =>
      until('the search', async () => (await losses()).every((loss: { searched_at: unknown }) => loss.searched_at !== null)),
  }
}

/** A link to itself cannot be read. Returns what removes it. */
function breakBucket(at: Control, bucket: string): () => void {
  const folder = join(at.directory, 'buckets', bucket)
  symlinkSync(folder, folder)
  return () => rmSync(folder)
}

const none = { segments: 0, records: 0, bytes: 0 }

test('are recorded a minute later, without a word that commits are missing; the rest stays lost', async () => {
  await using at = await newControl({ searchEndpoint })
  const { deliver, remove, losses, reasons, receipt, commits, searched } = await inhabited(at)
  await Promise.all([deliver(4), deliver(6)])
  expect((await remove()).body).toMatchObject({ losses: 1 })
  expect(await losses()).toMatchObject([{ searched_at: null, search_problem: null, segments: 2, recovered: none }])
  expect(await reasons()).toContain('and may be in the bucket already: control is reading the markers')
  // The node may have begun segments after its last report.
  for (const seq of [4, 6])
    expect(await receipt(seq)).toMatchObject({
      state: 'lost',
      reason: expect.stringContaining('may be in the bucket all the same'),
    })
  expect((await commits()).may_lack_commits_since).toBeNull()

  at.clock.advance(60_001)
  await searched()
  expect(await losses()).toMatchObject([{ state: 'open', segments: 2, recovered: { segments: 1, records: 10 } }])
  expect(await reasons()).toContain('or confirm the loss')
  const lost = [await receipt(5), await receipt(7)]
  expect([await receipt(4), await receipt(6), ...lost].map(({ state }) => state)).toEqual([
    'delivered',
    'delivered',
    'lost',
    'lost',
  ])
  for (const { reason } of lost) expect(reason).not.toContain('may be in the bucket')
})

test('end their loss also if they were delivered longer ago than commits are kept', async () => {
  await using at = await newControl({ searchEndpoint })
  const { node, endpoint, destination, remove, losses, receipt, commits, searched } = await inhabited(at)
  const old = new Date(at.clock.now() - 500 * dayMs).toISOString()
  for (const seq of [4, 5]) {
    const commit = aCommit(node.id, endpoint.id, seq, { records_damaged: 0, sealed_at: old, uploaded_at: old })
    await deliverCommit(at.directory, destination, commit)
  }
  await remove()
  at.clock.advance(60_001)
  await searched()
  expect(await losses()).toMatchObject([{ state: 'recovered', recovered: { segments: 2, records: 20 } }])
  expect((await commits()).items).toEqual([])
  expect(await receipt(4)).toMatchObject({ status: 404, detail: expect.stringContaining('older than commits are kept') })
})

test('are found once their bucket can be read, and those of others before', async () => {
  const lines: string[] = []
  await using at = await newControl({ searchEndpoint, onLog: (line) => lines.push(line) })
  const [dark, light] = [await inhabited(at), await inhabited(at)]
  await light.deliver()
  expect(await dark.report()).toMatchObject({ status: 200 })
  await Promise.all([dark.remove(), light.remove()])
  at.clock.advance(60_001)
  await light.searched()
  expect(await light.losses()).toMatchObject([{ recovered: { segments: 1 } }])
  await until('a warning', () => lines.some((line) => line.includes('losses not looked for in all buckets')))
  const { bucket } = dark.destination
  const problem = `bucket ${bucket} has no marker of the endpoint, which delivered there`
  expect(await dark.losses()).toMatchObject([{ searched_at: null, search_problem: expect.stringContaining(problem) }])
  expect(await dark.reasons()).toContain(`may be in the bucket already: ${problem}`)
  expect(await dark.reasons()).toContain('control tries again')
  expect((await dark.receipt(4)).reason).toContain(problem)

  await dark.deliver()
  at.clock.pass(60_001)
  await dark.searched()
  expect(await dark.losses()).toMatchObject([{ search_problem: null, recovered: { segments: 1 } }])
})

test('in a bucket that cannot be read are in doubt at once, for every endpoint of the account', async () => {
  const searches: string[] = []
  await using at = await newControl({
    searchEndpoint: (options) => {
      searches.push(options.endpoint.endpoint_id)
      return searchEndpoint(options)
    },
  })
  const first = await inhabited(at)
  const second = await inhabited(at, first.account, first.destination.bucket)
  const repair = breakBucket(at, first.destination.bucket)
  await Promise.all([first.remove(), second.remove()])
  at.clock.advance(60_001)
  const problem = `bucket ${first.destination.bucket} cannot be read`
  for (const { reasons } of [first, second])
    await until('the doubt', async () => (await reasons()).includes(`in the bucket already: ${problem}; control tries again`))
  expect(await first.losses()).toMatchObject([{ searched_at: null }, { searched_at: null }])
  expect(searches.toSorted()).toEqual([first.endpoint.id, second.endpoint.id].toSorted())

  repair()
  await Promise.all([first.deliver(), second.deliver()])
  at.clock.pass(60_001)
  await first.searched()
  const found = { search_problem: null, recovered: { segments: 1 } }
  expect(await first.losses()).toMatchObject([found, found])
})

test('are found in a bucket that another destination of the account cannot read', async () => {
  let broken = ''
  await using at = await newControl({
    searchEndpoint: (options) => {
      const open: typeof options.stores.open = (target) => {
        if (target.id === broken) throw new Error('access denied')
        return options.stores.open(target)
      }
      return searchEndpoint({ ...options, stores: { ...options.stores, open } })
    },
  })
  const first = await inhabited(at)
  const second = await inhabited(at, first.account, first.destination.bucket)
  const [denied, open] = [first, second].toSorted((a, b) => (a.endpoint.id < b.endpoint.id ? -1 : 1))
  broken = must(denied, 'an endpoint').destination.id
  await Promise.all([first.remove(), second.remove(), open?.deliver()])
  at.clock.advance(60_001)
  const found = async () => {
    const losses = await first.losses()
    return losses.some(({ recovered }: { recovered: { segments: number } }) => recovered.segments === 1)
  }
  await until('the search', found)
})

test('in a bucket that stays without its markers are looked for during a day, and the doubt stays said', async () => {
  await using at = await newControl({ searchEndpoint })
  const { deliver, destination, endpoint, node, remove, losses, reasons, receipt } = await inhabited(at)
  expect(await node.call('POST', 'commits', { commits: [await deliver(3)] })).toMatchObject({ status: 200 })
  await node.heartbeat({}, { lag: [aLag(endpoint.id, held)] })
  await remove()
  // As a lifecycle rule does.
  rmSync(join(at.directory, 'buckets', destination.bucket, endpoint.id), { recursive: true })
  at.clock.pass(60_001)
  await until('the first attempt', async () => (await losses())[0].search_problem !== null)
  expect(await losses()).toMatchObject([{ searched_at: null }])
  at.clock.pass(86_400_000)
  const isSearched = async () =>
    (await at.store.db.selectFrom('losses').select('searched_at').executeTakeFirst())?.searched_at !== null
  await until('the last attempt', isSearched)
  // The tokens of the test are good for an hour.
  at.clock.advance(-86_400_000)
  const problem = 'its disk is not mounted, or the markers were removed'
  expect(await losses()).toMatchObject([{ search_problem: expect.stringContaining(problem) }])
  expect(await reasons()).toContain(`${problem}; bring its disk back`)
  expect((await receipt(4)).reason).toContain(problem)
})

test('are not looked for in buckets that the endpoint never used', async () => {
  await using at = await newControl({ searchEndpoint })
  const { account, deliver, remove, losses, searched } = await inhabited(at)
  const broken = await aDestination(account, { name: 'broken', bucket: 'broken' })
  await deliver()
  breakBucket(at, broken.bucket)
  await remove()
  at.clock.advance(60_001)
  await searched()
  expect(await losses()).toMatchObject([{ search_problem: null, recovered: { segments: 1 } }])
})

test('are found where the endpoint delivered before its destination changed', async () => {
  await using at = await newControl({ searchEndpoint })
  const { account, endpoint, destination, deliver, remove, losses, searched } = await inhabited(at)
  await deliver(4)
  expect(await account.patch(`/v1/destinations/${destination.id}`, { prefix: 'other' })).toMatchObject({ status: 200 })
  await deliver(5, { to: { ...destination, prefix: 'other' } })
  const other = await aDestination(account, { name: 'other', bucket: 'other-lake' })
  expect(await account.patch(`/v1/endpoints/${endpoint.id}`, { destination_id: other.id })).toMatchObject({ status: 200 })
  await remove()
  at.clock.advance(60_001)
  await searched()
  expect(await losses()).toMatchObject([{ state: 'recovered', search_problem: null }])
})

test('are in doubt while no destination has the bucket any more, and found once one has it', async () => {
  await using at = await newControl({ searchEndpoint })
  const { account, endpoint, destination, deliver, remove, losses, searched, reasons, receipt } = await inhabited(at)
  await deliver(4)
  const other = await aDestination(account, { name: 'other', bucket: 'other-lake' })
  await account.patch(`/v1/endpoints/${endpoint.id}`, { destination_id: other.id })
  expect(await account.delete(`/v1/destinations/${destination.id}`)).toMatchObject({ status: 204 })
  await remove()
  at.clock.advance(60_001)
  await searched()
  const problem = `the endpoint delivered to bucket ${destination.bucket} before, and no destination has that bucket any more`
  expect(await losses()).toMatchObject([{ recovered: none, search_problem: expect.stringContaining(problem) }])
  expect(await reasons()).toContain(problem)
  expect((await receipt(4)).reason).toContain(problem)

  await aDestination(account, { name: 'again', bucket: destination.bucket })
  await until('another search', async () => (await losses())[0].search_problem === null)
  expect(await losses()).toMatchObject([{ recovered: { segments: 1 } }])
  expect(await receipt(4)).toMatchObject({ state: 'delivered' })
})

test('of a loss that was confirmed before are found, too', async () => {
  await using at = await newControl({ searchEndpoint })
  const { account, deliver, remove, losses, searched, receipt } = await inhabited(at)
  await Promise.all([deliver(4), deliver(5)])
  await remove()
  const [{ id }] = await losses()
  expect(await account.post(`/v1/losses/${id}/confirm`)).toMatchObject({ status: 200 })
  at.clock.advance(60_001)
  await searched()
  expect(await losses()).toMatchObject([{ state: 'recovered', recovered: { segments: 2 } }])
  expect(await receipt(4)).toMatchObject({ state: 'delivered' })
})

test('wait for an operator where he has to decide, by region and account, and nowhere else', async () => {
  await using at = await newControl({ searchEndpoint })
  const [dark, light] = [await inhabited(at), await inhabited(at)]
  await Promise.all([dark.deliver(), light.deliver()])
  await transact(at.store, (db) => noteMissingCommits(db, null, 0, at.clock.now()))
  await narrowMissingCommits(at.store.db, await listMissingCommits(at.store.db), [dark.account.account_id])
  await dark.remove()
  const [first] = await at.store.db.selectFrom('losses').selectAll().execute()
  const older = Array.from({ length: 250 }, (_, index) => ({
    ...Object(first),
    id: newId(),
    credential_hash: `${index}`,
    recorded_at: 1,
  }))
  await at.store.db.insertInto('losses').values(older).execute()
  await light.remove()
  at.clock.advance(60_001)
  await light.searched()
  expect(await light.losses()).toMatchObject([{ recovered: { segments: 1 } }])
  const { count } = await at.store.db
    .selectFrom('losses')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('searched_at', 'is', null)
    .executeTakeFirstOrThrow()
  expect(Number(count)).toBe(251)
})

test('of an account wait for no bucket of another one that is slow, or fails', async () => {
  const searches: string[] = []
  const slow = new Set<string>()
  const failing = new Set<string>()
  await using at = await newControl({
    searchEndpoint: async (options) => {
      const { endpoint_id } = options.endpoint
      searches.push(endpoint_id)
      if (failing.has(endpoint_id)) throw new Error('unexpected')
      if (slow.has(endpoint_id))
        await new Promise((_, reject) => options.signal.addEventListener('abort', () => reject(new Error('aborted'))))
      return searchEndpoint(options)
    },
  })
  const [hanging, broken, light] = [await inhabited(at), await inhabited(at), await inhabited(at)]
  slow.add(hanging.endpoint.id)
  failing.add(broken.endpoint.id)
  await Promise.all([light.deliver(), broken.deliver()])
  await hanging.remove()
  await broken.remove()
  at.clock.advance(60_001)
  await until('the slow search', () => searches.includes(hanging.endpoint.id) && searches.includes(broken.endpoint.id))
  await light.remove()
  at.clock.advance(60_001)
  await light.searched()
  expect(await light.losses()).toMatchObject([{ recovered: { segments: 1 } }])
  expect(searches.filter((id) => id !== light.endpoint.id).sort()).toEqual([hanging.endpoint.id, broken.endpoint.id].sort())

  failing.clear()
  at.clock.pass(60_001)
  await broken.searched()
  expect(await broken.losses()).toMatchObject([{ recovered: { segments: 1 } }])
})

test('accounts take turns, endpoint by endpoint', async () => {
  const searches: string[] = []
  await using at = await newControl({
    searchEndpoint: (options) => {
      searches.push(options.endpoint.account_id)
      return searchEndpoint(options)
    },
  })
  const first = await inhabited(at)
  const second = await inhabited(at, first.account)
  const rest = [await inhabited(at), await inhabited(at), await inhabited(at), await inhabited(at)]
  for (const each of [first, second, ...rest]) await each.remove()
  at.clock.advance(60_001)
  await until('all searches', () => searches.length === 6)
  expect(new Set(searches.slice(0, 5)).size).toBe(5)
})

test('of several machines of an endpoint take one reading', async () => {
  const searches: string[] = []
  await using at = await newControl({
    searchEndpoint: (options) => {
      searches.push(options.endpoint.endpoint_id)
      return searchEndpoint(options)
    },
  })
  const { account, deliver, endpoint, node, remove, losses, searched } = await inhabited(at)
  const other = await TestNode.register(at, node.region)
  await other.heartbeat({}, { lag: [aLag(endpoint.id, held)] })
  await Promise.all([deliver(4), deliver(5, { by: other })])
  await remove()
  at.clock.advance(10_000)
  await remove(other)
  const [{ id }] = await losses()
  await account.post(`/v1/losses/${id}/confirm`)
  at.clock.advance(60_001)
  await searched()
  expect((await losses()).map(({ recovered }: { recovered: object }) => recovered)).toMatchObject([
    { segments: 1 },
    { segments: 1 },
  ])
  expect(searches).toEqual([endpoint.id])
})

test('cost one list of a folder, and one read for each marker of the node without a commit', async () => {
  await using at = await newControl()
  const { account, endpoint, node, destination, deliver } = await inhabited(at)
  await node.call('POST', 'commits', { commits: [await deliver(3)] })
  await Promise.all([deliver(4), deliver(4, { by: await TestNode.register(at, node.region) })])
  const directory = new DirectoryStores({ ...system, root: join(at.directory, 'buckets') })
  const bucket = directory.open(destination)
  const old = {
    endpointId: endpoint.id,
    nodeId: node.id,
    incarnation: 'abcdefghij',
    seq: 1,
    sealedAtMicros: Date.UTC(2020, 0, 1) * 1000,
  }
  const put = (key: string) => bucket.put(key, Buffer.from('{}'), { contentType: 'application/json', metadata: {} })
  for (let each = 0; each < 20; each += 1) await put(`${endpoint.id}/_inlet/commits/dt=2020-01-01/junk-${each}`)
  await put(objectKey('', old, { type: 'marker' }))
  const damaged = objectKey('', { ...old, seq: 5 }, { type: 'marker' })
  await put(damaged)
  const requests: string[] = []
  const stores: ObjectStores = {
    open: (target) => {
      const opened = directory.open(target)
      return Object.assign(Object.create(opened), {
        list: (prefix: string) => {
          requests.push('list')
          return opened.list(prefix)
        },
        get: (key: string) => {
          requests.push('get')
          return opened.get(key)
        },
      })
    },
  }
  const searching = { ids: [], nodes: new Map([[node.id, 4]]), since: at.clock.now(), until: at.clock.now() }
  const found = await searchEndpoint({
    ...{ store: at.store, stores, clock: at.clock, keptMs: 30 * 86_400_000, unreadable: new Map() },
    ...{ signal: new AbortController().signal, deadline: new AbortController().signal, logger: Object.create(null) },
    endpoint: { account_id: account.account_id, endpoint_id: endpoint.id, ...searching },
  })
  const doubts = [expect.stringContaining(`1 marker not accepted, such as ${destination.bucket}/${damaged}: damaged`)]
  expect(found).toEqual({ recorded: 1, unread: [], empty: [], doubts })
  expect(requests).toEqual(['list', 'get', 'get'])
})
