import { expect, test } from 'vitest'
import type { Principal } from '#model/principal.ts'
import { RequestShares } from './request-shares.ts'

const principal = (account_id: string): Principal => ({ account_id, key_id: 'k', scopes: ['admin'], endpoint_ids: null })

test('an account gets its share, and one more request when one ends', () => {
  const shares = new RequestShares({ what: 'run previews', perAccountMax: 2 })
  const [end] = [shares.admit(principal('a')), shares.admit(principal('a'))]
  expect(() => shares.admit(principal('a'))).toThrow(expect.objectContaining({ code: 'too_many_requests' }))
  shares.admit(principal('b'))
  end?.()
  shares.admit(principal('a'))
})

test('an account without a request is admitted, however many others have', () => {
  const shares = new RequestShares({ what: 'run previews', perAccountMax: 4 })
  for (let account = 0; account < 8; account += 1) {
    for (let request = 0; request < 4; request += 1) shares.admit(principal(`busy ${account}`))
  }
  shares.admit(principal('calm'))
  expect(() => shares.admit(principal('calm'))).toThrow(expect.objectContaining({ code: 'unavailable' }))
})
