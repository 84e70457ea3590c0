import { expect } from 'vitest'
import { readConfig } from '#config/config.ts'
import type { Clock } from '#lib/clock.ts'
import { systemClock } from '#lib/clock.ts'
import { newId } from '#model/id.ts'
import { listAuditEvents } from '#store/accounts/audit-events.ts'
import { recordCommit, restoreCommit } from '#store/commits/commits.ts'
import { listLosses, sumOpenLosses } from '#store/commits/losses.ts'
import { claimNodeId, findNodeCredential, findRemovedCredential } from '#store/nodes/node-credentials.ts'
import { releaseNodeId, removeNode } from '#store/nodes/node-removal.ts'
import { recordHeartbeat, registerNode } from '#store/nodes/nodes.ts'
import { transact } from '#store/store.ts'
import { runCli } from '../support/cli.ts'
import type { TestStore } from '../support/databases.ts'
import { aLag } from '../support/lags.ts'
import { aCommit, anAccount, aStoredEndpoint, describeStores, t0 } from './fixtures.ts'

const clock: Clock = { ...systemClock, now: () => t0 + 60_000 }

function inlet(url: string, ...args: readonly string[]) {
  return runCli(['nodes', ...args], { config: readConfig({ INLET_DATABASE_URL: url }), clock })
}

/** A node that last reported a minute ago. */
async function aNode(store: TestStore, lag = [aLag(newId())]): Promise<string> {
  const node_id = newId()
  await registerNode(
    store.db,
    { node_id, region: 'fra', ipv4: ['192.0.2.1'], ipv6: ['::1'], ingest_address: '10.0.0.1:8081' },
    t0,
  )
  const beat = { node_id, applied_epoch: 1, healthy: true, reasons: [] }
  await transact(store, async (db) => {
    await claimNodeId(db, node_id, { hash: 'ab', previousHash: null, joinTokenId: null })
    await recordHeartbeat(db, { process: 'ingest', ...beat, disk_full: false, blocked: [] }, t0)
    await recordHeartbeat(db, { process: 'delivery', ...beat, healthy: false, lag }, t0)
  })
  return node_id
}

