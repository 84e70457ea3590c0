import { expect, test } from 'vitest'
import { removalEffects } from './removal-effects.ts'

const lag = {
  ...{ undelivered_bytes: 0, undelivered_segments: 0, open_segments: 0, parked_segments: 0, quarantined_segments: 0 },
  ...{ oldest_sealed_at: null, oldest_age_seconds: null },
}
const waits = { ...lag, undelivered_bytes: 2140 }
const valid = { destination_name: 'lake', destination_status: 'valid' } as const

test.each([
  ['nothing waits', { ...valid, lag }, /No data waits/],
  ['data waits', { ...valid, lag: waits }, /2\.14 kB wait on the nodes.*delivered to the destination “lake” before/],
  ['segments are parked', { ...valid, lag: { ...waits, parked_segments: 1 } }, /parked/],
  ['it has no destination', { destination_name: null, destination_status: null, lag: waits }, /only once you have chosen one/],
  ['its destination is not validated', { ...valid, destination_status: 'pending', lag: waits }, /“lake”, which is not validated/],
] as const)('deleting an endpoint says what becomes of its data: %s', (_name, endpoint, effect) => {
  expect(removalEffects(endpoint).join('\n')).toMatch(effect)
})
