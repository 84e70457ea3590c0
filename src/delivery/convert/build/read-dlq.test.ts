import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readDlqRows, withOriginalIndexes } from './read-dlq.ts'

let directory = ''
const signal = new AbortController().signal

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-dlq-'))
})
afterEach(() => rm(directory, { recursive: true }))

const row = (record_index: number, more: object) => ({
  ...{ error_code: 'cast_failed', column: 'a', message: 'no', record: null, record_base64: null, segment_seq: 3, record_index },
  ...{
    ingested_at: '2026-11-20T08:15:30.123456Z',
    protocol: 'http',
    topic: null,
    client_id: null,
    attributes: null,
    view: 'v',
    view_version: 1,
  },
  ...more,
})

test('a row is read as the original record, with its envelope', async () => {
  const path = join(directory, 'rows.ndjson.gz')
  const rows = [
    row(4, { record: '{"a":"\u2028\u2029 ü"}' }),
    row(9, {
      record_base64: Buffer.from([0xff, 0x0a, 0x0d]).toString('base64'),
      protocol: 'mqtt',
      topic: 't',
      client_id: 'c',
      attributes: { content_type: 'a' },
    }),
    row(11, { record: `"${'x'.repeat(300_000)}"` }),
  ]
  await writeFile(path, gzipSync(rows.map((each) => `${JSON.stringify(each)}\n`).join('')))
  const receivedAtMicros = Date.parse('2026-11-20T08:15:30.123Z') * 1000 + 456
  const http = { protocol: 'http', topic: '', clientId: '', attributes: '', receivedAtMicros }
  expect(await Array.fromAsync(readDlqRows(path, signal))).toEqual([
    { ...http, payload: Buffer.from('{"a":"\u2028\u2029 ü"}'), recordIndex: 4 },
    {
      protocol: 'mqtt',
      topic: 't',
      clientId: 'c',
      attributes: '{"content_type":"a"}',
      receivedAtMicros,
      payload: Buffer.from([0xff, 0x0a, 0x0d]),
      recordIndex: 9,
    },
    { ...http, payload: Buffer.from(rows[2]?.record ?? ''), recordIndex: 11 },
  ])
})

test('replaces the indexes and changes nothing else', async () => {
  const [from, to] = [join(directory, 'from'), join(directory, 'to')]
  await writeFile(from, gzipSync([row(0, { record: '\u2028' }), row(1, {})].map((each) => `${JSON.stringify(each)}\n`).join('')))
  await withOriginalIndexes(from, to, [17, 42], signal)
  const rows = gunzipSync(await readFile(to))
    .toString()
    .trimEnd()
    .split('\n')
  expect(rows.map((each) => JSON.parse(each))).toEqual([row(17, { record: '\u2028' }), row(42, {})])
})

test('throws if the file is truncated', async () => {
  const path = join(directory, 'cut')
  await writeFile(path, gzipSync(`${JSON.stringify(row(0, { record: 'x' }))}\n`).subarray(0, -9))
  await expect(Array.fromAsync(readDlqRows(path, signal))).rejects.toThrow()
})
