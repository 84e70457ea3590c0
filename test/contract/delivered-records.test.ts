import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { useControl } from '../support/control.ts'
import { queryRows } from '../support/parquet.ts'
import { anEndpointWithNode, aPublishedView } from '../support/set-up.ts'
import { aCommit } from '../support/test-node.ts'

const control = useControl()

/** An endpoint and a view, and files in its bucket that a node reports as delivered. */
async function furnished() {
  const account = await control().newAccount()
  const { destination, endpoint, node, place, pathOf } = await anEndpointWithNode(control(), account)
  const view = await aPublishedView(account)
  const deliver = async (seq: number, kind: string, key: string, bytes = 1_000) => {
    const file = { key, bytes, rows: 1, sha256: 'ab', ...(kind.startsWith('dlq/') ? { view_id: view.id, view_version: 1 } : {}) }
    const commit = aCommit(node.id, endpoint.id, seq, { destination: place, artifacts: { [kind]: file } })
    expect(await node.call('POST', 'commits', { commits: [commit] })).toMatchObject({ status: 200 })
    await mkdir(dirname(pathOf(key)), { recursive: true })
    return commit
  }
  return {
    ...{ account, destination, endpoint, node, view, pathOf },
    records: `/v1/endpoints/${endpoint.id}/records`,
    rejected: `/v1/views/${view.id}/dlq-records`,
    reasons: `/v1/views/${view.id}/dlq-reasons`,
    /** Each payload is SQL of type VARCHAR or BLOB. */
    async deliverRaw(seq: number, payloads: readonly string[]) {
      const key = `p/${seq}.parquet`
      const commit = await deliver(seq, 'parquet', key)
      await writeRaw(pathOf(key), seq, payloads)
      return commit
    },
    async deliverRejected(seq: number, rows: readonly object[]) {
      const key = `p/${seq}.ndjson.gz`
      await deliver(seq, 'dlq/events/v1', key)
      await writeFile(pathOf(key), gzipSync(rows.map((row) => `${JSON.stringify(row)}\n`).join('')))
    },
    deliver,
  }
}

/** Writes raw Parquet as delivery does. */
async function writeRaw(path: string, seq: number, payloads: readonly string[]): Promise<void> {
  const rows = payloads.map((payload, index) => {
    const [text, bytes] = payload.endsWith('::BLOB') ? ['NULL', payload] : [payload, 'NULL']
    return `(TIMESTAMP '2026-11-20 08:15:30.123456', 'mqtt', 'a/b', 'c1', ${seq}::BIGINT, ${index}::BIGINT, ${text}::VARCHAR, ${bytes}::BLOB, '{"qos":1}')`
  })
  const names = 'ingested_at, protocol, topic, client_id, segment_seq, record_index, payload, payload_bytes, attributes'
  await queryRows(`COPY (SELECT * FROM (VALUES ${rows}) AS raw(${names})) TO '${path}' (FORMAT parquet)`)
}

const aRejection = (record_index: number, more: object = {}) => ({
  ...{ error_code: 'cast_failed', column: 'a', message: 'the value "x" of column "a" is not of type BIGINT' },
  ...{ record: '{"a":"x"}', record_base64: null, segment_seq: 7, record_index, ingested_at: '2026-11-20T08:15:30.123456Z' },
  ...{ protocol: 'http', topic: null, client_id: null, attributes: null, view: 'events', view_version: 1 },
  ...more,
})

