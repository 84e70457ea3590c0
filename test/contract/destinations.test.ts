import { readdirSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { newId } from '#model/id.ts'
import { newControl, type TestAccount, testWithAccount, useControl } from '../support/control.ts'

const control = useControl()
const test = testWithAccount(control)

const aDestination = (more: object = {}) => ({
  name: 'lake',
  bucket: `bucket-${newId()}`,
  region: 'eu-central-1',
  role_arn: 'arn:aws:iam::123456789012:role/ingest',
  ...more,
})

async function made(account: TestAccount, more: object = {}) {
  const { status, body } = await account.post('/v1/destinations', aDestination(more))
  expect(status).toBe(201)
  return body
}

describe('POST /v1/destinations', () => {
  test('201 starts pending, with defaults', async ({ account }) => {
    const answer = await account.post('/v1/destinations', aDestination())
    expect(answer).toMatchObject({
      status: 201,
      body: { status: 'pending', validated_at: null, last_error: null, prefix: '', path_style: false, kms_key_arn: null },
    })
    expect(answer.body).not.toHaveProperty('ref_count')
    expect(answer.body.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  })

  test('201 has the policies to paste, with the external id of the account', async () => {
    await using own = await newControl({ environment: { INLET_AWS_PRINCIPAL_ARN: 'arn:aws:iam::210987654321:role/inlet' } })
    const account = await own.newAccount()
    const { body } = await account.post('/v1/destinations', aDestination({ bucket: 'lake', prefix: '/raw/' }))
    expect(body.trust_policy).toEqual({
      Version: '2012-10-17',
      Statement: [
        {
          Sid: 'InletAssumesThisRole',
          Effect: 'Allow',
          Principal: { AWS: 'arn:aws:iam::210987654321:role/inlet' },
          Action: 'sts:AssumeRole',
          Condition: { StringEquals: { 'sts:ExternalId': body.external_id } },
        },
      ],
    })
    expect(body.bucket_policy.Statement[0]).toMatchObject({
      Principal: { AWS: 'arn:aws:iam::123456789012:role/ingest' },
      Resource: 'arn:aws:s3:::lake/raw/*',
    })
    const { trust_policy, bucket_policy } = body
    for (const path of ['/v1/destinations', `/v1/destinations/${body.id}`]) {
      const { body: read } = await account.get(path)
      expect(read.items?.[0] ?? read).toMatchObject({ trust_policy, bucket_policy })
    }
  })

  test('201 has the same external id for all destinations of an account, and another one for other accounts', async () => {
    const [one, two] = [await control().newAccount(), await control().newAccount()]
    const [a, b, c] = [await made(one), await made(one, { name: 'second' }), await made(two)]
    expect(a.external_id).toBe(b.external_id)
    expect(a.external_id).not.toBe(c.external_id)
  })

  test.each([
    ['/a//b/', 'a//b'],
    ['//a///b c//', 'a///b c'],
    ['///', ''],
    ['a', 'a'],
  ])('201 removes the outer slashes of the prefix %s', async (prefix, normalized) => {
    expect((await made(await control().newAccount(), { prefix })).prefix).toBe(normalized)
  })

  test.each([
    ['ab', 'a'.repeat(64), 'Lake', '-lake', 'lake-', '.lake', 'la ke'],
    ['la..ke', '192.168.5.4', '1.2.3.4', 'xn--lake', 'sthree-lake', 'amzn-s3-demo-lake'],
    ['lake-s3alias', 'lake--ol-s3', 'lake.mrap', 'lake--euc1-az1--x-s3', 'lake--table-s3'],
  ])('422 for names that S3 does not allow for a bucket: %s, %s, …', async (...buckets) => {
    const account = await control().newAccount()
    for (const bucket of buckets) {
      const answer = await account.post('/v1/destinations', aDestination({ bucket }))
      expect(answer, bucket).toMatchObject({ status: 422, body: { errors: [{ path: 'bucket' }] } })
    }
  })

  test('201 for other names of buckets', async ({ account }) => {
    for (const bucket of ['abc', 'a'.repeat(63), '1-2-3', '1.2.3', '1.2.3.4.5', 'lake.example.com', 'lake-s3alias-2'])
      expect((await made(account, { name: bucket, bucket })).bucket).toBe(bucket)
  })

  test('409 if the name is used in the account; names of other accounts do not matter', async ({ account }) => {
    await made(account)
    expect(await account.post('/v1/destinations', aDestination())).toMatchObject({ status: 409, body: { error: 'conflict' } })
    await made(await control().newAccount())
  })

  test('422 for a prefix below which no object could be written, also in a change', async ({ account }) => {
    const { id } = await made(account)
    for (const prefix of ['ü'.repeat(301), `a/${'b'.repeat(256)}`, '%'.repeat(86), 'a/../b', 'a\u0000b', 'p'.repeat(513)]) {
      const refused = { status: 422, body: { errors: [{ path: 'prefix' }] } }
      expect(await account.post('/v1/destinations', aDestination({ name: 'other', prefix })), prefix).toMatchObject(refused)
      expect(await account.patch(`/v1/destinations/${id}`, { prefix }), prefix).toMatchObject(refused)
    }
    // As long as allowed, it validates.
    const prefix = `${'b'.repeat(255)}/${'%'.repeat(85)}/${'ü'.repeat(64)}`
    expect(await account.patch(`/v1/destinations/${id}`, { prefix })).toMatchObject({ status: 200, body: { prefix } })
    expect(await account.post(`/v1/destinations/${id}/validate`)).toMatchObject({ body: { status: 'valid', last_error: null } })
  })

  test('422 names a field that is given twice', async ({ account }) => {
    const { body: token } = await control().call('POST', '/v1/token/exchange', { api_key: account.api_key, scope: 'admin' })
    const headers = { authorization: `Bearer ${token.access_token}`, 'content-type': 'application/json' }
    const text = JSON.stringify(aDestination()).replace('{', '{"prefix":"a","prefix":"b",')
    expect(await control().call('POST', '/v1/destinations', text, headers)).toMatchObject({
      status: 422,
      body: { detail: 'prefix: must be given once, and has several values', errors: [{ path: 'prefix' }] },
    })
    const preview = '{"definition":{"columns":[{"name":"a","path":"$.a","path":"$.b"}]},"samples":["{}"]}'
    expect(await control().call('POST', '/v1/views/preview', preview, headers)).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'definition.columns.0.path' }] },
    })
    expect((await account.get('/v1/destinations')).body.total).toBe(0)
  })

  test('422 names each invalid field', async ({ account }) => {
    const bad = {
      name: ' ',
      bucket: 'No_Bucket',
      region: 'EU!',
      role_arn: 'nobody',
      prefix: 'a/../b',
      path_style: 'yes',
      surprise: 1,
    }
    const answer = await account.post('/v1/destinations', bad)
    expect(answer).toMatchObject({ status: 422, body: { error: 'validation_error' } })
    expect(answer.body.errors.map(({ path }: { path: string }) => path).sort()).toEqual(Object.keys(bad).sort())
  })
})

