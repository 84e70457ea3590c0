/**
 * What the failures of S3 and STS mean.
 *
 * Owns: the reason and the sentence of each. Does not own: what to do about it.
 * Law: nothing of the store's own text is passed on but codes, ARNs of the caller and AWS's fixed phrases: texts of gateways may hold
 * anything.
 * Sources: "Error responses" of the S3 API reference, "Errors" of STS AssumeRole, "Troubleshoot access denied" of the S3 guide.
 */

import type { BucketTarget } from './object-store.ts'
import { ObjectStoreError, type StoreErrorReason, type StoreStep } from './store-error.ts'

type Failure = {
  readonly code: string
  readonly status: number | undefined
  readonly text: string
  /** The bucket's region, where the store told it. */
  readonly region: string | undefined
}

export type DescribedTarget = BucketTarget & {
  /** Who we are, where the operator said it. */
  readonly principalArn?: string | null
}

/** The error as one of ours, or as it is where it has nothing to do with the store. */
export function describeFailure(error: unknown, step: StoreStep, target: DescribedTarget): unknown {
  if (!(error instanceof Error) || error instanceof ObjectStoreError) return error
  const failure = read(error)
  if (failure === undefined) return error
  const reason = reasonOf(failure, step)
  return new ObjectStoreError(reason, step, failure.code, sentence(reason, step, failure, target))
}

/** For an answer that says 200 and is not that of an S3 or STS: something in between gave it. */
export function noAnswer(operation: string): Error {
  return Object.assign(new Error(`no answer to ${operation}`), { name: 'NoStoreAnswered', $metadata: { httpStatusCode: 502 } })
}

const networkCodes = new Set(
  'EAI_AGAIN ECONNABORTED ECONNREFUSED ECONNRESET EHOSTDOWN EHOSTUNREACH ENETDOWN ENETUNREACH ENOTFOUND EPIPE EPROTO ETIMEDOUT'.split(
    ' ',
  ),
)
const tlsCode = /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE)/

function read(error: Error): Failure | undefined {
  const { code, name, message, $metadata, $fault, $response, Region } = error as Error & {
    readonly code?: unknown
    readonly $metadata?: { readonly httpStatusCode?: number }
    readonly $fault?: unknown
    readonly $response?: { readonly statusCode?: number; readonly headers?: Readonly<Record<string, string>> }
    readonly Region?: unknown
  }
  const told = $response?.headers?.['x-amz-bucket-region'] ?? Region
  const status = $metadata?.httpStatusCode ?? $response?.statusCode
  const region = typeof told === 'string' && /^[a-z0-9-]{1,32}$/.test(told) ? told : undefined
  const system = typeof code === 'string' && (networkCodes.has(code) || tlsCode.test(code)) ? code : undefined
  if (system !== undefined) return { code: system, status, text: '', region }
  if (name === 'TimeoutError') return { code: name, status, text: '', region }
  if (name === 'CredentialsProviderError' || name === 'TokenProviderError') return { code: name, status, text: '', region }
  // An answer that is no XML at all, as load balancers give, is known by its status alone.
  if ($fault === undefined && status === undefined) return undefined
  const named = /^[A-Za-z][\w.]{0,63}$/.test(name) && name !== 'Error' && name !== 'SyntaxError' && name !== 'Unknown'
  return { code: named ? name : `HTTP ${status ?? 'error'}`, status, text: message, region }
}

function reasonOf({ code, status, text }: Failure, step: StoreStep): StoreErrorReason {
  if (code === 'CredentialsProviderError' || code === 'TokenProviderError') return 'credentials_missing'
  if (networkCodes.has(code) || tlsCode.test(code) || code === 'TimeoutError') return 'unreachable'
  if (/^RequestTimeTooSkewed|^RequestExpired$|^RequestInTheFuture$/.test(code)) return 'clock_skew'
  if (/^Signature (expired|not yet current)/.test(text)) return 'clock_skew'
  if (/^(SlowDown|Throttl|TooManyRequests|RequestLimitExceeded|BandwidthLimitExceeded)/.test(code) || status === 429)
    return 'throttled'
  if (step === 'assume_role') return reasonOfSts(code, status)
  // A key that may not be used answers AccessDenied with the KMS action in the text; a key that can't be, KMS.… as its code.
  if (/^KMS\./.test(code) || (status === 403 && /\bkms:\w/i.test(text))) return 'kms_denied'
  if (code === 'NoSuchBucket') return 'bucket_missing'
  if (/^(PermanentRedirect|TemporaryRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraintException)$/.test(code))
    return 'wrong_region'
  if (status !== undefined && status >= 300 && status < 400) return 'wrong_region'
  if (/^(ExpiredToken|InvalidToken|InvalidAccessKeyId|TokenRefreshRequired)/.test(code)) return 'session_refused'
  if (/^(BadDigest|InvalidDigest|XAmzContentSHA256Mismatch|XAmzContentChecksumMismatch|IncompleteBody)$/.test(code))
    return 'damaged'
  if (code === 'RequestTimeout') return 'unreachable'
  if (status !== undefined && status >= 500) return 'unavailable'
  if (/^(OperationAborted|InternalError|ServiceUnavailable)$/.test(code)) return 'unavailable'
  if (status === 403 || status === 401) return denied[step]
  return 'refused'
}

const denied = {
  put: 'put_denied',
  get: 'get_denied',
  sign: 'get_denied',
  list: 'list_denied',
  remove: 'delete_denied',
} as const satisfies Record<Exclude<StoreStep, 'assume_role'>, StoreErrorReason>

