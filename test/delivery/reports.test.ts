/** Reports of delivery about the logs on a node's disk. Law: every file counts once, and nothing waits without a reason. */
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { newId } from '#model/id.ts'
import { readOrCreateNodeId } from '#node/identity.ts'
import { aDestination, anEndpointTo, DeliveryNode } from '../support/delivery-node.ts'
import { until } from '../support/until.ts'

const none = { open_segments: 0, undelivered_segments: 0, parked_segments: 0, quarantined_segments: 0, undelivered_bytes: 0 }

function segmentFile(node: DeliveryNode, log: string, seq: number, suffix: string): string {
  return join(node.config.paths.wal, log, `${String(seq).padStart(12, '0')}-abcdefghij.${suffix}`)
}

test('every segment of a log counts: open, sealed and quarantined, with their bytes', async () => {
  const endpoint = anEndpointTo(null)
  await using node = await DeliveryNode.create(endpoint)
  await node.seal(endpoint.id, '{"n":1}', '{"n":2}')
  await writeFile(segmentFile(node, endpoint.id, 7, 'open'), Buffer.alloc(1000))
  await writeFile(segmentFile(node, endpoint.id, 6, 'quarantine'), Buffer.alloc(10_000))
  await node.start()
  await until('the reason', () => node.lag(endpoint.id)?.blocked_by === 'no destination is bound to the endpoint')
  const lag = node.lag(endpoint.id)
  expect(lag).toMatchObject({ open_segments: 1, undelivered_segments: 2, quarantined_segments: 1, closed: false })
  const seqs = { first_seq: 0, last_seq: 7, quarantined_first_seq: 6, quarantined_last_seq: 6 }
  expect(lag).toMatchObject(seqs)
  expect(lag?.undelivered_bytes).toBeGreaterThan(11_000)
})

test('a log that only has an open or a quarantined segment is reported', async () => {
  const [open, damaged] = [anEndpointTo(aDestination()), anEndpointTo(aDestination())]
  await using node = await DeliveryNode.create(open, damaged)
  await readOrCreateNodeId(node.config.paths, system)
  for (const { id } of [open, damaged]) await mkdir(join(node.config.paths.wal, id), { recursive: true })
  await writeFile(segmentFile(node, open.id, 0, 'open'), Buffer.alloc(500))
  await writeFile(segmentFile(node, damaged.id, 0, 'quarantine'), Buffer.alloc(600))
  await node.start()
  await until('both', () => node.lag(open.id) !== undefined && node.lag(damaged.id) !== undefined)
  expect(node.lag(open.id)).toMatchObject({ ...none, open_segments: 1, undelivered_bytes: 500, blocked_by: null })
  expect(node.lag(open.id)).toMatchObject({ quarantined_first_seq: null, quarantined_last_seq: null })
  expect(node.lag(damaged.id)).toMatchObject({ ...none, quarantined_segments: 1, undelivered_bytes: 600 })
  expect(node.lag(damaged.id)?.blocked_by).toMatch(/^1 segment is quarantined/)
})

test('a log that no endpoint owns is reported, and says so', async () => {
  const [endpoint, removed] = [anEndpointTo(aDestination()), newId()]
  await using node = await DeliveryNode.create(endpoint)
  await node.seal(removed, '{"n":1}')
  await node.start()
  await until('the report', () => node.lag(removed)?.undelivered_segments === 1)
  await until('the reason', () => node.lag(removed)?.blocked_by === 'no endpoint owns this log: see inlet segments')
})

test('an open segment that holds back sealed ones is named', async () => {
  const endpoint = anEndpointTo(aDestination())
  await using node = await DeliveryNode.create(endpoint)
  await node.seal(endpoint.id, '{"n":1}', '{"n":2}')
  const stuck = segmentFile(node, endpoint.id, 0, 'open')
  await writeFile(stuck, Buffer.alloc(500))
  await node.start()
  const reason = `segment ${endpoint.id}/0-abcdefghij is not sealed, and later segments wait for it`
  // Before the first configuration no destination is known.
  await until('the reason', () => node.lag(endpoint.id)?.blocked_by === reason)
  expect([node.commits.length, node.lag(endpoint.id)?.undelivered_segments]).toEqual([0, 2])
  await rm(stuck)
  await until('the commits', () => node.commits.length === 2)
})

