import { expect, test } from 'vitest'
import { readAckRequest } from './ack-request.ts'

test.each([
  ['disk', undefined, { level: 'disk', waitMs: 120_000 }],
  ['Committed', 'wait=30', { level: 'committed', waitMs: 30_000 }],
  [' copied ', 'respond-async, wait = 5', { level: 'copied', waitMs: 5_000 }],
  ['committed', 'respond-async; wait="0"', { level: 'committed', waitMs: 0 }],
  ['committed', 'wait=999999', { level: 'committed', waitMs: 300_000 }],
  ['committed', 'await=30', { level: 'committed', waitMs: 120_000 }],
  ['committed', 'wait=soon', { level: 'committed', waitMs: 120_000 }],
])('Inlet-Ack: %s with Prefer: %s', (text, prefer, request) => {
  expect(readAckRequest(text, prefer)).toEqual(request)
})

test.each(['', 'disk, copied', 'DURABLE', 'toString'])('"%s" is no level', (text) => {
  expect(() => readAckRequest(text, undefined)).toThrow(
    expect.objectContaining({ outcome: 'invalid_ack_level', field: 'inlet-ack' }),
  )
})
