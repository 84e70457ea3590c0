import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { newSpanId, newTraceId } from '#lib/tracing/trace-context.ts'
import { TraceLinks } from './trace-links.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-links-'))
})
afterEach(() => rm(directory, { recursive: true }))

const segment = { logName: 'log', incarnation: 'abcdefghij', seq: 7 }
const request = () => ({ traceId: newTraceId(), spanId: newSpanId() })

test('links are taken once', async () => {
  const links = new TraceLinks(directory)
  const requests = [request(), request()]
  await links.write(segment, requests, Date.now())
  expect(await links.take({ ...segment, seq: 8 })).toEqual([])
  expect(await links.take(segment)).toEqual(requests)
  expect(await links.take(segment)).toEqual([])
  expect(await readdir(directory)).toEqual([])
})

test('a segment keeps a bounded number of links', async () => {
  const links = new TraceLinks(directory)
  await links.write(
    segment,
    Array.from({ length: 100 }, () => request()),
    Date.now(),
  )
  expect(await links.take(segment)).toHaveLength(32)
})

test.each(['', '{', '{"a":1}', '[1,null,{"traceId":"x","spanId":"y"}]', '['.repeat(9_000)])(
  'a file with %j has no links',
  async (text) => {
    await writeFile(join(directory, 'log.abcdefghij.7.json'), text)
    expect(await new TraceLinks(directory).take(segment)).toEqual([])
  },
)

test('files of segments that were never committed are removed after a day', async () => {
  const links = new TraceLinks(directory)
  await links.write(segment, [request()], Date.now())
  await links.write({ ...segment, seq: 8 }, [request()], Date.now())
  const nowMs = Date.now()
  const old = new Date(nowMs - 90_000_000)
  await utimes(join(directory, 'log.abcdefghij.7.json'), old, old)
  await links.prepare(nowMs)
  expect(await readdir(directory)).toEqual(['log.abcdefghij.8.json'])
})

test('there is room again once the files of segments that were never committed are old', async () => {
  const links = new TraceLinks(directory, 2)
  const write = (seq: number, nowMs: number) => links.write({ ...segment, seq }, [request()], nowMs)
  const nowMs = Date.now()
  for (const seq of [1, 2, 3]) await write(seq, nowMs)
  expect(await readdir(directory)).toHaveLength(2)
  const old = new Date(nowMs - 90_000_000)
  for (const seq of [1, 2]) await utimes(join(directory, `log.abcdefghij.${seq}.json`), old, old)
  // They are counted at most once a minute.
  await write(4, nowMs + 59_000)
  expect(await readdir(directory)).toHaveLength(2)
  await write(5, nowMs + 60_000)
  expect(await readdir(directory)).toEqual(['log.abcdefghij.5.json'])
})
