import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { runCli } from '../support/cli.ts'
import { newRegion, type TestAccount, useControl } from '../support/control.ts'
import { withTable } from '../support/stored-comparison.ts'
import { aCommit, TestNode } from '../support/test-node.ts'
import { until } from '../support/until.ts'

const control = useControl()

const published = { columns: [{ name: 'a', type: 'VARCHAR', path: '$.a' }] }
const changed = {
  columns: [
    { name: 'a', type: 'BIGINT', path: '$.a', cast_failures: 'dlq' },
    { name: 'b', type: 'VARCHAR', path: '$.b' },
  ],
  filters: [{ condition: 'a <> 2' }],
}
const role_arn = 'arn:aws:iam::123456789012:role/ingest'

/** A published view at an endpoint, and raw Parquet in its bucket that a node reports as delivered. */
async function furnished({ attached = true } = {}) {
  const account = await control().newAccount()
  const region = newRegion()
  const bucket = `lake-${newId().slice(0, 8)}`
  const { body: destination } = await account.post('/v1/destinations', { name: 'lake', bucket, region: 'eu', role_arn })
  const { body: view } = await account.post('/v1/views', { name: 'events', definition: published })
  await account.post(`/v1/views/${view.id}/publish`)
  const node = await TestNode.register(control(), region)
  const newEndpoint = async (name: string) => {
    const { body: endpoint } = await account.post('/v1/endpoints', { name, region, destination_id: destination.id })
    if (attached) await account.post(`/v1/endpoints/${endpoint.id}/views`, { view_id: view.id })
    return endpoint
  }
  const endpoint = await newEndpoint('shop')
  const pathOf = (key: string) => join(control().directory, 'buckets', bucket, key)
  /** Reports a segment whose raw Parquet has the payloads as text; without them, there is no raw Parquet. */
  const deliver = async (seq: number, payloads: readonly string[] | undefined, more: object = {}, of = endpoint) => {
    const key = `p/${of.id}/${seq}.parquet`
    const kind = payloads === undefined ? 'segment' : 'parquet'
    const commit = aCommit(node.id, of.id, seq, {
      destination: { id: destination.id, bucket, region: 'eu' },
      ...{ records: payloads?.length ?? 1, records_damaged: 0 },
      artifacts: { [kind]: { key, bytes: 1_000, rows: payloads?.length ?? 1, sha256: 'ab', ...more } },
    })
    expect(await node.call('POST', 'commits', { commits: [commit] })).toMatchObject({ status: 200 })
    await mkdir(dirname(pathOf(key)), { recursive: true })
    if (payloads !== undefined) await writeRaw(pathOf(key), seq, payloads)
    return pathOf(key)
  }
  const compare = (body: object = { definition: changed }, client: Pick<TestAccount, 'post'> = account) =>
    client.post(`/v1/views/${view.id}/compare`, body)
  return { account, destination, endpoint, newEndpoint, node, view, deliver, compare }
}

/** Writes raw Parquet as delivery does. */
async function writeRaw(path: string, seq: number, payloads: readonly string[]): Promise<void> {
  const records = payloads.map((text) => Buffer.from(text))
  await withTable(dirname(path), seq, records, (table) => table.writeRaw(path))
}

const detailOf = (answer: { readonly status: number; readonly body: { readonly detail: string } }, status: number) => {
  expect(answer.status, JSON.stringify(answer.body)).toBe(status)
  return answer.body.detail
}

