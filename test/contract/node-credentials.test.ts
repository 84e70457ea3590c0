/** How a node gets its credential, keeps it, and loses it. */
import { cp, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { printNodeCredential } from '#auth/node-credential.ts'
import { hashApiKey } from '#auth/secrets.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { ControlClient } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'
import { Registration } from '#node/registration.ts'
import { clientOf, newRegion, nodeToken, operatorToken, useControl } from '../support/control.ts'
import { RawClient } from '../support/raw-http.ts'
import { TestNode } from '../support/test-node.ts'

const control = useControl()
const signal = new AbortController().signal

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-credential-'))
})
afterEach(() => rm(directory, { recursive: true }))

type Machine = {
  readonly nodeId?: string
  readonly joinSecret?: string | null
  readonly region?: string
  readonly folder?: string
}

/** A node as far as its registration goes. */
async function machine({ nodeId = newId(), joinSecret = nodeToken, region = newRegion(), folder = 'node' }: Machine = {}) {
  const path = join(directory, folder, 'credential')
  const credential = await NodeCredential.open(nodeId, path, system)
  const client = new ControlClient({ ...system, url: control().app.nodeApiUrl, credential, timeoutMs: 5_000 })
  const logged: string[] = []
  const logger = createLogger('test', 'silent')
  for (const level of ['warn', 'error'] as const) logger[level] = (_: object, text?: string) => void logged.push(String(text))
  const node = { region, ipv4: [], ipv6: [], ingest_address: 'node.example:443' }
  const registration = new Registration({ client, credential, joinSecret, node, logger })
  return {
    ...{ path, credential, client, logged, nodeId, region },
    register: (wasConfigured = false) => registration.register(signal, wasConfigured),
    works: () =>
      client.fetchCommittedSeqs(nodeId, signal).then(
        () => true,
        () => false,
      ),
  }
}

const operator = () => clientOf(control().call, operatorToken)

const revoke = (nodeId: string, query = '') => operator().delete(`/v1/nodes/${nodeId}/credential${query}`)

async function nodeOf(nodeId: string): Promise<object> {
  const { items } = (await operator().get('/v1/nodes?limit=200')).body
  return items.find(({ id }: { readonly id: string }) => id === nodeId)
}

async function storedHash(nodeId: string): Promise<string | null | undefined> {
  const { db } = control().store
  return (await db.selectFrom('nodes').select('credential_hash').where('id', '=', nodeId).executeTakeFirst())?.credential_hash
}

describe('a node', () => {
  test('registers with the join secret, and then has a credential of its own, of which control keeps the hash', async () => {
    const node = await machine()
    expect(await node.works()).toBe(false)
    await node.register()
    expect(await node.works()).toBe(true)
    const secret = (await readFile(node.path, 'utf8')).trim()
    expect(secret).toMatch(/^ing_node_\w{32}$/)
    expect((await stat(node.path)).mode & 0o777).toBe(0o600)
    expect(await storedHash(node.nodeId)).toBe(hashApiKey(secret))
    expect(node.logged).toEqual([])
  })

  test('needs the join secret only once, for the region that it joined', async () => {
    const { nodeId, region, register } = await machine()
    await register()
    const later = await machine({ nodeId, region, joinSecret: null })
    await later.register()
    expect(await later.works()).toBe(true)
    const moved = await machine({ nodeId, joinSecret: null })
    await expect(moved.register()).rejects.toThrow(`for region ${region}`)
    const invited = await machine({ nodeId })
    await invited.register()
    expect((await operator().get('/v1/nodes')).body.items).toContainEqual(
      expect.objectContaining({ id: nodeId, region: invited.region, credential: 'active' }),
    )
  })

  test('shares its credential with its other process', async () => {
    const nodeId = newId()
    const [ingest, delivery] = await Promise.all([machine({ nodeId }), machine({ nodeId })])
    await ingest.register()
    expect(await delivery.works()).toBe(true)
    await revoke(nodeId)
    await ingest.register(true)
    // The first call fails, and makes it read the new one.
    expect([await delivery.works(), await delivery.works()]).toEqual([false, true])
  })

  test('is refused with a wrong join secret, and says so once', async () => {
    const node = await machine({ joinSecret: 'w'.repeat(32) })
    for (let attempt = 0; attempt < 3; attempt++) await expect(node.register()).rejects.toThrow('401')
    expect(node.logged).toEqual([
      expect.stringMatching(/does not let this node join: the join secret or join token is not known; create a join token/),
    ])
    expect(await storedHash(node.nodeId)).toBeUndefined()
  })

  test('says once that its join token is for another region, or used up', async () => {
    const { body } = await operator().post('/v1/join-tokens', { name: 'rack 4', region: newRegion() })
    const astray = await machine({ joinSecret: body.join_token })
    for (let attempt = 0; attempt < 2; attempt++) await expect(astray.register()).rejects.toThrow('403')
    expect(astray.logged).toEqual([
      expect.stringContaining(`is for region ${body.region}, and this node is in region ${astray.region}; set`),
    ])
    const first = await machine({ joinSecret: body.join_token, region: body.region, folder: 'first' })
    await first.register()
    const late = await machine({ joinSecret: body.join_token, region: body.region, folder: 'late' })
    await expect(late.register()).rejects.toThrow('401')
    expect(late.logged).toEqual([expect.stringMatching(/the join token is used up: 1 of 1 nodes .*; create a join token/)])
  })

  test('registers again if the response was lost', async () => {
    const node = await TestNode.register(control(), newRegion())
    expect(await node.join()).toMatchObject({ status: 200, body: { joined: true } })
    await node.snapshot()
  })
})

