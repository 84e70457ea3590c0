/** An earlier leader: whatever it still decides is refused, and reaches neither the database nor anything that follows it. */
import { sql } from 'kysely'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { startDueCompactions } from '#control/upkeep/automatic-compactions.ts'
import { must } from '#lib/assert.ts'
import { systemClock } from '#lib/clock.ts'
import { createLogger, type Logger } from '#lib/telemetry.ts'
import { objectKey } from '#model/artifact.ts'
import { commitId } from '#model/commit.ts'
import { newId } from '#model/id.ts'
import { compactionLimits } from '#model/limits.ts'
import { orderDue } from '#naming/certificates/renewals.ts'
import { DnsPublisher } from '#naming/dns/publisher.ts'
import { ControlOutages } from '#naming/outages.ts'
import { currentEpoch, inNewEpoch } from '#store/cluster/epoch.ts'
import { ElectedLeadership } from '#store/cluster/leadership.ts'
import { recordCommit } from '#store/commits/commits.ts'
import { listJobs } from '#store/jobs/jobs.ts'
import { withinTerm } from '#store/leader-term.ts'
import { listCertificates } from '#store/naming/certificates.ts'
import { claimNodeId } from '#store/nodes/node-credentials.ts'
import { recordHeartbeat, registerNode } from '#store/nodes/nodes.ts'
import { openStore, type Store, transact } from '#store/store.ts'
import { newStore, postgresUrl } from '../support/databases.ts'
import { keyring } from '../support/keyring.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'
import { aWire } from '../support/wire.ts'
import { ZoneInMemory } from '../support/zone-in-memory.ts'
import { aCommit, anAccount, anEndpoint, aStoredEndpoint, describeStores, iso } from './fixtures.ts'

const logger = pino({ level: 'silent' }) as unknown as Logger
const { signal: never } = new AbortController()
const older = { code: 'older_leader_term', message: expect.stringContaining('the term 1 of the leader is over') }

/** Runs work of the leader of term 1, while that of term 2 has begun. */
async function late<T>(
  store: Store,
  work: () => Promise<T>,
): Promise<{ readonly isTold: () => boolean; readonly done: Promise<T> }> {
  await store.db.updateTable('leader').set({ term: 2 }).execute()
  let told = false
  const onOver = () => {
    told = true
  }
  return { isTold: () => told, done: withinTerm({ term: 1, onOver }, work) }
}

async function aServingNode(store: Store, clock: ManualClock): Promise<void> {
  const node_id = newId()
  await registerNode(store.db, { node_id, region: 'fra', ipv4: ['192.0.2.1'], ipv6: [], ingest_address: 'node:1' }, clock.now())
  await transact(store, (db) => claimNodeId(db, node_id, { hash: node_id, previousHash: null, joinTokenId: null }))
  const applied_epoch = await currentEpoch(store.db)
  const well = { node_id, applied_epoch, healthy: true, reasons: [], disk_full: false, blocked: [] }
  await transact(store, (db) => recordHeartbeat(db, { process: 'ingest', ...well }, clock.now()))
}

