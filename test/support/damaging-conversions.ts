/** Conversions after which a bit of a file that they read is another one. */
import { readFile, writeFile } from 'node:fs/promises'
import type { ConversionPool } from '#delivery/convert/conversion-pool.ts'
import type { ConvertTask } from '#delivery/convert/worker/protocol.ts'
import { conversionPool } from './delivery-node.ts'

/** `pathOf` names the file. It is damaged after the conversion, because DuckDB refuses some damage, and the rest must be noticed as well. */
export function damagingConversions(pathOf: (task: ConvertTask) => string | undefined): ConversionPool {
  return {
    pids: [],
    async run(task, options) {
      const end = await conversionPool.run(task, options)
      const path = pathOf(task)
      if (path !== undefined) await flipBit(path)
      return end
    },
    stop: async () => undefined,
  }
}

async function flipBit(path: string): Promise<void> {
  const bytes = await readFile(path)
  const middle = bytes.length >> 1
  bytes[middle] = (bytes[middle] ?? 0) ^ 4
  await writeFile(path, bytes)
}