describe('GET /v1/destinations', () => {
  test('200 pages newest first, with ref_count, to a null next_offset', async ({ account }) => {
    for (const name of ['a', 'b', 'c']) {
      await made(account, { name })
      control().clock.advance(1)
    }
    const first = await account.get('/v1/destinations?limit=2')
    expect(first).toMatchObject({ status: 200, body: { total: 3, limit: 2, offset: 0, next_offset: 2 } })
    expect(first.body.items[0].ref_count).toBe(0)
    const last = await account.get('/v1/destinations?limit=2&offset=2')
    expect(last).toMatchObject({ status: 200, body: { total: 3, next_offset: null } })
    const names = [...first.body.items, ...last.body.items].map(({ name }) => name)
    expect(names).toEqual(['c', 'b', 'a'])
    expect(await account.get('/v1/destinations?offset=99')).toMatchObject({ status: 200, body: { items: [], next_offset: null } })
  })
})

describe('GET /v1/destinations/{id}', () => {
  test('200 counts the endpoints that use it', async ({ account }) => {
    const { id } = await made(account)
    expect(await account.get(`/v1/destinations/${id}`)).toMatchObject({ status: 200, body: { id, ref_count: 0 } })
    await account.post('/v1/endpoints', { region: 'loc', destination_id: id })
    expect(await account.get(`/v1/destinations/${id}`)).toMatchObject({ status: 200, body: { ref_count: 1 } })
  })

  test('404 for what is no id', async ({ account }) => {
    expect(await account.get('/v1/destinations/no-uuid')).toMatchObject({ status: 404, body: { error: 'not_found' } })
  })
})