test('a draining endpoint has a row at the epoch of its drain, closed only if ingest closed the log first', async () => {
  const endpoint = anEndpointTo(aDestination())
  await using node = await DeliveryNode.create(endpoint)
  await node.start()
  const draining = { ...endpoint, desired_state: 'draining' as const }
  node.configure(draining)
  await until('the row', () => node.lag(endpoint.id) !== undefined)
  expect(node.lag(endpoint.id)).toMatchObject({ ...none, closed: false, blocked_by: null })
  expect(node.control.heartbeats.at(-1)?.applied_epoch).toBe(2)
  await mkdir(join(node.config.paths.wal, endpoint.id))
  await writeFile(join(node.config.paths.wal, endpoint.id, 'closed'), '')
  await until('closed', () => node.lag(endpoint.id)?.closed === true)
  expect(node.lag(endpoint.id)).toMatchObject(none)
})

test('a log whose directory cannot be read says so, and does not stop the others', async () => {
  const [unreadable, sound] = [anEndpointTo(aDestination('one')), anEndpointTo(aDestination('two'))]
  await using node = await DeliveryNode.create(unreadable, sound)
  await node.sealAll([
    [unreadable.id, '{"n":1}'],
    [sound.id, '{"n":2}'],
  ])
  let isBroken = true
  node.files = {
    ...systemFiles,
    list: (path) =>
      isBroken && path.endsWith(unreadable.id)
        ? Promise.reject(Object.assign(new Error('EIO: scandir'), { code: 'EIO' }))
        : systemFiles.list(path),
  }
  await node.start()
  await until('the other', () => node.commits.length === 1)
  await until(
    'the reason',
    () => node.lag(unreadable.id)?.blocked_by === 'its log cannot be listed, so its segments are not counted: EIO: scandir',
  )
  // Nobody knows what is in it.
  expect(node.lag(unreadable.id)).toMatchObject({ undelivered_segments: 0, records: null, held: [] })
  isBroken = false
  await until('both', () => node.commits.length === 2)
})

test('a log whose directory cannot be read any more keeps its counts', async () => {
  const endpoint = anEndpointTo(aDestination())
  await using node = await DeliveryNode.create(endpoint)
  await node.seal(endpoint.id, '{"n":1}', '{"n":2}')
  await writeFile(segmentFile(node, endpoint.id, 0, 'open'), Buffer.alloc(500))
  let isBroken = false
  node.files = {
    ...systemFiles,
    list: (path) =>
      isBroken && path.endsWith(endpoint.id)
        ? Promise.reject(Object.assign(new Error('EACCES: scandir'), { code: 'EACCES' }))
        : systemFiles.list(path),
  }
  await node.start()
  // Records are counted after the scan that finds their segments.
  await until('the counts', () => node.lag(endpoint.id)?.undelivered_segments === 2 && node.lag(endpoint.id)?.records === 2)
  const before = node.lag(endpoint.id)
  isBroken = true
  const reason = 'its log cannot be listed, so its counts are old: EACCES: scandir'
  await until('the reason', () => node.lag(endpoint.id)?.blocked_by === reason)
  expect(node.lag(endpoint.id)).toEqual({ ...before, blocked_by: reason, counted_at: expect.stringMatching(/Z$/) })
})

test('nothing counts as reported before the first list of the logs', async () => {
  await using node = await DeliveryNode.create(anEndpointTo(aDestination()))
  let isBroken = true
  let lists = 0
  node.files = {
    ...systemFiles,
    async list(path) {
      // The start looks once whether the directory is used.
      if (path === node.config.paths.wal) lists += 1
      if (path === node.config.paths.wal && isBroken && lists > 1) throw Object.assign(new Error('EIO: scandir'), { code: 'EIO' })
      return await systemFiles.list(path)
    },
  }
  await node.start()
  await until('two heartbeats', () => node.control.heartbeats.length >= 2)
  // Control keeps what it knows of the disk.
  expect(node.backlog()).toMatchObject({ lags: [], reportedLags: undefined })
  isBroken = false
  await until('the report', () => node.backlog()?.reportedLags?.length === 0)
})
