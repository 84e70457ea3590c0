/** When a node removes the files that a compaction merged, in an S3 bucket that denies something or was changed. */
import { expect, test } from 'vitest'
import { must } from '#lib/assert.ts'
import { bucketToCompact, parquetPut as put } from '../support/bucket-to-compact.ts'
import { compact, removeSources } from '../support/compaction.ts'
import { s3Errors } from '../support/s3/answers.ts'

/** A bucket with the files of three segments, which were merged. */
async function merged() {
  const { keys, ...at } = await bucketToCompact()
  const { unit } = at
  // Two nodes have the same unit, because one was believed dead. One of them may find the marker of the other in place of its own.
  const ends = await Promise.all([compact(unit, at.stores), compact(unit, at.stores)])
  const compacted = await compact(unit, at.stores)
  for (const end of ends) if (end.outcome !== 'retry') expect(end).toEqual(compacted)
  if (compacted.outcome !== 'compacted') throw new Error(JSON.stringify(compacted))
  return {
    ...at,
    file: compacted.file,
    remove: (signal?: AbortSignal) => removeSources(unit, compacted, at.stores, signal),
    left: async () => (await Promise.all(keys.map((key) => at.store.head(key)))).filter((facts) => facts !== undefined).length,
  }
}

/** The marker as a release before its checksum wrote it. */
const undigested = (marker: string) => marker.replace(/,"digest":"\w+"/, '')

test('a role that may not delete fails the unit, which says what to allow, and removes the rest later', async () => {
  await using at = await merged()
  at.role.denied.add('DeleteObject')
  expect(await at.remove()).toMatchObject({ outcome: 'failed', reason: expect.stringContaining('s3:DeleteObject') })
  expect(await at.left()).toBe(3)
  expect(await at.store.head(at.file.key)).toMatchObject({ bytes: at.file.bytes })
  at.role.denied.clear()
  for (let times = 0; times < 2; times += 1) expect(await at.remove()).toEqual({ outcome: 'removed' })
  expect(await at.left()).toBe(0)
  expect(await at.store.head(at.file.key)).toMatchObject({ bytes: at.file.bytes })
})

test('nothing is removed without the right to read what replaces it', async () => {
  await using at = await merged()
  at.role.denied.add('GetObject')
  expect(await at.remove()).toMatchObject({ outcome: 'failed', reason: expect.stringContaining('s3:GetObject') })
  expect(await at.left()).toBe(3)
})

test('nothing is removed if the marker or the merged file is gone or was changed', async () => {
  const changes: readonly (readonly [RegExp, (at: Awaited<ReturnType<typeof merged>>) => Promise<void>])[] = [
    [/compact-.*\.json is no longer in the bucket/, (at) => at.store.remove(at.marker)],
    [/is not the marker that was written/, (at) => at.store.put(at.marker, Buffer.from('{}'), put)],
    [
      /is not the marker that was written/,
      async (at) => {
        const body = Buffer.from((await at.store.get(at.marker)) ?? '').toString()
        await at.store.put(at.marker, Buffer.from(undigested(body).replace('"first_row":4', '"first_row":5')), put)
      },
    ],
    [/\.parquet is no longer in the bucket/, (at) => at.store.remove(at.file.key)],
    [/SHA-256 differs/, (at) => at.store.put(at.file.key, Buffer.alloc(at.file.bytes), put)],
  ]
  for (const [reason, change] of changes) {
    await using at = await merged()
    await change(at)
    expect(await at.remove()).toMatchObject({ outcome: 'failed', reason: expect.stringMatching(reason) })
    expect(await at.left()).toBe(3)
  }
})

test('an outage in the middle is retried; two nodes at once remove the same files', async () => {
  await using at = await merged()
  let deletions = 0
  at.double.fault = ({ operation }) => (operation === 'DeleteObject' && ++deletions > 1 ? s3Errors.serviceUnavailable : undefined)
  expect(await at.remove()).toMatchObject({ outcome: 'retry' })
  at.double.fault = () => undefined
  expect(await Promise.all([at.remove(), at.remove()])).toEqual([{ outcome: 'removed' }, { outcome: 'removed' }])
  expect(await at.left()).toBe(0)
  expect(await at.store.head(at.file.key)).toMatchObject({ bytes: at.file.bytes })
})

test('a node that merges once more after the removal ends, and changes nothing', async () => {
  await using at = await merged()
  const marker = await at.store.get(at.marker)
  expect(await at.remove()).toEqual({ outcome: 'removed' })
  expect(await compact(at.unit, at.stores)).toEqual({ outcome: 'compacted', file: at.file })
  expect(await at.store.get(at.marker)).toEqual(marker)
  const objects = await Array.fromAsync(at.store.list('in/'))
  expect(objects.map(({ key }) => key).toSorted()).toEqual([at.marker, at.file.key].toSorted())
})

test('a file that an earlier release put beside its sources is not made again, and replaces them', async () => {
  await using at = await merged()
  const file = { ...at.file, key: at.file.key.replace('/compacted/', '/') }
  await at.store.put(file.key, must(await at.store.get(at.file.key), 'the merged file'), put)
  const marker = Buffer.from(must(await at.store.get(at.marker), 'its marker')).toString()
  await at.store.put(at.marker, Buffer.from(undigested(marker).replace(at.file.key, file.key)), put)
  await at.store.remove(at.file.key)
  expect(await compact(at.unit, at.stores)).toEqual({ outcome: 'compacted', file })
  expect(await removeSources(at.unit, { outcome: 'compacted', file }, at.stores)).toEqual({ outcome: 'removed' })
  const objects = await Array.fromAsync(at.store.list('in/'))
  expect(objects.map(({ key }) => key).toSorted()).toEqual([at.marker, file.key].toSorted())
})

test('a marker that somebody else wrote, or whose file is gone, is written again', async () => {
  await using at = await merged()
  const marker = must(await at.store.get(at.marker), 'the marker')
  await at.store.put(at.marker, Buffer.from(undigested(Buffer.from(marker).toString()).replace('"rows":4', '"rows":5')), put)
  expect(await compact(at.unit, at.stores)).toEqual({ outcome: 'compacted', file: at.file })
  await at.store.remove(at.file.key)
  expect(await compact(at.unit, at.stores)).toEqual({ outcome: 'compacted', file: at.file })
  expect(await at.store.head(at.file.key)).toMatchObject({ bytes: at.file.bytes })
  expect(Buffer.from(must(await at.store.get(at.marker), 'the marker')).toString()).toContain('"rows":4')
})