describe('PATCH /v1/destinations/{id}', () => {
  async function validated() {
    const account = await control().newAccount()
    const { id } = await made(account, { prefix: 'p' })
    expect(await account.post(`/v1/destinations/${id}/validate`)).toMatchObject({ status: 200, body: { status: 'valid' } })
    return { account, path: `/v1/destinations/${id}` }
  }

  test('200 with only a name keeps the status', async () => {
    const { account, path } = await validated()
    expect(await account.patch(path, { name: 'new' })).toMatchObject({ status: 200, body: { name: 'new', status: 'valid' } })
  })

  test.each([
    { bucket: 'another' },
    { prefix: 'q' },
    { region: 'us-east-1' },
    { role_arn: 'arn:aws:iam::123456789012:role/other' },
    { kms_key_arn: 'arn:aws:kms:eu-central-1:123456789012:key/abc' },
    { encryption: 'bucket-default' },
    { checksums: 'none' },
    { path_style: true },
  ])('200 with %j makes it pending', async (change) => {
    const { account, path } = await validated()
    const answer = await account.patch(path, change)
    expect(answer).toMatchObject({ status: 200, body: { ...change, status: 'pending', validated_at: null } })
  })

  test('200 with unchanged values keeps the status', async () => {
    const { account, path } = await validated()
    expect(await account.patch(path, { prefix: '/p/', path_style: false })).toMatchObject({
      status: 200,
      body: { status: 'valid' },
    })
    expect(await account.patch(path, {})).toMatchObject({ status: 200, body: { status: 'valid' } })
  })

  const kms_key_arn = 'arn:aws:kms:eu-central-1:123456789012:key/abc'

  test('200 with kms_key_arn null restores SSE-S3', async ({ account }) => {
    const { id } = await made(account, { kms_key_arn })
    const restored = { encryption: 'sse-s3', kms_key_arn: null }
    expect(await account.patch(`/v1/destinations/${id}`, { kms_key_arn: null })).toMatchObject({ body: restored })
  })

  test('200: a key implies the encryption kms, and another encryption removes the key', async ({ account }) => {
    const { id, encryption } = await made(account, { kms_key_arn })
    expect(encryption).toBe('kms')
    const path = `/v1/destinations/${id}`
    expect(await account.patch(path, { encryption: 'kms' })).toMatchObject({ body: { encryption: 'kms', kms_key_arn } })
    const without = { encryption: 'bucket-default', kms_key_arn: null }
    expect(await account.patch(path, { encryption: 'bucket-default' })).toMatchObject({ body: without })
    expect(await account.patch(path, { kms_key_arn: null })).toMatchObject({ body: without })
  })

  test.each([
    [{ encryption: 'kms' }, 'must be the ARN of a KMS key, because the encryption is kms'],
    [{ encryption: 'sse-s3', kms_key_arn }, 'must be null: the encryption is sse-s3, which has no key of its own'],
  ])('422 with %j, also for a new destination', async (change, message) => {
    const account = await control().newAccount()
    const { id } = await made(account)
    const wrong = { status: 422, body: { errors: [{ path: 'kms_key_arn', message }] } }
    expect(await account.patch(`/v1/destinations/${id}`, change)).toMatchObject(wrong)
    expect(await account.post('/v1/destinations', { ...aDestination({ name: 'other' }), ...change })).toMatchObject(wrong)
  })

  test('409, 422', async ({ account }) => {
    await made(account, { name: 'taken' })
    const { id } = await made(account)
    const path = `/v1/destinations/${id}`
    expect(await account.patch(path, { name: 'taken' })).toMatchObject({ status: 409, body: { error: 'conflict' } })
    expect(await account.patch(path, { external_id: 'mine', bucket: '!' })).toMatchObject({ status: 422 })
    expect(await account.patch(path, [])).toMatchObject({ status: 422 })
  })
})

