/** Two machines have the same log: one adopted a copy of the disk of the other, which is cut off from control and goes on. */
import { createHash } from 'node:crypto'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { MarkerSeal } from '#delivery/publish/marker-seal.ts'
import { system } from '#lib/system.ts'
import { beginAdoption, endAdoption, readAdoption } from '#node/adoption.ts'
import { aDestination, anEndpointTo, DeliveryNode } from '../support/delivery-node.ts'
import { until } from '../support/until.ts'

const isMarker = (key: string) => key.includes('/commits/')

/** A node with a segment of three records, and a machine that adopted a copy with the first two of them. */
async function twoCopies() {
  const destination = aDestination()
  const endpoint = anEndpointTo(destination)
  const stack = new AsyncDisposableStack()
  const node = stack.use(await DeliveryNode.create(endpoint))
  await MarkerSeal.open(system, node.config.paths.markerKey)
  const log = await node.openLog()
  await log.append(endpoint.id, '{"n":1}')
  await log.append(endpoint.id, '{"n":2}')
  const adopter = stack.use(await node.copy())
  adopter.configure(endpoint)
  await log.append(endpoint.id, '{"n":3}')
  await log[Symbol.asyncDispose]()
  // Recovers what the copy has.
  await adopter.sealAll([])
  await beginAdoption(system, adopter.config.paths.nodeAdoption)
  const store = node.stores.open(destination)
  /** The markers of the bucket, and whether every file that they list has the content that they name. Anything else that is there. */
  const bucket = async () => {
    const keys = (await Array.fromAsync(store.list(''))).map(({ key }) => key)
    const listed = new Set<string>()
    const markers: { seq: number; records: number }[] = []
    for (const key of keys.filter(isMarker)) {
      const marker = JSON.parse(Buffer.from((await store.get(key)) ?? []).toString())
      markers.push({ seq: marker.seq, records: marker.records })
      for (const file of Object.values<{ key: string; sha256: string }>(marker.artifacts)) {
        listed.add(file.key)
        const content = (await store.get(file.key)) ?? new Uint8Array()
        expect(createHash('sha256').update(content).digest('hex')).toBe(file.sha256)
      }
    }
    return { markers, unlisted: keys.filter((key) => !isMarker(key) && !listed.has(key)) }
  }
  return { node, adopter, endpoint, store, bucket, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

type Hold = { readonly isHeld: () => boolean; readonly release: () => void }

/** Holds the marker of the machine's next segment, or what else is to be held, until the returned function is called. */
function holdMarker({ stores }: DeliveryNode, isToHold = isMarker): Hold {
  const held = Promise.withResolvers<void>()
  let isHeld = false
  stores.delay = (key) => {
    if (!isToHold(key)) return undefined
    isHeld = true
    return held.promise
  }
  return { isHeld: () => isHeld, release: held.resolve }
}

/** An attempt before the first snapshot fails, too: no destination is bound then. */
const hasFailedAttempt = ({ log }: DeliveryNode, reason: string) =>
  log.some((line) => line.includes('delivery attempt failed') && line.includes(reason))

test('the marker of the adopting machine stays, and the records that it lacks stay on the disk of the other', async () => {
  await using at = await twoCopies()
  const { node, adopter, endpoint, bucket } = at
  const marker = holdMarker(node)
  await node.start()
  await until('the marker is about to be written', marker.isHeld)
  await adopter.start()
  await until('a commit of the adopting machine', () => adopter.commits.length === 1)
  marker.release()
  await until('a commit of the other machine', () => node.commits.length === 1)
  expect(node.commits[0]).toEqual(adopter.commits[0])
  expect(await bucket()).toEqual({ markers: [{ seq: 0, records: 2 }], unlisted: [] })
  await until('the segment is set aside', () => node.lag(endpoint.id)?.quarantined_segments === 1)
  expect(node.log.join('')).toContain('segment has more records than its commit, and is kept')
})

test('a file that the other machine uploads late replaces none of the commit, and is removed', async () => {
  await using at = await twoCopies()
  const { node, adopter, endpoint, bucket } = at
  const file = holdMarker(node, (key) => !isMarker(key))
  await node.start()
  await until('a file is about to be written', file.isHeld)
  await adopter.start()
  await until('a commit of the adopting machine', () => adopter.commits.length === 1)
  file.release()
  await until('the segment is set aside', () => node.lag(endpoint.id)?.quarantined_segments === 1)
  const committed = Object.values(adopter.commits[0]?.artifacts ?? {}).map(({ key }) => key)
  const late = node.stores.done.filter((key) => !isMarker(key))
  expect([late.length > 0, late.filter((key) => committed.includes(key))]).toEqual([true, []])
  expect(await bucket()).toEqual({ markers: [{ seq: 0, records: 2 }], unlisted: [] })
})

test('the adopting machine takes over the commit of the other, which has its records', async () => {
  await using at = await twoCopies()
  const { node, adopter, endpoint, bucket } = at
  const marker = holdMarker(adopter)
  await adopter.start()
  await until('the marker is about to be written', marker.isHeld)
  await node.start()
  await until('a commit of the other machine', () => node.commits.length === 1)
  marker.release()
  await until('a commit of the adopting machine', () => adopter.commits.length === 1)
  expect(adopter.commits[0]).toEqual(node.commits[0])
  expect(await bucket()).toEqual({ markers: [{ seq: 0, records: 3 }], unlisted: [] })
  await until(
    'nothing is left',
    async () => !(await readdir(join(adopter.config.paths.wal, endpoint.id))).some((name) => /^[0-9]/.test(name)),
  )
  expect(adopter.log.join('')).not.toContain('and is kept')
})

test('a machine that adopted the log without its key is believed once control knows its commit', async () => {
  await using at = await twoCopies()
  const { node, adopter, endpoint, bucket } = at
  await rm(adopter.config.paths.markerKey)
  const marker = holdMarker(node)
  await node.start()
  await until('the marker is about to be written', marker.isHeld)
  await adopter.start()
  await until('a commit of the adopting machine', () => adopter.commits.length === 1)
  node.control.refusesLookups = true
  marker.release()
  await until('a refused lookup', () => hasFailedAttempt(node, '503'))
  expect(node.commits).toEqual([])
  node.control.commits.push(...adopter.commits)
  node.control.refusesLookups = false
  await until('the segment is set aside', () => node.lag(endpoint.id)?.quarantined_segments === 1)
  expect(await bucket()).toEqual({ markers: [{ seq: 0, records: 2 }], unlisted: [] })
  expect(node.log.filter((line) => line.includes('and is kept'))).toHaveLength(1)
})

test('an object of the customer in the place of the marker is replaced', async () => {
  await using at = await twoCopies()
  const { node, store, bucket } = at
  const marker = holdMarker(node)
  let key = ''
  const hold = node.stores.delay
  node.stores.delay = (each) => {
    if (isMarker(each)) key = each
    return hold(each)
  }
  await node.start()
  await until('the marker is about to be written', marker.isHeld)
  node.stores.delay = () => undefined
  await store.put(key, Buffer.from('{}'), { contentType: 'application/json', metadata: {} })
  marker.release()
  await until('a commit of the other machine', () => node.commits.length === 1)
  expect(await bucket()).toEqual({ markers: [{ seq: 0, records: 3 }], unlisted: [] })
  expect(node.log.filter((line) => line.includes('an object in the place of the marker is replaced'))).toHaveLength(1)
})

test('files that the lost machine uploaded before it ended go once the marker of the adopting one is there', async () => {
  await using at = await twoCopies()
  const { node, adopter, bucket } = at
  node.stores.fault = (key) => (isMarker(key) ? 'refused' : undefined)
  await node.start()
  await until('a refused marker', () => hasFailedAttempt(node, 'SlowDown'))
  await node.stop(AbortSignal.abort())
  expect((await bucket()).unlisted).toHaveLength(1)
  await adopter.start()
  await until('a commit of the adopting machine', () => adopter.commits.length === 1)
  expect(await bucket()).toEqual({ markers: [{ seq: 0, records: 2 }], unlisted: [] })
})

test('an adoption that is run again keeps its id, and a later one gets another', async () => {
  await using node = await DeliveryNode.create()
  await node.sealAll([])
  const { nodeAdoption: path } = node.config.paths
  const begin = async () => {
    await beginAdoption(system, path)
    return await readAdoption(system.files, path)
  }
  const first = await begin()
  expect(first).toMatchObject({ earlier: [] })
  expect(await begin()).toEqual(first)
  await endAdoption(system.files, path)
  expect(await readAdoption(system.files, path)).toEqual(first)
  const next = await begin()
  expect(next).toEqual({ id: expect.not.stringMatching(first?.id ?? ''), earlier: [first?.id] })
  await writeFile(path, 'x')
  await expect(begin()).rejects.toThrow('is damaged')
})