describe('POST /v1/views/{id}/compare', () => {
  test('200 with what a definition makes of stored records beside the published one', async () => {
    const { compare, deliver, endpoint, view } = await furnished()
    await deliver(1, ['{"a":1,"b":"x"}', '{"a":2}', '{"a":"many"}', '{'])
    const answer = await compare()
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const place = { endpoint_id: endpoint.id, segment_seq: 1, is_cut: false, record_base64: null }
    expect(answer.body).toMatchObject({
      ...{ view_name: 'events', records_stored: 4, records_read: 4, is_complete: true, bounded_by: [], is_same: false },
      endpoints: [{ endpoint_id: endpoint.id, endpoint_name: 'shop', records_stored: 4, records_read: 4 }],
      before: {
        ...{ view_id: view.id, version: 1, rows: 3, accepted: 3, dropped: 0, dlq: 1, cast_nulls: 0 },
        dead_letters: [{ error_code: 'invalid_json', column: null, records: 1 }],
      },
      after: {
        ...{ view_id: null, version: null, rows: 1, accepted: 1, dropped: 1, dlq: 2 },
        dead_letters: [
          { error_code: 'cast_failed', column: 'a', records: 1 },
          { error_code: 'invalid_json', column: null, records: 1 },
        ],
      },
      columns: [
        { name: 'a', before: { type: 'VARCHAR', nulls: 0 }, after: { type: 'BIGINT', nulls: 0 }, values_differ: 0 },
        { name: 'b', before: null, after: { type: 'VARCHAR', nulls: 0 } },
      ],
    })
    expect(answer.body.outcome_changes).toHaveLength(2)
    expect(answer.body.outcome_changes).toEqual(
      expect.arrayContaining([
        {
          ...{ before: 'accepted', after: 'dlq', records: 1 },
          samples: [
            {
              ...{ ...place, record_index: 2, record: '{"a":"many"}', commit_id: expect.any(String), reason_before: null },
              dropped_by: null,
              reason_after: {
                ...{ error_code: 'cast_failed', column: 'a' },
                message: 'the value "many" of column "a" is not of type BIGINT',
              },
            },
          ],
        },
        {
          ...{ before: 'accepted', after: 'dropped', records: 1 },
          samples: [
            {
              ...{ ...place, record_index: 1, record: '{"a":2}', commit_id: expect.any(String) },
              ...{ reason_before: null, reason_after: null, dropped_by: 'filter' },
            },
          ],
        },
      ]),
    )
  })

  test('200 with the draft, with a version, with text, and the other way round', async () => {
    const { account, compare, deliver, view } = await furnished()
    await deliver(1, ['{"a":1}', '{"a":"x"}'])
    expect(detailOf(await compare({}), 422)).toContain('the view has no draft')
    const { body: draft } = await account.post(`/v1/views/${view.id}/versions`)
    await account.patch(`/v1/views/${draft.id}`, { definition: changed })
    const expected = { before: { version: 1, dlq: 0 }, after: { view_id: draft.id, version: 2, dlq: 1 } }
    expect((await account.post(`/v1/views/${draft.id}/compare`)).body).toMatchObject(expected)
    expect((await compare({})).body).toMatchObject(expected)
    expect((await compare({ version: 2 })).body).toMatchObject(expected)
    const text = 'columns:\n  - { name: a, type: BIGINT, path: $.a }\n'
    expect((await compare({ definition: text, format: 'yaml' })).body).toMatchObject({ after: { version: null, cast_nulls: 1 } })
    expect(detailOf(await compare({ version: 1 }), 422)).toContain('no other published version')
    expect(detailOf(await compare({ definition: changed, base_version: 2 }), 422)).toContain('version 2 is a draft')
    await account.post(`/v1/views/${draft.id}/publish`)
    expect((await compare({ version: 1 })).body).toMatchObject({ before: { version: 2 }, after: { version: 1 } })
    expect((await compare({ definition: published, base_version: 1 })).body).toMatchObject({
      before: { version: 1 },
      is_same: true,
    })
    expect((await compare({ definition: published })).body).toMatchObject({ before: { version: 2 }, is_same: false })
  })

  test('200 with the newest of each endpoint, of one endpoint, and none older than a day', async () => {
    const { compare, deliver, endpoint, newEndpoint } = await furnished()
    const other = await newEndpoint('kiosk')
    await deliver(1, ['{"a":1}'])
    await deliver(2, ['{"a":2}', '{"a":3}'], {}, other)
    const idle = await newEndpoint('idle')
    const both = (await compare()).body
    expect(
      both.endpoints.toSorted((a: { records_read: number }, b: { records_read: number }) => a.records_read - b.records_read),
    ).toMatchObject([
      { endpoint_id: idle.id, records_stored: 0, records_read: 0 },
      { endpoint_id: endpoint.id, records_stored: 1, records_read: 1 },
      { endpoint_id: other.id, records_stored: 2, records_read: 2 },
    ])
    expect((await compare({ definition: changed, endpoint_id: other.id })).body).toMatchObject({
      records_stored: 2,
      records_read: 2,
    })
    expect((await compare({ definition: changed, endpoint_id: idle.id })).body).toMatchObject({
      ...{ records_stored: 0, records_read: 0, is_complete: true, outcome_changes: [] },
      columns: [{ name: 'a' }, { name: 'b', before: null }],
    })
    await deliver(3, ['{"a":1}'], {}, idle)
    const yesterday = Date.now() - 25 * 3_600_000
    await control().store.db.updateTable('commits').set({ uploaded_at: yesterday }).where('endpoint_id', '=', idle.id).execute()
    expect((await compare({ definition: changed, endpoint_id: idle.id })).body).toMatchObject({
      records_stored: 0,
      records_read: 0,
    })
  })

  test('200 says that it left out segments without raw Parquet, and files that are too large', async () => {
    const { compare, deliver } = await furnished()
    await deliver(1, ['{"a":1}'])
    await deliver(2, undefined)
    expect((await compare()).body).toMatchObject({
      records_stored: 2,
      records_read: 1,
      is_complete: false,
      bounded_by: ['raw_parquet'],
    })
    await deliver(3, ['{"a":1}'], { bytes: 10 ** 9 })
    expect((await compare()).body).toMatchObject({ records_read: 1, bounded_by: ['raw_parquet', 'bytes'] })
  })

  test('200 without files that are gone, whose number it has', async () => {
    const { compare, deliver } = await furnished()
    await deliver(1, ['{"a":1}'])
    for (const seq of [2, 3]) await rm(await deliver(seq, ['{"a":1}', '{"a":2}']))
    const { status, body } = await compare()
    expect([status, body.records_stored, body.records_read, body.is_complete]).toEqual([200, 5, 1, false])
    expect(body).toMatchObject({ bounded_by: ['unread_files'], unread_files: [{ reason: 'gone', files: 2 }] })
  })

  test('403 for a token that may not see records', async () => {
    const { account, compare } = await furnished()
    for (const scope of ['metrics', 'ingest'] as const)
      expect((await compare({ definition: changed }, account.as(scope))).status).toBe(403)
    expect((await compare({ definition: changed }, account.as('query'))).status).toBe(200)
  })

  test('404 for a view or an endpoint of another account', async () => {
    const [mine, theirs] = [await furnished(), await furnished()]
    await theirs.deliver(1, ['{"a":"secret"}'])
    expect((await mine.account.post(`/v1/views/${theirs.view.id}/compare`, { definition: changed })).status).toBe(404)
    for (const endpoint_id of [theirs.endpoint.id, newId()])
      expect(await mine.compare({ definition: changed, endpoint_id })).toMatchObject({
        status: 404,
        body: { error: 'not_found' },
      })
  })

  test('409 says why the records cannot be read, and what to do', async () => {
    const off = await furnished()
    await off.deliver(1, undefined)
    expect(detailOf(await off.compare(), 409)).toContain('add parquet to output_formats of the endpoint')
    const large = await furnished()
    await large.deliver(1, ['{}'], { bytes: 10 ** 9 })
    expect(detailOf(await large.compare(), 409)).toContain('lower segment_bytes')
    const gone = await furnished()
    const path = await gone.deliver(1, ['{}'])
    await rm(path)
    expect(detailOf(await gone.compare(), 409)).toBe(
      'the raw Parquet of the last day cannot be read (1 file no longer in the bucket): keep files for a day, and wait for the next segment',
    )
    await writeFile(path, 'PAR1 not Parquet PAR1')
    expect(detailOf(await gone.compare(), 409)).toContain('cannot be read')
    await rm(path)
    await mkdir(path)
    expect(detailOf(await gone.compare(), 409)).toContain('validate the destination')
  })

  test('422 for a definition that does not compile, with its place', async () => {
    const { compare } = await furnished()
    const text = 'columns:\n  - { name: a, type: INTEGR, path: $.a }\n'
    expect(await compare({ definition: text, format: 'yaml' })).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'definition.columns.0.type', line: 2 }] },
    })
  })

  test.each([
    [{ definition: published, version: 1 }, 'version'],
    [{ version: 7 }, 'version'],
    [{ definition: published, base_version: 7 }, 'base_version'],
    [{ version: 1, base_version: 1 }, 'base_version'],
    [{ endpoint_id: 'x' }, 'endpoint_id'],
    [{ samples: [] }, ''],
  ])('422 for %j', async (body, path) => {
    const { compare } = await furnished()
    const answer = await compare(body)
    expect(answer.status).toBe(422)
    expect(answer.body.errors[0].path).toContain(path)
  })

  test('422 for a view that is attached to no endpoint, unless one is named', async () => {
    const { compare, deliver, endpoint } = await furnished({ attached: false })
    await deliver(1, ['{"a":1}'])
    expect(detailOf(await compare(), 422)).toContain('attached to no endpoint')
    expect((await compare({ definition: changed, endpoint_id: endpoint.id })).body).toMatchObject({ records_read: 1 })
  })

  test('hostile definitions get an error or a part, and delay nobody', { timeout: 60_000 }, async () => {
    const { account, compare, deliver } = await furnished()
    await deliver(
      1,
      Array.from({ length: 300 }, () => JSON.stringify({ a: 'x'.repeat(60_000) })),
    )
    const many = Array.from({ length: 101 }, (_, index) => ({ name: `c${index}`, type: 'VARCHAR', path: '$.a' }))
    expect((await compare({ definition: { columns: many } })).status).toBe(422)
    expect((await compare({ definition: `${' '.repeat(300)}- `.repeat(1_000), format: 'yaml' })).status).toBe(422)
    const expensive = {
      columns: [{ name: 'a', type: 'VARCHAR', path: '$.a' }],
      filters: [{ condition: "regexp_matches(a, '(x?){1000}y')" }],
    }
    const slow = compare({ definition: expensive })
    await until('another definition to be tried meanwhile', async () => {
      const { status, body } = await account.post('/v1/views/preview', { definition: published, samples: ['{"a":1}'] })
      return status === 200 && body.rowCount === 1
    })
    const answer = await slow
    expect([200, 422]).toContain(answer.status)
    if (answer.status === 200) expect(answer.body).toMatchObject({ is_complete: false, bounded_by: ['time'] })
    else expect(answer.body.detail).toMatch(/comparing the first records took longer than 10 s|the comparison failed/)
  })

  test('429 for more comparisons at once than an account may have', async () => {
    const { compare, deliver } = await furnished()
    await deliver(1, Array(500).fill('{"a":1}'))
    const answers = await Promise.all(Array.from({ length: 6 }, () => compare()))
    const statuses = answers.map(({ status }) => status)
    expect(statuses).toContain(200)
    expect(statuses).toContain(429)
  })
})

