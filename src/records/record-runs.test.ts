import { Buffer, isUtf8 } from 'node:buffer'
import { mkdtemp, open, readdir, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Connection, Database } from '#duckdb/database.ts'
import { MiB } from '#lib/bytes.ts'
import { StorageFailure } from '#lib/storage-failure.ts'
import { runs as numRuns } from '../../test/support/thorough.ts'
import type { Piece } from './pieces.ts'
import { RecordRuns, runLimits } from './record-runs.ts'
import { recordsSql, registerRuns } from './runs-in-sql.ts'

type Sent = { readonly bytes: Buffer; readonly receivedAt: bigint; readonly source: number }

async function withDatabase<T>(work: (connection: Connection, path: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-runs-'))
  const database = await Database.open({ directories: [], memoryBytes: 512 * MiB, orderedConnections: 1 })
  try {
    const result = await work(database.connectOrdered(), join(directory, 'records'))
    expect(await readdir(directory)).toEqual([])
    return result
  } finally {
    database.close()
    await rm(directory, { recursive: true })
  }
}

function add(runs: RecordRuns, { bytes, receivedAt, source }: Sent): void {
  runs.add({ receivedAt, source }, bytes, 0, bytes.length, isUtf8(bytes))
}

async function readBack(connection: Connection, pieces: readonly Piece[]): Promise<readonly Sent[]> {
  const { rows } = await connection.query(
    `SELECT record_index, received_at, source, payload, to_base64(payload_bytes) FROM (${recordsSql(pieces)})`,
  )
  const expected = pieces.flatMap(({ from, to }) => Array.from({ length: to - from }, (_, offset) => from + offset))
  expect(rows.map(([index]) => Number(index))).toEqual(expected)
  return rows.map(([, receivedAt, source, payload, bytes]) => {
    expect([payload, bytes].filter((each) => each === null)).toHaveLength(1)
    return {
      bytes: payload === null ? Buffer.from(String(bytes), 'base64') : Buffer.from(String(payload)),
      receivedAt: BigInt(String(receivedAt)),
      source: Number(source),
    }
  })
}

/** Comparing long Buffers item by item takes seconds. */
function comparable(records: readonly Sent[]) {
  return records.map(({ bytes, ...origin }) => ({ ...origin, bytes: bytes.toString('latin1') }))
}

const hostileText = fc.array(
  fc.constantFrom('{"a":1}', '\n', '\x1e', '\0', '\r', '', ' ', 'ü', '😀', '\x1f', '"', '\u2028', 't', 'b'),
  {
    maxLength: 6,
  },
)
const record: fc.Arbitrary<Buffer> = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('{"a":1}', '{}', 'x').map((text) => Buffer.from(text)) },
  { weight: 3, arbitrary: hostileText.map((parts) => Buffer.from(parts.join(''))) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 5 }).map((bytes) => Buffer.from(bytes)) },
  { weight: 1, arbitrary: fc.nat(20_000).map((length) => Buffer.alloc(length, 'l')) },
)
const sent: fc.Arbitrary<Sent> = fc.record({
  bytes: record,
  receivedAt: fc.bigInt({ min: 0n, max: 4_102_444_800_000_000n }),
  source: fc.nat(5),
})

describe('records come back once, in order and byte for byte', () => {
  test.each(['in memory', 'in a file'])('%s, in whatever pieces they are read', { timeout: 120_000 }, async (where) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(sent, { minLength: 1, maxLength: 60 }),
        fc.array(fc.nat(59), { maxLength: 4 }),
        fc.nat(3_000),
        async (all, cuts, repeated) => {
          await withDatabase(async (connection, path) => {
            const runs = where === 'in memory' ? new RecordRuns() : new RecordRuns(path)
            // More than a run, and in the file case more than stays in memory.
            const before = Array.from({ length: repeated }, (_, index) => ({
              bytes: Buffer.from(`{"i":${index}}`),
              receivedAt: 7n,
              source: 1,
            }))
            const large = { bytes: Buffer.alloc(5 * MiB, 'x'), receivedAt: 8n, source: 2 }
            const records = where === 'in memory' ? [...before, ...all] : [large, ...before, ...all]
            for (const each of records) add(runs, each)
            runs.finish()
            registerRuns(connection, runs)
            expect(runs.recordCount).toBe(records.length)
            const bounds = [0, ...cuts.map((cut) => Math.min(records.length, repeated + cut)), records.length].toSorted(
              (a, b) => a - b,
            )
            const pieces = bounds.slice(1).map((to, index) => ({ from: bounds[index] ?? 0, to }))
            expect(comparable(await readBack(connection, pieces))).toEqual(comparable(records))
            runs.close()
          })
        },
      ),
      { numRuns: numRuns(5, 25) },
    )
  })

  test.each(['copied', 'read again'])('lines of many payloads, %s, between other records', { timeout: 120_000 }, async (how) => {
    const line = fc.constantFrom('{"a":1}', '[]', 'ü', 'x y', `{"long":"${'l'.repeat(3_000)}"}`)
    const part = fc.oneof(
      { weight: 4, arbitrary: fc.array(line, { minLength: 1, maxLength: 900 }) },
      { weight: 1, arbitrary: record },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(part, { minLength: 1, maxLength: 12 }), async (parts) => {
        await withDatabase(async (connection, path) => {
          const stored: Buffer[] = []
          const reread = (into: Uint8Array, at: number) => Buffer.concat(stored).copy(into, 0, at, at + into.length)
          const runs = new RecordRuns(path, how === 'read again' ? reread : undefined)
          const expected: Sent[] = []
          for (const [index, each] of parts.entries()) {
            const origin = { receivedAt: BigInt(index), source: index }
            if (Buffer.isBuffer(each)) {
              runs.add(origin, each, 0, each.length, isUtf8(each))
              expected.push({ bytes: each, ...origin })
              continue
            }
            const payload = Buffer.from(`before\n${each.join('\n')}\nafter`)
            const lines = { start: 7, end: payload.length - 6, records: each.length }
            // A block of lines is at most a run.
            if (lines.end - lines.start > runLimits.bytes) continue
            const at = Buffer.concat(stored).length
            stored.push(Buffer.from(payload))
            runs.addLines(origin, payload, lines, at)
            payload.fill(0)
            expected.push(...each.map((text) => ({ bytes: Buffer.from(text), ...origin })))
          }
          runs.finish()
          registerRuns(connection, runs)
          expect(comparable(await readBack(connection, [{ from: 0, to: expected.length }]))).toEqual(comparable(expected))
          runs.close()
        })
      }),
      { numRuns: numRuns(5, 25) },
    )
  })
})