describeStores('the term of the leader', (test) => {
  test('a transaction of an earlier leader is refused and changes nothing; others are not asked', async ({ store }) => {
    const begin = () => inNewEpoch(store, async (_, epoch) => epoch)
    const before = await currentEpoch(store.db)
    const { isTold, done } = await late(store, begin)
    await expect(done).rejects.toMatchObject(older)
    expect([isTold(), await currentEpoch(store.db)]).toEqual([true, before])
    expect(await begin()).toBe(before + 1)
    expect(await withinTerm({ term: 2, onOver: () => undefined }, begin)).toBe(before + 2)
  })

  test('a leader whose lock seems to be held stops leading', async ({ store }) => {
    const lock = { term: 1, closed: 0 }
    const newLock = () => ({
      hold: async () => lock.term,
      close: async () => {
        lock.closed += 1
      },
    })
    const leadership = new ElectedLeadership({ newLock, clock: new ManualClock(), logger: createLogger('test', 'silent') })
    await store.db.updateTable('leader').set({ term: 1 }).execute()
    await leadership.start()
    const write = leadership.whileLeading(async () => void (await inNewEpoch(store, async () => undefined)))
    const before = await currentEpoch(store.db)
    await write(never)
    expect([leadership.isLeader, await currentEpoch(store.db)]).toEqual([true, before + 1])
    await store.db.updateTable('leader').set({ term: 2 }).execute()
    await write(never)
    expect([leadership.isLeader, lock.closed, await currentEpoch(store.db)]).toEqual([false, 1, before + 1])
    await leadership.stop()
  })

  test('a change of DNS is not sent', async ({ store }) => {
    const [clock, zone] = [new ManualClock(), new ZoneInMemory()]
    const account = await anAccount(store)
    await aStoredEndpoint(store, account, anEndpoint({ label: 'abc', region: 'fra' }))
    await aServingNode(store, clock)
    const outages = new ControlOutages(clock, clock.now())
    const publisher = new DnsPublisher({
      ...{ store, provider: zone, outages, baseDomain: 'inlet.test', ttlSeconds: 30, clock, logger },
    })
    const { isTold, done } = await late(store, () => publisher.pass(never))
    await expect(done).rejects.toMatchObject(older)
    expect([isTold(), zone.calls.length]).toEqual([true, 0])
    await withinTerm({ term: 2, onOver: () => undefined }, () => publisher.pass(never))
    expect(zone.calls.length).toBe(1)
  })

  test('a certificate that was ordered is not recorded, nor that its order failed', async ({ store }) => {
    const clock = new ManualClock()
    await aServingNode(store, clock)
    const options = {
      ...{ store, keyring, baseDomain: 'inlet.test', ownName: null, clock, logger },
      issuer: { id: 'a test', issue: () => Promise.reject(new Error('the issuer is away')) },
      applyChange: <T>(work: Parameters<typeof inNewEpoch<T>>[1]) => inNewEpoch(store, work),
    }
    const { isTold, done } = await late(store, () => orderDue(options, never))
    await expect(done).rejects.toMatchObject(older)
    expect([isTold(), await listCertificates(store.db)]).toEqual([true, []])
    await withinTerm({ term: 2, onOver: () => undefined }, () => orderDue(options, never))
    expect(await listCertificates(store.db)).toMatchObject([{ last_error: 'the issuer is away' }])
  })

  test('a compaction that is due is not started', async ({ store }) => {
    const account = await anAccount(store)
    const midnight = Date.parse('2026-11-20T00:00:00.000Z')
    const compaction = { period: 'day' as const, except_views: [], remove_after_hours: null }
    const { id } = await aStoredEndpoint(store, account, { compaction })
    const destination = { id: newId(), bucket: 'lake', region: 'eu' }
    for (const seq of [1, 2]) {
      const sealedAt = midnight + seq
      const commit = aCommit(id, seq, { sealed_at: iso(sealedAt), destination })
      const name = { endpointId: id, nodeId: commit.node_id, incarnation: commit.log, seq, sealedAtMicros: sealedAt * 1000 }
      const artifacts = { parquet: { key: objectKey('p', name, { type: 'parquet' }), bytes: 10, rows: 5, sha256: 'ab' } }
      const placed = { ...commit, id: commitId(commit.node_id, commit.log, seq), artifacts }
      await transact(store, (db) => recordCommit(db, placed, sealedAt))
    }
    const clock = new ManualClock(midnight + 86_400_000 + compactionLimits.marginMs.day)
    const jobs = async () => (await listJobs(store.db, account, { limit: 10, offset: 0 })).items.length
    const { isTold, done } = await late(store, () => startDueCompactions({ store, clock, logger }, never))
    await done
    expect([isTold(), await jobs()]).toEqual([true, 0])
    await withinTerm({ term: 2, onOver: () => undefined }, () => startDueCompactions({ store, clock, logger }, never))
    expect(await jobs()).toBe(1)
  })
})

async function aProcess(url: string) {
  const store = await openStore(url)
  const newLock = must(store.newLeaderLock, 'the lock of Postgres')
  const leadership = new ElectedLeadership({ newLock, clock: systemClock, logger: createLogger('test', 'silent') })
  await leadership.start()
  return {
    ...{ store, leadership },
    async [Symbol.asyncDispose]() {
      await leadership.stop()
      await store.close()
    },
  }
}

describe.skipIf(postgresUrl === undefined)('terms on Postgres (skipped without INLET_TEST_POSTGRES)', () => {
  test('each leader has a higher one; a leader that was cut off and goes on writes nothing', async () => {
    await using store = await newStore('postgres')
    await using wire = await aWire(store.url)
    await using leader = await aProcess(wire.url)
    await using follower = await aProcess(store.url)
    expect([leader.leadership.term, follower.leadership.term]).toEqual([1, 0])
    // Its work reaches the database on another way than its lock.
    const { promise: isReplaced, resolve: replaced } = Promise.withResolvers<void>()
    let refusal: unknown
    const work = leader.leadership.whileLeading(async () => {
      await isReplaced
      refusal = await inNewEpoch(store, async () => 'written').catch((error: unknown) => error)
    })(never)
    wire.freeze()
    await until('the other process leads', () => follower.leadership.term === 2, 20_000)
    replaced()
    await work
    expect(refusal).toMatchObject(older)
    wire.thaw()
  })

  test('a transaction that an earlier leader has begun ends before the next term begins', async () => {
    await using store = await newStore('postgres')
    await using leader = await aProcess(store.url)
    await using follower = await aProcess(store.url)
    const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>()
    const steps: string[] = []
    let hasBegun = false
    const work = leader.leadership.whileLeading(() =>
      transact(store, async (db) => {
        hasBegun = true
        await sql`select 1`.execute(db)
        await mayEnd
        steps.push('written')
      }),
    )(never)
    await until('the transaction has begun', () => hasBegun)
    await sql`select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objid = 'epoch'::regclass::oid`.execute(
      store.db,
    )
    const waits = sql`select 1 from pg_stat_activity where query like 'update leader %' and wait_event_type = 'Lock'`
    await until('a new leader waits', async () => (await waits.execute(store.db)).rows.length === 1)
    expect(leader.leadership.term + follower.leadership.term).toBe(0)
    end()
    await work
    await until('it leads', () => leader.leadership.term + follower.leadership.term === 2)
    expect(steps).toEqual(['written'])
  })
})
