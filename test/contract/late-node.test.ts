/** A node that lost its place and goes on: control refuses whatever it reports, says why, and believes only what is left on its disk. */
import { expect, test } from 'vitest'
import { newNodeSecret, printNodeCredential } from '#auth/node-credential.ts'
import { newId } from '#model/id.ts'
import { clientOf, operatorToken, useControl } from '../support/control.ts'
import { readMarkers } from '../support/read-markers.ts'
import { anEndpointWithNode } from '../support/set-up.ts'
import { aCommit, everyKind, TestNode } from '../support/test-node.ts'

const control = useControl()
const operator = () => clientOf(control().call, operatorToken)
const release = ({ id }: TestNode) => operator().delete(`/v1/nodes/${id}/credential?release=true&force=true`)

const ends: Readonly<Record<string, (node: TestNode) => Promise<{ readonly status: number }>>> = {
  node_removed: ({ id }) => operator().delete(`/v1/nodes/${id}?force=true`),
  node_revoked: ({ id }) => operator().delete(`/v1/nodes/${id}/credential`),
  node_adopted: (node) => node.call('POST', 'adopt', { secret: newNodeSecret() }),
  node_released: release,
}

/** An endpoint with a node, and each report that changes something: one record, or 1000 bytes. */
async function reporting() {
  const account = await control().newAccount()
  const { endpoint, node, region } = await anEndpointWithNode(control(), account)
  const { body: key } = await account.post('/v1/keys', { name: 'till', scopes: ['ingest'] })
  await node.heartbeat()
  const counts = { records: 1, bytes: 1_000, requests: 1, refused: {}, acknowledged_after: {} }
  const reportsOf = ({ id: node_id }: TestNode): Readonly<Record<string, object>> => {
    const well = { node_id, applied_epoch: 1, healthy: false, reasons: ['late'] }
    const used = { account_id: account.account_id, bytes: 1_000, records: 1, records_per_second: 1 }
    const day = new Date().toISOString().slice(0, 10)
    const at = new Date(Math.floor(Date.now() / 10_000) * 10_000).toISOString()
    return {
      register: { region, ipv4: ['192.0.2.9'], ipv6: [], ingest_address: 'late.example:443' },
      heartbeat: { process: 'delivery', ...well, lag: [] },
      usage: { node_id, run: 'a', accounts: [{ ...used, day }] },
      'key-use': { node_id, keys: [key.id] },
      series: { node_id, run: 'a', number: 1, items: [{ endpoint_id: endpoint.id, at, ...counts }] },
      commits: { commits: [aCommit(node_id, endpoint.id, 1)] },
      'commits/lookup': { ids: ['x'] },
      'commits/delivered': { segments: [{ endpoint_id: endpoint.id, node_id, seq: 1 }] },
      'jobs/lease': { node_id, incarnation: 'a', max: 1, holding: [] },
      'jobs/report': { node_id, reports: [{ outcome: 'released', lease_id: newId(), job_id: newId(), commit_id: 'x' }] },
      snapshot: { node_id, epoch: -1, kinds: everyKind, have: {}, wait_ms: 0 },
    }
  }
  const recorded = async () => ({
    commits: (await account.get(`/v1/endpoints/${endpoint.id}/commits`)).body.items.length,
    bytesUsed: (await account.get('/v1/quotas')).body.quotas.bytes_per_day.used,
    inSeries: (await account.get(`/v1/endpoints/${endpoint.id}/series`)).body.buckets.length > 0,
    isKeyUsed: (await account.get('/v1/keys')).body.items.find(({ id }: { id: string }) => id === key.id).last_used_at !== null,
    reasons: (await account.get(`/v1/endpoints/${endpoint.id}`)).body.status_reasons.filter((reason: string) =>
      reason.includes('late'),
    ).length,
  })
  const nothing = { commits: 0, bytesUsed: 0, inSeries: false, isKeyUsed: false, reasons: 0 }
  return { account, endpoint, node, region, reportsOf, recorded, nothing }
}

test.each(Object.keys(ends))(
  'every report of a node that lost its place is refused with the reason, and changes nothing: %s',
  async (fence) => {
    const { node, region, reportsOf, recorded, nothing } = await reporting()
    expect(await ends[fence]?.(node)).toMatchObject({ status: expect.toSatisfy((status: number) => status < 300) })
    const adopting = { adopt: { secret: newNodeSecret() } }
    for (const [path, report] of Object.entries({ ...reportsOf(node), ...adopting }))
      expect(await node.call('POST', path, report), path).toMatchObject({ status: 401, body: { error: 'unauthorized', fence } })
    expect(await recorded()).toEqual(nothing)

    // The same of a node that has its place.
    const other = await TestNode.register(control(), region)
    await other.heartbeat()
    for (const [path, report] of Object.entries(reportsOf(other)))
      expect(await other.call('POST', path, report), path).toMatchObject({
        status: expect.toSatisfy((status: number) => status < 300),
      })
    expect(await recorded()).toEqual({ commits: 1, bytesUsed: 1_000, inSeries: true, isKeyUsed: true, reasons: 1 })
  },
)

test.each(Object.keys(ends))('what is left on its disk is recorded, unless its credential was revoked: %s', async (fence) => {
  const { account, endpoint, node } = await reporting()
  const credential = printNodeCredential(node.id, node.secret)
  await ends[fence]?.(node)
  await readMarkers(control().store)
  const segment = { endpoint_id: endpoint.id, first_seq: 7, last_seq: 7, segments: 1, records: 5, bytes: 2_000 }
  const left = { node_id: node.id, segments: [segment] }
  const isBelieved = fence !== 'node_revoked'
  expect(await node.call('POST', 'left-on-disk', left, credential)).toMatchObject({ status: isBelieved ? 200 : 401 })
  const { items } = (await account.get('/v1/losses')).body
  expect(items).toMatchObject(isBelieved ? [{ first_segment_seq: 7, records: 5 }] : [])
})
