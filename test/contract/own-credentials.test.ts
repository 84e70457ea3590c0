/** Destinations in stores whose buckets are opened by the credentials of the installation. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { newId } from '#model/id.ts'
import { clientOf, newControl, newRegion, operatorToken, type TestAccount, type TestControl } from '../support/control.ts'
import { doubleCredentials, type Role, S3Double } from '../support/s3/double.ts'
import { TestNode } from '../support/test-node.ts'

let double: S3Double
let own: Role
let control: TestControl
const environment = () => ({
  ...{ INLET_OBJECT_STORE: 's3', INLET_S3_ENDPOINT: double.url, INLET_S3_CREDENTIALS: 'own', INLET_S3_REGION: 'auto' },
})

beforeAll(async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', doubleCredentials.accessKeyId)
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', doubleCredentials.secretAccessKey)
  vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true')
  double = await S3Double.start()
  own = double.withoutRoles()
  control = await newControl({ environment: environment() })
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await double[Symbol.asyncDispose]()
  vi.unstubAllEnvs()
})

const operator = () => clientOf(control.call, operatorToken)
const allow = (account: TestAccount, ...allowed_buckets: string[]) =>
  operator().patch(`/v1/accounts/${account.account_id}`, { allowed_buckets })

/** A destination, and its bucket. */
async function made(account: TestAccount, bucket = `lake-${newId()}`, change = {}) {
  const { suggested } = (await account.get('/v1/object-store')).body
  const wished = { name: newId(), bucket, prefix: 'raw', ...suggested, ...change }
  const { body } = await account.post('/v1/destinations', wished)
  if (!double.buckets.has(bucket)) double.addBucket(bucket, 'auto')
  return body
}

async function validated(account: TestAccount, id: string) {
  control.clock.advance(30_000)
  const { body } = await account.post(`/v1/destinations/${id}/validate`)
  const failed = body.steps.find(({ outcome }: { readonly outcome: string }) => outcome === 'failed')
  return { status: body.status, names: body.steps.map(({ step }: { readonly step: string }) => step), failed }
}

describe('PATCH /v1/accounts/{id} allowed_buckets', () => {
  test('200 with the list, which only the account itself and the operator see', async () => {
    const account = await control.newAccount()
    expect((await operator().get(`/v1/accounts/${account.account_id}`)).body).toMatchObject({ allowed_buckets: [] })
    const bucket = `lake-${newId()}`
    expect(await allow(account, `/${bucket}/raw/`, bucket.replace('lake', 'pond'))).toMatchObject({ status: 200 })
    const allowed_buckets = [`${bucket}/raw`, bucket.replace('lake', 'pond')]
    expect((await operator().get(`/v1/accounts/${account.account_id}`)).body).toMatchObject({ allowed_buckets })
    expect((await account.get('/v1/object-store')).body).toMatchObject({ kind: 'gateway', has_roles: false, allowed_buckets })
    const other = await control.newAccount()
    expect((await other.get('/v1/object-store')).body).toMatchObject({ allowed_buckets: [] })
  })

  test('409 for what is below, above or the same as an entry of another account', async () => {
    const [account, other] = [await control.newAccount(), await control.newAccount()]
    const bucket = `lake-${newId()}`
    await allow(account, `${bucket}/raw`)
    for (const taken of [bucket, `${bucket}/raw`, `${bucket}/raw/deeper`]) {
      const detail = expect.stringContaining(`${taken} overlaps ${bucket}/raw`)
      expect(await allow(other, `${bucket}-2`, taken)).toMatchObject({ status: 409, body: { error: 'conflict', detail } })
    }
    expect((await operator().get(`/v1/accounts/${other.account_id}`)).body).toMatchObject({ allowed_buckets: [] })
    expect(await allow(other, `${bucket}/raw2`, `${bucket}-2`)).toMatchObject({ status: 200 })
  })

  test.each(['', 'Lake', 'lake/../pond', 'lake//raw', 's3://lake', 'lake/a\\b', 'lake/./a'])('422 for %j', async (entry) => {
    const account = await control.newAccount()
    const error = { path: 'allowed_buckets.0', message: expect.stringContaining('lake/raw') }
    expect(await allow(account, entry)).toMatchObject({ status: 422, body: { errors: [error] } })
  })
})

