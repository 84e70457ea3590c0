/** The first rows of the crash table: a real process ended with SIGKILL at a named moment, and how the next process recovers. */
import { spawn } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-crash-'))
})
afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
})

describe('process dies after', () => {
  test('bytes written, before fsync: the frame was not acknowledged, all frames before it are delivered', async () => {
    const child = await run('written, before fsync')
    expect(child).toEqual({ signal: 'SIGKILL', acknowledged: [0, 1, 2], left: ['high-water', 'open'] })
    // The page cache outlives the process, so the frame survives. It was sent, so it may be delivered.
    expect(await recovered()).toEqual({ ids: [0, 1, 2, 3], seqs: [0] })
  })

  test('half of the bytes written: the torn tail is cut', async () => {
    const child = await run('inside a write')
    expect(child).toEqual({ signal: 'SIGKILL', acknowledged: [0, 1, 2], left: ['high-water', 'open'] })
    expect(await recovered()).toEqual({ ids: [0, 1, 2], seqs: [0] })
  })

  test('fsync, before the acknowledgement: the frame is kept', async () => {
    const child = await run('fsync, before the answer')
    expect(child).toEqual({ signal: 'SIGKILL', acknowledged: [0, 1, 2], left: ['high-water', 'open'] })
    expect(await recovered()).toEqual({ ids: [0, 1, 2, 3], seqs: [0] })
  })

  test('footer written, before its fsync: the seal is finished', async () => {
    const child = await run('footer written, before its fsync')
    expect(child).toEqual({ signal: 'SIGKILL', acknowledged: [0, 1, 2, 3, 4], left: ['high-water', 'open'] })
    expect(await recovered()).toEqual({ ids: [0, 1, 2, 3, 4], seqs: [0] })
  })

  test('footer, before rename: the seal is finished', async () => {
    const child = await run('footer, before rename')
    expect(child).toEqual({ signal: 'SIGKILL', acknowledged: [0, 1, 2, 3, 4], left: ['high-water', 'open'] })
    expect(await recovered()).toEqual({ ids: [0, 1, 2, 3, 4], seqs: [0] })
  })

  test('rename, before the directory fsync: the segment is sealed', async () => {
    const child = await run('rename, before the directory fsync')
    expect(child).toEqual({ signal: 'SIGKILL', acknowledged: [0, 1, 2, 3, 4], left: ['high-water', 'wal'] })
    expect(await recovered()).toEqual({ ids: [0, 1, 2, 3, 4], seqs: [0] })
  })

  test('a clean stop: everything is sealed', async () => {
    const child = await run('never')
    expect(child).toEqual({ signal: null, acknowledged: [0, 1, 2, 3, 4], left: ['high-water', 'wal'] })
    expect(await recovered()).toEqual({ ids: [0, 1, 2, 3, 4], seqs: [0] })
  })

  test('a crash, a second one during the recovery, and a third: the seq continues', async () => {
    await run('fsync, before the answer')
    const second = await run('footer, before rename')
    expect(second.acknowledged, 'it died while it recovered').toEqual([])
    await run('written, before fsync')
    await run('never')
    expect((await recovered()).seqs).toEqual([0, 1, 2])
  })
})

async function run(moment: string) {
  const script = join(import.meta.dirname, 'wal-child.ts')
  const child = spawn(process.execPath, [script, directory, moment], { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  const signal = await new Promise<NodeJS.Signals | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (_, by) => resolve(by))
  })
  const lines = output.split('\n').filter((line) => line !== '')
  const left = (await readdir(join(directory, 'log'))).map((name) => name.split('.').at(-1) ?? '').sort()
  return { signal, acknowledged: lines.map((line) => Number(line.split(' ')[0])), left }
}

/** Starts a new process on the same directory, then reads every segment: all must be sealed and intact. */
async function recovered(): Promise<{ readonly ids: readonly number[]; readonly seqs: readonly number[] }> {
  const wal = new LocalLogWriter({ ...system, directory, logger: createLogger('test', 'silent') })
  await wal.start()
  await wal.stop(new AbortController().signal)
  const source = new LocalSegmentSource({ ...system, directory })
  const segments = await source.list()
  expect(segments.map(({ state }) => state)).toEqual(segments.map(() => 'sealed'))
  const ids: number[] = []
  for (const segment of segments) {
    const reader = await source.open(segment)
    for await (const frames of reader.frames(100_000)) {
      for (const { payload } of frames) ids.push((JSON.parse(Buffer.from(payload).toString()) as { id: number }).id)
    }
    await reader.close()
  }
  return { ids, seqs: segments.map(({ seq }) => seq) }
}