describeStores('inlet nodes', (test) => {
  test('list shows when each process last reported, and what is on the disk', async ({ store }) => {
    expect((await inlet(store.url, 'list')).out).toBe('There are no nodes.\n')
    const id = await aNode(store)
    const beat = { node_id: id, applied_epoch: 1, healthy: true, reasons: [], disk_full: false, blocked: [] }
    const disk = { free_bytes: 1_000, total_bytes: 2_000 }
    await transact(store, (db) => recordHeartbeat(db, { process: 'ingest', ...beat, disk }, t0 + 58_000))
    expect((await inlet(store.url, 'list')).out).toMatch(
      new RegExp(
        `^${id}  -     fra +unknown +10.0.0.1:8081  192.0.2.1 and 1 more  healthy, 2 s ago  silent for 60 s  active +1 +9 +1000$`,
        'm',
      ),
    )
  })

  test('rename gives a node a name, which commands take for its id', async ({ store }) => {
    const [id, other] = [await aNode(store), await aNode(store, [])]
    expect(await inlet(store.url, 'rename', id, 'fra-1')).toMatchObject({
      code: 0,
      out: `The node ${id} is now named "fra-1".\n`,
    })
    expect(await inlet(store.url, 'rename', other, 'fra-1')).toMatchObject({ code: 1, err: 'another node has this name\n' })
    expect(await inlet(store.url, 'rename', other, id)).toMatchObject({
      err: expect.stringContaining('NAME: must not be a UUID'),
    })
    expect((await inlet(store.url, 'list')).out).toMatch(new RegExp(`^${id}  fra-1  fra`, 'm'))
    await inlet(store.url, 'rename', 'fra-1', 'fra-2')
    for (const none of [
      ['rename', id],
      ['rename', id, 'fra-3', '--none'],
    ])
      expect((await inlet(store.url, ...none)).err).toContain('--none to take its name away')
    expect((await inlet(store.url, 'rename', 'fra-2', '--none')).out).toBe(`The node ${id} has no name now.\n`)
    expect((await inlet(store.url, 'rename', id, '')).err).toContain(', or --none')
    await inlet(store.url, 'rename', id, 'fra-2')
    expect(await inlet(store.url, 'remove', 'fra-1', '--yes')).toMatchObject({ code: 1, err: 'no node has the name fra-1\n' })
    expect((await inlet(store.url, 'remove', 'fra-2', '--yes')).out).toContain(`The node ${id} is removed.`)
    const { items } = await listAuditEvents(store.db, undefined, { limit: 10 })
    expect(items.map(({ operation, result }) => `${operation} ${result}`).toSorted()).toEqual([
      ...['changeNode failed', ...Array(4).fill('changeNode succeeded'), 'removeNode succeeded'],
    ])
  })

  test('remove says what would be abandoned, and removes the node only with --yes', async ({ store }) => {
    const endpoint = newId()
    const id = await aNode(store, [aLag(endpoint, { parked_segments: 1 })])
    const asked = await inlet(store.url, 'remove', id)
    expect(asked).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^nothing was removed: .*repeat the command with --yes\n$/),
    })
    expect(asked.out).toMatch(new RegExp(`^${endpoint}  - +- +unknown +2 +- +- +9$`, 'm'))
    expect(asked.out).toContain('2 segments (9 bytes).\nWhat is abandoned stays on its disk.')
    expect((await inlet(store.url, 'list')).out).toContain(id)

    const { code, out } = await inlet(store.url, 'remove', id, '--yes')
    expect([code, out]).toEqual([0, expect.stringContaining(`The node ${id} is removed.`)])
    expect((await inlet(store.url, 'list')).out).toBe('There are no nodes.\n')
    expect(await inlet(store.url, 'remove', id, '--yes')).toMatchObject({ code: 1, err: 'there is no such node\n' })
    const { items } = await listAuditEvents(store.db, undefined, { limit: 5 })
    expect(items).toMatchObject([{ operation: 'removeNode', actor: 'cli', resource_id: id, result: 'succeeded' }])
  })

  test('remove records what is lost with the disk, for the account of the endpoint', async ({ store }) => {
    const account = await anAccount(store)
    const { id: endpoint } = await aStoredEndpoint(store, account, { region: 'fra' })
    const id = await aNode(store, [aLag(endpoint, { open_segments: 1, records: 12, first_seq: 3, last_seq: 4 }), aLag(newId())])
    expect((await inlet(store.url, 'remove', id)).out).toMatch(new RegExp(`^${endpoint} .* active +2 +3 +12 +9$`, 'm'))
    expect((await listLosses(store.db, account, { limit: 5, offset: 0 })).items).toEqual([])
    expect((await inlet(store.url, 'remove', id, '--yes')).out).toMatch(
      /\n1 loss is recorded: .*\nIt says as of when it is: what was acknowledged later is lost as well\.\n$/,
    )
    const { items } = await listLosses(store.db, account, { limit: 5, offset: 0 })
    expect(items).toMatchObject([{ endpoint_id: endpoint, node_id: id, segments: 2, records: 12, first_segment_seq: 3 }])
    expect(await sumOpenLosses(store.db)).toEqual({ losses: 1, records: 12, bytes: 9 })
    expect((await inlet(store.url, 'losses')).out).toMatch(
      new RegExp(`open +${account} .* 2 +12 +9 +${items[0]?.reported_at} +- +${items[0]?.id} +-$`, 'm'),
    )
    expect((await inlet(store.url, 'losses', '--account', newId())).out).toBe('There are no losses.\n')
    expect((await inlet(store.url, 'losses', '--state', 'perhaps')).err).toContain('--state: ')
    const restored = aCommit(endpoint, 3, { node_id: id, records: 5 })
    await transact(store, (db) => restoreCommit(db, restored, t0))
    await transact(store, (db) => recordCommit(db, aCommit(endpoint, 4, { node_id: id, records: 7 }), t0))
    const [recovered] = (await listLosses(store.db, account, { limit: 5, offset: 0 })).items
    expect(recovered).toMatchObject({ state: 'recovered', recovered: { segments: 2, records: 12 } })
    expect(await sumOpenLosses(store.db)).toEqual({ losses: 0, records: 0, bytes: 0 })
    expect(await inlet(store.url, 'confirm-loss', String(recovered?.id))).toMatchObject({
      code: 1,
      err: expect.stringContaining('there is nothing to confirm'),
    })
  })

  test('confirm-loss accepts a loss for its account, whose audit trail has it', async ({ store }) => {
    const account = await anAccount(store)
    const { id: endpoint } = await aStoredEndpoint(store, account, { region: 'fra' })
    const node = await aNode(store, [aLag(endpoint, { open_segments: 1, records: 12, first_seq: 3, last_seq: 4 })])
    await inlet(store.url, 'remove', node, '--yes')
    const [loss] = (await listLosses(store.db, undefined, { limit: 5, offset: 0 })).items
    const confirmed = await inlet(store.url, 'confirm-loss', String(loss?.id))
    expect(confirmed).toMatchObject({
      code: 0,
      out: expect.stringMatching(
        `account ${account}: up to 12 acknowledged records of .* on node ${node}, as of .*, and what was acknowledged later\\.`,
      ),
    })
    expect(await sumOpenLosses(store.db)).toMatchObject({ losses: 0 })
    expect(await inlet(store.url, 'confirm-loss', String(loss?.id))).toMatchObject({ code: 0 })
    const { items } = await listAuditEvents(store.db, account, { limit: 2, operation: 'confirmInstallationLoss' })
    expect(items).toMatchObject([{ operation: 'confirmInstallationLoss', actor: 'cli', resource_id: loss?.id }])
    expect(await inlet(store.url, 'confirm-loss', newId())).toMatchObject({ code: 1, err: 'no such loss\n' })
  })

  test('two removals at once record the loss once', async ({ store }) => {
    const account = await anAccount(store)
    const { id: endpoint } = await aStoredEndpoint(store, account, { region: 'fra' })
    const id = await aNode(store, [aLag(endpoint, { open_segments: 1, records: 12, first_seq: 3, last_seq: 4 })])
    const remove = () => transact(store, (db) => removeNode(db, id, true, t0))
    const outcomes = await Promise.allSettled([remove(), remove(), remove()])
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'not_found' } })
    expect((await listLosses(store.db, account, { limit: 5, offset: 0 })).items).toHaveLength(1)
  })

  test('two releases at once record the loss once', async ({ store }) => {
    const account = await anAccount(store)
    const { id: endpoint } = await aStoredEndpoint(store, account, { region: 'fra' })
    const id = await aNode(store, [aLag(endpoint, { open_segments: 1, records: 12, first_seq: 3, last_seq: 4 })])
    const release = () => transact(store, (db) => releaseNodeId(db, id, false, t0 + 60_000))
    expect((await Promise.all([release(), release()])).toSorted()).toEqual([0, 1])
  })

  test('release needs --yes while the node runs', async ({ store }) => {
    const id = await aNode(store, [])
    const beat = { node_id: id, applied_epoch: 1, healthy: true, reasons: [], disk_full: false, blocked: [] }
    await transact(store, (db) => recordHeartbeat(db, { process: 'ingest', ...beat }, t0 + 58_000))
    const refused = await inlet(store.url, 'release', id)
    expect(refused).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^nothing was released: the node runs: .*repeat the command with --yes\n$/),
    })
    expect(await inlet(store.url, 'release', id, '--yes')).toMatchObject({ code: 0 })
  })

  test('revoke refuses the credential of a node, also once that is removed', async ({ store }) => {
    const id = await aNode(store)
    expect(await inlet(store.url, 'revoke', id)).toMatchObject({
      code: 0,
      out: `The credential of the node ${id} is refused from now on.\n`,
    })
    expect((await findNodeCredential(store.db, id))?.credential_revoked_at).toBe(t0 + 60_000)
    const other = await aNode(store)
    await inlet(store.url, 'remove', other, '--yes')
    expect(JSON.parse((await inlet(store.url, 'revoke', other, '--json')).out)).toEqual({ id: other, revoked: true })
    expect(await findRemovedCredential(store.db, other)).toMatchObject({ revoked_at: t0 + 60_000 })
    const { items } = await listAuditEvents(store.db, undefined, { limit: 10 })
    expect(items.filter(({ operation }) => operation === 'revokeNodeCredential')).toHaveLength(2)
    expect(await inlet(store.url, 'revoke', newId())).toMatchObject({ code: 1, err: 'there is no such node\n' })
  })

  test('release lets another machine have the id', async ({ store }) => {
    const id = await aNode(store, [])
    const claim = (hash: string) => transact(store, (db) => claimNodeId(db, id, { hash, previousHash: null, joinTokenId: null }))
    expect(await claim('cd')).toBe('taken')
    expect(await inlet(store.url, 'release', id)).toMatchObject({
      code: 0,
      out: expect.stringMatching(
        new RegExp(
          `^The id ${id} is released.*\n.*nothing that waited\\. What it acknowledged later is lost with its disk\\.\n$`,
        ),
      ),
    })
    expect(await claim('cd')).toBe('claimed')
    expect(await inlet(store.url, 'release', newId())).toMatchObject({ code: 1, err: 'there is no such node\n' })
  })
})
