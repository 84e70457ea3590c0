/** Law: what fails for one endpoint delays no other, heals by itself, and the endpoint says why. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Files, systemFiles } from '#lib/files.ts'
import { aDestination, anEndpointTo, DeliveryNode } from '../support/delivery-node.ts'
import { until } from '../support/until.ts'

/** Real files, but every use of a path that `isBroken` accepts fails. */
function breaking(kinds: readonly ('read' | 'remove')[], isBroken: (path: string) => boolean, code = 'EIO'): Files {
  const fail = (kind: string, path: string) => Object.assign(new Error(`${code}: ${kind} '${path}'`), { code })
  const wrap = <T>(kind: 'read' | 'remove', act: (path: string) => Promise<T>) => {
    if (!kinds.includes(kind)) return act
    return async (path: string) => {
      if (isBroken(path)) throw fail(kind, path)
      return act(path)
    }
  }
  return { ...systemFiles, read: wrap('read', systemFiles.read), remove: wrap('remove', systemFiles.remove) }
}

const seqs = (node: DeliveryNode, endpointId: string) =>
  node.commits.filter(({ endpoint_id }) => endpoint_id === endpointId).map(({ seq }) => seq)

test.each(['EIO', 'EACCES', 'EROFS', 'EBUSY'])('%s on the removal of a segment holds no commit', async (code) => {
  const [bad, good] = [anEndpointTo(aDestination()), anEndpointTo(aDestination())]
  await using node = await DeliveryNode.create(bad, good)
  let isBroken = true
  node.files = breaking(['remove'], (path) => isBroken && path.includes(bad.id) && path.endsWith('.wal'), code)
  await node.sealAll([bad, good, bad, good].map(({ id }) => [id, '{"n":1}'] as const))
  await node.start()
  await until('all commits', () => node.commits.length >= 4)
  expect([seqs(node, bad.id), seqs(node, good.id)]).toEqual([
    [0, 1],
    [0, 1],
  ])
  await node.seal(good.id, '{"n":2}')
  await until('a later commit of the other endpoint', () => seqs(node, good.id).length === 3)
  isBroken = false
  await until(
    'the segments to be removed',
    async () => !(await readdir(join(node.config.paths.wal, bad.id))).some((name) => name.endsWith('.wal')),
  )
  await node.stop()
  expect(node.commits).toHaveLength(5)
  expect(await readdir(node.config.paths.outbox)).toEqual([])
})

test('a commit that cannot be read holds only its endpoint', async () => {
  const [bad, good] = [anEndpointTo(aDestination()), anEndpointTo(aDestination())]
  await using node = await DeliveryNode.create(bad, good)
  node.control.refusesCommits = true
  await node.sealAll([bad, good].map(({ id }) => [id, '{"n":1}'] as const))
  await node.start()
  await until(
    'both in the outbox',
    async () => (await readdir(node.config.paths.outbox)).filter((name) => name.endsWith('.json')).length === 2,
  )
  await node.stop(AbortSignal.abort())
  node.control.refusesCommits = false
  const [unreadable = ''] = await entriesWith(node, bad.id)
  let isBroken = true
  node.files = breaking(['read'], (path) => isBroken && path === unreadable)
  await node.start()
  await until('the commit of the other endpoint', () => node.commits.length === 1)
  expect(seqs(node, good.id)).toEqual([0])
  isBroken = false
  await until('both commits', () => node.commits.length === 2)
})

test.each([
  ['a flipped bit', (bytes: Buffer) => Buffer.from(bytes.toString().replace('"records":1', '"records":3'))],
  ['a cut', (bytes: Buffer) => bytes.subarray(0, 100)],
])('a commit whose entry is damaged by %s is made again from its marker, without a restart', async (_, damage) => {
  const endpoint = anEndpointTo(aDestination())
  await using node = await DeliveryNode.create(endpoint)
  node.control.refusesCommits = true
  await node.seal(endpoint.id, '{"n":1}')
  await node.start()
  await until('the entry', async () => (await entriesWith(node, endpoint.id)).length === 1)
  const [entry = ''] = await entriesWith(node, endpoint.id)
  await writeFile(entry, damage(await readFile(entry)))
  const markers = node.stores.done.filter((key) => key.includes('/commits/'))
  // A request that was read before the damage would be accepted.
  await until('the entry to be set aside', async () =>
    (await readdir(node.config.paths.outbox)).some((name) => name.endsWith('.damaged')),
  )
  node.control.refusesCommits = false
  await until('the commit', () => node.commits.length === 1)
  expect(node.commits[0]).toMatchObject({ seq: 0, records: 1 })
  // The marker was not written again: the commit is the marker's.
  expect(node.stores.done.filter((key) => key.includes('/commits/'))).toEqual(markers)
  await until(
    'the log to be empty',
    async () => !(await readdir(join(node.config.paths.wal, endpoint.id))).some((name) => name.endsWith('.wal')),
  )
  await until('the new entry to be sent', async () => (await entriesWith(node, endpoint.id)).length === 0)
  expect(await readdir(node.config.paths.outbox)).toEqual([expect.stringMatching(/\.damaged$/)])
})

async function entriesWith(node: DeliveryNode, text: string): Promise<readonly string[]> {
  const { outbox } = node.config.paths
  const names = (await readdir(outbox)).filter((name) => name.endsWith('.json'))
  const found: string[] = []
  for (const name of names) {
    // It may have been sent since the directory was read.
    const entry = await readFile(join(outbox, name), 'utf8').catch(() => '')
    if (entry.includes(text)) found.push(join(outbox, name))
  }
  return found
}
