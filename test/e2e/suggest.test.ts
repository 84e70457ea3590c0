/** A definition is suggested from the records that an endpoint received, and it works on them. */
import { expect, test } from 'vitest'
import { useDeployment } from '../support/deployment.ts'
import { until } from '../support/until.ts'

const records = Array.from({ length: 300 }, (_, n) =>
  JSON.stringify({
    id: `${10_000_000 + n}-7dec-11d0-a765-00a0c91e6bf6`,
    at: new Date(1_795_162_530_000 + n).toISOString(),
    order: { total: n / 4, items: [{ sku: `s${n}`, count: n }] },
    ...(n % 3 === 0 ? { note: 'x' } : {}),
  }),
)

const deployment = useDeployment()

test('a view is suggested from the data of an endpoint', async () => {
  const { id } = await deployment().endpoint({ bucket: 'suggested' })
  expect(await deployment().ingest(id, `${records.join('\n')}\n`)).toMatchObject({ status: 202 })
  await until('the commit', async () => (await deployment().commits(id)).length > 0, 30_000)
  const { definition, warnings, sample_count } = await deployment().ok('POST', '/v1/views/suggest', { endpoint_id: id })
  expect({ warnings, sample_count }).toEqual({ warnings: [], sample_count: 100 })
  expect(definition.columns).toEqual([
    { name: 'id', type: 'UUID', path: '$.id', required: true },
    { name: 'at_', type: 'TIMESTAMP', path: '$.at', required: true },
    { name: 'order_total', type: 'DOUBLE', path: '$.order.total', required: true },
    { name: 'order_items_sku', type: 'VARCHAR[]', path: '$.order.items[*].sku', required: true },
    { name: 'order_items_count', type: 'BIGINT[]', path: '$.order.items[*].count', required: true },
    { name: 'note', type: 'VARCHAR', path: '$.note' },
  ])
  const preview = await deployment().ok('POST', '/v1/views/preview', { definition, samples: records.slice(0, 100) })
  expect(preview).toMatchObject({ success: true, rowCount: 100, warnings: [] })
})