describe('a credential that control no longer knows', () => {
  test('after the database was restored: the node registers again by itself and says so in one line', async () => {
    const node = await machine()
    await node.register()
    await control().store.db.deleteFrom('nodes').where('id', '=', node.nodeId).execute()
    expect(await node.works()).toBe(false)
    await node.register(true)
    expect(await node.works()).toBe(true)
    expect(node.logged).toEqual([expect.stringMatching(/database is an older copy; it has registered again/)])
  })

  test('after it was revoked: it is refused at once, and the node gets another one by itself', async () => {
    const node = await machine()
    await node.register()
    const old = { ...node.credential, token: node.credential.token, reload: async () => undefined }
    expect(await revoke(node.nodeId)).toMatchObject({ status: 204 })
    expect(await node.works()).toBe(false)
    expect((await operator().get('/v1/nodes')).body.items).toContainEqual(
      expect.objectContaining({ id: node.nodeId, credential: 'revoked' }),
    )
    await node.register(true)
    expect(await node.works()).toBe(true)
    const thief = new ControlClient({ ...system, url: control().app.nodeApiUrl, credential: old, timeoutMs: 5_000 })
    await expect(thief.fetchCommittedSeqs(node.nodeId, signal)).rejects.toThrow('401')
    expect(node.logged).toHaveLength(1)
    // Stopped before it learned of the success.
    await (await machine({ nodeId: node.nodeId, region: node.region })).register()
  })

  test('an older copy of the database, with the credential before', async () => {
    const node = await machine()
    await node.register()
    const before = await storedHash(node.nodeId)
    await revoke(node.nodeId)
    await node.register(true)
    const old = { credential_hash: before ?? null, credential_revoked_at: null }
    await control().store.db.updateTable('nodes').set(old).where('id', '=', node.nodeId).execute()
    await node.register(true)
    expect(await node.works()).toBe(true)
  })

  test('without a join token the node says once what to do', async () => {
    const { nodeId, region, register } = await machine()
    await register()
    const later = await machine({ nodeId, region, joinSecret: null })
    await revoke(nodeId)
    for (let attempt = 0; attempt < 3; attempt++) await expect(later.register(true)).rejects.toThrow('401')
    expect(later.logged).toEqual([
      expect.stringContaining('create a join token (inlet join-tokens create), set INLET_JOIN_TOKEN'),
    ])
  })

  test('without a token, a node that never joined says that it needs one', async () => {
    const node = await machine({ joinSecret: null })
    await expect(node.register()).rejects.toThrow('401')
    expect(node.logged).toEqual([expect.stringMatching(/it has not joined yet; create a join token .*set INLET_JOIN_TOKEN/)])
  })

  test('started for another region, the node says for which one its credential is', async () => {
    const { nodeId, region, register } = await machine()
    await register()
    const moved = await machine({ nodeId, joinSecret: null })
    await expect(moved.register(true)).rejects.toThrow('403')
    expect(moved.logged).toEqual([
      expect.stringMatching(
        new RegExp(`for region ${region}.* to join region ${moved.region}; set INLET_REGION .*, or create a join token`),
      ),
    ])
  })

  test('revoked during a long poll, no configuration is sent', async () => {
    const account = await control().newAccount()
    const region = newRegion()
    const node = await TestNode.register(control(), region)
    await node.snapshot()
    const polled = node.askSnapshot(30_000)
    await revoke(node.id)
    await account.post('/v1/endpoints', { region })
    expect(await polled).toMatchObject({ status: 401 })
  })
})

