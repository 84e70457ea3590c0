/** Settings of an endpoint reach the segment that is open. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { anEndpoint, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { until } from '../support/until.ts'

test.each<[string, readonly SnapshotEndpoint[] | Partial<SnapshotEndpoint>]>([
  ['a lower age', { segment_max_age_seconds: 1 }],
  ['a lower size', { segment_bytes: 1_000 }],
  ['pausing', { desired_state: 'paused' }],
  ['suspending the account', { account_suspended: true }],
  ['draining', { desired_state: 'draining' }],
  ['deleting', []],
])('%s seals the open segment, and the next one opens only with new data', async (_, change) => {
  const endpoint = anEndpoint()
  const snapshot = aSnapshot({ endpoints: [endpoint] })
  await using node = await IngestNode.start({ snapshot })
  const segments = new LocalSegmentSource({ ...system, directory: join(node.directory, 'node', 'wal') })
  const states = async () => (await segments.list()).map(({ state }) => state)
  const send = () =>
    fetch(`${node.url}/v1/ingest?endpoint=${endpoint.id}`, {
      method: 'POST',
      headers: { 'x-api-key': secretOf('a'), 'content-type': 'application/x-ndjson' },
      body: JSON.stringify({ text: 'x'.repeat(2_000) }),
    })
  expect((await send()).status).toBe(202)
  expect(await states()).toEqual(['open'])
  await node.publish({ ...snapshot, epoch: 2, endpoints: Array.isArray(change) ? [...change] : [{ ...endpoint, ...change }] })
  await until('the seal', async () => String(await states()) === 'sealed')

  await node.publish({ ...snapshot, epoch: 3 })
  expect((await send()).status).toBe(202)
  expect(await states()).toEqual(['sealed', 'open'])
})