function reasonOfSts(code: string, status: number | undefined): StoreErrorReason {
  // Ceph answers 404 without a code; AWS never tells.
  if (/^NoSuch(Entity|Role)/.test(code) || status === 404) return 'role_missing'
  if (
    /^(InvalidClientTokenId|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|UnrecognizedClient|RegionDisabled)/.test(code)
  ) {
    return 'credentials_refused'
  }
  if (status !== undefined && status >= 500) return 'unavailable'
  if (status === 403 || status === 401) return 'assume_role_denied'
  return 'refused'
}

const doing = {
  assume_role: 'assuming the role',
  put: 'writing',
  get: 'reading',
  sign: 'signing an address',
  list: 'listing',
  remove: 'deleting',
} as const satisfies Record<StoreStep, string>

function sentence(reason: StoreErrorReason, step: StoreStep, failure: Failure, target: DescribedTarget): string {
  const { bucket, prefix = '', region, role_arn, external_id, kms_key_arn } = target
  const arn = `arn:${partitionOf(role_arn)}:s3:::${bucket}`
  const objects = prefix === '' ? `${arn}/*` : `${arn}/${prefix}/*`
  const what = step === 'assume_role' ? `assuming the role ${role_arn} failed` : `${doing[step]} in bucket ${bucket} failed`
  return `${what} (${failure.code}${because(failure.text)}): ${advice()}`

  function advice(): string {
    switch (reason) {
      case 'credentials_missing':
        return 'this installation has no AWS credentials of its own; its operator must give control and nodes some, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or the role of the machine'
      case 'credentials_refused':
        return `STS in ${region} does not know the AWS credentials of this installation; its operator must check that they are right and still good, and that the region is enabled for its AWS account`
      case 'assume_role_denied':
        return `either there is no such role, or its trust policy does not let ${whoAsks(target, failure.text)} assume it with the external id ${external_id}, or that identity may not call sts:AssumeRole; compare with trust_policy of the destination`
      case 'role_missing':
        return 'there is no such role; check role_arn, or make the role with trust_policy of the destination'
      case 'session_refused':
        return 'the credentials that the role gave are not good any more; new ones are asked for with the next attempt'
      case 'bucket_missing':
        return `there is no bucket ${bucket}; check its name, or make it in region ${region}`
      case 'wrong_region':
        return failure.region === undefined || failure.region === region
          ? `the bucket is not in region ${region}; set the region of the destination to the one that the bucket is in`
          : `the bucket is in region ${failure.region}, not in ${region}; set the region of the destination to ${failure.region}`
      case 'put_denied':
        return `the role ${role_arn} must be allowed s3:PutObject on ${objects}, by its own policy and, where the bucket is another account's, by the bucket policy; look for a Deny too`
      case 'get_denied':
        return `the role ${role_arn} must be allowed s3:GetObject on ${objects}; compare with bucket_policy of the destination`
      case 'list_denied':
        return `the role ${role_arn} must be allowed s3:ListBucket on ${arn}; compare with bucket_policy of the destination`
      case 'delete_denied':
        return `the role ${role_arn} must be allowed s3:DeleteObject on ${objects}; compare with bucket_policy of the destination`
      case 'kms_denied':
        return `the KMS key ${kms_key_arn ?? 'that the bucket encrypts with'} can't be used: it must be there and enabled in region ${region}, and the role ${role_arn} must be allowed kms:GenerateDataKey and kms:Decrypt by its own policy and by the key's`
      case 'clock_skew':
        return 'the clock of this installation is too far from that of AWS; its operator must set it right'
      case 'damaged':
        return 'what arrived was not what was sent; it is sent again'
      case 'throttled':
        return 'the store asks for fewer requests; it is tried again more slowly'
      case 'unreachable':
        return `${step === 'assume_role' ? 'STS' : 'S3'} in region ${region} ${unreachableBecause(failure.code)}`
      case 'unavailable':
        return 'the store has a fault of its own; it is tried again'
      case 'refused':
        return `the store does not take the request${failure.status === undefined ? '' : ` (HTTP ${failure.status})`}; check the settings of the destination and of the bucket`
    }
  }
}

function unreachableBecause(code: string): string {
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return 'has no address in DNS; check the region and, for path_style false, the name of the bucket'
  if (code === 'ECONNREFUSED') return 'does not take connections; check that it is running and that no firewall is in between'
  if (tlsCode.test(code)) return 'shows a certificate that is not to be trusted; a gateway needs one that the nodes know'
  if (code === 'ETIMEDOUT' || code === 'TimeoutError' || code === 'RequestTimeout')
    return 'did not answer in time; check the network and any firewall in between'
  return 'broke the connection off; check the network and any proxy in between'
}

/** The one to look for in the trust policy; where we are a role ourselves, AWS tells of its session. */
function whoAsks({ principalArn = null }: DescribedTarget, text: string): string {
  const caller = callerOf(text)
  if (principalArn === null) return caller ?? 'the AWS identity of this installation'
  return caller === undefined || caller === principalArn ? principalArn : `${principalArn} (which calls as ${caller})`
}

/** AWS tells in fixed words who was denied, and which kind of policy did it. */
function callerOf(text: string): string | undefined {
  return /^User: (arn:[a-z-]+:(?:iam|sts)::\d{12}:[\w+=,.@/-]{1,200}) is not authorized/.exec(text)?.[1]
}

function because(text: string): string {
  const missing = /because no [a-z][a-z -]{0,60} (?:policy|boundary) allows/i.exec(text)
  if (missing !== null) return `, ${missing[0]} it`
  const denied = /with an explicit deny in an? [a-z][a-z -]{0,60} ?(?:policy|boundary)/i.exec(text)
  return denied === null ? '' : `, ${denied[0]}`
}

function partitionOf(arn: string): string {
  return arn.split(':')[1] || 'aws'
}
