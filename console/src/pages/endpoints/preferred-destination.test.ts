import { expect, test } from 'vitest'
import { preferredDestination } from './preferred-destination.ts'

const fresh = { id: 'fresh', name: 'fresh', status: 'pending' }
const idle = { id: 'idle', name: 'idle', status: 'valid' }
const used = { id: 'used', name: 'used', status: 'valid' }

test.each([
  ['none exists', [], [], undefined],
  ['none is validated', [fresh], [{ destination_id: null }], 'fresh'],
  ['one is validated', [fresh, idle], [{ destination_id: 'fresh' }], 'idle'],
  ['several are validated', [fresh, idle, used], [{ destination_id: 'fresh' }, { destination_id: 'used' }], 'used'],
] as const)(
  'a new endpoint delivers to the validated destination that was used last: %s',
  (_name, destinations, endpoints, id) => {
    expect(preferredDestination(destinations, endpoints)).toBe(id)
  },
)