describe('inlet plan --data', () => {
  const setUp = (region: string, type: string, more = '') => `
endpoints:
  - { name: shop, region: ${region}, destination: lake }
views:
  - name: events
    definition:
      columns:
        - { name: a, type: ${type}, path: $.a, cast_failures: dlq }${more}
bindings:
  - { endpoint: shop, view: events }
`

  async function withSetUp() {
    const place = await furnished()
    const directory = await mkdtemp(join(tmpdir(), 'inlet-plan-'))
    const file = join(directory, 'shop.yaml')
    const environment = { INLET_URL: control().url, INLET_API_KEY: place.account.api_key, HOME: directory }
    const inlet = (...args: readonly string[]) => runCli(args, { environment })
    const plan = (...args: readonly string[]) => inlet('plan', '-f', file, '--data', ...args)
    const write = (type: string, more?: string) => writeFile(file, setUp(place.endpoint.region, type, more))
    return { ...place, inlet, plan, write, [Symbol.asyncDispose]: () => rm(directory, { recursive: true }) }
  }

  test('shows what a changed view makes of stored records', async () => {
    await using place = await withSetUp()
    await place.deliver(1, ['{"a":1,"b":"x"}', '{"a":"\\u001b[31mred"}', '{"a":"3.0"}'])
    await place.write('BIGINT', '\n        - { name: b, type: VARCHAR, path: $.b }')
    const { code, out, err } = await place.plan()
    expect([code, err]).toEqual([0, ''])
    expect(out).toContain('~ view events')
    const [, shown = ''] = out.split('On stored records:\n\n')
    expect(shown.replace(/since \S+ were/, 'since yesterday were')).toBe(`  view events: version 1 → the changed definition
  3 of the 3 records delivered since yesterday were read
  endpoint shop

                   before  after
  rows             3       2      -1
  dropped          0       0
  dead letters     0       1      +1
    cast_failed a  0       1      +1
  became NULL      0       0

  ~  a  VARCHAR → BIGINT, another value in 1 row
  +  b  new, VARCHAR, NULL in 50 %

  1 record: accepted → dead letter
    shop segment 1, record 1: the value "\\u001B[31mred" of column "a" is not of type BIGINT
      {"a":"\\u001b[31mred"}

  a: another value in 1 row
    shop segment 1, record 2: "3.0" → "3"
      {"a":"3.0"}
`)
    const json = await place.plan('--json')
    const { comparisons, changes } = JSON.parse(json.out)
    expect(changes).toHaveLength(2)
    expect(comparisons).toMatchObject([{ view: 'events', problem: null, comparison: { after: { rows: 2, dlq: 1 } } }])
  })

  test('says that a window is not applied', async () => {
    await using place = await withSetUp()
    await place.deliver(1, ['{"a":1}', '{"a":1}'])
    await place.deliver(2, ['{"a":1}'])
    await place.write('BIGINT', '\n      dedupe_by: [a]\n      dedupe_within: 24h')
    const { out } = await place.plan()
    expect(out).toMatch(/duplicate rows +0 +1 +\+1/)
    expect(out).toContain(
      'dedupe_within (24h) is not applied: rows are compared with those of their segment, so delivery may leave out more.',
    )
    const { comparisons } = JSON.parse((await place.plan('--json')).out)
    expect(comparisons).toMatchObject([{ comparison: { before: { dedupe_within: null }, after: { dedupe_within: '24h' } } }])
  })

  test('says which files are gone', async () => {
    await using place = await withSetUp()
    await place.deliver(1, ['{"a":1}'])
    await rm(await place.deliver(2, ['{"a":2}']))
    await place.write('BIGINT')
    const { out } = await place.plan()
    expect(out).toContain('were read (files that cannot be read)\n  left out: 1 file no longer in the bucket\n')
  })

  test('says why a view is not compared, and goes on', async () => {
    await using place = await withSetUp()
    await place.deliver(1, undefined)
    await place.write('BIGINT', '\n  - name: fresh\n    definition: { columns: [{ name: a, type: VARCHAR, path: $.a }] }')
    const { code, out } = await place.plan()
    expect(code).toBe(0)
    expect(out).toContain('view events: the segments of the last day have no raw Parquet')
    expect(out).toContain('view fresh: no version is published that it could be compared with')
    expect(JSON.parse((await place.plan('--json')).out).comparisons).toMatchObject([
      { view: 'events', comparison: null, problem: expect.stringContaining('add parquet to output_formats') },
      { view: 'fresh', comparison: null },
    ])
  })

  test('shows rows of elements that are lost, and where values are not compared', async () => {
    await using place = await withSetUp()
    await place.deliver(1, ['{"a":[{"n":1},{"n":1},{"n":2}]}', '{"a":[]}'])
    const column = { name: 'n', type: 'BIGINT', path: '$item.n' }
    const expanded = { expand: '$.a[*]', columns: [column] }
    const versions = [expanded, { ...expanded, dedupe_by: ['n'], filters: [{ condition: 'n < 2' }] }]
    for (const definition of versions) {
      const { body: draft } = await place.account.post(`/v1/views/${place.view.id}/versions`)
      await place.account.patch(`/v1/views/${draft.id}`, { definition })
      expect((await place.account.post(`/v1/views/${draft.id}/publish`)).status).toBe(200)
    }
    const { out } = await place.inlet('views', 'compare', 'events', '--set', 'version=3', '--set', 'base_version=2')
    expect(out.replace(/since \S+ were/, 'since yesterday were')).toBe(`view events: version 2 → version 3
2 of the 2 records delivered since yesterday were read
endpoint shop

                before  after
rows            3       1      -2
duplicate rows  0       1      +1
dropped         1       1
dead letters    0       0
became NULL     0       0

2 rows of accepted records: only before
  shop segment 1, record 0, element 1: a duplicate
    {"a":[{"n":1},{"n":1},{"n":2}]}
  shop segment 1, record 0, element 2: a filter
    {"a":[{"n":1},{"n":1},{"n":2}]}
`)
    const other = await place.inlet('views', 'compare', 'events', '--set', 'version=2', '--set', 'base_version=1')
    expect(other.out).toContain(
      'Values are not compared: before there was a row for each record, and after there is a row for each element of $.a[*].',
    )
  })

  test('inlet views compare shows the same of a version', async () => {
    await using place = await withSetUp()
    await place.deliver(1, ['{"a":1}', '{"a":"x"}'])
    const { body: draft } = await place.account.post(`/v1/views/${place.view.id}/versions`)
    await place.account.patch(`/v1/views/${draft.id}`, { definition: changed })
    const { code, out, err } = await place.inlet('views', 'compare', 'events', '--set', 'endpoint=shop')
    expect([code, err]).toEqual([0, ''])
    expect(out).toContain('view events: version 1 → version 2')
    expect(out).toContain('1 record: accepted → dead letter')
    const json = await place.inlet('views', 'compare', 'events', '--json')
    expect(JSON.parse(json.out)).toMatchObject({ after: { version: 2, dlq: 1 } })
  })
})
