import { appendFile, chmod, mkdir, mkdtemp, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Files, systemFiles } from '#lib/files.ts'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
import { segmentName } from '../format/segment-file.ts'
import { LogListings } from './log-listings.ts'

const open = segmentName({ logName: 'log', seq: 1, incarnation: 'aaaaaaaaaa' }, 'open')
const sealed = segmentName({ logName: 'log', seq: 0, incarnation: 'aaaaaaaaaa' }, 'wal')

let directory = ''
let log = ''
let lists = 0
let listings: LogListings
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-listings-'))
  log = join(directory, 'log')
  lists = 0
  const files: Files = {
    ...systemFiles,
    list: (path) => {
      lists += 1
      return systemFiles.list(path)
    },
  }
  // Long after every change of this test.
  listings = new LogListings({ directory, files, clock: new ManualClock(Date.now() + 60_000) })
  await mkdir(log)
  await writeFile(join(log, sealed), 'sealed')
  await writeFile(join(log, open), 'open')
})
afterEach(() => rm(directory, { recursive: true }))

async function sizes(from = listings): Promise<readonly (readonly [state: string, bytes: number])[]> {
  return (await from.read('log')).segments.map(({ state, bytes }) => [state, bytes])
}

test('a directory that did not change is listed once, and its open segment still grows', async () => {
  expect(await sizes()).toEqual([
    ['sealed', 6],
    ['open', 4],
  ])
  await appendFile(join(log, open), ' and longer')
  expect(await sizes()).toEqual([
    ['sealed', 6],
    ['open', 15],
  ])
  expect(lists).toBe(1)
})

test.each([
  ['a seal', () => rename(join(log, open), join(log, open.replace('open', 'wal'))), 2],
  ['a removal', () => rm(join(log, sealed)), 1],
  ['a new file', () => writeFile(join(log, segmentName({ logName: 'log', seq: 2, incarnation: 'aaaaaaaaaa' }, 'open')), ''), 3],
  ['a touch', () => utimes(log, new Date(0), new Date(0)), 2],
  ['other permissions', () => chmod(log, 0o750), 2],
])('%s makes it listed again', async (_, change, segments) => {
  await sizes()
  await change()
  expect(await sizes()).toHaveLength(segments)
  expect(lists).toBe(2)
})

test('a directory that changed a moment ago, or that is forgotten, is listed again', async () => {
  const soon = new LogListings({ directory, files: systemFiles, clock: new ManualClock(Date.now()) })
  await sizes(soon)
  await rm(join(log, sealed))
  expect(await sizes(soon)).toHaveLength(1)
  await sizes()
  listings.keepOnly([])
  await sizes()
  expect(lists).toBe(2)
})

test('a log whose directory is gone has nothing', async () => {
  await sizes()
  await rm(log, { recursive: true })
  expect(await sizes()).toEqual([])
})

test('an open segment that is sealed between the listing and its measurement still holds back later ones', async () => {
  const list: Files['list'] = async (path) => {
    const entries = await systemFiles.list(path)
    await rename(join(log, open), join(log, open.replace('open', 'wal'))).catch(() => undefined)
    return entries
  }
  const racing = new LogListings({ directory, files: { ...systemFiles, list }, clock: new ManualClock(Date.now() + 60_000) })
  expect(await sizes(racing)).toEqual([
    ['sealed', 6],
    ['open', 0],
  ])
  expect((await sizes(racing)).map(([state]) => state)).toEqual(['sealed', 'sealed'])
})
