import { describe, expect, test } from 'vitest'
import { s3Errors, stsErrors } from '../../test/support/s3/answers.ts'
import type { Fault, Operation } from '../../test/support/s3/double.ts'
import { failureOf, newDoubleBucket } from '../../test/support/s3/target.ts'
import { describeFailure } from './s3-failure.ts'

const options = { contentType: 'application/gzip', metadata: {} }
const kms_key_arn = 'arn:aws:kms:eu-central-1:222222222222:key/1234abcd'

describe('describeFailure', () => {
  const caller = 'arn:aws:sts::222222222222:assumed-role/ingest/inlet'
  const failures: readonly (readonly [string, Operation, Fault, RegExp])[] = [
    ['bucket_missing', 'PutObject', s3Errors.noSuchBucket, /no bucket lake/],
    ['wrong_region', 'PutObject', s3Errors.permanentRedirect('lake', 'eu-west-1'), /is in region eu-west-1, not in eu-central-1/],
    ['wrong_region', 'PutObject', s3Errors.authorizationHeaderMalformed('eu-central-1', 'us-east-2'), /is in region us-east-2/],
    ['put_denied', 'PutObject', s3Errors.accessDenied, /s3:PutObject/],
    [
      'put_denied',
      'PutObject',
      s3Errors.notAuthorized(caller, 's3:PutObject', 'arn:aws:s3:::lake/k'),
      /because no identity-based policy allows/,
    ],
    [
      'put_denied',
      'PutObject',
      s3Errors.explicitlyDenied(caller, 's3:PutObject', 'arn:aws:s3:::lake/k'),
      /\(AccessDenied, with an explicit deny in a resource-based policy\)/,
    ],
    ['put_denied', 'PutObject', s3Errors.forbiddenPage, /\(HTTP 403\)/],
    ['unavailable', 'PutObject', s3Errors.portal, /\(ForeignResponse\)/],
    ['unavailable', 'AssumeRole', s3Errors.portal, /^assuming the role/],
    ['unavailable', 'AssumeRole', s3Errors.badGateway, /\(HTTP 502\)/],
    ['unavailable', 'PutObject', s3Errors.badGateway, /\(HTTP 502\)/],
    ['delete_denied', 'DeleteObject', s3Errors.accessDenied, /s3:DeleteObject/],
    ['list_denied', 'ListObjectsV2', s3Errors.accessDenied, /s3:ListBucket/],
    ['kms_denied', 'PutObject', s3Errors.kmsDenied(caller, kms_key_arn), /kms:GenerateDataKey and kms:Decrypt/],
    ['kms_denied', 'PutObject', s3Errors.kmsDisabled(kms_key_arn), /KMS\.DisabledException/],
    ['kms_denied', 'PutObject', s3Errors.kmsNotFound(kms_key_arn), /KMS\.NotFoundException/],
    ['throttled', 'DeleteObject', s3Errors.slowDown, /throttling requests/],
    ['unavailable', 'DeleteObject', s3Errors.serviceUnavailable, /returned a server error/],
    ['unreachable', 'DeleteObject', 'silence', /did not respond in time/],
    ['unreachable', 'DeleteObject', 'answer lost', /closed the connection/],
    ['session_refused', 'DeleteObject', s3Errors.invalidToken, /no longer valid/],
    ['refused', 'DeleteObject', { status: 400, code: 'InvalidRequest', message: 'no <secret>' }, /HTTP 400/],
    ['role_missing', 'AssumeRole', stsErrors.noSuchRole, /there is no such role/],
    ['role_missing', 'AssumeRole', stsErrors.noSuchRoleOfCeph, /there is no such role/],
    ['credentials_refused', 'AssumeRole', stsErrors.invalidClientTokenId, /rejected the AWS credentials/],
    ['throttled', 'AssumeRole', stsErrors.throttling, /throttling requests/],
    ['unavailable', 'AssumeRole', s3Errors.internalError, /returned a server error/],
  ]

  test.each(failures)('%s on %s: %j', async (reason, operation, fault, sentence) => {
    await using at = await newDoubleBucket({}, { idleTimeoutMs: 100 })
    at.double.fault = (call) => (call.operation === operation ? fault : undefined)
    const act = {
      DeleteObject: () => at.store.remove('k'),
      ListObjectsV2: () => Array.fromAsync(at.store.list('')),
    } as const
    const work = operation in act ? act[operation as keyof typeof act]() : at.store.put('k', Buffer.from('x'), options)
    const failure = await failureOf(work)
    expect(failure.reason).toBe(reason)
    expect(failure.cause).toBeUndefined()
    expect(failure.message).toMatch(sentence)
    // Nothing of this machine, of credentials or of the store's own text.
    expect(failure.message).not.toMatch(/127\.0\.0\.1|AKIA|ASIA|token\+|<|http:|Signature=/)
  })

  test.each([
    [
      'sse-s3',
      null,
      /s3\.sse\.key or s3\.sse\.kek in its security\.toml, or set encryption of the destination to bucket-default$/,
    ],
    ['kms', kms_key_arn, /configure a KMS, or set encryption/],
    ['bucket-default', null, /server error; retrying$/],
  ] as const)('names the setting if SeaweedFS may have no key for %s', async (encryption, arn, advice) => {
    await using at = await newDoubleBucket({ encryption, kms_key_arn: arn })
    at.double.fault = ({ operation }) => (operation === 'PutObject' ? s3Errors.internalErrorOfSeaweed : undefined)
    const failure = await failureOf(at.store.put('k', Buffer.from('x'), options))
    expect(failure).toMatchObject({ reason: 'unavailable', message: expect.stringMatching(advice) })
  })

  test('for a missing or distrusting role, names the principal to trust and the external id', async () => {
    await using at = await newDoubleBucket()
    const { message } = await failureOf(
      at.stores.open({ ...at.target, external_id: 'inlet-wrong' }).put('k', Buffer.from('x'), options),
    )
    expect(message).toContain('arn:aws:iam::222222222222:role/ingest')
    expect(message).toContain('allow arn:aws:iam::111111111111:user/inlet to assume it with the external id inlet-wrong')
  })

  test('treats a timeout as a failure of the store, but not an abort by the caller', async () => {
    await using at = await newDoubleBucket()
    at.double.fault = ({ operation }) => (operation === 'PutObject' ? 'silence' : undefined)
    const late = at.store.put('k', Buffer.from('x'), { ...options, signal: AbortSignal.timeout(200) })
    expect(await failureOf(late)).toMatchObject({ reason: 'unreachable', step: 'put', code: 'TimeoutError' })
  })

  test('treats a timeout of STS as a failure of the store', async () => {
    await using at = await newDoubleBucket({}, { assumeTimeoutMs: 200 })
    at.double.fault = ({ operation }) => (operation === 'AssumeRole' ? 'silence' : undefined)
    const failure = await failureOf(at.store.put('k', Buffer.from('x'), options))
    expect(failure).toMatchObject({ reason: 'unreachable', step: 'assume_role', code: 'TimeoutError' })
    expect(failure.message).toContain('STS in region eu-central-1 did not respond in time')
  })

  test('treats a refused connection as unreachable', async () => {
    await using at = await newDoubleBucket()
    await at.store.put('k', Buffer.from('x'), options)
    await at.double[Symbol.asyncDispose]()
    expect(await failureOf(at.store.put('k', Buffer.from('x'), options))).toMatchObject({
      ...{ reason: 'unreachable', step: 'put', code: 'ECONNREFUSED' },
    })
  })

  test.each([
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'CERT_HAS_EXPIRED',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  ])('of TLS, %s, is about the certificate', async (code) => {
    await using at = await newDoubleBucket()
    const failure = describeFailure(Object.assign(new Error('secret.internal'), { code }), 'put', at.target)
    expect(failure).toMatchObject({ reason: 'unreachable', code, message: expect.stringContaining('certificate') })
    expect(String(failure)).not.toContain('secret.internal')
  })

  test('returns other errors unchanged', async () => {
    await using at = await newDoubleBucket()
    const error = Object.assign(new Error('no such file'), { code: 'ENOENT' })
    expect(describeFailure(error, 'put', at.target)).toBe(error)
  })
})
