/**
 * A node whose disk fails while it runs: it stays up, says what is wrong, and goes on by itself when that is over. An unhandled rejection or
 * an uncaught exception fails the test.
 */
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { FailingDisk } from '../support/failing-disk.ts'
import { anEndpoint, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'

const endpoint = anEndpoint({ segment_max_age_seconds: 1 })
const snapshot = aSnapshot({ endpoints: [endpoint] })
test.each(['EIO', 'EROFS', 'ENOSPC'])(
  '%s of everything: 503 with the reason, then 202 again, and nothing is lost',
  async (code) => {
    const disk = new FailingDisk()
    await using node = await IngestNode.start({ snapshot, files: disk.files })
    expect(await send(node, 'before')).toBe(202)
    disk.code = code
    expect(await send(node, 'during')).toBe(503)
    await node.until('/readyz', ({ status }, body) => status === 503 && body.includes(code))
    // A change of the configuration cannot be stored, but is applied.
    await node.publish({ ...snapshot, epoch: 2, endpoints: [endpoint, anEndpoint()] })
    expect(await send(node, 'during')).toBe(503)
    disk.code = undefined
    await node.until('/readyz', ({ status }) => status === 200)
    expect(await send(node, 'after')).toBe(202)
    const payloads = (await node.stored(endpoint.id)).map(({ payload }) => payload.toString())
    expect(payloads.filter((payload) => payload !== 'during')).toEqual(['before', 'after'])
  },
)

test('a data directory that is away for a while: 503 with the reason, then 202 again, and nothing is lost', async () => {
  await using node = await IngestNode.start({
    snapshot: aSnapshot({ endpoints: [{ ...endpoint, segment_max_age_seconds: 3600 }] }),
  })
  expect(await send(node, 'before')).toBe(202)
  const [here, away] = [join(node.directory, 'node'), join(node.directory, 'away')]
  await rename(here, away)
  await node.until('/readyz', ({ status }, body) => status === 503 && body.includes('ENOENT'))
  expect(await send(node, 'during')).toBe(503)
  await rename(away, here)
  await node.until('/readyz', ({ status }) => status === 200)
  expect(await send(node, 'after')).toBe(202)
  expect((await node.stored(endpoint.id)).map(({ payload }) => payload.toString())).toEqual(['before', 'after'])
})

async function send(node: IngestNode, body: string): Promise<number> {
  const headers = { 'x-api-key': secretOf('a'), 'content-type': 'application/x-ndjson' }
  const response = await fetch(`${node.url}/v1/ingest?endpoint=${endpoint.id}`, { method: 'POST', headers, body })
  await response.arrayBuffer()
  return response.status
}
