import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemFiles } from '#lib/files.ts'
import { newSpanId, newTraceId } from '#lib/tracing/trace-context.ts'
import { TraceLinks } from './trace-links.ts'

let directory: string
/** By name, when a file changed last, if not as the system says. */
let changedMs: Readonly<Record<string, number>>
const agingFiles = {
  ...systemFiles,
  changedAt: async (path: string) => changedMs[basename(path)] ?? (await systemFiles.changedAt(path)),
}
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-links-'))
  changedMs = {}
})
afterEach(() => rm(directory, { recursive: true }))

const segment = { logName: 'log', incarnation: 'abcdefghij', seq: 7 }
const request = () => ({ traceId: newTraceId(), spanId: newSpanId() })

test('links are taken once', async () => {
  const links = new TraceLinks(directory, systemFiles)
  const requests = [request(), request()]
  await links.write(segment, requests, Date.now())
  expect(await links.take({ ...segment, seq: 8 })).toEqual([])
  expect(await links.take(segment)).toEqual(requests)
  expect(await links.take(segment)).toEqual([])
  expect(await readdir(directory)).toEqual([])
})

test('a segment keeps a bounded number of links', async () => {
  const links = new TraceLinks(directory, systemFiles)
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
    expect(await new TraceLinks(directory, systemFiles).take(segment)).toEqual([])
  },
)

test('files of segments that were never committed are removed after a day', async () => {
  const links = new TraceLinks(directory, agingFiles)
  await links.write(segment, [request()], Date.now())
  await links.write({ ...segment, seq: 8 }, [request()], Date.now())
  const nowMs = Date.now()
  changedMs = { 'log.abcdefghij.7.json': nowMs - 90_000_000 }
  await links.prepare(nowMs)
  expect(await readdir(directory)).toEqual(['log.abcdefghij.8.json'])
})

test('there is room again once the files of segments that were never committed are old', async () => {
  const links = new TraceLinks(directory, agingFiles, 2)
  const write = (seq: number, nowMs: number) => links.write({ ...segment, seq }, [request()], nowMs)
  const nowMs = Date.now()
  for (const seq of [1, 2, 3]) await write(seq, nowMs)
  expect(await readdir(directory)).toHaveLength(2)
  const oldMs = nowMs - 90_000_000
  changedMs = { 'log.abcdefghij.1.json': oldMs, 'log.abcdefghij.2.json': oldMs }
  // They are counted at most once a minute.
  await write(4, nowMs + 59_000)
  expect(await readdir(directory)).toHaveLength(2)
  await write(5, nowMs + 60_000)
  expect(await readdir(directory)).toEqual(['log.abcdefghij.5.json'])
})