describe('the id of a node', () => {
  test('revoked while the body arrives, nothing is recorded', async () => {
    const node = await TestNode.register(control(), newRegion())
    await node.heartbeat()
    const before = await nodeOf(node.id)
    const report = JSON.stringify({
      ...{
        process: 'ingest',
        node_id: node.id,
        applied_epoch: 1,
        healthy: false,
        reasons: ['stolen'],
        disk_full: false,
        blocked: [],
      },
    })
    await using slow = await RawClient.connect(control().app.nodeApiUrl)
    await slow.send(
      `POST /internal/v1/heartbeat HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${printNodeCredential(node.id, node.secret)}\r\n` +
        `Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: ${report.length}\r\n\r\n`,
    )
    expect(await slow.answer()).toMatchObject({ status: 100 })
    await slow.send(report.slice(0, 5))
    await revoke(node.id)
    await slow.send(report.slice(5))
    expect(await slow.answer()).toMatchObject({ status: 401 })
    expect(await nodeOf(node.id)).toEqual({ ...before, credential: 'revoked' })
  })

  test('another node cannot take it over with the join secret, even after a revocation', async () => {
    const owner = await machine()
    await owner.register()
    const other = await machine({ nodeId: owner.nodeId, folder: 'other' })
    const hash = await storedHash(owner.nodeId)
    for (let attempt = 0; attempt < 3; attempt++)
      await expect(other.register()).rejects.toThrow(`another credential for the id of this node, ${owner.nodeId}`)
    await revoke(owner.nodeId)
    await expect(other.register()).rejects.toThrow('another credential')
    expect(other.logged).toEqual([expect.stringContaining(`inlet nodes release ${owner.nodeId}`)])
    expect(await storedHash(owner.nodeId)).toBe(hash)
    expect((await operator().get('/v1/nodes')).body.items).toContainEqual(
      expect.objectContaining({ id: owner.nodeId, region: owner.region }),
    )
  })

  test('once an operator releases it, a node without the credential may register', async () => {
    const lost = await machine()
    await lost.register()
    expect(await revoke(lost.nodeId, '?release=true')).toMatchObject({ status: 204 })
    expect(await lost.works()).toBe(false)
    const replaced = await machine({ nodeId: lost.nodeId, folder: 'other' })
    await replaced.register()
    expect([await replaced.works(), await lost.works()]).toEqual([true, false])
    const { credential, nodeId, region, path } = lost
    await expect(lost.register(true)).rejects.toMatchObject({ fence: 'node_released' })
    // It keeps the credential that says why.
    expect((await readFile(path, 'utf8')).trim()).toBe(credential.secret)
    // If that machine is gone, it may have its id again, with another credential.
    await revoke(nodeId, '?release=true')
    const again = await machine({ nodeId, region })
    await again.register(true)
    expect([await again.works(), await replaced.works()]).toEqual([true, false])
  })

  test('once an operator releases it, the removed node under it learns of it', async () => {
    const node = await machine()
    await node.register()
    expect((await operator().delete(`/v1/nodes/${node.nodeId}?force=true`)).status).toBe(200)
    expect(await revoke(node.nodeId, '?release=true')).toMatchObject({ status: 204 })
    await expect(node.client.fetchCommittedSeqs(node.nodeId, signal)).rejects.toMatchObject({ fence: 'node_released' })
  })

  test.each(['POST heartbeat', 'POST snapshot', 'POST snapshot/check', 'POST jobs/lease', 'POST jobs/report'])(
    '403 for a call in the name of another node: %s',
    async (operation) => {
      const [node, other] = [await TestNode.register(control(), newRegion()), await TestNode.register(control(), newRegion())]
      const [method = '', path = ''] = operation.split(' ')
      const bodies: Readonly<Record<string, object>> = {
        heartbeat: { process: 'delivery', applied_epoch: 0, healthy: true, reasons: [], lag: [] },
        snapshot: { epoch: -1, kinds: ['keys'], have: {}, wait_ms: 0 },
        'snapshot/check': { kinds: ['keys'], digest: '' },
        'jobs/lease': { incarnation: 'x', max: 1, holding: [] },
        'jobs/report': { reports: [{ outcome: 'released', lease_id: newId(), job_id: newId(), commit_id: 'x' }] },
      }
      const body = { ...bodies[path], node_id: other.id }
      expect(await node.call(method, path, body)).toMatchObject({ status: 403, body: { error: 'forbidden' } })
      expect(await other.call(method, path, body)).toMatchObject({ status: 200 })
      expect(await node.call('GET', `committed-seqs?node_id=${other.id}`)).toMatchObject({ status: 403 })
    },
  )
})

describe('DELETE /v1/nodes/{id}/credential', () => {
  test('404 for an unknown node, 422 for a wrong query', async () => {
    expect(await revoke(newId())).toMatchObject({ status: 404 })
    expect(await revoke(newId(), '?release=perhaps')).toMatchObject({ status: 422 })
  })
})

test('a credential that was revoked before its node was removed opens nothing when the node comes back', async () => {
  const node = await machine()
  await node.register()
  const leaked = printNodeCredential(node.nodeId, node.credential.secret)
  await cp(join(directory, 'node'), join(directory, 'copy'), { recursive: true })
  await revoke(node.nodeId)
  expect((await operator().delete(`/v1/nodes/${node.nodeId}?force=true`)).status).toBe(200)
  await node.register()
  expect(await node.works()).toBe(true)
  expect(node.credential.token).not.toBe(leaked)
  // A machine with a copy of the disk learns that it lost its place.
  const copy = await machine({ nodeId: node.nodeId, folder: 'copy' })
  await expect(copy.client.fetchCommittedSeqs(node.nodeId, signal)).rejects.toMatchObject({ fence: 'node_revoked' })
})
