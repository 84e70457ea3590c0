/** Good and bad records in one request: good ones are delivered, bad ones reach the DLQ byte for byte, and the counters add up. */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { beforeAll, expect, test } from 'vitest'
import { describeWith, type TestEndpoint, useDeployment } from '../support/deployment.ts'
import { readWithDuckDb, readWithHyparquet } from '../support/parquet.ts'

type Outcome =
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

/** Each line that is sent, and its outcome. `#` stands for the id of the line. */
const lines: readonly (readonly [what: string, line: Buffer, outcome: Outcome])[] = [
  ['a good one', bytes('{"id":#,"n":1,"s":"one"}'), { n: '1', s: 'one' }],
  ['a BOM at the start of the body', bytes([0xef, 0xbb, 0xbf], '{"id":#,"n":2,"s":"bom"}'), 'invalid_json'],
  ['cut short', bytes('{"id":#,"n":'), 'invalid_json'],
  ['words', bytes('hello # world'), 'invalid_json'],
  ['two values', bytes('{"id":#} {"id":#}'), 'invalid_json'],
  ['bytes that are not UTF-8', bytes('{"id":#,"s":"', [0xff, 0xfe], '"}'), 'invalid_utf8'],
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
  ['one more than that', bytes('{"id":#,"n":9223372036854775808}'), 'cast_failed'],
  ['a number of 400 digits', bytes(`{"id":#,"n":${'9'.repeat(400)}}`), 'cast_failed'],
  ['a number beyond doubles', bytes('{"id":#,"n":1e999}'), 'cast_failed'],
  ['a word for a number', bytes('{"id":#,"n":"many"}'), 'cast_failed'],
  ['an object for a number', bytes('{"id":#,"n":{"a":1}}'), 'cast_failed'],
  ['emoji and escapes', bytes('{"id":#,"s":"\\ud83d\\ude00 😀 \\u00e9 \\n"}'), { n: null, s: '😀 😀 é \n' }],
  ['quotes that must be escaped in SQL', bytes(`{"id":#,"s":"it's; -- \\"DROP\\""}`), { n: null, s: 'it\'s; -- "DROP"' }],
  ['500 levels of nesting', bytes(`{"id":#,"x":${'['.repeat(500)}${']'.repeat(500)}}`), { n: null, s: null }],
  ['a line of 1 MiB', lineOfOneMiB(), { n: '6', s: 'x'.repeat(1024 * 1024 - 22) }],
  ['a good one at the end', bytes('{"id":#,"n":7,"s":"last"}'), { n: '7', s: 'last' }],
].map(([what, line, outcome], index) => [what, withId(line as Buffer, index), outcome] as [string, Buffer, Outcome])

describeWith('objects', 'one request with every kind of record', () => {
  const deployment = useDeployment()
  let endpoint: TestEndpoint

  beforeAll(async () => {
    endpoint = await deployment().endpoint({ bucket: 'strict', view })
    // Blank lines in between, and no line feed at the end.
    const body = Buffer.concat(lines.flatMap(([, line], index) => [...(index === 0 ? [] : [Buffer.from('\n \n\r\n')]), line]))
    const { status, body: receipt } = await deployment().ingest(endpoint.id, new Uint8Array(body))
    expect(status, JSON.stringify(receipt)).toBe(202)
    expect(receipt.accepted_records).toBe(lines.length)
    await deployment().committed(endpoint.id, [receipt.segment_seq])
  }, 120_000)

  const isBad = (outcome: Outcome) => typeof outcome === 'string'
  const payloads = lines.map(([, line]) => (line.at(-1) === 0x0d ? line.subarray(0, -1) : line))

  test('raw Parquet has every record byte for byte', async () => {
    // Compared as bytes: a text decoder would drop a BOM.
    const raw = await readWithDuckDb(
      await deployment().artifacts(endpoint.id, 'parquet'),
      'coalesce(encode(payload), payload_bytes) AS bytes',
    )
    const stored = raw.map(({ bytes: hex }) => Buffer.from(String(hex), 'hex'))
    expect(stored.map((record) => record.toString('latin1'))).toEqual(payloads.map((record) => record.toString('latin1')))
  })

  test('the view has the good records', async () => {
    const expected = lines.flatMap(([, , outcome], index) =>
      isBad(outcome) ? [] : [{ id: String(index), ...(outcome as object) }],
    )
    const paths = await deployment().artifacts(endpoint.id, `views/${endpoint.viewName}/v1`)
    expect(await readWithDuckDb(paths)).toEqual(expected)
    expect(await readWithHyparquet(paths)).toEqual(expected)
  })

  test('the DLQ has the bad records with their codes and their exact bytes', async () => {
    const paths = await deployment().artifacts(endpoint.id, `dlq/${endpoint.viewName}/v1`)
    const dead = paths
      .flatMap((path) => gunzipSync(readFileSync(path)).toString().trimEnd().split('\n'))
      .map((line) => JSON.parse(line))
    const bad = lines.flatMap(([what, , outcome], index) =>
      isBad(outcome) ? [{ what, outcome, index, payload: payloads[index] ?? Buffer.of() }] : [],
    )
    expect(dead.map(({ error_code, record_index }) => [error_code, Number(record_index)])).toEqual(
      bad.map(({ outcome, index }) => [outcome, index]),
    )
    const records = dead.map(({ record, record_base64 }) =>
      record === null ? Buffer.from(record_base64, 'base64') : Buffer.from(record),
    )
    expect(records.map((record) => record.toString('latin1'))).toEqual(bad.map(({ payload }) => payload.toString('latin1')))
    for (const row of dead) {
      expect(row).toMatchObject({
        view: endpoint.viewName,
        view_version: 1,
        message: expect.stringMatching(/\w/),
      })
      expect(row.ingested_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/)
    }
  })

  test('the counters add up', async () => {
    const counted = (await deployment().markers(endpoint.id)).flatMap(({ views }) => views)
    const dlq = lines.filter(([, , outcome]) => isBad(outcome)).length
    expect(counted).toMatchObject([{ processed: lines.length, accepted: lines.length - dlq, dropped: 0, dlq }])
  })

  test('a request with one record that is too long stores nothing', async () => {
    const before = (await deployment().commits(endpoint.id)).length
    const { status, body } = await deployment().ingest(endpoint.id, `{"id":1}\n{"id":2,"s":"${'y'.repeat(1024 * 1024)}"}\n`)
    expect(status).toBe(413)
    expect(body).toMatchObject({ error: 'payload_too_large', detail: expect.stringContaining('line 2') })
    const { body: receipt } = await deployment().ingest(endpoint.id, '{"id":3}')
    await deployment().committed(endpoint.id, [receipt.segment_seq])
    const commits = await deployment().commits(endpoint.id)
    expect(commits).toHaveLength(before + 1)
    expect((await deployment().markers(endpoint.id)).at(-1)?.records).toBe(1)
  })
})

function lineOfOneMiB(): Buffer {
  const head = '{"id":##,"n":6,"s":"'
  return bytes(head, 'x'.repeat(1024 * 1024 - head.length - 2), '"}')
}

/** `##` stands for the id too, and keeps the length of a line whose id has two digits. */
function withId(line: Buffer, id: number): Buffer {
  return Buffer.from(line.toString('latin1').replaceAll('##', String(id)).replaceAll('#', String(id)), 'latin1')
}
