/** From nothing but data: what an endpoint was sent becomes a definition, the definition a view, and the view rows. */
import { expect, test } from 'vitest'
import { Installation } from '../support/installation.ts'
import { until } from '../support/until.ts'

const records = Array.from({ length: 300 }, (_, n) =>
  JSON.stringify({
    id: `${10_000_000 + n}-7dec-11d0-a765-00a0c91e6bf6`,
    at: new Date(1_795_162_530_000 + n).toISOString(),
    order: { total: n / 4, items: [{ sku: `s${n}`, count: n }] },
    ...(n % 3 === 0 ? { note: 'x' } : {}),
  }),
)

test('a view is made of what an endpoint was sent', async () => {
  await using installation = await Installation.create()
  await installation.start('start')
  const { id } = await installation.endpoint({ bucket: 'suggested' })
  expect(await installation.ingest(id, `${records.join('\n')}\n`)).toMatchObject({ status: 202 })
  await until('the commit', async () => (await installation.commits(id)).length > 0, 30_000)
  const { definition, warnings, sample_count } = await installation.ok('POST', '/v1/views/suggest', { endpoint_id: id })
  expect({ warnings, sample_count }).toEqual({ warnings: [], sample_count: 100 })
  expect(definition.columns).toEqual([
    { name: 'id', type: 'UUID', path: '$.id', required: true },
    { name: 'at', type: 'TIMESTAMP', path: '$.at', required: true },
    { name: 'order_total', type: 'DOUBLE', path: '$.order.total', required: true },
    { name: 'order_items_sku', type: 'VARCHAR[]', path: '$.order.items[*].sku', required: true },
    { name: 'order_items_count', type: 'BIGINT[]', path: '$.order.items[*].count', required: true },
    { name: 'note', type: 'VARCHAR', path: '$.note' },
  ])
  const preview = await installation.ok('POST', '/v1/views/preview', { definition, samples: records.slice(0, 100) })
  expect(preview).toMatchObject({ success: true, rowCount: 100, warnings: [] })
})