describe('GET /v1/endpoints/{id}/records', () => {
  test('200 the latest first, over several files', async () => {
    const { account, records, deliverRaw } = await furnished()
    await deliverRaw(1, [`'{"n":0}'`, `'{"n":1}'`])
    const { id } = await deliverRaw(2, [`'{"n":2}'`, `'\\xFF'::BLOB`])
    const answer = await account.get(`${records}?limit=3`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const [binary, text, older] = answer.body.items
    expect(answer.body.items).toHaveLength(3)
    expect(text).toEqual({
      ...{ commit_id: id, segment_seq: 2, record_index: 0, ingested_at: '2026-11-20T08:15:30.123456Z' },
      ...{ protocol: 'mqtt', topic: 'a/b', client_id: 'c1', attributes: { qos: 1 } },
      ...{ record: '{"n":2}', record_base64: null, is_cut: false },
    })
    expect(binary).toMatchObject({ record: null, record_base64: '/w==' })
    expect(older).toMatchObject({ segment_seq: 1, record_index: 1, record: '{"n":1}' })
  })

  test('200 of one segment, and with a text', async () => {
    const { account, records, node, deliverRaw } = await furnished()
    await deliverRaw(1, [`'{"id":"u-1"}'`, `'{"id":"u-2"}'`])
    await deliverRaw(2, [`'{"id":"u-1"}'`])
    const find = async (query: string) => (await account.get(`${records}?${query}`)).body.items
    expect(await find(`node_id=${node.id}&segment_seq=1&contains=u-1`)).toMatchObject([{ segment_seq: 1, record_index: 0 }])
    expect(await find('contains=u-1')).toMatchObject([{ segment_seq: 2 }, { segment_seq: 1 }])
    expect(await find(`contains=${encodeURIComponent("' OR 1=1 --")}`)).toEqual([])
    expect(await find(`node_id=${node.id}&segment_seq=3`)).toEqual([])
  })

  test('200 cuts a long payload, and has no items before anything is delivered', async () => {
    const { account, records, deliverRaw } = await furnished()
    expect(await account.get(records)).toMatchObject({ status: 200, body: { items: [] } })
    await deliverRaw(1, [`repeat('ü', 70000)`])
    const { body } = await account.get(records)
    expect(body.items[0]).toMatchObject({ is_cut: true })
    expect(body.items[0].record).toHaveLength(65_536)
  })

  test('409 says why the files cannot be read', async () => {
    const reasonOf = async ({ account, records }: Awaited<ReturnType<typeof furnished>>) => {
      const { status, body } = await account.get(records)
      expect(status).toBe(409)
      return body.detail
    }
    const viewsOnly = await furnished()
    await viewsOnly.deliver(1, 'views/events/v1', 'p/v.parquet')
    expect(await reasonOf(viewsOnly)).toContain('add parquet to output_formats')
    const large = await furnished()
    await large.deliver(1, 'parquet', 'p/l.parquet', 10 ** 9)
    expect(await reasonOf(large)).toContain('lower segment_bytes')
    const gone = await furnished()
    await gone.deliver(1, 'parquet', 'p/g.parquet')
    expect(await reasonOf(gone)).toContain('no longer in the bucket')
    await writeFile(gone.pathOf('p/g.parquet'), 'PAR1 not Parquet PAR1')
    expect(await reasonOf(gone)).toContain('cannot be read')
    await rm(gone.pathOf('p/g.parquet'))
    await gone.account.patch(`/v1/endpoints/${gone.endpoint.id}`, { destination_id: null })
    await gone.account.delete(`/v1/destinations/${gone.destination.id}`)
    expect(await reasonOf(gone)).toContain('was deleted')
  })

  test.each([
    ['segment_seq=1', 'segment_seq'],
    [`node_id=${newId()}`, 'segment_seq'],
    ['contains=', 'contains'],
    ['offset=1', 'offset'],
  ])('422 for ?%s', async (query, where) => {
    const { account, records } = await furnished()
    expect(await account.get(`${records}?${query}`)).toMatchObject({ status: 422, body: { errors: [{ path: where }] } })
  })
})

describe('GET /v1/views/{id}/dlq-records', () => {
  test('200 the newest first, with the reason of each record', async () => {
    const { account, endpoint, rejected, deliverRejected } = await furnished()
    await deliverRejected(7, [
      aRejection(0),
      aRejection(3, { record: null, record_base64: '/w==', column: null, error_code: 'invalid_utf8' }),
    ])
    await deliverRejected(8, [aRejection(5, { segment_seq: 8 })])
    const { status, body } = await account.get(rejected)
    expect(status).toBe(200)
    expect(body.items).toMatchObject([
      { segment_seq: 8, record_index: 5 },
      { segment_seq: 7, record_index: 3, record: null, record_base64: '/w==', column: null },
      {
        ...{ endpoint_id: endpoint.id, segment_seq: 7, record_index: 0, error_code: 'cast_failed', column: 'a' },
        ...{ record: '{"a":"x"}', attributes: null, is_cut: false, ingested_at: '2026-11-20T08:15:30.123456Z' },
      },
    ])
    expect((await account.get(`${rejected}?limit=2`)).body.items).toMatchObject([{ record_index: 5 }, { record_index: 3 }])
  })

  test('200 with one reason, one column, one endpoint', async () => {
    const { account, endpoint, rejected, deliverRejected } = await furnished()
    await deliverRejected(7, [aRejection(0), aRejection(1, { error_code: 'missing_required', column: 'b' })])
    const find = async (query: string) => (await account.get(`${rejected}?${query}`)).body.items
    expect(await find('error_code=missing_required')).toMatchObject([{ record_index: 1 }])
    expect(await find('column=a')).toMatchObject([{ record_index: 0 }])
    expect(await find('error_code=cast_failed&column=b')).toEqual([])
    expect(await find(`endpoint_id=${endpoint.id}`)).toHaveLength(2)
    expect(await find(`endpoint_id=${newId()}`)).toEqual([])
  })

  test('200 with a rare reason beyond the newest files, and of files of a time', async () => {
    const { account, rejected, deliverRejected } = await furnished()
    await deliverRejected(1, [aRejection(0, { error_code: 'invalid_json', column: null })])
    for (let seq = 2; seq < 11; seq += 1) await deliverRejected(seq, [aRejection(0)])
    const find = async (query: string) => (await account.get(`${rejected}?${query}`)).body.items
    expect(await find('limit=100')).toHaveLength(8)
    expect(await find('error_code=invalid_json')).toMatchObject([{ column: null }])
    expect(await find('created_before=2026-01-01T00:00:00Z')).toEqual([])
    expect(await find('created_after=2026-01-01T00:00:00Z&limit=1')).toHaveLength(1)
  })
})

describe('GET /v1/views/{id}/dlq-reasons', () => {
  test('200 counts by code and column, the most frequent first', async () => {
    const { account, endpoint, reasons, deliverRejected } = await furnished()
    const nothing = { items: [], files_read: 0, rows_read: 0 }
    expect(await account.get(reasons)).toMatchObject({ status: 200, body: nothing })
    const later = '2026-11-20T08:15:31.000000Z'
    await deliverRejected(1, [aRejection(0), aRejection(1, { error_code: 'invalid_json', column: null, message: 'not JSON' })])
    await deliverRejected(2, [aRejection(0, { message: 'the latest', ingested_at: later }), aRejection(1, { column: 'b' })])
    const { status, headers, body } = await account.get(reasons)
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(body).toMatchObject({ files_read: 2, rows_read: 4 })
    expect(body.items).toEqual([
      { error_code: 'cast_failed', column: 'a', rows: 2, message: 'the latest', last_ingested_at: later },
      expect.objectContaining({ error_code: 'cast_failed', column: 'b', rows: 1 }),
      expect.objectContaining({ error_code: 'invalid_json', column: null, rows: 1, message: 'not JSON' }),
    ])
    expect((await account.get(`${reasons}?endpoint_id=${endpoint.id}`)).body.rows_read).toBe(4)
    expect((await account.get(`${reasons}?endpoint_id=${newId()}`)).body).toEqual(nothing)
    expect((await account.get(`${reasons}?created_before=2026-01-01T00:00:00Z`)).body).toEqual(nothing)
  })

  test('409 if a file is gone', async () => {
    const { account, reasons, deliver } = await furnished()
    await deliver(1, 'dlq/events/v1', 'p/gone.ndjson.gz')
    expect(await account.get(reasons)).toMatchObject({ status: 409, body: { error: 'conflict' } })
  })

  test('422 for a field that it does not have', async () => {
    const { account, reasons } = await furnished()
    expect(await account.get(`${reasons}?limit=1`)).toMatchObject({ status: 422 })
  })
})
