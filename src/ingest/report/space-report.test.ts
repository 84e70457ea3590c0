import { expect, test } from 'vitest'
import type { DiskSpace } from '#lib/files.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { SpaceReport } from './space-report.ts'

test('the room on the disk is reported until control has it, then once a minute', () => {
  const clock = new ManualClock()
  let space: DiskSpace | undefined
  const report = new SpaceReport(() => space, clock)
  expect(report.next()).toEqual({})
  report.recorded()
  space = { free_bytes: 1, total_bytes: 2 }
  expect([report.next(), report.next()]).toEqual([{ disk: space }, { disk: space }])
  report.recorded()
  clock.advance(59_999)
  expect(report.next()).toEqual({})
  report.recorded()
  clock.advance(1)
  expect(report.next()).toEqual({ disk: space })
})
