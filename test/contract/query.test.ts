import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { clientOf, newRegion, type TestAccount, useControl } from '../support/control.ts'
import { queryRows } from '../support/parquet.ts'
import { anEndpointWithNode, aPublishedView } from '../support/set-up.ts'
import { aCommit } from '../support/test-node.ts'

const control = useControl()

const definition = {
  columns: [
    { name: 'id', type: 'BIGINT', path: '$.id' },
    { name: 'seen', type: 'TIMESTAMP', path: '$.seen' },
  ],
}

type Delivered = { readonly view?: string; readonly raw?: string }

/** An account with a published and attached view `orders`, an endpoint `Line 1`, and a function that delivers one segment with these rows. */
async function furnished() {
  const account = await control().newAccount()
  const { destination, endpoint, node, place, pathOf } = await anEndpointWithNode(control(), account, { name: 'Line 1' })
  const view = await aPublishedView(account, 'orders', definition)
  await account.post(`/v1/endpoints/${endpoint.id}/views`, { view_id: view.id })
  let seq = 0
  /** Returns the keys of the files. The segment is committed if `commits` says so. */
  const deliver = async (files: Delivered, commits = true) => {
    const artifacts: Record<string, object> = {}
    for (const [kind, rows] of Object.entries(files)) {
      const key = `p/${kind}-${seq}.parquet`
      await mkdir(dirname(pathOf(key)), { recursive: true })
      await queryRows(`COPY (${rows}) TO '${pathOf(key)}' (FORMAT parquet)`)
      const file = { key, bytes: 100_000, rows: 1, sha256: 'ab' }
      if (kind === 'raw') artifacts['parquet'] = file
      else artifacts['views/orders/v1'] = { ...file, view_id: view.id, view_version: 1 }
    }
    const commit = aCommit(node.id, endpoint.id, seq++, {
      destination: place,
      artifacts: artifacts as Record<string, { key: string; bytes: number; rows: number; sha256: string }>,
    })
    if (commits) expect(await node.call('POST', 'commits', { commits: [commit] })).toMatchObject({ status: 200 })
    return pathOf(`p/${Object.keys(files)[0]}-${seq - 1}.parquet`)
  }
  return { account, endpoint, destination, view, deliver }
}

const row = (id: number) => ({ view: `SELECT ${id}::BIGINT AS id, TIMESTAMP '2026-11-20 08:00:00' AS seen` })
const query = (account: Pick<TestAccount, 'post'>, sql: string, more: object = {}) => account.post('/v1/query', { sql, ...more })

