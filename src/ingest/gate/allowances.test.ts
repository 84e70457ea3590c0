import { expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import type { UsageReport } from '#model/node-protocol.ts'
import { anEndpoint } from '../../../test/support/ingest-node.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { Allowances } from './allowances.ts'
import { gateLimits } from './limits.ts'

const { usageReportMs, usageReportMsMax } = gateLimits
const bytesPerDay = 1_000_000

/** Sends and reports for some time. Returns the reported bytes, with the seconds after which they were. */
async function reportsOf(nodes: number, bytesAtOnce: number, forMs: number) {
  const clock = new ManualClock()
  const account_id = newId()
  const reports: { readonly afterMs: number; readonly bytes: number }[] = []
  const control = {
    reportUsage: async ({ accounts }: UsageReport) => {
      reports.push({ afterMs: clock.monotonic(), bytes: accounts[0]?.bytes ?? 0 })
      return { healthy_nodes: nodes, accounts: accounts.map(({ day, bytes }) => ({ account_id, day, bytes: bytes * nodes })) }
    },
  }
  const allowances = new Allowances({ ...system, nodeId: newId(), control, clock, logger: createLogger('ingest', 'silent') })
  const account_quotas = { bytes_per_day: bytesPerDay, records_per_second: 1_000_000 }
  allowances.configure([anEndpoint({ account_id, account_quotas })])
  await allowances.start()
  for (let passedMs = 0; passedMs < forMs; passedMs += usageReportMs) {
    allowances.of(account_id).count(1, bytesAtOnce)
    clock.advance(usageReportMs)
    // The report is stored, and the next one planned.
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate)
  }
  allowances.of(account_id).count(1, bytesAtOnce)
  await allowances.stop(new AbortController().signal)
  return reports
}

test('a node alone reports each time', async () => {
  const reports = await reportsOf(1, 1, 10 * usageReportMs)
  expect(reports.map(({ bytes }) => bytes)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
})

test('one of many reports an account less often, and at its stop', async () => {
  const reports = await reportsOf(10, 1, 31 * usageReportMs)
  expect(reports.map(({ bytes }) => bytes)).toEqual([1, 11, 21, 31, 32])
  const rare = await reportsOf(1_000, 1, 2 * usageReportMsMax + 2 * usageReportMs)
  const [, second, third] = rare.map(({ afterMs }) => afterMs)
  expect((third ?? 0) - (second ?? 0)).toBe(usageReportMsMax)
})

test('one of many reports an account at once while its quota may be used up', async () => {
  const reports = await reportsOf(10, bytesPerDay / 100, 20 * usageReportMs)
  expect(reports.length).toBeGreaterThan(15)
})
