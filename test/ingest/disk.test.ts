/**
 * A node whose disk fails while it runs: it stays up, says what is wrong, and goes on by itself when that is over. An unhandled rejection or
 * an uncaught exception fails the test.
 */
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { FailingDisk } from '../support/failing-disk.ts'
import { anEndpoint, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { until } from '../support/until.ts'

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

test('idempotency keys that cannot be read: the node starts, and refuses only requests with a key', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-keys-'))
  const hour = Math.floor(Date.now() / 3_600_000)
  await mkdir(join(directory, 'node/stored-requests', `${hour}.requests`), { recursive: true })
  // A kill left this file.
  await writeFile(join(directory, 'node/ingest-snapshot.ndjson.7-0.tmp'), '')
  {
    await using node = await IngestNode.start({ snapshot, directory })
    expect((await readdir(join(directory, 'node'))).filter((name) => name.endsWith('.tmp'))).toEqual([])
    expect(await send(node, 'without a key')).toBe(202)
    expect(await send(node, 'with a key', newId())).toBe(503)
    const reason = expect.stringMatching(/idempotency keys.* cannot be read \(EISDIR\)/)
    const ready = await fetch(`${node.url}/readyz`)
    expect([ready.status, await ready.json()]).toEqual([200, expect.objectContaining({ notes: [reason] })])
    await until('control to know', () =>
      node.control.heartbeats.some((beat) => beat.process === 'ingest' && beat.blocked.length > 0),
    )
    expect(node.control.heartbeats.at(-1)).toMatchObject({
      ...{ healthy: true, reasons: [reason], blocked: [{ endpoint_id: endpoint.id, reason }] },
    })
  }
  await rm(directory, { recursive: true })
})

test('an open segment that is gone after a crash: it is counted unless control has its commit', async () => {
  await using node = await IngestNode.start({
    snapshot: aSnapshot({ endpoints: [{ ...endpoint, segment_max_age_seconds: 3600 }] }),
  })
  expect(await send(node, '{"a":1}\n{"a":2}')).toBe(202)
  const list = join(node.directory, 'node/wal/open-segments')
  await until('the list to have the records', async () => / 2\n$/.test(await readFile(list, 'utf8')))
  // The state after a kill, but without the file.
  const crashed = await mkdtemp(join(tmpdir(), 'inlet-crashed-'))
  await cp(node.directory, crashed, { recursive: true })
  const log = join(crashed, 'node/wal', endpoint.id)
  const [name = ''] = (await readdir(log)).filter((each) => each.endsWith('.open'))
  await rm(join(log, name))
  {
    await using restarted = await IngestNode.start({ snapshot, directory: crashed })
    await until('the loss to be counted', async () => (await restarted.metric('inlet_wal_lost_records_total')) === 2)
    expect((await readdir(log)).sort()).toContain(name.replace('.open', '.quarantine'))
    expect(await send(restarted, '{"a":3}')).toBe(202)
  }
  await rm(crashed, { recursive: true })
})

async function send(node: IngestNode, body: string, key?: string): Promise<number> {
  const headers = {
    ...{ 'x-api-key': secretOf('a'), 'content-type': 'application/x-ndjson' },
    ...(key === undefined ? {} : { 'idempotency-key': key }),
  }
  const response = await fetch(`${node.url}/v1/ingest?endpoint=${endpoint.id}`, { method: 'POST', headers, body })
  await response.arrayBuffer()
  return response.status
}