// Each query starts a process.
describe('POST /v1/query', { timeout: 60_000 }, () => {
  test('200 reads what was committed of the newest version of a view', async () => {
    const { account, view, deliver } = await furnished()
    await deliver(row(1))
    await deliver(row(2))
    // Its files are in the bucket, but no marker lists them.
    await deliver(row(3), false)
    expect(await query(account.as('query'), 'SELECT id, seen FROM orders ORDER BY id')).toMatchObject({
      status: 200,
      body: {
        columns: [
          { name: 'id', type: 'BIGINT' },
          { name: 'seen', type: 'TIMESTAMP' },
        ],
        rows: [
          ['1', '2026-11-20T08:00:00.000000Z'],
          ['2', '2026-11-20T08:00:00.000000Z'],
        ],
        row_count: 2,
        truncated: null,
        tables: [{ name: 'orders', kind: 'view', view_id: view.id, view_version: 1, files: 2, missing: 0, complete: true }],
      },
    })
    expect(await query(account, 'SELECT count(*) FROM orders.v1')).toMatchObject({ status: 200, body: { rows: [['2']] } })
    expect(await readdir(join(control().directory, 'queries'))).toEqual([])
  })

  test('200 reads the records of an endpoint as they were received', async () => {
    const { account, endpoint, deliver } = await furnished()
    await deliver({ raw: `SELECT 0::BIGINT AS record_index, '{"a":1}' AS payload` })
    const { status, body } = await query(account, 'SELECT payload, payload->>\'$.a\' AS a FROM raw."Line 1"')
    expect(body.rows, String(status)).toEqual([['{"a":1}', '1']])
    expect(body.tables).toMatchObject([{ name: 'raw.Line 1', kind: 'raw', endpoint_id: endpoint.id, view_id: null, files: 1 }])
  })

  test('200 without files: the table has its columns and no rows', async () => {
    const { account } = await furnished()
    const { body } = await query(account, 'FROM orders, raw."Line 1"')
    expect(body.columns.map(({ name }: { name: string }) => name)).toEqual(expect.arrayContaining(['id', 'seen', 'payload']))
    expect(body).toMatchObject({ rows: [], tables: [{ files: 0, oldest: null, complete: true }, { files: 0 }] })
  })

  test('200 of a time range and of an endpoint', async () => {
    const { account, endpoint, deliver } = await furnished()
    await deliver(row(1))
    const { body: all } = await query(account, 'FROM orders', { endpoint_id: endpoint.id })
    const { oldest } = all.tables[0]
    const rowsOf = async (range: object) => (await query(account, 'FROM orders', range)).body.rows.length
    expect(await rowsOf({ since: oldest })).toBe(1)
    expect(await rowsOf({ until: oldest })).toBe(0)
    const { body: other } = await account.post('/v1/endpoints', { region: newRegion() })
    expect(await rowsOf({ endpoint_id: other.id })).toBe(0)
  })

  test('200 says what is left out: rows beyond max_rows, and files that are gone', async () => {
    const { account, deliver } = await furnished()
    await deliver(row(1))
    const gone = await deliver(row(2))
    expect(await query(account, 'FROM orders', { max_rows: 1 })).toMatchObject({ body: { row_count: 1, truncated: 'rows' } })
    await rm(gone)
    expect(await query(account, 'FROM orders')).toMatchObject({
      body: { row_count: 1, tables: [{ files: 1, missing: 1, complete: false }] },
    })
  })

  test('404 for an endpoint of another account', async () => {
    const { endpoint } = await furnished()
    const other = await control().newAccount()
    expect(await query(other, 'SELECT 1', { endpoint_id: endpoint.id })).toMatchObject({ status: 404 })
  })

  test('422: tables of another account do not exist', async () => {
    const { endpoint, deliver } = await furnished()
    await deliver(row(1))
    const other = await control().newAccount()
    for (const sql of ['FROM orders', 'FROM orders.v1', 'FROM raw."Line 1"', `FROM raw."${endpoint.id}"`]) {
      const { status, body } = await query(other, sql)
      expect({ status, detail: body.detail }).toEqual({ status: 422, detail: expect.stringContaining('there is no table') })
    }
  })

  test('a key that is limited to endpoints reads theirs, and no others', async () => {
    const { account, endpoint, deliver } = await furnished()
    await deliver({ ...row(1), raw: `SELECT 0::BIGINT AS record_index, '{}' AS payload` })
    const { body: other } = await account.post('/v1/endpoints', { region: newRegion(), name: 'Line 2' })
    const limited = async (id: string) => {
      const { body: key } = await account.post('/v1/keys', { name: 'analyst', scopes: ['query'], endpoint_ids: [id] })
      const { body } = await control().call('POST', '/v1/token/exchange', { api_key: key.api_key, scope: 'query' })
      return clientOf(control().call, body.access_token)
    }
    const [own, foreign] = [await limited(endpoint.id), await limited(other.id)]
    for (const sql of ['FROM orders', 'FROM orders.v1', 'FROM raw."Line 1"', `FROM raw."${endpoint.id}"`]) {
      expect(await query(own, sql), sql).toMatchObject({ status: 200, body: { row_count: 1 } })
      expect(await query(foreign, sql), sql).toMatchObject({ status: 422, body: { errors: [{ path: 'sql' }] } })
    }
    expect(await query(foreign, 'SELECT 1', { endpoint_id: endpoint.id })).toMatchObject({ status: 403 })
  })

  test('422 says where a statement is wrong', async () => {
    const account = await control().newAccount()
    for (const sql of ['SELECT 1,\n  nonesuch(1)', 'SELECT 1,\n  nonesuch FRM x y']) {
      const { status, body } = await query(account, sql)
      expect({ status, ...body.errors[0] }, sql).toMatchObject({ status: 422, path: 'sql', line: 2, column: expect.any(Number) })
      expect(body.detail).toMatch(/^line 2, column \d+: /)
    }
  })

  test('422: a file that is not Parquet, and one that is larger than it was', async () => {
    const { account, deliver } = await furnished()
    const path = await deliver(row(1))
    await writeFile(path, 'PAR1 not Parquet PAR1')
    expect(await query(account, 'FROM orders')).toMatchObject({ status: 422 })
    await writeFile(path, Buffer.alloc(100_001))
    expect(await query(account, 'FROM orders')).toMatchObject({
      status: 422,
      body: { detail: expect.stringContaining('validate the destination') },
    })
  })

  test.each([
    [{}, 'sql'],
    [{ sql: '' }, 'sql'],
    [{ sql: 'x'.repeat(16_385) }, 'sql'],
    [{ sql: 'SELECT \u0000' }, 'sql'],
    [{ sql: 'SELECT 1', max_rows: 10_001 }, 'max_rows'],
    [{ sql: 'SELECT 1', since: 'today' }, 'since'],
    [{ sql: 'SELECT 1', since: '2026-11-20T00:00:00Z', until: '2026-11-20T00:00:00Z' }, 'until'],
    [{ sql: 'SELECT 1', more: 1 }, 'more'],
    [{ sql: 'SELEC 1' }, 'sql'],
    [{ sql: 'SELECT\n  nonesuch(1)' }, 'sql'],
  ])('422, row %#, names %s', async (body, path) => {
    const answer = await (await control().newAccount()).post('/v1/query', body)
    expect(answer).toMatchObject({ status: 422, body: { error: 'validation_error', errors: [{ path }] } })
  })
})
