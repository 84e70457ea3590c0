import { Buffer } from 'node:buffer'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { GiB, MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import type { Frame } from '#log/frame.ts'
import { forEachRecord } from '#log/records.ts'
import type { Definition } from '#model/definition.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import type { Reread } from '#records/record-runs.ts'
import { RecordTable } from '#records/record-table.ts'
import { compileView } from '#views/compile.ts'
import { queryRows } from '../../../../test/support/parquet.ts'
import { runs } from '../../../../test/support/thorough.ts'
import { loadSegment } from './build.ts'

const definition: Definition = {
  columns: [
    { name: 'a', type: 'INTEGER', path: '$.a', required: true },
    { name: 'b', type: 'DATE', path: '$.b' },
    { name: 'c', type: 'VARCHAR[]', path: '$.c[*]' },
    { name: 'topic', type: 'VARCHAR', path: '$$.topic' },
    { name: 'received', type: 'TIMESTAMP', path: '$$.ingested_at' },
  ],
  filters: [{ condition: 'a <> 3' }],
}
const otherDefinition: Definition = { columns: [{ name: 'b', type: 'BOOLEAN', path: '$.b', cast_failures: 'dlq' }] }

async function outcomeOf(load: (table: RecordTable) => Promise<void>, reread?: Reread) {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-load-'))
  const table = await RecordTable.open({
    clock: systemClock,
    ...{ directory, memoryBytes: 256 * MiB, segmentSeq: 7, spillBytesMax: GiB, viewTimeoutMs: 600_000 },
    signal: new AbortController().signal,
    reread,
  })
  try {
    await load(table)
    await table.writeRaw(join(directory, 'raw.parquet'))
    const views = [definition, otherDefinition].map(async (each, index) => ({
      ...{ name: `v${index}`, version: 1, compiled: await compileView(each), secrets: {} },
    }))
    const extracted = await table.extract(await Promise.all(views))
    const decided = []
    for (const view of [0, 1]) {
      const one = await table.writeAccepted(extracted, view, join(directory, `v${view}.parquet`))
      await table.writeDlq(one, join(directory, `v${view}.ndjson.gz`))
      const { rows } = await queryRows(`SELECT * FROM '${directory}/v${view}.parquet'`)
      const dlq = gunzipSync(await readFile(join(directory, `v${view}.ndjson.gz`))).toString()
      decided.push({ counts: one.counts, quality: one.quality, rows, dlq })
    }
    const { rows } = await queryRows(
      `SELECT * REPLACE (to_base64(payload_bytes) AS payload_bytes) FROM '${directory}/raw.parquet'`,
    )
    return { decided, rows }
  } finally {
    table.close()
    await rm(directory, { recursive: true })
  }
}

const goodLine = fc.constantFrom('{"a":1}', '{"a":2,"b":"2026-11-23","c":["x","ü"]}', '{"a":3}', '{"a":4,"b":true}')
const oddLine = fc.constantFrom(
  ...[
    '{}',
    '{"a":"x"}',
    '{"b":"2026-02-30"}',
    '{',
    '',
    ' ',
    '\t{"a":1}',
    '{"a":1}\r',
    '{"a":1}\r\r',
    '\r',
    '\0',
    '\x1e',
    '{"a":\x1e1}',
  ],
  ...['{"a":1,\n"b":2}', '\ufeff{"a":1}', '\u2028', '{"a":1}{"a":2}', `{"a":5,"c":["${'l'.repeat(70_000)}"]}`],
)
const line = fc.oneof({ weight: 20, arbitrary: goodLine }, { weight: 1, arbitrary: oddLine }).map((text) => Buffer.from(text))
const anyLine = fc.oneof(
  { weight: 30, arbitrary: line },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes)) },
)
const feed = Buffer.from('\n')
const payload = fc
  .tuple(fc.array(anyLine, { minLength: 1, maxLength: 40 }), fc.boolean(), fc.constantFrom(1, 1, 1, 60))
  .map(([lines, hasEnd, times]) => {
    const joined = Buffer.concat(Array.from({ length: times }, () => lines.flatMap((each) => [each, feed])).flat())
    return hasEnd ? joined : joined.subarray(0, -1)
  })
const frame: fc.Arbitrary<Frame> = fc
  .record({
    payload,
    layout: fc.constantFrom('lines', 'lines', 'lines', 'single', 'texts'),
    topic: fc.constantFrom('', 'a/b', 'ü'),
  })
  .map(({ payload, layout, topic }) => ({
    ...{ layout, payload, receivedAtMicros: 1_700_000_000_000_000 + payload.length },
    recordCount: forEachRecord({ layout, payload }, () => undefined),
    envelope: encodeEnvelope(topic === '' ? { protocol: 'http' } : { protocol: 'mqtt', topic }),
  }))

/** The frames with their place behind each other, in a buffer that is overwritten once they were read. */
function* storedAs(groups: readonly (readonly Frame[])[]): Generator<readonly Frame[]> {
  let at = 0
  for (const group of groups) {
    const copies = group.map((frame) => ({ ...frame, payload: Buffer.from(frame.payload) }))
    yield copies.map((frame) => {
      const placed = { ...frame, at }
      at += frame.payload.length
      return placed
    })
    for (const { payload } of copies) payload.fill(0)
  }
}

test('lines that are taken as they came have the same outcome as the same records one by one: values, dead letters, counts, quality', {
  timeout: 120_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(frame, { maxLength: 8 }), { minLength: 1, maxLength: 3 }), async (groups) => {
      if (groups.flat().every(({ recordCount }) => recordCount === 0)) return
      const together = await outcomeOf((table) => loadSegment(table, groups))
      const apart = await outcomeOf(async (table) => {
        for (const frame of groups.flat()) {
          const bytes = Buffer.from(frame.payload)
          forEachRecord(frame, (start, end) => table.addFrame(frame, bytes.subarray(start, end)).add(0, end - start))
        }
        table.finish()
      })
      expect(together).toEqual(apart)
      const stored = Buffer.concat(groups.flat().map(({ payload }) => payload))
      const reread: Reread = (into, at) => stored.copy(into, 0, at, at + into.length)
      const inPlace = await outcomeOf((table) => loadSegment(table, storedAs(groups)), reread)
      expect(inPlace).toEqual(apart)
      expect(together.rows).toHaveLength(groups.flat().reduce((sum, { recordCount }) => sum + recordCount, 0))
    }),
    { numRuns: runs(6, 30) },
  )
})
