import { expect, test } from 'vitest'
import { binOf } from '#lib/duration-histogram.ts'
import { EndpointCounts } from './endpoint-counters.ts'

test('counts what became durable and what was refused, each once', () => {
  const counts = new EndpointCounts()
  counts.of('a').accepted(1, 10, 500, 2)
  counts.of('a').accepted(3, 3, 60, 2)
  counts.of('a').accepted(1, 1, 1, 900)
  counts.of('a').refused('quota_exceeded')
  counts.of('a').refused('quota_exceeded', 4)
  counts.of('b').refused('endpoint_paused')
  expect(counts.takeAll()).toEqual([
    [
      'a',
      {
        ...{ records: 14, bytes: 561, requests: 5, refused: { quota_exceeded: 5 } },
        acknowledged_after: { [binOf(2)]: 4, [binOf(900)]: 1 },
      },
    ],
    ['b', { records: 0, bytes: 0, requests: 0, refused: { endpoint_paused: 1 }, acknowledged_after: {} }],
  ])
  expect(counts.takeAll()).toEqual([])
  counts.of('a').accepted(1, 1, 1, 0)
  expect(counts.takeAll()).toMatchObject([['a', { records: 1, refused: {}, acknowledged_after: { 0: 1 } }]])
})
