/** Destinations on S3: validation, the first start, downloads. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { newId } from '#model/id.ts'
import { clientOf, newControl, operatorToken, type TestAccount, type TestControl } from '../support/control.ts'
import { s3Errors, stsErrors } from '../support/s3/answers.ts'
import { doubleCredentials, type Fault, type Operation, S3Double } from '../support/s3/double.ts'

const principal = 'arn:aws:iam::111111111111:user/inlet'
const allPassed = {
  assume_role: 'passed',
  kms: 'passed',
  write: 'passed',
  list: 'passed',
  read: 'passed',
  if_absent: 'passed',
  multipart: 'passed',
  delete: 'passed',
}
const kms_key_arn = 'arn:aws:kms:eu-central-1:222222222222:key/1234abcd'
let double: S3Double
let control: TestControl

const environment = () => ({
  INLET_OBJECT_STORE: 's3',
  INLET_S3_ENDPOINT: double.url,
  INLET_STS_ENDPOINT: double.url,
  INLET_AWS_PRINCIPAL_ARN: principal,
})

beforeAll(async () => {
  // As an operator would configure them, for the credential chain of the AWS SDK.
  vi.stubEnv('AWS_ACCESS_KEY_ID', doubleCredentials.accessKeyId)
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', doubleCredentials.secretAccessKey)
  vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true')
  double = await S3Double.start()
  control = await newControl({ environment: environment() })
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await double[Symbol.asyncDispose]()
  vi.unstubAllEnvs()
})

type Furnished = { readonly account: TestAccount; readonly id: string; readonly bucket: string; readonly role_arn: string }

/** Creates a destination with its bucket, and a role that trusts the account. */
async function furnished(change: object = {}): Promise<Furnished> {
  const account = await control.newAccount()
  const bucket = `lake-${newId()}`
  const role_arn = `arn:aws:iam::222222222222:role/${bucket}`
  const wished = { name: 'lake', bucket, prefix: 'raw/events', region: 'eu-central-1', role_arn, path_style: true, ...change }
  const { body } = await account.post('/v1/destinations', wished)
  double.addBucket(bucket)
  double.addRole(role_arn, { externalId: body.external_id })
  return { account, id: body.id, bucket, role_arn }
}

async function validated({ account, id }: Furnished) {
  const answer = await account.post(`/v1/destinations/${id}/validate`)
  expect(answer.status).toBe(200)
  return answer.body
}

type Step = { readonly step: string; readonly outcome: string; readonly setting: string | null; readonly value: string | null }

const stepOf = (steps: readonly Step[], name: string) => steps.find(({ step }) => step === name)
const outcomes = (steps: readonly Step[]) => Object.fromEntries(steps.map(({ step, outcome }) => [step, outcome]))

/** The step that failed, and what to change. */
function blame(steps: readonly Step[]) {
  const failed = steps.find(({ outcome }) => outcome === 'failed')
  return [failed?.step, failed?.setting, failed?.value]
}

