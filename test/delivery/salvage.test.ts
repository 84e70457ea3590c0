import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemFiles } from '#lib/files.ts'
import { FOOTER_BYTES } from '#log/local/format/segment-file.ts'
import { aBoundView, aDestination, anEndpointTo, conversionPool, DeliveryNode } from '../support/delivery-node.ts'
import { until } from '../support/until.ts'

test('a commit counts the records of a salvaged segment, also if a view is detached meanwhile', async () => {
  const view = aBoundView({ activated_at: '2026-01-01T00:00:00.000Z' })
  const endpoint = anEndpointTo(aDestination(), { views: [view], output_formats: ['parquet', 'parquet_views'] })
  await using node = await DeliveryNode.create(endpoint)
  await node.sealFrames(endpoint.id, '{"n":1}', '{"n":2}', '{"n":3}')
  damageAtConversion(node, endpoint.id)
  node.files = {
    ...systemFiles,
    async rename(from, to) {
      if (from.endsWith('.salvage')) {
        node.configure({ ...endpoint, views: [{ ...view, deactivated_at: new Date().toISOString() }] })
        const { deliverySnapshot } = node.config.paths
        await until('the detached view', async () => (await readFile(deliverySnapshot, 'utf8')).includes('"deactivated_at":"2'))
      }
      await systemFiles.rename(from, to)
    },
  }
  await node.start()
  await until('the commit', () => node.commits.length === 1)
  expect(node.log.join('')).toContain('damaged segment salvaged')
  expect(node.commits[0]).toMatchObject({ records: 2, artifacts: { parquet: { rows: 2 } } })
})

test('a commit counts the records of a segment that was replaced by a salvage that failed', async () => {
  const endpoint = anEndpointTo(aDestination())
  await using node = await DeliveryNode.create(endpoint)
  await node.sealFrames(endpoint.id, '{"n":1}', '{"n":2}', '{"n":3}')
  damageAtConversion(node, endpoint.id)
  let isReplaced = false
  node.files = {
    ...systemFiles,
    async rename(from, to) {
      await systemFiles.rename(from, to)
      if (!from.endsWith('.salvage')) return
      isReplaced = true
      throw Object.assign(new Error('EIO: i/o error, rename'), { code: 'EIO' })
    },
  }
  await node.start()
  await until('the commit', () => node.commits.length === 1)
  expect(isReplaced).toBe(true)
  expect(node.commits[0]).toMatchObject({ records: 2, records_damaged: 1, artifacts: { parquet: { rows: 2 } } })
})

test('a segment that is misread again and again is not parked: it is intact', async () => {
  const endpoint = anEndpointTo(aDestination())
  await using node = await DeliveryNode.create(endpoint)
  await node.sealFrames(endpoint.id, '{"n":1}')
  let misreads = 0
  node.files = {
    ...systemFiles,
    async open(path, mode) {
      const file = await systemFiles.open(path, mode)
      const read = file.read.bind(file)
      // Only who reads a segment for its delivery reads the footer alone: a salvage reads all of it, and finds it intact.
      file.read = async (into, position) => {
        const got = await read(into, position)
        if (path.endsWith('.wal') && into.byteLength === FOOTER_BYTES && misreads < 4) {
          misreads += 1
          into.fill(0)
        }
        return got
      }
      return file
    },
  }
  await node.start()
  await until('the commit', () => node.commits.length === 1)
  expect(misreads).toBe(4)
  expect(node.commits[0]).toMatchObject({ records: 1, records_damaged: 0 })
})

test('a built file that is damaged before it is uploaded is built again', async () => {
  const endpoint = anEndpointTo(aDestination())
  await using node = await DeliveryNode.create(endpoint)
  await node.sealFrames(endpoint.id, '{"n":1}')
  let isDamaged = false
  node.conversionPool = {
    pids: [],
    async run(task, options) {
      const end = await conversionPool.run(task, options)
      if (isDamaged || task.kind !== 'segment') return end
      isDamaged = true
      const [name = ''] = await readdir(task.directory)
      const bytes = await readFile(join(task.directory, name))
      bytes[10] = (bytes[10] ?? 0) ^ 1
      await writeFile(join(task.directory, name), bytes)
      return end
    },
    stop: async () => undefined,
  }
  await node.start()
  await until('the commit', () => node.commits.length === 1)
  expect(node.log.join('')).toContain('built files were removed or damaged')
})

/** Changes the third record of the segment right before it is converted for the first time. */
function damageAtConversion(node: DeliveryNode, logName: string): void {
  const directory = join(node.config.paths.wal, logName)
  const damage = async () => {
    const name = (await readdir(directory)).find((each) => each.endsWith('.wal')) ?? ''
    const bytes = await readFile(join(directory, name))
    bytes.write('4', bytes.indexOf('"n":3') + 4)
    await writeFile(join(directory, name), bytes)
  }
  let isDamaged = false
  node.conversionPool = {
    pids: [],
    async run(task, options) {
      if (!isDamaged) await damage()
      isDamaged = true
      return await conversionPool.run(task, options)
    },
    stop: async () => undefined,
  }
}
