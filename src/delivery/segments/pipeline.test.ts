import { expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { Segment, SegmentSource } from '#log/segment-source.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { until } from '../../../test/support/until.ts'
import { Endpoints } from './endpoints.ts'
import { Pipeline } from './pipeline.ts'

test('a log is looked into when it reports a segment, however long the scan of all others takes', async () => {
  const clock = new ManualClock()
  const sealed: Segment[] = []
  let scans = 0
  let report: (logName: string | null) => void = () => undefined
  const segments: Pick<SegmentSource, 'logNames' | 'readLog' | 'open' | 'watch'> = {
    logNames: async () => {
      scans += 1
      // As a thousand logs do.
      clock.advance(1_000)
      return ['quiet', 'log']
    },
    readLog: async (logName) => ({
      logName,
      isClosed: false,
      segments: sealed.filter((segment) => segment.logName === logName),
    }),
    open: () => Promise.reject(new Error('not needed')),
    watch: async (onSealed) => {
      report = onSealed
      return () => undefined
    },
  }
  const delivered: string[] = []
  const pipeline = new Pipeline({
    ...system,
    nodeId: 'node',
    segments: segments as SegmentSource,
    parked: { read: async () => new Map() },
    deliver: async ({ segment }) => {
      delivered.push(`${segment.logName}/${segment.seq}`)
      return 'committed'
    },
    isReported: () => false,
    reportingBlockedBy: () => null,
    endpoints: new Endpoints(),
    clock,
    logger: createLogger('test', 'silent'),
  })
  await pipeline.start()
  await until('the first scan', () => scans === 1)
  sealed.push({ logName: 'log', incarnation: 'aaaaaaaaaa', seq: 0, state: 'sealed', bytes: 1 })
  report('log')
  await until('the delivery', () => delivered.length === 1)
  sealed.push({ logName: 'log', incarnation: 'aaaaaaaaaa', seq: 1, state: 'sealed', bytes: 1 })
  report('log')
  await until('the rest after a look', () => {
    clock.advance(10)
    return delivered.length === 2
  })
  expect(delivered).toEqual(['log/0', 'log/1'])
  expect(scans).toBe(1)
  const stopped = pipeline.stop(AbortSignal.abort())
  clock.advance(60_000)
  await stopped
})
