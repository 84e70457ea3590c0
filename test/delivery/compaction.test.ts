/** A compaction whose downloaded files are damaged on the disk of the node. */
import { readFile, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import type { ConversionPool } from '#delivery/convert/conversion-pool.ts'
import { must } from '#lib/assert.ts'
import { bucketToCompact } from '../support/bucket-to-compact.ts'
import { compact } from '../support/compaction.ts'
import { conversionPool } from '../support/delivery-node.ts'

test.each([0, 1, 2])('a bit that flips in source %i while it is merged reaches no object', async (index) => {
  await using at = await bucketToCompact()
  const flipping: ConversionPool = {
    pids: [],
    async run(task, options) {
      const end = await conversionPool.run(task, options)
      // After the merge, because DuckDB refuses some damage, and the rest must be noticed as well.
      if (task.kind === 'merge') await flipBit(must(task.sources[index], 'a source').path)
      return end
    },
    stop: async () => undefined,
  }
  const key = at.keys[index]
  expect(await compact(at.unit, at.stores, undefined, flipping)).toEqual({
    outcome: 'retry',
    reason: `the copy of ${key} on this node was damaged while it was merged`,
  })
  expect((await Array.fromAsync(at.store.list('in/'))).map((object) => object.key)).toEqual(at.keys.toSorted())
  expect(await compact(at.unit, at.stores)).toMatchObject({ outcome: 'compacted', file: { rows: 12 } })
})

async function flipBit(path: string): Promise<void> {
  const bytes = await readFile(path)
  const middle = bytes.length >> 1
  bytes[middle] = (bytes[middle] ?? 0) ^ 4
  await writeFile(path, bytes)
}
