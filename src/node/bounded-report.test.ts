import { expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { reportLimits } from '#model/node-protocol.ts'
import { aLag } from '../../test/support/lags.ts'
import { boundBlocked, boundLags, boundReasons } from './bounded-report.ts'

test('a report within the bounds stays as it is', () => {
  const lags = [aLag(newId()), aLag(newId(), { blocked_by: 'no bucket' })]
  expect(boundLags(lags)).toEqual(lags)
})

test('directories that are not named like an endpoint are left out', () => {
  expect(boundLags([aLag('lost-and-found')])).toEqual([])
  expect(boundBlocked([{ endpoint_id: 'lost-and-found', reason: 'EIO' }])).toEqual([])
})

test('logs without trouble are left out first, and long reasons are cut', () => {
  const idle = { undelivered_segments: 0, open_segments: 1 }
  const parked = aLag(newId(), { parked_segments: 1, blocked_by: 'x'.repeat(5_000) })
  const closed = aLag(newId(), { ...idle, open_segments: 0, closed: true })
  const lags = boundLags([...Array.from({ length: reportLimits.logsMax }, () => aLag(newId(), idle)), closed, parked])
  expect(lags).toHaveLength(reportLimits.logsMax)
  expect(lags.slice(0, 2)).toEqual([{ ...parked, blocked_by: `${'x'.repeat(999)}…` }, closed])
  expect(boundBlocked([{ endpoint_id: parked.endpoint_id, reason: 'y'.repeat(1_001) }])[0]?.reason).toHaveLength(1_000)
  expect(boundReasons(Array(200).fill('z'.repeat(1_001)))).toEqual(Array(reportLimits.reasonsMax).fill(`${'z'.repeat(999)}…`))
})
