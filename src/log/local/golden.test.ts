/** The golden files of version 3, written once by test/fixtures/wal/write.ts. */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { Frame } from '../frame.ts'
import { listSegments } from './format/directory.ts'
import { decodeFrame } from './format/frame.ts'
import { computeSalt } from './format/salt-key.ts'
import { HEADER_BYTES } from './format/segment-file.ts'
import { LocalLogWriter } from './log-writer.ts'
import { openSegment } from './read/segment-reader.ts'
import { scanSegment } from './read/segment-scan.ts'

const fixtures = resolve(import.meta.dirname, '../../../test/fixtures/wal')
const golden = (name: string) => join(fixtures, name)
const endpoint = '0b8fbf52-0d6e-4f0f-9a83-7f8f9c1d2e3f'
const incarnation = 'k3v9x0q2ab'
/** The key that test/fixtures/wal/write.ts used. */
const saltOf = (logName: string, seq: number) => computeSalt(Buffer.alloc(32, 'golden'), { logName, incarnation, seq })
const receivedAtMicros = 1_795_162_530_123_456

const http = (after: number, recordCount: number, payload: string) => ({
  layout: 'lines',
  receivedAtMicros: receivedAtMicros + after,
  recordCount,
  envelope: '{"protocol":"http"}',
  payload: Buffer.from(payload).toString('latin1'),
})
const ndjson = [
  http(0, 2, '{"id":1,"city":"Zürich"}\n{"id":2}\n'),
  http(1_500_000, 2, '{"id":3}\r\n\r\n  \t\n{"id":4}'),
  http(1_499_999, 2, 'not json\n\n{"id":5}\n'),
]
const footer = {
  frames: 3,
  records: 6,
  payloadBytes: 78,
  firstReceivedAtMicros: receivedAtMicros,
  lastReceivedAtMicros: receivedAtMicros + 1_500_000,
  sealedAtMicros: receivedAtMicros + 60_000_000,
  damagedRecords: 0,
}

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-golden-'))
})
afterEach(() => rm(directory, { recursive: true }))

test('the golden files were never rewritten', async () => {
  const hashes: Record<string, string> = {}
  for (const name of (await readdir(fixtures)).filter((file) => !file.endsWith('.ts'))) {
    hashes[name] = createHash('sha256')
      .update(await readFile(golden(name)))
      .digest('hex')
      .slice(0, 16)
  }
  expect(hashes).toEqual({
    'damaged.wal': '05bd9d9a3883a2a5',
    'http-ndjson.wal': 'cca342384dccf0e8',
    'http-ndjson.wal.zst': 'fc4313b2474f141b',
    'mqtt-single.wal': '781e39bef6cf5e61',
    'salt-key': '5846d2ec3a5a7091',
    'torn.open': '3e9e6e28b5eb11f2',
  })
})

