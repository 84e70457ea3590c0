import { expect, test } from 'vitest'
import { type Catalog, findTable } from './tables.ts'

const version = (number: number, status: 'draft' | 'published' | 'archived') => ({ version: number, status })

const catalog: Catalog<ReturnType<typeof version>> = {
  listEndpoints: async () => [
    { id: 'e-1', name: 'LINE 1' },
    { id: 'e-2', name: 'Line 1' },
  ],
  listVersions: async (name) =>
    name === 'orders' ? [version(1, 'published'), version(2, 'archived'), version(3, 'draft')] : [version(4, 'archived')],
}

test.each([
  [['', 'Orders'], 1],
  [['ORDERS', 'V2'], 2],
  [['orders', 'v3'], undefined],
  [['orders', 'v02'], undefined],
  [['orders', 'x'], undefined],
  [['', 'old'], 4],
  [['raw', 'Line 1'], 'e-2'],
  [['RAW', 'line 1'], 'e-1'],
  [['raw', 'E-2'], 'e-2'],
  [['raw', 'Line 2'], undefined],
] as const)('%j', async ([schema, table], expected) => {
  const found = await findTable({ schema, table, isOptional: false }, catalog)
  expect(found?.kind === 'raw' ? found.endpoint_id : found?.view.version).toBe(expected)
})
