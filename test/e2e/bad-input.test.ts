/** Bad records beside good ones in the same request: the good are delivered, the bad are in the DLQ byte for byte, the counters add up. */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Installation } from '../support/installation.ts'
import { readWithDuckDb, readWithHyparquet } from '../support/parquet.ts'

type Fate =
  | { readonly n: string | null; readonly s: string | null }
  | 'invalid_json'
  | 'invalid_utf8'
  | 'cast_failed'
  | 'missing_required'

const bytes = (...parts: readonly (string | readonly number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))))

const view = {
  name: 'strict',
  definition: {
    columns: [
      { name: 'id', type: 'INTEGER', path: '$.id', required: true },
      { name: 'n', type: 'BIGINT', path: '$.n', cast_failures: 'dlq' },
      { name: 's', type: 'VARCHAR', path: '$.s' },
    ],
  },
}

/** Line by line: what is sent, and what becomes of it. `#` stands for the line's own id. */
const lines: readonly (readonly [what: string, line: Buffer, fate: Fate])[] = [
  ['a good one', bytes('{"id":#,"n":1,"s":"one"}'), { n: '1', s: 'one' }],
  ['a BOM at the start of the body', bytes([0xef, 0xbb, 0xbf], '{"id":#,"n":2,"s":"bom"}'), 'invalid_json'],
  ['cut short', bytes('{"id":#,"n":'), 'invalid_json'],
  ['words', bytes('hello # world'), 'invalid_json'],
  ['two values', bytes('{"id":#} {"id":#}'), 'invalid_json'],
  ['bytes that are no UTF-8', bytes('{"id":#,"s":"', [0xff, 0xfe], '"}'), 'invalid_utf8'],
  ['an overlong encoding', bytes('{"id":#,"s":"', [0xc0, 0xaf], '"}'), 'invalid_utf8'],
  ['a NUL byte in a string', bytes('{"id":#,"s":"a', [0], 'b"}'), 'invalid_json'],
  ['a NUL byte alone', bytes([0]), 'invalid_json'],
  ['a control character in a string', bytes('{"id":#,"s":"a', [1], 'b"}'), 'invalid_json'],
  ['a carriage return at the end', bytes('{"id":#,"n":3,"s":"crlf"}\r'), { n: '3', s: 'crlf' }],
  ['a carriage return inside', bytes('{"id":#,\r"n":4}'), { n: '4', s: null }],
  ['spaces around', bytes('  \t{"id":#,"n":5}  '), { n: '5', s: null }],
  ['an empty string', bytes('{"id":#,"s":""}'), { n: null, s: '' }],
  ['an empty object', bytes('{}'), 'missing_required'],
  ['a null where a value must be', bytes('{"id":null,"n":1}'), 'missing_required'],
  ['a scalar', bytes('42'), 'missing_required'],
  ['the largest 64-bit integer', bytes('{"id":#,"n":9223372036854775807}'), { n: '9223372036854775807', s: null }],
  ['one more', bytes('{"id":#,"n":9223372036854775808}'), 'cast_failed'],
  ['a number of 400 digits', bytes(`{"id":#,"n":${'9'.repeat(400)}}`), 'cast_failed'],
  ['a number beyond doubles', bytes('{"id":#,"n":1e999}'), 'cast_failed'],
  ['a word for a number', bytes('{"id":#,"n":"many"}'), 'cast_failed'],
  ['an object for a number', bytes('{"id":#,"n":{"a":1}}'), 'cast_failed'],
  ['emoji and escapes', bytes('{"id":#,"s":"\\ud83d\\ude00 😀 \\u00e9 \\n"}'), { n: null, s: '😀 😀 é \n' }],
  ['a quote that SQL would mind', bytes(`{"id":#,"s":"it's; -- \\"DROP\\""}`), { n: null, s: 'it\'s; -- "DROP"' }],
  ['500 levels of nesting', bytes(`{"id":#,"x":${'['.repeat(500)}${']'.repeat(500)}}`), { n: null, s: null }],
  ['a line of 1 MiB', lineOfOneMiB(), { n: '6', s: 'x'.repeat(1024 * 1024 - 22) }],
  ['a good one at the end', bytes('{"id":#,"n":7,"s":"last"}'), { n: '7', s: 'last' }],
].map(([what, line, fate], index) => [what, withId(line as Buffer, index), fate] as [string, Buffer, Fate])

