import { expect, test } from 'vitest'
import type { Principal } from '#model/principal.ts'
import { RequestShares } from './request-shares.ts'

const principal = (account_id: string): Principal => ({ account_id, key_id: 'k', scopes: ['admin'], endpoint_ids: null })

test('an account gets its share, and one more request when one ends', () => {
  const shares = new RequestShares({ what: 'run previews', perAccountMax: 2 })
  const [end] = [shares.reserve(principal('a')), shares.reserve(principal('a'))]
  expect(() => shares.reserve(principal('a'))).toThrow(expect.objectContaining({ code: 'too_many_requests' }))
  shares.reserve(principal('b'))
  end?.()
  shares.reserve(principal('a'))
})

test('an account without a request is admitted, however many others have', () => {
  const shares = new RequestShares({ what: 'run previews', perAccountMax: 4 })
  for (let account = 0; account < 8; account += 1) {
    for (let request = 0; request < 4; request += 1) shares.reserve(principal(`busy ${account}`))
  }
  shares.reserve(principal('calm'))
  expect(() => shares.reserve(principal('calm'))).toThrow(expect.objectContaining({ code: 'unavailable' }))
})