describe('what a disk has changed fails the statement, as a fault of the disk', () => {
  const lines = Buffer.from(Array.from({ length: 900 }, (_, index) => `{"a":${index},"pad":"xxxxxxxx"}`).join('\n'))

  test.each(['a text', 'bytes that are not UTF-8'])('in the segment, into %s', async (what) => {
    await withDatabase(async (connection, path) => {
      const stored = Buffer.from(lines)
      const runs = new RecordRuns(path, (into, at) => stored.copy(into, 0, at, at + into.length))
      runs.addLines({ receivedAt: 1n, source: 0 }, lines, { start: 0, end: lines.length, records: 900 }, 0)
      runs.finish()
      registerRuns(connection, runs)
      expect(await readBack(connection, [{ from: 0, to: 900 }])).toHaveLength(900)
      stored[5_000] = (stored[5_000] ?? 0) ^ (what === 'a text' ? 0x01 : 0x80)
      await expect(readBack(connection, [{ from: 0, to: 900 }])).rejects.toThrow(StorageFailure)
      runs.close()
    })
  })

  // Its file has no name: the kernel shows it where there is /proc.
  test.skipIf(process.platform !== 'linux')('in the file of the records', async () => {
    await withDatabase(async (connection, path) => {
      const runs = new RecordRuns(path)
      for (let times = 0; times < 45; times += 1)
        runs.addLines({ receivedAt: 1n, source: 0 }, lines, { start: 0, end: lines.length, records: 900 })
      runs.finish()
      registerRuns(connection, runs)
      expect(await readBack(connection, [{ from: 0, to: 40_500 }])).toHaveLength(40_500)
      const file = await open(await pathOfUnnamed(path), 'r+')
      await file.write(Buffer.from('y'), 0, 1, MiB / 2)
      await file.close()
      await expect(readBack(connection, [{ from: 0, to: 40_500 }])).rejects.toThrow(StorageFailure)
      runs.close()
    })
  })

  async function pathOfUnnamed(path: string): Promise<string> {
    for (const name of await readdir('/proc/self/fd')) {
      const link = join('/proc/self/fd', name)
      if ((await readlink(link).catch(() => '')) === `${path} (deleted)`) return link
    }
    throw new Error('the file is not open')
  }
})

test('hostile records do not make many short runs', () => {
  const kinds = [Buffer.from('a'), Buffer.from('a\nb'), Buffer.from('a\n\x1eb'), Buffer.from([0xff])]
  const runs = new RecordRuns()
  const count = 40_000
  for (let index = 0; index < count; index += 1)
    add(runs, { bytes: kinds[index % kinds.length] ?? Buffer.of(), receivedAt: 0n, source: 0 })
  runs.finish()
  const next = runs.open(0, count)
  let read = 0
  while (next() !== undefined) read += 1
  expect(read).toBeLessThanOrEqual(3 * Math.ceil(count / runLimits.records))
})

test('slices have all records, and end where DuckDB would hold many bytes at once', () => {
  const runs = new RecordRuns()
  const sizes = [...Array<number>(5_000).fill(100), ...Array<number>(300).fill(50_000), ...Array<number>(5_000).fill(100)]
  for (const size of sizes) add(runs, { bytes: Buffer.alloc(size, 'x'), receivedAt: 0n, source: 0 })
  runs.finish()
  const slices = runs.slices(6 * MiB)
  expect(slices[0]?.from).toBe(0)
  expect(slices.at(-1)?.to).toBe(sizes.length)
  for (const [index, { from }] of slices.entries()) if (index > 0) expect(from).toBe(slices[index - 1]?.to)
  for (const { from, to } of slices) {
    for (let start = from; start < to; start += 2_048) {
      const bytes = sizes.slice(start, Math.min(to, start + 2_048)).reduce((sum, size) => sum + size, 0)
      expect(bytes).toBeLessThanOrEqual(14 * MiB)
    }
  }
})

test('an error of the file is what the statement throws', async () => {
  await withDatabase(async (connection, path) => {
    const runs = new RecordRuns(path)
    add(runs, { bytes: Buffer.alloc(5 * MiB, 'x'), receivedAt: 0n, source: 0 })
    runs.finish()
    registerRuns(connection, runs)
    runs.close()
    await expect(readBack(connection, [{ from: 0, to: 1 }])).rejects.toThrow('the file of the records is closed')
    expect((await connection.query('SELECT 1')).rows).toEqual([[1]])
  })
})
