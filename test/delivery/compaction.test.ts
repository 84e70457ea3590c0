/** A compaction whose downloaded files are damaged on the disk of the node. */
import { expect, test } from 'vitest'
import { bucketToCompact } from '../support/bucket-to-compact.ts'
import { compact } from '../support/compaction.ts'
import { damagingConversions } from '../support/damaging-conversions.ts'

test.each([0, 1, 2])('a bit that flips in source %i while it is merged reaches no object', async (index) => {
  await using at = await bucketToCompact()
  const damaging = damagingConversions((task) => (task.kind === 'merge' ? task.sources[index]?.path : undefined))
  const key = at.keys[index]
  expect(await compact(at.unit, at.stores, undefined, damaging)).toEqual({
    outcome: 'retry',
    reason: `the copy of ${key} on this node was damaged while it was read`,
  })
  expect((await Array.fromAsync(at.store.list('in/'))).map((object) => object.key)).toEqual(at.keys.toSorted())
  expect(await compact(at.unit, at.stores)).toMatchObject({ outcome: 'compacted', file: { rows: 12 } })
})
