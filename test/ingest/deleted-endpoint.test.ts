/** The log of a deleted endpoint. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { newId } from '#model/id.ts'
import { anEndpoint, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { until } from '../support/until.ts'

/** Returns the names of the logs. Files of the node lie beside them. */
async function logsIn(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true })
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

test('is sealed, and removed once delivery has emptied it; logs of draining and paused endpoints stay', async () => {
  const [deleted, draining, paused] = [anEndpoint({ id: newId() }), anEndpoint({ id: newId() }), anEndpoint({ id: newId() })]
  const before = aSnapshot({ epoch: 1, endpoints: [deleted, draining, paused] })
  await using node = await IngestNode.start({ snapshot: before })
  const directory = join(node.directory, 'node', 'wal')
  const segments = new LocalSegmentSource({ ...system, directory })
  for (const { id } of before.endpoints) expect(await send(node, id)).toBe(202)
  await node.publish({
    ...before,
    epoch: 2,
    endpoints: [
      { ...draining, desired_state: 'draining' },
      { ...paused, desired_state: 'paused' },
    ],
  })
  expect(await send(node, deleted.id)).toBe(404)
  await until('the seal', async () =>
    (await segments.list()).some(({ logName, state }) => logName === deleted.id && state === 'sealed'),
  )
  expect((await logsIn(directory)).sort()).toEqual([deleted.id, draining.id, paused.id].sort())
  await until('the end of the draining log', async () => {
    const { isClosed, segments: found } = await segments.readLog(draining.id)
    return isClosed && found.every(({ state }) => state === 'sealed')
  })
  for (const segment of await segments.list()) if (segment.logName === deleted.id) await segments.remove(segment)
  await until('the removal', async () => !(await logsIn(directory)).includes(deleted.id))
  expect((await logsIn(directory)).sort()).toEqual([draining.id, paused.id].sort())
})

test('that drains is closed although it never had data, and opened again when the endpoint is', async () => {
  const endpoint = anEndpoint()
  const before = aSnapshot({ epoch: 1, endpoints: [endpoint] })
  await using node = await IngestNode.start({ snapshot: before })
  const segments = new LocalSegmentSource({ ...system, directory: join(node.directory, 'node', 'wal') })
  await node.publish({ ...before, epoch: 2, endpoints: [{ ...endpoint, desired_state: 'draining' }] })
  await until('the end of the log', async () => (await segments.readLog(endpoint.id)).isClosed)
  expect(await send(node, endpoint.id)).toBe(404)
  await node.publish({ ...before, epoch: 3 })
  expect(await send(node, endpoint.id)).toBe(202)
  expect((await segments.readLog(endpoint.id)).isClosed).toBe(false)
})

async function send(node: IngestNode, endpointId: string): Promise<number> {
  const headers = { 'x-api-key': secretOf('a'), 'content-type': 'application/x-ndjson' }
  const { status } = await fetch(`${node.url}/v1/ingest?endpoint=${endpointId}`, { method: 'POST', headers, body: '{}' })
  return status
}