describe('sealed', () => {
  test('NDJSON over HTTP', async () => {
    const reader = await openSegment(systemFiles, golden('http-ndjson.wal'))
    const salt = saltOf(endpoint, 41)
    expect(reader.header).toEqual({
      logName: endpoint,
      incarnation,
      seq: 41,
      createdAtMicros: receivedAtMicros - 1_000_000,
      salt,
    })
    expect(reader.footer).toEqual({ ...footer, offset: 359, chain: 0x4fc7_fb71 })
    expect(reader.bytes).toBe(455)
    expect(await all(reader.frames(1_000))).toEqual(ndjson)
    for await (const group of reader.frames(200)) {
      for (const { payload, at = 0 } of group) {
        const again = Buffer.alloc(payload.byteLength)
        expect(reader.reread?.(again, at)).toBe(payload.byteLength)
        expect(again.equals(payload)).toBe(true)
      }
    }
    await reader.close()
  })

  test('group flags of the frames', async () => {
    const bytes = await readFile(golden('http-ndjson.wal'))
    const salt = saltOf(endpoint, 41)
    const flags: boolean[] = []
    for (let at = HEADER_BYTES; at < 359; ) {
      const decoded = decodeFrame(bytes, at, salt)
      if (typeof decoded === 'string') throw new Error(decoded)
      flags.push(decoded.startsGroup)
      at += decoded.bytes
    }
    expect(flags).toEqual([true, false, true])
  })

  test('NDJSON, compressed with zstd', async () => {
    const scan = await scanSegment(systemFiles, golden('http-ndjson.wal.zst'))
    expect(scan.header.seq).toBe(41)
    expect(await all(scan.frames(1_000))).toEqual(ndjson)
    expect(scan.footer()).toMatchObject(footer)
    await scan.close()
  })

  test('single records over MQTT', async () => {
    const reader = await openSegment(systemFiles, golden('mqtt-single.wal'))
    const salt = saltOf('devices', 7)
    expect(reader.header).toEqual({
      logName: 'devices',
      incarnation,
      seq: 7,
      createdAtMicros: receivedAtMicros - 1_000_000,
      salt,
    })
    expect(reader.footer).toMatchObject({ frames: 3, records: 3, payloadBytes: 21, lastReceivedAtMicros: receivedAtMicros + 2 })
    const single = { layout: 'single', recordCount: 1 }
    expect(await all(reader.frames(1_000))).toEqual([
      {
        ...single,
        receivedAtMicros,
        envelope: Buffer.from(
          '{"protocol":"mqtt","topic":"plant/küche/temperature","client_id":"sensor-7","user_properties":{"a":"b"}}',
        ).toString('latin1'),
        payload: '{"celsius":21.5}',
      },
      {
        ...single,
        receivedAtMicros: receivedAtMicros + 1,
        envelope: '\x26\0\xff',
        payload: '\0\xff\xfe\n\x80',
      },
      {
        ...single,
        receivedAtMicros: receivedAtMicros + 2,
        envelope: '',
        payload: '',
      },
    ])
    await reader.close()
  })
})

describe('damaged or torn', () => {
  test('reading a damaged segment yields the frames before the damage, then an error with its offset', async () => {
    const reader = await openSegment(systemFiles, golden('damaged.wal'))
    const frames: unknown[] = []
    const reading = (async () => {
      for await (const group of reader.frames(1_000)) frames.push(...group.map(plain))
    })()
    await expect(reading).rejects.toMatchObject({ problem: 'damaged', offset: 214 })
    expect(frames).toEqual(ndjson.slice(0, 1))
    await reader.close()
  })

  test('recovery seals an open segment without its torn tail', async () => {
    await mkdir(join(directory, endpoint))
    await copyFile(golden('torn.open'), join(directory, endpoint, `000000000042-${incarnation}.open`))
    expect(await recovered()).toMatchObject([{ seq: 42, incarnation, state: 'sealed', frames: ndjson.slice(0, 2) }])
  })

  test('recovery copies the intact frames around damage and keeps the damaged file', async () => {
    await mkdir(join(directory, endpoint))
    await copyFile(golden('damaged.wal'), join(directory, endpoint, `000000000043-${incarnation}.open`))
    expect(await recovered()).toMatchObject([
      { seq: 43, state: 'quarantined' },
      { seq: 43, incarnation, state: 'sealed', frames: [ndjson[0], ndjson[2]] },
    ])
    const kept = await readFile(join(directory, endpoint, `000000000043-${incarnation}.quarantine`))
    expect(kept.equals(await readFile(golden('damaged.wal')))).toBe(true)
  })
})

async function recovered() {
  const wal = new LocalLogWriter({ ...system, directory, logger: createLogger('test', 'silent') })
  await wal.start()
  await wal.stop(new AbortController().signal)
  const segments = []
  for (const segment of await listSegments(systemFiles, directory)) {
    if (segment.state !== 'sealed') {
      segments.push(segment)
      continue
    }
    const reader = await openSegment(systemFiles, segment.path)
    segments.push({ ...segment, frames: await all(reader.frames(1_000)) })
    await reader.close()
  }
  return segments
}

async function all(groups: AsyncIterable<readonly Frame[]>) {
  const frames: unknown[] = []
  for await (const group of groups) frames.push(...group.map(plain))
  return frames
}

/** Converts the frame's bytes to text, one character per byte. */
function plain(frame: Frame) {
  const { envelope, payload, at: _, ...fields } = frame
  return { ...fields, envelope: Buffer.from(envelope).toString('latin1'), payload: Buffer.from(payload).toString('latin1') }
}
