import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { systemFiles } from '#lib/files.ts'
import { ParkedSegments } from './parked-segments.ts'

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-parked-'))
})
afterEach(() => rm(directory, { recursive: true }))

const open = (files = systemFiles) => new ParkedSegments({ directory, files, clock: systemClock })

test('a segment stays parked with its reason until the next start', async () => {
  await open().park('bad', 'a reason')
  const next = open()
  expect((await next.read()).get('bad')).toEqual({ reason: 'a reason', at: expect.any(String) })
  expect(await next.retryAll()).toEqual(['bad'])
  expect((await next.read()).size).toBe(0)
  expect(await readdir(directory)).toEqual([])
})

test('a record of a parked segment is read once, until its file is gone', async () => {
  let reads = 0
  const files = {
    ...systemFiles,
    read: (path: string) => {
      reads += 1
      return systemFiles.read(path)
    },
  }
  await open().park('bad', 'a reason')
  const parked = open(files)
  for (let scan = 0; scan < 3; scan++) expect([...(await parked.read()).keys()]).toEqual(['bad'])
  expect(reads).toBe(1)
  await systemFiles.remove(join(directory, 'bad.parked.json'))
  expect((await parked.read()).size).toBe(0)
  await parked.park('bad', 'another')
  expect((await parked.read()).get('bad')?.reason).toBe('another')
})

test('a record that cannot be removed stops no start: its segment stays parked', async () => {
  await mkdir(join(directory, 'bad.parked.json'))
  await open().park('good', 'a reason')
  const next = open()
  expect(await next.retryAll()).toEqual(['good'])
  expect([...(await next.read()).keys()]).toEqual(['bad'])
})

test('a record that cannot be read is a parked segment all the same', async () => {
  await writeFile(join(directory, 'bad.parked.json'), 'not JSON')
  expect((await open().read()).get('bad')).toMatchObject({ reason: 'unknown' })
})
