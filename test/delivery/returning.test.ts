/**
 * A segment file that comes back after its commit: a restored volume, a copy from a backup.
 * Law: a commit never changes. Bucket and control stay byte for byte as they were, whatever is bound by now, and the file is removed.
 */
import { createHash } from 'node:crypto'
import { copyFile, mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { encodeMarker } from '#delivery/publish/marker.ts'
import { must } from '#lib/assert.ts'
import { aBoundView, aDestination, anEndpointTo, DeliveryNode } from '../support/delivery-node.ts'
import { until } from '../support/until.ts'

async function furnished() {
  const endpoint = anEndpointTo(aDestination('lake'), { output_formats: ['parquet', 'parquet_views'] })
  const old = { ...endpoint, views: [aBoundView({ name: 'old' })] }
  const other = { ...endpoint, views: [aBoundView({ name: 'other' })] }
  const node = await DeliveryNode.create(old)
  const log = join(node.config.paths.wal, endpoint.id)
  const stash = join(node.directory, 'stash')
  await mkdir(stash)
  const wals = async () => (await readdir(log)).filter((name) => name.endsWith('.wal'))
  return {
    ...{ endpoint, old, other, node, wals },
    async stash(): Promise<void> {
      for (const name of await wals()) await copyFile(join(log, name), join(stash, name))
    },
    async restore(): Promise<void> {
      for (const name of await readdir(stash)) await copyFile(join(stash, name), join(log, name))
    },
    /** Every object in the bucket with its content, and every commit. */
    async everything(): Promise<unknown> {
      const lake = join(node.config.paths.buckets, 'lake')
      const files = (await readdir(lake, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
      const objects = files.map(async ({ parentPath, name }) => {
        const path = join(parentPath, name)
        return [
          path,
          createHash('sha256')
            .update(await readFile(path))
            .digest('hex'),
        ]
      })
      return { objects: (await Promise.all(objects)).toSorted(), commits: [...node.commits] }
    },
    gone: () => until('the removal', async () => (await wals()).length === 0),
  }
}

describe('a segment that comes back after its commit', () => {
  test.each(['while delivery runs', 'before delivery starts', 'while delivery is idle since its start'])('%s', async (when) => {
    const { endpoint, other, node, stash, restore, everything, gone } = await furnished()
    await using _ = node
    await node.seal(endpoint.id, '{"n":1}', '{"n":2}')
    await stash()
    await node.start()
    await until('the commits', () => node.commits.length === 2)
    await gone()
    const before = await everything()
    if (when !== 'while delivery runs') await node.stop()
    node.configure(other)
    if (when === 'before delivery starts') await restore()
    if (when !== 'while delivery runs') await node.start()
    if (when === 'while delivery is idle since its start') await until('a report', () => node.control.heartbeats.length > 2)
    if (when !== 'before delivery starts') await restore()
    await gone()
    expect(await everything()).toEqual(before)
    // The log goes on, with the views that are bound now.
    await node.seal(endpoint.id, '{"n":3}')
    await until('the next commit', () => node.commits.length === 3)
    expect(Object.keys(node.commits[2]?.artifacts ?? {})).toContain('views/other/v1')
  })

  test('also if the customer has removed its marker and files', async () => {
    const { endpoint, other, node, stash, restore, gone } = await furnished()
    await using _ = node
    await node.seal(endpoint.id, '{"n":1}')
    await stash()
    await node.start()
    await until('the commit', () => node.commits.length === 1)
    await gone()
    await rm(join(node.config.paths.buckets, 'lake'), { recursive: true })
    node.configure(other)
    await restore()
    await gone()
    expect(node.commits).toHaveLength(1)
    await expect(readdir(join(node.config.paths.buckets, 'lake'))).rejects.toThrow('ENOENT')
  })

  test('also after its endpoint is gone, and control was away at the start', async () => {
    const { endpoint, node, stash, restore, everything, gone } = await furnished()
    await using _ = node
    await node.seal(endpoint.id, '{"n":1}')
    await stash()
    await node.start()
    await until('the commit', () => node.commits.length === 1)
    await gone()
    const before = await everything()
    node.configure()
    await until('the new configuration', () => node.control.heartbeats.at(-1)?.applied_epoch === 2)
    await node.stop()
    await restore()
    node.control.isAway = true
    await node.start()
    await until('the wait for a destination', () => node.log.some((line) => line.includes('no destination is bound')))
    node.control.isAway = false
    await gone()
    expect(await everything()).toEqual(before)
  })

  test('with more records than its commit has, it is kept', async () => {
    const { endpoint, node, stash, restore, everything, wals, gone } = await furnished()
    await using _ = node
    await node.sealFrames(endpoint.id, '{"n":1}', '{"n":2}')
    await stash()
    await node.start()
    await until('the commit', () => node.commits.length === 1)
    // Otherwise delivery may remove the one that returns for the one that it delivered.
    await gone()
    const [commit] = node.control.commits
    if (commit === undefined) throw new Error('no commit')
    node.control.commits[0] = { ...commit, records: 1 }
    const before = await everything()
    await restore()
    await until('the report', () => node.lag(endpoint.id)?.quarantined_segments === 1)
    expect(await wals()).toEqual([])
    expect(await everything()).toEqual(before)
  })

  test.each([
    ['without a signature', {}],
    ['of an adoption that never was', { adoption: '0a1b2c3d' }],
  ])('keeps the files of its commit beside a marker %s that lists none of them', async (_, claim) => {
    const { endpoint, node, stash, restore, gone } = await furnished()
    await using _node = node
    await node.seal(endpoint.id, '{"n":1}')
    await stash()
    await node.start()
    await until('the commit', () => node.commits.length === 1)
    await gone()
    const commit = must(node.control.commits.pop(), 'a commit')
    const { manifest, ...files } = commit.artifacts
    const { key } = must(manifest, 'a marker')
    expect(Object.keys(files)).toEqual(['parquet', 'views/old/v1'])
    const marker = encodeMarker({ ...commit, artifacts: {}, ...claim })
    const store = node.stores.open(must(endpoint.destination, 'a destination'))
    await store.put(key, marker, { contentType: 'application/json', metadata: {} })
    // The database lacked the commit, and has it again while the segment is delivered.
    node.stores.delay = (put) => {
      if (put === key) node.control.commits.splice(0, 1, commit)
      return undefined
    }
    await restore()
    await gone()
    for (const each of Object.values(files)) expect(await store.head(each.key), each.key).toMatchObject({ bytes: each.bytes })
    expect(await store.get(key)).toEqual(marker)
  })
})

describe('a marker without a recorded commit', () => {
  /** Ends delivery after the marker of the only segment, and takes its entry in the outbox away. */
  async function withMarker() {
    const at = await furnished()
    const { endpoint, node } = at
    await node.seal(endpoint.id, '{"n":1}')
    node.control.refusesCommits = true
    await node.start()
    await until('the marker', () => node.stores.done.some((key) => key.includes('/commits/')))
    await node.stop(AbortSignal.abort())
    await rm(node.config.paths.outbox, { recursive: true })
    node.control.refusesCommits = false
    return at
  }

  test('is the commit, although the bound views have changed', async () => {
    const { node, other, everything, gone } = await withMarker()
    await using _ = node
    const { objects } = (await everything()) as { objects: unknown }
    node.configure(other)
    await node.start()
    await until('the commit', () => node.commits.length === 1)
    await gone()
    expect(await everything()).toMatchObject({ objects })
    expect(node.commits[0]?.views.map(({ view_name }) => view_name)).toEqual(['old'])
    const manifest = node.commits[0]?.artifacts['manifest']
    const body = await readFile(join(node.config.paths.buckets, 'lake', manifest?.key ?? ''))
    expect(body.length).toBe(manifest?.bytes)
  })
})

test('an attempt whose answers were lost finds its marker, and does not write another', async () => {
  const endpoint = anEndpointTo(aDestination('lake'))
  await using node = await DeliveryNode.create(endpoint)
  await node.seal(endpoint.id, '{"n":1}')
  const isMarker = (key: string) => key.includes('/commits/')
  node.stores.fault = (key) => (isMarker(key) ? 'answer lost' : undefined)
  await node.start()
  await until('the commit', () => node.commits.length === 1)
  expect(node.stores.done.filter(isMarker)).toHaveLength(1)
  const { key = '', sha256 } = node.commits[0]?.artifacts['manifest'] ?? {}
  const body = await readFile(join(node.config.paths.buckets, 'lake', key))
  expect(createHash('sha256').update(body).digest('hex')).toBe(sha256)
})
