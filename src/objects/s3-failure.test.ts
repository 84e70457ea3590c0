import { describe, expect, test } from 'vitest'
import { s3Errors, stsErrors } from '../../test/support/s3/answers.ts'
import type { Fault, Operation } from '../../test/support/s3/double.ts'
import { failureOf, newDoubleBucket } from '../../test/support/s3/target.ts'
import { describeFailure } from './s3-failure.ts'

const options = { contentType: 'application/gzip', metadata: {} }
const kms_key_arn = 'arn:aws:kms:eu-central-1:222222222222:key/1234abcd'

describe('a failure', () => {
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
    ['unavailable', 'PutObject', s3Errors.portal, /\(NoStoreAnswered\)/],
    ['unavailable', 'AssumeRole', s3Errors.portal, /^assuming the role/],
    ['unavailable', 'AssumeRole', s3Errors.badGateway, /\(HTTP 502\)/],
    ['unavailable', 'PutObject', s3Errors.badGateway, /\(HTTP 502\)/],
    ['delete_denied', 'DeleteObject', s3Errors.accessDenied, /s3:DeleteObject/],
    ['list_denied', 'ListObjectsV2', s3Errors.accessDenied, /s3:ListBucket/],
    ['kms_denied', 'PutObject', s3Errors.kmsDenied(caller, kms_key_arn), /kms:GenerateDataKey and kms:Decrypt/],
    ['kms_denied', 'PutObject', s3Errors.kmsDisabled(kms_key_arn), /KMS\.DisabledException/],
    ['kms_denied', 'PutObject', s3Errors.kmsNotFound(kms_key_arn), /KMS\.NotFoundException/],
    ['throttled', 'DeleteObject', s3Errors.slowDown, /fewer requests/],
    ['unavailable', 'DeleteObject', s3Errors.serviceUnavailable, /fault of its own/],
    ['unreachable', 'DeleteObject', 'silence', /did not answer in time/],
    ['unreachable', 'DeleteObject', 'answer lost', /broke the connection off/],
    ['session_refused', 'DeleteObject', s3Errors.invalidToken, /not good any more/],
    ['refused', 'DeleteObject', { status: 400, code: 'InvalidRequest', message: 'no <secret>' }, /HTTP 400/],
    ['role_missing', 'AssumeRole', stsErrors.noSuchRole, /there is no such role/],
    ['role_missing', 'AssumeRole', stsErrors.noSuchRoleOfCeph, /there is no such role/],
    ['credentials_refused', 'AssumeRole', stsErrors.invalidClientTokenId, /does not know the AWS credentials/],
    ['throttled', 'AssumeRole', stsErrors.throttling, /fewer requests/],
    ['unavailable', 'AssumeRole', s3Errors.internalError, /fault of its own/],
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

  test('of a role that is not there or does not trust names who must be trusted, and the external id', async () => {
    await using at = await newDoubleBucket()
    const { message } = await failureOf(
      at.stores.open({ ...at.target, external_id: 'inlet-wrong' }).put('k', Buffer.from('x'), options),
    )
    expect(message).toContain('arn:aws:iam::222222222222:role/ingest')
    expect(message).toContain('let arn:aws:iam::111111111111:user/inlet assume it with the external id inlet-wrong')
  })

  test('of time that was up is one of the store, of a caller that had enough it is not', async () => {
    await using at = await newDoubleBucket()
    at.double.fault = ({ operation }) => (operation === 'PutObject' ? 'silence' : undefined)
    const late = at.store.put('k', Buffer.from('x'), { ...options, signal: AbortSignal.timeout(200) })
    expect(await failureOf(late)).toMatchObject({ reason: 'unreachable', step: 'put', code: 'TimeoutError' })
  })

  test('of an STS that says nothing is one too', async () => {
    await using at = await newDoubleBucket({}, { assumeTimeoutMs: 200 })
    at.double.fault = ({ operation }) => (operation === 'AssumeRole' ? 'silence' : undefined)
    const failure = await failureOf(at.store.put('k', Buffer.from('x'), options))
    expect(failure).toMatchObject({ reason: 'unreachable', step: 'assume_role', code: 'TimeoutError' })
    expect(failure.message).toContain('STS in region eu-central-1 did not answer in time')
  })

  test('of nobody listening is unreachable', async () => {
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

  test('of something else stays what it is', async () => {
    await using at = await newDoubleBucket()
    const error = Object.assign(new Error('no such file'), { code: 'ENOENT' })
    expect(describeFailure(error, 'put', at.target)).toBe(error)
  })
})
