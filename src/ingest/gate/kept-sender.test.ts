import { expect, test } from 'vitest'
import { keptSenderOf } from './kept-sender.ts'

test.each<[string[], unknown]>([
  [[], undefined],
  [['address'], { address: '192.0.2.7' }],
  [['address_masked'], { address: '192.0.2.0' }],
  [['key_name'], { key_name: 'plant' }],
  [['key_name', 'address'], { address: '192.0.2.7', key_name: 'plant' }],
  // The API refuses both. The one that says less counts.
  [['address', 'address_masked'], { address: '192.0.2.0' }],
  [['of a later release'], undefined],
])('%j keeps %j', (kept_fields, expected) => {
  expect(keptSenderOf({ kept_fields }, { address: () => '192.0.2.7', keyName: () => 'plant' })).toEqual(expected)
})

test('nothing is looked up that the endpoint does not keep', () => {
  const looked: string[] = []
  const look = (name: string) => () => {
    looked.push(name)
    return undefined
  }
  const fields = { address: look('address'), keyName: look('key name') }
  expect(keptSenderOf({ kept_fields: [] }, fields)).toBeUndefined()
  expect(looked).toEqual([])
  expect(keptSenderOf({ kept_fields: ['key_name'] }, fields)).toBeUndefined()
  expect(looked).toEqual(['key name'])
})
