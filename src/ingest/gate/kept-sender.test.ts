import { expect, test } from 'vitest'
import { keptSenderOf } from './kept-sender.ts'

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