describe('one request with every kind of record', () => {
  let installation: Installation
  let endpointId = ''
  const bucket = 'strict'

  beforeAll(async () => {
    installation = await Installation.create()
    await installation.start('start')
    endpointId = (await installation.endpoint({ bucket, view })).id
    // Blank lines between, and no line feed at the end.
    const body = Buffer.concat(lines.flatMap(([, line], index) => [...(index === 0 ? [] : [Buffer.from('\n \n\r\n')]), line]))
    const { status, body: receipt } = await installation.ingest(endpointId, new Uint8Array(body))
    expect(status, JSON.stringify(receipt)).toBe(202)
    expect(receipt.accepted_records).toBe(lines.length)
    await installation.committed(endpointId, [receipt.segment_seq])
  }, 120_000)
  afterAll(() => installation[Symbol.asyncDispose]())

  const isBad = (fate: Fate) => typeof fate === 'string'
  const payloads = lines.map(([, line]) => (line.at(-1) === 0x0d ? line.subarray(0, -1) : line))

  test('raw Parquet has every record byte for byte', async () => {
    // As bytes: a text decoder would drop a BOM.
    const raw = await readWithDuckDb(
      installation.artifacts(bucket, endpointId, 'parquet'),
      'coalesce(encode(payload), payload_bytes) AS bytes',
    )
    const stored = raw.map(({ bytes: hex }) => Buffer.from(String(hex), 'hex'))
    expect(stored.map((record) => record.toString('latin1'))).toEqual(payloads.map((record) => record.toString('latin1')))
  })

  test('the view has the good ones', async () => {
    const expected = lines.flatMap(([, , fate], index) => (isBad(fate) ? [] : [{ id: String(index), ...(fate as object) }]))
    const paths = installation.artifacts(bucket, endpointId, 'views/strict/v1')
    expect(await readWithDuckDb(paths)).toEqual(expected)
    expect(await readWithHyparquet(paths)).toEqual(expected)
  })

  test('the DLQ has the bad ones with their codes, and posted again they are the same bytes', () => {
    const dead = installation
      .artifacts(bucket, endpointId, 'dlq/strict/v1')
      .flatMap((path) => gunzipSync(readFileSync(path)).toString().trimEnd().split('\n'))
      .map((line) => JSON.parse(line))
    const bad = lines.flatMap(([what, , fate], index) =>
      isBad(fate) ? [{ what, fate, index, payload: payloads[index] ?? Buffer.of() }] : [],
    )
    expect(dead.map(({ error_code, record_index }) => [error_code, Number(record_index)])).toEqual(
      bad.map(({ fate, index }) => [fate, index]),
    )
    const records = dead.map(({ record, record_base64 }) =>
      record === null ? Buffer.from(record_base64, 'base64') : Buffer.from(record),
    )
    expect(records.map((record) => record.toString('latin1'))).toEqual(bad.map(({ payload }) => payload.toString('latin1')))
    for (const row of dead) {
      expect(row).toMatchObject({
        view: 'strict',
        view_version: 1,
        message: expect.stringMatching(/\w/),
      })
      expect(row.ingested_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/)
    }
  })

  test('the counters add up', () => {
    const outcome = installation.markers(bucket, endpointId).flatMap(({ views }) => views)
    const dlq = lines.filter(([, , fate]) => isBad(fate)).length
    expect(outcome).toMatchObject([{ processed: lines.length, accepted: lines.length - dlq, dropped: 0, dlq }])
  })

  test('a request with one record that is too long leaves nothing behind', async () => {
    const before = (await installation.commits(endpointId)).length
    const { status, body } = await installation.ingest(endpointId, `{"id":1}\n{"id":2,"s":"${'y'.repeat(1024 * 1024)}"}\n`)
    expect(status).toBe(413)
    expect(body).toMatchObject({ error: 'payload_too_large', detail: expect.stringContaining('line 2') })
    const { body: receipt } = await installation.ingest(endpointId, '{"id":3}')
    await installation.committed(endpointId, [receipt.segment_seq])
    const commits = await installation.commits(endpointId)
    expect(commits).toHaveLength(before + 1)
    expect(installation.markers(bucket, endpointId).at(-1)?.records).toBe(1)
  })
})

function lineOfOneMiB(): Buffer {
  const head = '{"id":##,"n":6,"s":"'
  return bytes(head, 'x'.repeat(1024 * 1024 - head.length - 2), '"}')
}

/** `##` keeps the length of a two-digit id. */
function withId(line: Buffer, id: number): Buffer {
  return Buffer.from(line.toString('latin1').replaceAll('##', String(id)).replaceAll('#', String(id)), 'latin1')
}