describe('POST /v1/destinations/{id}/validate on S3', () => {
  test('200 valid: each step of a delivery passes with a test object under the prefix, in a session that names the account', async () => {
    const at = await furnished()
    const before = double.calls.length
    const { status, last_error, steps } = await validated(at)
    expect({ status, last_error }).toEqual({ status: 'valid', last_error: null })
    expect(outcomes(steps)).toEqual({ ...allPassed, kms: undefined })
    const calls = double.calls.slice(before)
    const operations = calls.map(({ operation }) => operation)
    expect(operations).toEqual([
      ...['AssumeRole', 'PutObject', 'ListObjectsV2', 'GetObject', 'PutObject'],
      ...['CreateMultipartUpload', 'UploadPart', 'AbortMultipartUpload', 'DeleteObject'],
    ])
    expect(calls[0]?.form.get('RoleSessionName')).toBe(`inlet-${at.account.account_id.slice(-12)}-control`)
    expect(calls[1]?.key).toBe(`raw/events/.inlet-validation-${at.id}`)
    expect(double.buckets.get(at.bucket)).toMatchObject({ objects: new Map(), uploads: new Map() })
  })

  test('200 valid: a role that can neither read nor list', async () => {
    const at = await furnished()
    double.roles.get(at.role_arn)?.denied.add('GetObject').add('HeadObject').add('ListObjectsV2')
    const { status, last_error, steps } = await validated(at)
    expect({ status, last_error }).toEqual({ status: 'valid', last_error: null })
    expect(outcomes(steps)).toEqual({ ...allPassed, kms: undefined, list: 'warning', read: 'warning' })
    expect(stepOf(steps, 'read')).toMatchObject({
      message: expect.stringMatching(/^reading in bucket .*AccessDenied.*s3:GetObject/),
      effect: expect.stringContaining('backfills'),
      setting: 'bucket_policy',
    })
  })

  test.each([
    ['does not know conditions', { status: 501, code: 'NotImplemented', message: 'A header is not implemented' }],
    ['heeds no condition', undefined],
  ])('200 valid: a store that %s is a warning', async (_, fault) => {
    const at = await furnished()
    double.heedsConditions = false
    double.fault = ({ headers }) => (headers['if-none-match'] === undefined ? undefined : fault)
    const { status, steps } = await validated(at)
    double.heedsConditions = true
    double.fault = () => undefined
    expect(status).toBe('valid')
    expect(stepOf(steps, 'if_absent')).toMatchObject({
      outcome: 'warning',
      message: expect.stringContaining('If-None-Match'),
      effect: expect.stringContaining('adoption'),
      setting: null,
    })
  })

  test('200 valid: a role that may not abandon uploads leaves parts behind, and is told', async () => {
    const at = await furnished()
    double.roles.get(at.role_arn)?.denied.add('AbortMultipartUpload')
    const { status, steps } = await validated(at)
    expect(status).toBe('valid')
    expect(stepOf(steps, 'multipart')).toMatchObject({
      outcome: 'warning',
      message: expect.stringContaining('s3:AbortMultipartUpload'),
      effect: expect.stringContaining('64 MiB'),
      setting: 'bucket_policy',
    })
  })

  test('200 valid: a key that encrypts but does not decrypt is a warning of the key, not of reading', async () => {
    const at = await furnished({ kms_key_arn })
    const caller = 'arn:aws:sts::222222222222:assumed-role/x/y'
    double.fault = ({ operation }) => (operation === 'GetObject' ? s3Errors.kmsDenied(caller, kms_key_arn) : undefined)
    const { status, steps } = await validated(at)
    double.fault = () => undefined
    expect(status).toBe('valid')
    expect(outcomes(steps)).toEqual({ ...allPassed, kms: 'warning', read: 'skipped' })
    expect(stepOf(steps, 'kms')).toMatchObject({ setting: 'key_policy', effect: expect.stringContaining('backfills') })
  })

  test('200 valid: the store returns what was not written', async () => {
    const at = await furnished()
    double.fault = ({ operation, bucket, key }) => {
      if (operation === 'GetObject') double.buckets.get(bucket)?.objects.delete(key)
      return undefined
    }
    const { steps } = await validated(at)
    double.fault = () => undefined
    expect(stepOf(steps, 'read')).toMatchObject({ outcome: 'warning', message: expect.stringContaining('WrongContent') })
  })

  test('200 valid, and pending a minute later after the role changed', async () => {
    const at = await furnished()
    expect(await validated(at)).toMatchObject({ status: 'valid' })
    double.roles.delete(at.role_arn)
    control.clock.advance(31_000)
    const { status, validated_at, last_error } = await validated(at)
    expect({ status, validated_at }).toEqual({ status: 'pending', validated_at: null })
    expect(last_error).toMatch(/^assuming the role/)
  })

  test('200 pending: for a missing or distrusting role, names the principal and the external id', async () => {
    const gone = await furnished()
    double.roles.delete(gone.role_arn)
    const wrong = await furnished()
    double.addRole(wrong.role_arn, { externalId: 'another' })
    for (const at of [gone, wrong]) {
      const { status, last_error, external_id, steps } = await validated(at)
      expect(status).toBe('pending')
      expect(blame(steps)).toEqual(['assume_role', 'trust_policy', null])
      expect(last_error).toContain(`assuming the role ${at.role_arn} failed (AccessDenied)`)
      expect(last_error).toContain('there is no such role')
      expect(last_error).toContain(`${principal} to assume it with the external id ${external_id}`)
    }
  })

  test('200 pending: a missing bucket, and one in another region, which is named', async () => {
    const missing = await furnished()
    double.buckets.delete(missing.bucket)
    const none = await validated(missing)
    expect(none.last_error).toMatch(/NoSuchBucket.*there is no bucket lake-/)
    expect(blame(none.steps)).toEqual(['write', 'bucket', null])
    const elsewhere = await furnished()
    double.addBucket(elsewhere.bucket, 'eu-west-1')
    const far = await validated(elsewhere)
    expect(far.last_error).toMatch(/set the region of the destination to eu-west-1/)
    expect(blame(far.steps)).toEqual(['write', 'region', 'eu-west-1'])
  })

  const denials: readonly (readonly [Operation, RegExp])[] = [
    [
      'PutObject',
      /^writing in bucket .*AccessDenied, because no identity-based policy allows.*s3:PutObject on arn:aws:s3:::lake-[^/]*\/raw\/events\/\*/,
    ],
    ['DeleteObject', /^deleting in bucket .*AccessDenied.*s3:DeleteObject/],
  ]
  test.each(denials)('200 pending: %s is denied', async (operation, sentence) => {
    const at = await furnished()
    double.roles.get(at.role_arn)?.denied.add(operation)
    const { status, last_error, steps } = await validated(at)
    expect(status).toBe('pending')
    expect(last_error).toMatch(sentence)
    expect(blame(steps)).toEqual([operation === 'PutObject' ? 'write' : 'delete', 'bucket_policy', null])
    // The test object is deleted if the role allows it.
    expect(double.buckets.get(at.bucket)?.objects.size).toBe(operation === 'DeleteObject' ? 1 : 0)
  })

  const faults: readonly (readonly [string, Operation, Fault, RegExp, string, string | null])[] = [
    [
      'the KMS key is denied',
      'PutObject',
      s3Errors.kmsDenied('arn:aws:sts::222222222222:assumed-role/x/y', kms_key_arn),
      /1234abcd cannot be used/,
      'kms',
      'key_policy',
    ],
    [
      'the KMS key is disabled',
      'PutObject',
      s3Errors.kmsDisabled(kms_key_arn),
      /KMS\.DisabledException.*enabled in region eu-central-1/,
      'kms',
      'kms_key_arn',
    ],
    [
      'our own credentials are unknown',
      'AssumeRole',
      stsErrors.invalidClientTokenId,
      /operator must check/,
      'assume_role',
      'installation',
    ],
    ['the store has a fault', 'PutObject', s3Errors.internalError, /InternalError/, 'write', null],
    ['no response', 'PutObject', 'answer lost', /S3 in region eu-central-1 closed the connection/, 'write', 'installation'],
  ]
  test.each(faults)('200 pending: %s', async (_, operation, fault, sentence, step, setting) => {
    const at = await furnished({ kms_key_arn })
    double.fault = (call) => (call.operation === operation ? fault : undefined)
    const { status, last_error, steps } = await validated(at)
    double.fault = () => undefined
    expect(status).toBe('pending')
    expect(last_error).toMatch(sentence)
    expect(blame(steps)).toEqual([step, setting, null])
    expect(last_error).not.toMatch(/127\.0\.0\.1|AKIA|ASIA|token\+/)
  })

  test('200 pending: S3 is unreachable', async () => {
    const gone = await S3Double.start()
    await gone[Symbol.asyncDispose]()
    await using other = await newControl({ environment: { ...environment(), INLET_STS_ENDPOINT: gone.url } })
    const account = await other.newAccount()
    const wished = { name: 'lake', bucket: 'lake', region: 'eu-central-1', role_arn: 'arn:aws:iam::222222222222:role/lake' }
    const { body } = await account.post('/v1/destinations', wished)
    const answer = await account.post(`/v1/destinations/${body.id}/validate`)
    expect(answer.body.last_error).toMatch(/ECONNREFUSED\): STS in region eu-central-1 refused the connection/)
  })

  test('200 pending: this installation has no credentials', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', '')
    vi.stubEnv('HOME', '/nonexistent')
    await using other = await newControl({ environment: environment() })
    const account = await other.newAccount()
    const wished = { name: 'lake', bucket: 'lake', region: 'eu-central-1', role_arn: 'arn:aws:iam::222222222222:role/lake' }
    const { body } = await account.post('/v1/destinations', wished)
    const answer = await account.post(`/v1/destinations/${body.id}/validate`)
    vi.stubEnv('AWS_ACCESS_KEY_ID', doubleCredentials.accessKeyId)
    expect(answer.body.last_error).toMatch(/this installation has no AWS credentials/)
  })
})

