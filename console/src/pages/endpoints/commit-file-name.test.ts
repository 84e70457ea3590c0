import { expect, test } from 'vitest'
import { fileName } from './commit-file-name.ts'

test.each([
  ['parquet', 'Raw Parquet'],
  ['views/orders/v2', 'orders v2'],
  ['dlq/orders/v2', 'Dead letters of orders v2'],
  ['views/orders/v2/redrive-v1', 'orders v2, re-driven from v1'],
  ['manifest/orders/v2', 'Marker of orders v2'],
  ['iceberg', 'iceberg'],
])('the file %s is called %s', (kind, name) => {
  expect(fileName(kind)).toBe(name)
})
