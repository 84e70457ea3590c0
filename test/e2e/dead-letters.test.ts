/** The life of a dead letter, over HTTP alone: rejected, listed, downloaded, repaired, posted again, accepted. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { useDeployment } from '../support/deployment.ts'

type Dead = {
  readonly error_code: string
  readonly column: string | null
  readonly record: string | null
  readonly record_base64?: string
}

const view = {
  name: 'orders',
  definition: {
    columns: [
      { name: 'id', type: 'BIGINT', path: '$.id', required: true },
      { name: 'amount', type: 'DECIMAL(18,2)', path: '$.amount', cast_failures: 'dlq' },
    ],
  },
}

const big = '9007199254740993'
const good = '{"id":1,"amount":"1.50"}'
const pretty = '{\n  "id": 2,\n  "amount": "2,50"\n}'
const refused: readonly (readonly [code: string, record: Buffer, repair: (text: string) => string])[] = [
  ['cast_failed', Buffer.from(`{"id":${big},"amount":"12,50","x":{"y":[1.50,null]}}`), (text) => text.replace('12,50', '12.50')],
  ['missing_required', Buffer.from('{"amount":"3.00"}'), (text) => text.replace('{', '{"id":3,')],
  ['invalid_json', Buffer.from('{"id":4,"amount":"4.00"'), (text) => `${text}}`],
  ['invalid_json', Buffer.from('\u0000\u0001 {"id":5}\t\u007f'), () => '{"id":5}'],
  ['invalid_utf8', Buffer.from('{"id":6,"amount":"6.00","name":"M\xfcller"}', 'latin1'), (text) => text],
  ['invalid_utf8', Buffer.from(Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => byte !== 10)), () => '{"id":7}'],
]

const deployment = useDeployment()

describe('a dead letter', () => {
  let id = ''
  let path = ''
  const seqs: number[] = []

  const send = async (body: string | Uint8Array<ArrayBuffer>, type = 'application/x-ndjson') => {
    const receipt = await deployment().ingest(id, body, { 'content-type': type })
    expect(receipt.status, JSON.stringify(receipt.body)).toBe(202)
    seqs.push(receipt.body.segment_seq)
    await deployment().committed(id, [receipt.body.segment_seq])
    return receipt.body.accepted_records as number
  }
  const counters = async () => (await deployment().ok('GET', `/v1/views/${path.split('/')[3]}/metrics`)).aggregated.all_time
  const listed = async (query = '') => (await deployment().ok('GET', `${path}${query}`)).files
  const readAll = async (): Promise<readonly Dead[]> => {
    const rows: Dead[] = []
    for (const { download_url, bytes, rows: count } of (await listed()).toReversed()) {
      const response = await fetch(download_url)
      expect(response.status).toBe(200)
      const zipped = Buffer.from(await response.arrayBuffer())
      expect(zipped).toHaveLength(bytes)
      const lines = gunzipSync(zipped).toString().trimEnd().split('\n')
      expect(lines).toHaveLength(count)
      rows.push(...lines.map((line): Dead => JSON.parse(line)))
    }
    return rows
  }
  const bytesOf = ({ record, record_base64 }: Dead) =>
    Buffer.from(record ?? record_base64 ?? '', record === null ? 'base64' : 'utf8')

  beforeAll(async () => {
    const made = await deployment().endpoint({ bucket: 'dead', view })
    id = made.id
    path = `/v1/views/${made.viewId}/dlq-files`
    await send(
      new Uint8Array(
        Buffer.concat(
          [good, ...refused.map(([, record]) => record)].map((line) => Buffer.from(`${line.toString('latin1')}\n`, 'latin1')),
        ),
      ),
    )
    await send(pretty, 'application/json')
  }, 120_000)

  test('equals what was sent, byte for byte', async () => {
    const dead = await readAll()
    expect(dead.map(({ error_code }) => error_code)).toEqual([...refused.map(([code]) => code), 'cast_failed'])
    const sent = [...refused.map(([, record]) => record), Buffer.from(pretty)]
    expect(dead.map((row) => bytesOf(row).toString('latin1'))).toEqual(sent.map((record) => record.toString('latin1')))
    for (const { record, record_base64 } of dead)
      expect(record === null).toBe(record_base64 !== undefined && record_base64 !== null)
  })

  test('is accepted once it is repaired and posted again, and counted', async () => {
    expect(await counters()).toEqual({
      processed: 8,
      accepted: 1,
      dropped: 0,
      dlq: 7,
      failed: 0,
      rows: 1,
      duplicates: 0,
      redriven: 0,
    })
    const dead = await readAll()
    const repaired = dead.slice(0, refused.length).map((row, index) => {
      // Only the sender knows the encoding of text that is not UTF-8: here Latin-1.
      const text = bytesOf(row).toString(row.record === null ? 'latin1' : 'utf8')
      return refused[index]?.[2](text)
    })
    expect(await send(`${repaired.join('\n')}\n`)).toBe(refused.length)
    expect(await send((dead.at(-1)?.record ?? '').replace('2,50', '2.50'), 'application/json')).toBe(1)
    expect(await counters()).toEqual({
      processed: 15,
      accepted: 8,
      dropped: 0,
      dlq: 7,
      failed: 0,
      rows: 8,
      duplicates: 0,
      redriven: 0,
    })
    expect(await listed()).toHaveLength(2)
  })
})

const tools = ['bash', 'curl', 'jq', 'gunzip', 'base64', 'iconv']
const missing = tools.filter((tool) => spawnSync(tool, ['--version']).error !== undefined)

describe.skipIf(missing.length > 0)(`the commands of docs/views.md${missing.map((tool) => `, without ${tool}`).join('')}`, () => {
  test('repair the dead letters when pasted as they are', async () => {
    const { id, viewId } = await deployment().endpoint({ bucket: 'docs', view })
    const lines = [`{"id":${big},"amount":"12,50"}`, '{"id":2,"amount":"1.5"}', '{"id":3,"name":"M\xfcller"}', '{"id":']
    const body = new Uint8Array(Buffer.from(`${lines.join('\n')}\n`, 'latin1'))
    const receipts = [await deployment().ingest(id, body)]
    receipts.push(await deployment().ingest(id, pretty, { 'content-type': 'application/json' }))
    await deployment().committed(
      id,
      receipts.map(({ body: { segment_seq } }) => segment_seq),
    )
    const { access_token } = await deployment().ok('POST', '/v1/token/exchange', {
      api_key: deployment().apiKey,
      scope: 'admin',
    })
    const docs = readFileSync(resolve(import.meta.dirname, '../../docs/views.md'), 'utf8')
    const script = [...docs.matchAll(/^```sh repair\n([\s\S]*?)^```$/gm)].map(([, commands]) => commands).join('\n')
    const directory = mkdtempSync(join(tmpdir(), 'inlet-docs-'))
    try {
      const { status, stdout, stderr } = spawnSync('bash', ['--norc', '-euo', 'pipefail', '-c', script], {
        cwd: directory,
        encoding: 'utf8',
        env: {
          ...{ PATH: process.env['PATH'], INLET: deployment().apiUrl, INGEST: deployment().ingestUrl },
          ...{ TOKEN: access_token, KEY: deployment().apiKey, ENDPOINT: id, VIEW: viewId },
        },
      })
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
      expect(stdout).toMatch(/^ +2 cast_failed\tamount/m)
      expect(stdout).toContain('"success": true')
      const seqs = [...stdout.matchAll(/"segment_seq":(\d+)/g)].map(([, seq]) => Number(seq))
      expect(seqs).toHaveLength(3)
      await deployment().committed(id, seqs)
      const { aggregated } = await deployment().ok('GET', `/v1/views/${viewId}/metrics`)
      expect(aggregated.all_time).toEqual({
        processed: 8,
        accepted: 4,
        dropped: 0,
        dlq: 4,
        failed: 0,
        rows: 4,
        duplicates: 0,
        redriven: 0,
      })
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })
})