describe('POST /v1/destinations where roles open buckets', () => {
  test('422 without a role', async () => {
    const account = await control.newAccount()
    const errors = [{ path: 'role_arn', message: expect.stringContaining('must be the ARN of the role') }]
    const wished = { name: 'lake', bucket: 'lake', region: 'eu-central-1' }
    expect(await account.post('/v1/destinations', wished)).toMatchObject({ status: 422, body: { errors } })
    const { id } = await furnished()
    expect(await account.patch(`/v1/destinations/${id}`, { role_arn: null })).toMatchObject({ status: 422, body: { errors } })
  })

  test('422 for a list of buckets that only the operator of other installations keeps', async () => {
    const { account_id } = await control.newAccount()
    const operator = clientOf(control.call, operatorToken)
    const errors = [{ path: 'allowed_buckets', message: expect.stringContaining('INLET_S3_CREDENTIALS=own') }]
    expect(await operator.patch(`/v1/accounts/${account_id}`, { allowed_buckets: ['lake'] })).toMatchObject({ body: { errors } })
    expect((await operator.get(`/v1/accounts/${account_id}`)).body).toMatchObject({ allowed_buckets: null })
  })
})

describe('GET /v1/object-store on S3', () => {
  test('200 names the principal, and suggests path style for a gateway', async () => {
    const account = await control.newAccount()
    expect((await account.get('/v1/object-store')).body).toMatchObject({
      kind: 'gateway',
      principal_arn: principal,
      suggested: { region: 'us-east-1', encryption: 'sse-s3', checksums: 'standard', path_style: true },
      allowed_buckets: null,
    })
  })
})

describe('a first start on S3', () => {
  test('creates an endpoint that waits for a destination, and everything else needed to send', async () => {
    const { endpoint_id, api_key } = control.bootstrapped ?? {}
    const { body: token } = await control.call('POST', '/v1/token/exchange', { api_key, scope: 'admin' })
    const headers = { authorization: `Bearer ${token.access_token}` }
    const get = async (path: string) => (await control.call('GET', path, undefined, headers)).body
    expect(await get(`/v1/endpoints/${endpoint_id}`)).toMatchObject({ destination_id: null, region: 'loc' })
    expect(await get('/v1/destinations')).toMatchObject({ total: 0 })
    expect(await get('/v1/views')).toMatchObject({ items: [{ name: 'events', status: 'published', usage_count: 1 }] })
  })
})