describe('destinations with credentials of the installation', () => {
  test('are created without a role, with the settings that are suggested', async () => {
    const account = await control.newAccount()
    const { suggested } = (await account.get('/v1/object-store')).body
    expect(suggested).toEqual({
      region: 'auto',
      role_arn: null,
      encryption: 'bucket-default',
      checksums: 'none',
      path_style: true,
    })
    const policies = { role_arn: null, trust_policy: null, bucket_policy: null }
    expect(await made(account)).toMatchObject({ ...suggested, ...policies, status: 'pending' })
  })

  test('a validation names the entry that is missing, and passes once it is there', async () => {
    const account = await control.newAccount()
    const { id, bucket } = await made(account)
    const before = await validated(account, id)
    const setting = { step: 'allowlist', setting: 'allowlist', value: `${bucket}/raw` }
    expect(before).toMatchObject({ status: 'pending', failed: setting })
    expect(before.failed.message).toContain(`has not allowed this account to use ${bucket}/raw`)
    await allow(account, bucket)
    const steps = ['allowlist', 'write', 'list', 'read', 'if_absent', 'multipart', 'delete']
    expect(await validated(account, id)).toEqual({ status: 'valid', names: steps, failed: undefined })
    expect([...(double.buckets.get(bucket)?.objects.keys() ?? [])]).toEqual([])
  })

  test('the entry of one account does not let another one in, and no request reaches the store', async () => {
    const [owner, stranger] = [await control.newAccount(), await control.newAccount()]
    const { id, bucket } = await made(owner)
    await allow(owner, `${bucket}/raw`)
    expect(await validated(owner, id)).toMatchObject({ status: 'valid' })
    await allow(stranger, `${bucket}/mine`)
    const sent = double.calls.length
    for (const prefix of ['raw', 'raw/deeper', '', 'min', 'mine2']) {
      const { id: theirs } = await made(stranger, bucket, { prefix })
      expect(await validated(stranger, theirs)).toMatchObject({ status: 'pending', failed: { step: 'allowlist' } })
    }
    expect(double.calls.length).toBe(sent)
  })

  test('nodes are told what the account may use, and hear of a change', async () => {
    const account = await control.newAccount()
    const { id, bucket } = await made(account)
    const region = newRegion()
    await account.post('/v1/endpoints', { region, destination_id: id })
    const node = await TestNode.register(control, region)
    const told = async () => (await node.snapshot()).endpoints[0]?.destination?.allowed_buckets
    expect(await told()).toEqual([])
    await allow(account, bucket)
    expect(await told()).toEqual([bucket])
    await allow(account)
    expect(await told()).toEqual([])
  })

  test.each([
    [
      'encryption',
      { encryption: 'sse-s3' },
      'bucket-default',
      'the store rejects server-side encryption: set encryption to bucket-default',
    ],
    ['checksums', { checksums: 'standard' }, 'none', 'the store rejects checksums: set checksums to none'],
  ])('a validation names %s if the store rejects its header', async (setting, change, value, advice) => {
    const account = await control.newAccount()
    const { id, bucket } = await made(account, undefined, change)
    await allow(account, bucket)
    const { failed } = await validated(account, id)
    expect(failed).toMatchObject({ step: 'write', setting, value, message: expect.stringContaining(advice) })
    await account.patch(`/v1/destinations/${id}`, { [setting]: value })
    expect(await validated(account, id)).toMatchObject({ status: 'valid' })
  })

  test('a permission that is missing is for the operator to give', async () => {
    const account = await control.newAccount()
    const { id, bucket } = await made(account)
    await allow(account, bucket)
    own.denied.add('DeleteObject')
    const { status, failed } = await validated(account, id)
    own.denied.delete('DeleteObject')
    expect(status).toBe('pending')
    expect(failed).toMatchObject({ step: 'delete', setting: 'installation' })
    expect(failed.message).toContain('the credentials of this installation must be allowed s3:DeleteObject')
  })
})

describe('INLET_S3_BUCKETS', () => {
  test('the first start allows the buckets, and creates a destination that is valid', async () => {
    const bucket = `lake-${newId()}`
    double.addBucket(bucket, 'auto')
    const INLET_S3_BUCKETS = `${bucket}/raw,pond-${newId()}`
    const INLET_BOOTSTRAP_API_KEY = `ing_live_${'a'.repeat(32)}`
    await using first = await newControl({ environment: { ...environment(), INLET_S3_BUCKETS, INLET_BOOTSTRAP_API_KEY } })
    const { items } = (await clientOf(first.call, operatorToken).get('/v1/accounts')).body
    expect(items).toMatchObject([{ allowed_buckets: INLET_S3_BUCKETS.split(',') }])
    const exchange = { api_key: INLET_BOOTSTRAP_API_KEY, scope: 'metrics' }
    const { access_token } = (await first.call('POST', '/v1/token/exchange', exchange)).body
    const destinations = (await clientOf(first.call, access_token).get('/v1/destinations')).body.items
    expect(destinations).toMatchObject([{ bucket, prefix: 'raw', region: 'auto', encryption: 'bucket-default', status: 'valid' }])
  })
})
