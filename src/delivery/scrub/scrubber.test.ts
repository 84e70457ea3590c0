import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemFiles } from '#lib/files.ts'
import { seededRandom } from '#lib/random.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import type { EndpointToScrub } from '#model/scrub.ts'
import { OutboxFiles } from '#node/outbox-files.ts'
import { DirectoryStores } from '#objects/directory.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { until } from '../../../test/support/until.ts'
import { scrubLimits } from './limits.ts'
import { Scrubber, type ScrubberOptions } from './scrubber.ts'

const fixtures = resolve(import.meta.dirname, '../../../test/fixtures/wal')
const logName = '0b8fbf52-0d6e-4f0f-9a83-7f8f9c1d2e3f'
const segmentFile = '000000000041-k3v9x0q2ab.wal'
const weekMs = 7 * 86_400_000
let directory = ''

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-scrubber-'))
  await mkdir(join(directory, 'wal', logName), { recursive: true })
  await copyFile(join(fixtures, 'salt-key'), join(directory, 'wal', 'salt-key'))
})
afterEach(() => rm(directory, { recursive: true }))

/** A scrubber whose control knows these endpoints, none of which delivered anything. */
function optionsOf(clock: ManualClock, endpoints: () => Promise<readonly string[]> = async () => []): ScrubberOptions {
  const files = systemFiles
  return {
    ...{ files, clock, random: seededRandom(1), logger: createLogger('delivery', 'silent') },
    ...{ intervalMs: weekMs, bytesPerSecond: 0, path: join(directory, 'scrub.json') },
    segments: new LocalSegmentSource({ ...system, directory: join(directory, 'wal'), files }),
    outbox: new OutboxFiles({ directory: join(directory, 'outbox'), files }),
    own: undefined,
    stores: new DirectoryStores({ ...system, root: join(directory, 'buckets') }),
    isReported: () => false,
    isConfigured: () => true,
    delivered: {
      async endpoints(after) {
        const ids = (await endpoints()).filter((id) => after === null || id > after)
        const toScrub = (id: string): EndpointToScrub => ({ id, account_id: id, targets: [] })
        return {
          endpoints: ids.slice(0, 1).map(toScrub),
          next: ids.length > 1 ? (ids[0] ?? null) : null,
          kept_since: '2026-01-01T00:00:00.000Z',
        }
      },
      commits: async () => ({ commits: [], is_last: true }),
      known: async () => new Set(),
    },
  }
}

const aScrubber = (...options: Parameters<typeof optionsOf>) => new Scrubber(optionsOf(...options))

async function aPass(scrubber: Scrubber, clock: ManualClock, ms: number = scrubLimits.firstPassMs): Promise<void> {
  const before = scrubber.report()?.completed_at
  clock.advance(ms)
  await until('the pass', () => {
    clock.advance(scrubLimits.checkMs)
    return scrubber.report()?.completed_at !== before
  })
}

test('a finding stays over a restart, and goes long before the next pass once it is repaired', async () => {
  const path = join(directory, 'wal', logName, segmentFile)
  const intact = await readFile(join(fixtures, 'http-ndjson.wal'))
  const flipped = Buffer.from(intact)
  flipped[250] = (flipped[250] ?? 0) ^ 1
  await writeFile(path, flipped)
  const clock = new ManualClock(Date.parse('2026-11-20T08:00:00.000Z'))
  const scrubber = aScrubber(clock)
  await scrubber.start()
  expect(scrubber.report()).toEqual({ findings: 0, completed_at: null, files: 0, read_bytes: 0 })
  await aPass(scrubber, clock)
  expect(scrubber.findings).toMatchObject([{ kind: 'segment_damaged', endpoint_id: logName }])
  const completedAt = scrubber.report()?.completed_at
  await scrubber.stop()
  const next = aScrubber(clock)
  await next.start()
  expect(next.report()).toMatchObject({ findings: 1 })
  expect(next.addTo([], () => true)).toMatchObject([
    {
      endpoint_id: logName,
      undelivered_segments: 0,
      closed: false,
      scrub_findings: 1,
      scrub_finding: expect.stringContaining(logName),
    },
  ])
  expect(next.addTo([], () => false)).toEqual([])
  clock.advance(scrubLimits.checkMs)
  await writeFile(path, intact)
  await until('the repair is seen', () => {
    clock.advance(scrubLimits.checkMs)
    return next.findings.length === 0
  })
  expect(next.report()).toMatchObject({ findings: 0, completed_at: completedAt })
  await next.stop()
})

test('a pass that control interrupts goes on where it was', async () => {
  const clock = new ManualClock(Date.parse('2026-11-20T08:00:00.000Z'))
  const ids = ['a', 'b', 'c']
  let calls = 0
  const scrubber = aScrubber(clock, async () => {
    calls += 1
    if (calls === 2) throw new Error('control is away')
    return ids
  })
  await scrubber.start()
  clock.advance(scrubLimits.firstPassMs)
  await until('the pass', () => {
    clock.advance(scrubLimits.checkMs)
    return calls >= 2
  })
  expect(JSON.parse(await readFile(join(directory, 'scrub.json'), 'utf8'))).toMatchObject({ running: { after: 'a' } })
  await aPass(scrubber, clock)
  expect(calls).toBe(4)
  await scrubber.stop()
})

test('a scrub that is off reports nothing', async () => {
  const clock = new ManualClock(Date.parse('2026-11-20T08:00:00.000Z'))
  const scrubber = new Scrubber({ ...optionsOf(clock), intervalMs: 0 })
  await scrubber.start()
  expect(scrubber.report()).toBeUndefined()
  expect(scrubber.addTo([], () => true)).toEqual([])
  await scrubber.stop()
})

test('a restart does not put the first pass off, and a clock that was ahead no later one', async () => {
  const clock = new ManualClock(Date.parse('2026-11-20T08:00:00.000Z'))
  const dueAt = async () => JSON.parse(await readFile(join(directory, 'scrub.json'), 'utf8')).due_at
  const first = aScrubber(clock)
  await first.start()
  await first.stop()
  expect(await dueAt()).toBe('2026-11-20T09:00:00.000Z')
  clock.advance(scrubLimits.firstPassMs - scrubLimits.checkMs)
  const second = aScrubber(clock)
  await second.start()
  await aPass(second, clock, 0)
  await second.stop()
  const path = join(directory, 'scrub.json')
  await writeFile(path, JSON.stringify({ ...JSON.parse(await readFile(path, 'utf8')), due_at: '2031-01-01T00:00:00.000Z' }))
  const third = aScrubber(clock)
  await third.start()
  await aPass(third, clock, weekMs)
  await third.stop()
})