describe('DELETE /v1/destinations/{id}', () => {
  test('204, and 404 afterwards', async ({ account }) => {
    const { id } = await made(account)
    expect(await account.delete(`/v1/destinations/${id}`)).toMatchObject({ status: 204, body: '' })
    expect(await account.delete(`/v1/destinations/${id}`)).toMatchObject({ status: 404 })
  })

  test('409 while an endpoint uses it', async ({ account }) => {
    const { id } = await made(account)
    const { body: endpoint } = await account.post('/v1/endpoints', { region: 'loc', destination_id: id })
    expect(await account.delete(`/v1/destinations/${id}`)).toMatchObject({ status: 409, body: { error: 'conflict' } })
    await account.patch(`/v1/endpoints/${endpoint.id}`, { destination_id: null })
    expect(await account.delete(`/v1/destinations/${id}`)).toMatchObject({ status: 204 })
  })

  test('only one of two concurrent requests, deleting and binding it, succeeds', async ({ account }) => {
    for (let round = 0; round < 10; round += 1) {
      const { id } = await made(account, { name: `round ${round}` })
      const [removal, binding] = await Promise.all([
        account.delete(`/v1/destinations/${id}`),
        account.post('/v1/endpoints', { region: 'loc', destination_id: id }),
      ])
      expect([
        [204, 422],
        [409, 201],
      ]).toContainEqual([removal.status, binding.status])
    }
  })
})

describe('POST /v1/destinations/{id}/validate', () => {
  test('200 writes and deletes a test object', async ({ account }) => {
    const { id, bucket } = await made(account, { prefix: 'deep/down' })
    const answer = await account.post(`/v1/destinations/${id}/validate`)
    expect(answer).toMatchObject({ status: 200, body: { status: 'valid', last_error: null } })
    expect(Date.parse(answer.body.validated_at)).toBeGreaterThan(0)
    expect(answer.body).not.toHaveProperty('ref_count')
    // A directory has neither roles nor keys.
    const passed = { outcome: 'passed', message: null, effect: null, setting: null, value: null }
    expect(answer.body.steps).toEqual(['write', 'list', 'read', 'if_absent', 'delete'].map((step) => ({ step, ...passed })))
    const left = readdirSync(join(control().directory, 'buckets', bucket), { recursive: true, withFileTypes: true })
    expect(left.filter((entry) => entry.isFile())).toEqual([])
  })

  test('200 with last_error, still pending, if the bucket rejects the write', async ({ account }) => {
    const { id, bucket } = await made(account)
    const buckets = join(control().directory, 'buckets')
    await mkdir(buckets, { recursive: true })
    // A file in place of the bucket's folder.
    writeFileSync(join(buckets, bucket), '')
    const answer = await account.post(`/v1/destinations/${id}/validate`)
    expect(answer).toMatchObject({ status: 200, body: { status: 'pending', validated_at: null } })
    expect(answer.body.last_error).toMatch(/^writing .* failed \([A-Z]+\); check/)
    expect(answer.body.last_error).not.toContain(control().directory)
    expect(answer.body.steps).toMatchObject([
      { step: 'write', outcome: 'failed', message: answer.body.last_error, setting: 'installation' },
      ...['list', 'read', 'if_absent', 'delete'].map((step) => ({ step, outcome: 'skipped', message: null })),
    ])
  })

  test('429 with Retry-After within 30 seconds; 200 afterwards', async ({ account }) => {
    const { id } = await made(account)
    expect(await account.post(`/v1/destinations/${id}/validate`)).toMatchObject({ status: 200 })
    const answer = await account.post(`/v1/destinations/${id}/validate`)
    expect(answer).toMatchObject({ status: 429, body: { error: 'too_many_requests', retry: true } })
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    control().clock.advance(30_001)
    expect(await account.post(`/v1/destinations/${id}/validate`)).toMatchObject({ status: 200 })
  })

  test('one of two concurrent requests is rejected', async ({ account }) => {
    const { id } = await made(account)
    const both = await Promise.all([1, 2].map(() => account.post(`/v1/destinations/${id}/validate`)))
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 429])
  })
})

describe('GET /v1/object-store', () => {
  test('200 has the external id of the account, and settings that fit a directory', async ({ account }) => {
    const answer = await account.as('metrics').get('/v1/object-store')
    expect(answer).toMatchObject({ status: 200, body: { kind: 'directory', principal_arn: null } })
    const { suggested, external_id } = answer.body
    expect(await made(account, suggested)).toMatchObject({ ...suggested, external_id })
  })
})
