import { expect, test } from 'vitest'
import { isWhole, proposeColumn } from './proposed-column.ts'

type Kinds = Parameters<typeof proposeColumn>[0]['types']

test.each<[string, Kinds, readonly string[], string, string]>([
  ['$.coupon', ['string'], [], 'coupon', 'VARCHAR'],
  ['$.address.Zip', ['integer'], ['city'], 'zip', 'BIGINT'],
  ['$.address.zip', ['integer', 'number'], ['ZIP'], 'address_zip', 'DOUBLE'],
  ['$.zip', ['boolean'], ['zip', 'zip_2'], 'zip_3', 'BOOLEAN'],
  ['$.coupon', ['string', 'object'], [], 'coupon', 'JSON'],
  ['$.items[*].sku', ['string'], [], 'sku', 'VARCHAR[]'],
  ['$."Größe in m"', ['number'], [], 'm', 'DOUBLE'],
  ['$."2024"', ['array'], [], 'column_2024', 'JSON'],
])('%s with %j beside %j', (path, types, taken, name, type) => {
  expect(proposeColumn({ path, types }, taken)).toEqual({ name, type, path })
})

test('a path that was cut is not whole', () => {
  expect([isWhole({ path: '$.a' }), isWhole({ path: '$.aaa…' })]).toEqual([true, false])
})
