import { crc32 } from 'node:zlib'
import { expect, test } from 'vitest'
import { writeDurably } from '#lib/files.ts'
import { seededRandom } from '#lib/random.ts'
import { FaultyDisk } from '../../../../test/support/faulty-files.ts'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
import { type NotedSegment, OpenSegments, readOpenSegments } from './open-segments.ts'

const directory = '/wal'
const aSegment = (seq: number, records = 1): NotedSegment => ({
  ...{ logName: 'log', seq, incarnation: 'abcdefghij', bytes: 100 * records, records },
})

async function aDirectory() {
  const clock = new ManualClock()
  const files = new FaultyDisk(seededRandom(7)).mount()
  await files.makeDirectory(directory)
  const start = async (lists: { readonly current?: readonly NotedSegment[]; readonly left?: readonly NotedSegment[] }) => {
    const { current = [], left = [] } = lists
    const list = new OpenSegments({ directory, files, clock, current: () => current, left: () => left })
    await list.load()
    await list.write()
  }
  const times = async () => {
    const counts = await readOpenSegments(files, directory)
    return counts && { atMs: counts.atMs, bySeq: counts.segments.map(({ seq, asOfMs }) => [seq, asOfMs]) }
  }
  return { clock, files, start, times }
}

test('each line has the time at which it was true, also what an earlier process left', async () => {
  const { clock, start, times } = await aDirectory()
  const first = clock.now()
  await start({ current: [aSegment(1)] })
  expect(await times()).toEqual({ atMs: first, bySeq: [[1, first]] })
  clock.advance(5_000)
  const second = clock.now()
  const exact = { ...aSegment(2), isFinal: true }
  await start({ current: [aSegment(3)], left: [aSegment(1), exact] })
  expect(await times()).toEqual({
    ...{
      atMs: second,
      bySeq: [
        [1, first],
        [3, second],
        [2, second],
      ],
    },
  })
  clock.advance(5_000)
  await start({ left: [aSegment(1), aSegment(3)] })
  // The oldest of an earlier list counts for all that it left.
  expect(await times()).toEqual({
    atMs: clock.now(),
    bySeq: [
      [1, first],
      [3, first],
    ],
  })
})

test('what a list of an earlier release left has no time, so nothing is counted until it is recovered', async () => {
  const { clock, files, start, times } = await aDirectory()
  const text = 'log 1 abcdefghij 100 1\n'
  const head = `7 ${crc32(text).toString(16).padStart(8, '0')}\n`
  await writeDurably(files, `${directory}/open-segments`, Buffer.from(head + text))
  expect(await times()).toBeUndefined()
  await start({ current: [aSegment(2)], left: [aSegment(1)] })
  expect(await times()).toBeUndefined()
  await start({ current: [aSegment(2)] })
  expect(await times()).toEqual({ atMs: clock.now(), bySeq: [[2, clock.now()]] })
})
