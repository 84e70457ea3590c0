import { expect } from 'vitest'
import { Snapshots } from '#control/fleet/snapshots.ts'
import { must } from '#lib/assert.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { insertSigningKey } from '#store/accounts/signing-keys.ts'
import { currentEpoch, inNewEpoch } from '#store/cluster/epoch.ts'
import { EpochFeed } from '#store/cluster/epoch-feed.ts'
import { setDesiredState } from '#store/endpoints/endpoints.ts'
import { registerNode } from '#store/nodes/nodes.ts'
import { keyring } from '../support/keyring.ts'
import { until } from '../support/until.ts'
import { aStoredEndpoint, describeStores, t0 } from './fixtures.ts'

/** One buffer may have several lines. */
function linesOf(answer: readonly Buffer[] | undefined): readonly string[] {
  return Buffer.concat(must(answer, 'an answer')).toString().trimEnd().split('\n')
}

describeStores('Snapshots', (test) => {
  test('an answer has the epoch of its sections also if a change follows while versions are read', async ({ store, account }) => {
    const { id, region } = await aStoredEndpoint(store, account)
    const node_id = newId()
    await registerNode(store.db, { node_id, region, ipv4: [], ipv6: [], ingest_address: 'node.example:443' }, t0)
    let isRacing = false
    const readEpoch = async () => {
      const epoch = await currentEpoch(store.db)
      if (isRacing) await inNewEpoch(store, (db) => setDesiredState(db, account, id, 'active'))
      isRacing = false
      return epoch
    }
    let waits = 0
    const setTimer: Clock['setTimer'] = (run, ms) => {
      waits += 1
      return systemClock.setTimer(run, ms)
    }
    const feed = new EpochFeed({ readEpoch, clock: { ...systemClock, setTimer }, logger: createLogger('test', 'silent') })
    const readPublicKeys = async () => ({ keys: [] })
    const snapshots = new Snapshots({ store, feed, readPublicKeys, keyring, clock: systemClock, issuer: 'i', baseDomain: null })
    const { signal } = new AbortController()
    const poll = async (epoch: number, have: Record<string, string>) => {
      const answer = await snapshots.poll({ node_id, epoch, kinds: ['endpoints'], have, wait_ms: 5_000 }, signal)
      return linesOf(answer).map((line) => JSON.parse(line))
    }
    const [section, end] = await poll(-1, {})
    // The first of two waiting calls builds the section, and the second is answered from the cache.
    const waiting = [0, 1].map(() => poll(end.epoch, { [section.name]: section.version }))
    await until('both wait', () => waits === 2)
    await inNewEpoch(store, (db) => setDesiredState(db, account, id, 'paused'))
    isRacing = true
    await feed.refresh()
    const answers = await Promise.all(waiting)
    const epoch = await currentEpoch(store.db)
    expect(answers.map((lines) => lines.at(-1).epoch)).toEqual([epoch, epoch])
  })

  test('of the nodes that ask at the same time, one has a section built', async ({ store }) => {
    const node_id = newId()
    await registerNode(store.db, { node_id, region: 'loc', ipv4: [], ipv6: [], ingest_address: 'node.example:443' }, t0)
    const signingKey = { kid: 'k', private_jwk: {}, created_at: new Date(t0).toISOString() }
    await inNewEpoch(store, (db) => insertSigningKey(db, keyring, signingKey))
    const feed = new EpochFeed({
      readEpoch: () => currentEpoch(store.db),
      clock: systemClock,
      logger: createLogger('test', 'silent'),
    })
    let built = 0
    const readPublicKeys = async () => {
      built += 1
      return { keys: [] }
    }
    const snapshots = new Snapshots({ store, feed, readPublicKeys, keyring, clock: systemClock, issuer: 'i', baseDomain: null })
    const request = { node_id, epoch: -1, kinds: ['installation' as const], have: {}, wait_ms: 0 }
    const { signal } = new AbortController()
    const answers = await Promise.all(Array.from({ length: 5 }, () => snapshots.poll(request, signal)))
    expect(answers.map((answer) => linesOf(answer).length)).toEqual([2, 2, 2, 2, 2])
    expect(built).toBe(1)
  })
})
