/** Bindings decide the views of a segment by the time of its seal. Real control, log and delivery run in this process. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Config, readConfig } from '#config/config.ts'
import { type App, startDelivery } from '#delivery/app.ts'
import { must } from '#lib/assert.ts'
import { systemClock } from '#lib/clock.ts'
import { systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import type { Binding } from '#model/binding.ts'
import type { Commit } from '#model/commit.ts'
import type { Job } from '#model/job.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import type { View } from '#model/view.ts'
import { NodeCredential } from '#node/credential.ts'
import { readOrCreateNodeId } from '#node/identity.ts'
import { newControl, newRegion, nodeToken, type TestAccount, type TestControl } from '../support/control.ts'
import { conversionPool } from '../support/delivery-node.ts'
import { FaultyStores } from '../support/faulty-stores.ts'
import { readMarkers } from '../support/markers.ts'
import { runs } from '../support/thorough.ts'
import { until } from '../support/until.ts'

const logger = createLogger('delivery', 'silent')
let control: TestControl
let account: TestAccount
let config: Config
let endpoint = ''
let wal: LocalLogWriter
let delivery: App | undefined
let sealed = 0

beforeEach(async () => {
  control = await newControl()
  account = await control.newAccount()
  config = readConfig({
    INLET_DATA_DIR: await mkdtemp(join(tmpdir(), 'inlet-bindings-')),
    INLET_NODE_TOKEN: nodeToken,
    INLET_CONTROL_URL: control.app.nodeApiUrl,
  })
  const region = newRegion()
  const { nodeId: node_id, secret } = await NodeCredential.open(
    await readOrCreateNodeId(config.paths, system),
    config.paths.nodeCredential,
    system,
  )
  const node = { node_id, secret, previous_secret: null, region, ipv4: [], ipv6: [], ingest_address: 'node:1' }
  await control.call('POST', '/internal/v1/join', node, { authorization: `Bearer ${nodeToken}` })
  const destination = { name: 'lake', bucket: 'lake', region: 'local', role_arn: 'arn:aws:iam::123456789012:role/ingest' }
  const { body } = await account.post('/v1/destinations', destination)
  endpoint = (await account.post('/v1/endpoints', { region, destination_id: body.id })).body.id
  wal = new LocalLogWriter({ ...system, directory: config.paths.wal, logger })
  await wal.start()
  // Each append is sealed at once.
  wal.configure(endpoint, { segmentBytes: 1_000_000, segmentMaxAgeMs: 0, seqAbove: -1 })
  sealed = 0
  await startNode()
})
afterEach(async () => {
  await stopNode()
  await wal.stop(AbortSignal.timeout(5_000))
  await control[Symbol.asyncDispose]()
  await rm(config.dataDirectory, { recursive: true, force: true })
})

async function startNode(): Promise<void> {
  delivery ??= await startDelivery(config, {
    logger,
    clock: systemClock,
    stores: new FaultyStores(config.paths.buckets),
    conversionPool,
  })
}

async function stopNode(): Promise<void> {
  await delivery?.stop(AbortSignal.abort())
  delivery = undefined
}

/** Appends a record. Its segment is sealed soon; until then another record may join it. */
async function append(): Promise<void> {
  const [received, payload] = [Date.now() * 1000, [Buffer.from('{"n":1}')]]
  const envelope = encodeEnvelope({ protocol: 'http' })
  const { seq } = await wal.append(endpoint, { layout: 'lines', receivedAtMicros: received, recordCount: 1, envelope, payload })
  sealed = seq + 1
}

/** Appends a record in a segment of its own. */
async function seal(): Promise<void> {
  await append()
  await until('the seal', async () => !(await segmentFiles()).some((name) => name.endsWith('.open')))
}

async function publish(name: string): Promise<string> {
  const { body } = await account.post('/v1/views', {
    name,
    definition: { columns: [{ name: 'n', type: 'INTEGER', path: '$.n' }] },
  })
  await account.post(`/v1/views/${body.id}/publish`)
  return body.id
}

async function nextVersion(view: string): Promise<string> {
  const { body } = await account.post(`/v1/views/${view}/versions`)
  await account.post(`/v1/views/${body.id}/publish`)
  return body.id
}

const attach = (view_id: string, more: object = {}) => account.post(`/v1/endpoints/${endpoint}/views`, { view_id, ...more })
const detach = (binding: string) => account.delete(`/v1/endpoints/${endpoint}/views/${binding}`)
const bindings = async (): Promise<readonly Binding[]> => (await account.get(`/v1/endpoints/${endpoint}/views`)).body.items
const commits = async (): Promise<readonly Commit[]> =>
  (await account.get(`/v1/endpoints/${endpoint}/commits?limit=200`)).body.items
/** Without those of jobs, which end when they like. */
const markers = () => readMarkers(join(config.paths.buckets, 'lake'), '', endpoint).filter((marker) => !('commit_id' in marker))
const delivered = () => until('all commits', async () => (await commits()).length === sealed, 180_000)

