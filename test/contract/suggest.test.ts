import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { describe, expect } from 'vitest'
import { newId } from '#model/id.ts'
import { newRegion, type TestAccount, testWithAccount, useControl } from '../support/control.ts'
import { queryRows } from '../support/parquet.ts'
import { anEndpointWithNode } from '../support/set-up.ts'
import { aCommit } from '../support/test-node.ts'

const control = useControl()
const test = testWithAccount(control)

const samples = ['{"id":9007199254740993,"user":{"e-mail":"x"}}', '{"id":2,"user":{"e-mail":"y"},"at":"2026-11-20T08:00:00Z"}']

const suggest = (account: Pick<TestAccount, 'post'>, body: object) => account.post('/v1/views/suggest', body)

/** An endpoint with one committed segment, and the path for its raw Parquet. */
async function delivered(artifacts: (key: string) => object) {
  const account = await control().newAccount()
  const { destination, endpoint, node, place, pathOf } = await anEndpointWithNode(control(), account)
  const key = 'p/raw.parquet'
  const commit = aCommit(node.id, endpoint.id, 0, {
    destination: place,
    artifacts: artifacts(key) as Record<string, { key: string; bytes: number; rows: number; sha256: string }>,
  })
  expect(await node.call('POST', 'commits', { commits: [commit] })).toMatchObject({ status: 200 })
  return { account, endpoint, destination, path: pathOf(key) }
}

const parquetOnly = (key: string) => ({ parquet: { key, bytes: 1_000, rows: 3, sha256: '0'.repeat(64) } })

/** Writes raw Parquet with the relevant columns, like delivery. */
async function writeRaw(path: string, payloads: readonly (string | null)[]): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  const rows = payloads.map((payload, index) => `(${index}::BIGINT, ${payload === null ? 'NULL' : `'${payload}'`}::VARCHAR)`)
  await queryRows(`COPY (SELECT * FROM (VALUES ${rows}) AS raw(record_index, payload)) TO '${path}' (FORMAT parquet)`)
}

describe('POST /v1/views/suggest', () => {
  test('200 from samples, for any token; the suggestion previews without errors', async ({ account }) => {
    for (const scope of ['admin', 'metrics', 'ingest'] as const) {
      const answer = await suggest(account.as(scope), { samples })
      expect(answer).toMatchObject({
        status: 200,
        body: {
          definition: {
            columns: [
              { name: 'id', type: 'BIGINT', path: '$.id' },
              { name: 'user_e_mail', type: 'VARCHAR', path: '$.user.e-mail' },
              { name: 'at_', type: 'TIMESTAMP', path: '$.at' },
            ],
          },
          warnings: [],
          sample_count: 2,
          columns: [{ found: 2 }, { found: 2 }, { name: 'at_', found: 1, nulls: 0, missing: 1 }],
        },
      })
      const { definition } = answer.body
      expect(await account.post('/v1/views/preview', { definition, samples })).toMatchObject({ body: { success: true } })
      expect(await account.post('/v1/views', { name: `v_${scope}`, definition })).toMatchObject({ status: 201 })
    }
  })

  test('200 without a definition if no path has values', async () => {
    const answer = await suggest(await control().newAccount(), { samples: ['{"a":1', '{"a":null}'] })
    expect(answer).toMatchObject({
      status: 200,
      body: {
        definition: null,
        sample_count: 1,
        columns: [],
        warnings: [{ sample_index: 0, code: 'invalid_json' }, { code: 'always_null' }],
      },
    })
  })

  test('200 at the limits: 100 samples of 64 KiB, each with different names', async () => {
    const wide = (n: number) => `{${Array.from({ length: 4_000 }, (_, k) => `"k${n}_${k}":1`).join()}}`.padEnd(65_536)
    const answer = await suggest(await control().newAccount(), { samples: Array.from({ length: 100 }, (_, n) => wide(n)) })
    expect(answer).toMatchObject({ status: 200 })
  })

  test('200 from the last raw Parquet of an endpoint', async () => {
    const { account, endpoint, path } = await delivered(parquetOnly)
    await writeRaw(path, ['{"a":1}', null, 'no json', '{"a":2,"b":"2026-11-20"}'])
    const answer = await suggest(account.as('metrics'), { endpoint_id: endpoint.id })
    expect(answer).toMatchObject({
      status: 200,
      body: {
        definition: {
          columns: [
            { name: 'a', type: 'BIGINT' },
            { name: 'b', type: 'DATE' },
          ],
        },
        sample_count: 2,
        warnings: [{ code: 'invalid_json' }],
      },
    })
  })

  test('422 has a hint if raw Parquet is missing, deleted, broken, too large or out of reach', async () => {
    const refusal = async (account: TestAccount, endpoint_id: string) => {
      const { status, body } = await suggest(account, { endpoint_id })
      expect(status).toBe(422)
      return body.detail
    }
    const account = await control().newAccount()
    const { body: fresh } = await account.post('/v1/endpoints', { region: newRegion() })
    expect(await refusal(account, fresh.id)).toContain('add parquet to its output_formats')
    const gone = await delivered(parquetOnly)
    expect(await refusal(gone.account, gone.endpoint.id)).toContain('no longer in the bucket')
    await mkdir(dirname(gone.path), { recursive: true })
    await writeFile(gone.path, 'PAR1 not Parquet PAR1')
    expect(await refusal(gone.account, gone.endpoint.id)).toContain('cannot be read')
    const large = await delivered((key) => ({ parquet: { key, bytes: 10 ** 9, rows: 1, sha256: '0'.repeat(64) } }))
    expect(await refusal(large.account, large.endpoint.id)).toContain('lower segment_bytes')
  })

  test("403 for an endpoint with a token that only sends, 404 for an unknown one and another account's", async ({ account }) => {
    const other = await control().newAccount()
    const { body: endpoint } = await account.post('/v1/endpoints', { region: newRegion() })
    expect(await suggest(account.as('ingest'), { endpoint_id: endpoint.id })).toMatchObject({ status: 403 })
    expect(await suggest(account, { endpoint_id: newId() })).toMatchObject({ status: 404 })
    expect(await suggest(other, { endpoint_id: endpoint.id })).toMatchObject({ status: 404 })
  })

  test.each([
    [{}, 'samples'],
    [{ samples, endpoint_id: newId() }, 'samples'],
    [{ samples: [] }, 'samples'],
    [{ samples: Array.from({ length: 101 }, () => '{}') }, 'samples'],
    [{ samples: ['x'.repeat(65_537)] }, 'samples.0'],
    [{ samples: [1] }, 'samples.0'],
    [{ endpoint_id: 'x' }, 'endpoint_id'],
    [{ samples, more: 1 }, 'more'],
  ])('422, row %#, names %s', async (body, path) => {
    const answer = await suggest(await control().newAccount(), body)
    expect(answer).toMatchObject({ status: 422, body: { error: 'validation_error', errors: [{ path }] } })
  })
})
