import { Buffer } from 'node:buffer'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { oneRecord } from '../../../test/support/frames.ts'
import type { SegmentRef } from '../segment-source.ts'
import { LocalLogWriter } from './log-writer.ts'
import { LocalSegmentSource } from './segment-source.ts'

let directory: string
let segments: LocalSegmentSource
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-segments-'))
  segments = new LocalSegmentSource({ ...system, directory })
})
afterEach(() => rm(directory, { recursive: true }))

test('a sealed segment is listed, opened as it is stored, and removed any number of times', async () => {
  const segment = await seal()
  const opened = await segments.open(segment)
  const chunks: Uint8Array[] = []
  for await (const chunk of opened.content()) chunks.push(chunk)
  await opened.close()
  expect(Buffer.concat(chunks).subarray(0, 8).toString()).toBe('INLETWAL')
  expect(Buffer.concat(chunks).byteLength).toBe(opened.bytes)
  await segments.remove(segment)
  await segments.remove(segment)
  expect(await segments.list()).toEqual([])
})

test('quarantine keeps the segment, no longer as sealed, and can be repeated', async () => {
  const segment = await seal()
  const kept = await segments.quarantine(segment, 'a test')
  expect(await segments.quarantine(segment, 'a test')).toBe(kept)
  expect(await segments.list()).toMatchObject([{ ...segment, state: 'quarantined' }])
  expect(await readdir(join(directory, 'log'))).toContain(basename(kept))
})

test('quarantine never overwrites the damaged original that recovery kept under the same name', async () => {
  const segment = await seal()
  const [sealed = ''] = (await readdir(join(directory, 'log'))).filter((name) => name.endsWith('.wal'))
  await writeFile(join(directory, 'log', sealed.replace('.wal', '.quarantine')), 'original')
  await expect(segments.quarantine(segment, 'a test')).rejects.toThrow('move it elsewhere')
  expect((await segments.list()).map(({ state }) => state).sort()).toEqual(['quarantined', 'sealed'])
})

test('a watch reports a seal, and of which log', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = await segments.watch((logName) => {
    if (logName === 'log') resolve()
  })
  await seal()
  await promise
  stop()
})

async function seal(): Promise<SegmentRef> {
  const wal = new LocalLogWriter({ ...system, directory, logger: createLogger('test', 'silent') })
  await wal.start()
  wal.configure('log', { segmentBytes: 10_000, segmentMaxAgeMs: 60_000, seqAbove: -1 })
  await wal.append('log', oneRecord())
  await wal.stop(new AbortController().signal)
  const [segment] = await segments.list()
  if (segment === undefined) throw new Error('no segment was sealed')
  const { logName, incarnation, seq } = segment
  return { logName, incarnation, seq }
}