/** The rule, from what the API says about the bindings. */
function viewsAt(all: readonly Binding[], sealedAt: string): readonly string[] {
  const active = all.filter(
    ({ activated_at, deactivated_at, canary_start_ts }) =>
      activated_at <= sealedAt &&
      (deactivated_at === null || deactivated_at > sealedAt) &&
      (canary_start_ts === null || canary_start_ts <= sealedAt),
  )
  return active.map(({ view_id }) => view_id).toSorted()
}

async function expectTheRule(): Promise<void> {
  const all = await bindings()
  expect(markers()).toHaveLength(sealed)
  for (const { seq, sealed_at, views } of markers()) {
    const actual = views.map(({ view_id }) => view_id).toSorted()
    expect({ seq, sealed_at, views: actual }).toEqual({ seq, sealed_at, views: viewsAt(all, sealed_at) })
  }
}

async function backfill(view: string): Promise<Job> {
  const { status, body } = await account.post(`/v1/views/${view}/backfill`, { endpoint_id: endpoint })
  expect(status).toBe(202)
  return body
}

async function ended(job: Job): Promise<Job> {
  let found = job
  await until(
    'the end of the job',
    async () => {
      found = (await account.get(`/v1/jobs/${job.id}`)).body
      return found.finished_at !== null
    },
    60_000,
  )
  return found
}

test('a segment that waited keeps the views of its seal, and gets none that was attached later', async () => {
  const [detached, archived, later] = [await publish('detached'), await publish('archived'), await publish('later')]
  const { body: binding } = await attach(detached)
  await attach(archived)
  await stopNode()
  await seal()
  await seal()
  expect((await segmentFiles()).filter((name) => name.endsWith('.wal'))).toHaveLength(2)
  await detach(binding.id)
  await account.post(`/v1/views/${archived}/archive`)
  await attach(later)
  const job = await backfill(later)
  await startNode()
  await delivered()
  for (const { views } of markers())
    expect(views.map(({ view_id }) => view_id).toSorted()).toEqual([detached, archived].toSorted())
  const { body: metrics } = await account.get(`/v1/views/${detached}/metrics`)
  expect(metrics.aggregated.all_time).toMatchObject({ processed: 2, accepted: 2 })
  // The backfill was created before these segments were committed, and covers them.
  expect(await ended(job)).toMatchObject({ status: 'succeeded', segments: { total: 2, done: 2 } })
  await seal()
  await delivered()
  await expectTheRule()
})

test('whatever is attached, detached, archived and sealed in which order, each segment gets the views of its seal', async () => {
  const lineages = [await publish('a'), await publish('b')]
  const pool = [...lineages, ...(await Promise.all(lineages.map(nextVersion)))]
  const seed = Number(process.env['INLET_TEST_SEED'] ?? randomBytes(4).readUInt32LE())
  const steps = fc.sample(fc.tuple(fc.nat(99), fc.nat(999)), { seed, numRuns: runs(40, 250) })
  for (const [kind, number] of steps) {
    const active = (await bindings()).filter(({ status }) => status === 'active')
    const view = must(pool[number % pool.length], 'a view')
    if (kind < 45) await append()
    else if (kind < 62) await attach(view, { is_required: number % 2 === 0 })
    else if (kind < 70) await attach(view, { canary_start_ts: new Date(Date.now() + (number % 200) - 50).toISOString() })
    else if (kind < 86) await detach(active[number % active.length]?.id ?? view)
    else if (kind < 88) await account.post(`/v1/views/${view}/archive`)
    else if (kind < 92) await stopNode()
    else await startNode()
  }
  await startNode()
  await delivered()
  await expectTheRule().catch((error: unknown) => {
    throw new Error(`seed ${seed}`, { cause: error })
  })

  // Backfills cover exactly the rest.
  const [all, live] = [await bindings(), markers()]
  const views = await Promise.all(pool.map(async (view): Promise<View> => (await account.get(`/v1/views/${view}`)).body))
  const published = views.filter(({ status }) => status === 'published').slice(0, runs(1, 4))
  const jobs = await Promise.all(published.map(({ id }) => backfill(id)))
  for (const [index, { id: view, name, version }] of published.entries()) {
    const { segments } = await ended(must(jobs[index], 'a job'))
    const applied = live.filter(({ sealed_at }) => viewsAt(all, sealed_at).includes(view)).length
    expect({ seed, segments }).toEqual({ seed, segments: { total: sealed, done: sealed - applied, skipped: applied, failed: 0 } })
    for (const { artifacts } of await commits()) expect(Object.keys(artifacts)).toContain(`views/${name}/v${version}`)
  }
}, 600_000)

async function segmentFiles(): Promise<readonly string[]> {
  return (await systemFiles.list(join(config.paths.wal, endpoint))).map(({ name }) => name)
}
