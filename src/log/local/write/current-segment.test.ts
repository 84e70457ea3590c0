import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Files, systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { createLogger, type Logger } from '#lib/telemetry.ts'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
import { until } from '../../../../test/support/until.ts'
import { LocalLogWriter } from '../log-writer.ts'
import { LocalSegmentSource } from '../segment-source.ts'

test('data for an idle log is logged once, and not again while data keeps coming', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-current-segment-'))
  const [clock, files] = [new ManualClock(), systemFiles]
  const events: unknown[] = []
  const logger = { notice: (fields: object, message: string) => events.push([message, fields]) } as unknown as Logger
  const wal = new LocalLogWriter({ ...system, directory, files, clock, logger })
  await wal.start()
  wal.configure('log', { segmentBytes: 10_000, segmentMaxAgeMs: 5_000, seqAbove: -1 })
  const append = () =>
    wal.append('log', {
      ...{ layout: 'single', receivedAtMicros: 0, recordCount: 1, envelope: Buffer.of() },
      payload: [Buffer.from('{}')],
    })
  const seal = async (segments: number) => {
    clock.advance(5_000)
    const sealed = new LocalSegmentSource({ ...system, directory, files })
    await until('the seal', async () => (await sealed.list()).length === segments)
  }
  await append()
  await append()
  await seal(1)
  clock.advance(59_000)
  await append()
  expect(events).toEqual([['data arriving', { log: 'log', seq: 0 }]])
  await seal(2)
  // The file is there a moment before the log goes on.
  await until('an idle log', async () => {
    clock.advance(60_000)
    await append()
    return events.length > 1
  })
  expect(events.slice(1)).toEqual([['data arriving', { log: 'log', seq: expect.any(Number) }]])
  await wal.stop(AbortSignal.timeout(10_000))
  await rm(directory, { recursive: true })
})

test('a payload may have any number of pieces', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-current-segment-'))
  const wal = new LocalLogWriter({
    ...system,
    directory,
    clock: new ManualClock(),
    logger: createLogger('test', 'silent'),
  })
  await wal.start()
  wal.configure('log', { segmentBytes: 10_000_000, segmentMaxAgeMs: 5_000, seqAbove: -1 })
  const payload = Array.from({ length: 200_000 }, () => Buffer.from('1'))
  const frame = { layout: 'single', receivedAtMicros: 0, recordCount: 1, envelope: Buffer.of(), payload } as const
  expect(await wal.append('log', frame)).toMatchObject({ seq: 0 })
  await wal.stop(AbortSignal.timeout(10_000))
  await rm(directory, { recursive: true })
})

test('a disk that creates a file and says that it failed does not stop the log', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-current-segment-'))
  let failures = 1
  const open: Files['open'] = async (path, mode) => {
    const file = await systemFiles.open(path, mode)
    if (!path.endsWith('.open') || failures === 0) return file
    failures -= 1
    await file.close()
    throw Object.assign(new Error('EIO'), { code: 'EIO' })
  }
  const files = { ...systemFiles, open }
  const wal = new LocalLogWriter({ ...system, directory, files, logger: createLogger('test', 'silent') })
  await wal.start()
  wal.configure('log', { segmentBytes: 10_000, segmentMaxAgeMs: 5_000, seqAbove: -1 })
  const frame = {
    layout: 'single',
    receivedAtMicros: 0,
    recordCount: 1,
    envelope: Buffer.of(),
    payload: [Buffer.from('1')],
  } as const
  await expect(wal.append('log', frame)).rejects.toThrow()
  expect(await wal.append('log', frame)).toMatchObject({ seq: 0 })
  await wal.stop(AbortSignal.timeout(10_000))
  await rm(directory, { recursive: true })
})
