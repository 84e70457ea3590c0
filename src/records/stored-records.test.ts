import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { GiB, KiB, MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import { RecordTable } from './record-table.ts'
import { readStoredRecords, type StoredRecord } from './stored-records.ts'

let directory = ''
const signal = new AbortController().signal

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-stored-'))
})
afterEach(() => rm(directory, { recursive: true }))

async function written(records: readonly StoredRecord[]): Promise<string> {
  const path = join(directory, 'records.parquet')
  const table = await RecordTable.open({
    clock: systemClock,
    directory,
    memoryBytes: 256 * MiB,
    spillBytesMax: GiB,
    segmentSeq: 7,
    signal,
    viewTimeoutMs: 60_000,
  })
  try {
    for (const record of records) {
      table.addFrame(record, record.payload).add(0, record.payload.byteLength)
    }
    await table.flush()
    table.finish()
    await table.writeRaw(path)
  } finally {
    table.close()
  }
  return path
}

async function read(path: string, batchBytes: number): Promise<readonly (readonly StoredRecord[])[]> {
  return Array.fromAsync(readStoredRecords({ path, memoryBytes: 64 * MiB, batchBytes, signal }))
}

const at = 1_795_161_600_123_456

test('returns records as they were sent, in order, whatever their bytes', async () => {
  const payloads = [
    Buffer.from('{"n":1}'),
    Buffer.from('{"text":"\u2028 ü 💥 \\u0000"}'),
    Buffer.from('a\0b'),
    Buffer.from([0xff, 0xfe, 0x00, 0x22]),
    Buffer.from('not json'),
    Buffer.from('\ufeff{"n":1}'),
    Buffer.from('\ufeff\ufeff'),
  ]
  const records = payloads.flatMap((payload, index) => [
    { protocol: 'http', topic: '', clientId: '', attributes: '', receivedAtMicros: at + index, payload },
    {
      protocol: 'mqtt',
      topic: index === 0 ? '\ufeffa' : 'a/ü',
      clientId: `c${index}`,
      attributes: '{"content_type":"ü"}',
      receivedAtMicros: at - index,
      payload,
    },
  ])
  expect((await read(await written(records), MiB)).flat()).toEqual(records)
})

test('bounds batches by bytes, also for records of mixed sizes', async () => {
  const sizes = Array.from({ length: 20_000 }, (_, index) => (index % 400 === 50 ? 900 * KiB : 10 + (index % 7)))
  const records = sizes.map((bytes, index) => ({
    ...{ protocol: 'http', topic: '', clientId: '', attributes: '', receivedAtMicros: at + index },
    payload: Buffer.from(`"${String(index).padEnd(bytes, String(index * 7919))}"`),
  }))
  const batches = await read(await written(records), 4 * MiB)
  expect(batches.flat().map(({ receivedAtMicros }) => receivedAtMicros)).toEqual(
    records.map(({ receivedAtMicros }) => receivedAtMicros),
  )
  expect(batches.flat().every(({ payload }, index) => payload.equals(records[index]?.payload ?? Buffer.of()))).toBe(true)
  // A batch is never larger than a row group.
  for (const batch of batches) {
    expect(batch.reduce((sum, { payload }) => sum + payload.byteLength, 0)).toBeLessThan(32 * MiB)
  }
})
