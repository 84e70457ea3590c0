/** Logs take turns at the disk, by owner. Uses the disk of faulty-files.ts, with an fdatasync that hangs until the test says so. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { seededRandom } from '#lib/random.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { logLimits } from '#log/limits.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { FaultyDisk } from '../support/faulty-files.ts'
import { oneRecord } from '../support/frames.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { SteeredFiles } from '../support/steered-files.ts'
import { until } from '../support/until.ts'

const turns = 2
const crowd = Array.from({ length: 100 }, (_, n) => `crowd-${n}`)
let disk: SteeredFiles
let wal: LocalLogWriter

beforeEach(async () => {
  disk = new SteeredFiles(new FaultyDisk(seededRandom(7)).mount())
  const [clock, logger] = [new ManualClock(), createLogger('test', 'silent')]
  wal = new LocalLogWriter({ ...system, directory: '/wal', files: disk.files, clock, logger, limits: { commitsParallel: turns } })
  await wal.start()
  for (const log of crowd) configure(log, 'crowd')
  configure('victim', 'victim')
})

afterEach(() => wal.stop(AbortSignal.timeout(10_000)))

function configure(log: string, owner: string): void {
  wal.configure(log, { segmentBytes: 1_000_000, segmentMaxAgeMs: 60_000, seqAbove: -1, owner })
}

const append = (log: string) => wal.append(log, oneRecord())

test('the threads of a process suffice for all turns, and some are left', () => {
  // `UV_THREADPOOL_SIZE` of supervise.ts.
  expect(logLimits.commitsParallel).toBeLessThan(8)
})

test('a log waits for one turn at most, however many logs of another owner wait', async () => {
  await Promise.all([...crowd, 'victim'].map(append))
  // A disk that syncs one file at a time, in the order of the calls, like few threads.
  const hanging = disk.hangEach()
  const all = crowd.map(append)
  await until('busy turns', () => hanging.length >= turns)
  let isDurable = false
  const victim = append('victim').then(() => {
    isDurable = true
  })
  let before = 0
  while (!isDurable) {
    hanging.shift()?.()
    before += 1
    const left = Math.max(1, Math.min(turns, crowd.length + 1 - before))
    await until('the next commit', () => isDurable || hanging.length >= left)
  }
  disk.hang()()
  for (const release of hanging) release()
  await Promise.all([...all, victim])
  // The syncs that had begun when it came, and its own.
  expect(before).toBe(turns + 1)
})

test('frames of a log that waits become durable together', async () => {
  await Promise.all([...crowd, 'victim'].map(append))
  const hanging = disk.hangEach()
  const first = crowd.slice(0, turns).map(append)
  await until('busy turns', () => hanging.length === turns)
  const syncs = disk.syncs
  const later: Promise<unknown>[] = []
  for (let n = 0; n < 5; n += 1) {
    later.push(append('victim'), append('crowd-99'))
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(disk.syncs).toBe(syncs)
  disk.hang()()
  for (const release of hanging) release()
  await Promise.all([...first, ...later])
  expect(disk.syncs).toBe(syncs + 2)
})

test('a log that is closed and claimed again does not keep its turn from the one that it waits for', async () => {
  const hanging = disk.hangEach()
  const before = crowd.slice(0, 2 * turns).map(append)
  await until('busy turns', () => hanging.length === turns)
  for (const log of crowd.slice(0, 2 * turns)) {
    void wal.end(log, 'closed')
    configure(log, 'crowd')
  }
  const after = crowd.slice(0, 2 * turns).map(append)
  disk.hang()()
  for (const release of hanging) release()
  expect(await Promise.all(before)).toMatchObject(before.map(() => ({ seq: 0 })))
  expect(await Promise.all(after)).toMatchObject(before.map(() => ({ seq: 1 })))
})

test('a sync that fails ends its turn', async () => {
  await append('victim')
  for (let n = 0; n < 2 * turns; n += 1) {
    disk.failOnce()
    await expect(append(`crowd-${n}`)).rejects.toMatchObject({ reason: 'io_error' })
  }
  expect(await append('victim')).toMatchObject({ seq: 0 })
})
