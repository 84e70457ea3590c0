/**
 * Explains failures of S3 and STS.
 *
 * Owns: the reason and the message of each failure. Does not own: retries and other reactions.
 * Law: a message quotes from the store only error codes, ARNs of the caller and fixed phrases of AWS. Other text may contain anything.
 * Sources: "Error responses" of the S3 API reference, "Errors" of STS AssumeRole, "Troubleshoot access denied" of the S3 guide.
 */

import type { BucketTarget } from './object-store.ts'
import { ObjectStoreError, type StoreErrorReason, type StoreStep } from './store-error.ts'

type Failure = {
  readonly code: string
  readonly status: number | undefined
  readonly text: string
  /** Region of the bucket, if the store named it. */
  readonly region: string | undefined
  /** Whether SeaweedFS sent it: its header says so. */
  readonly isSeaweed?: boolean
}

export type DescribedTarget = BucketTarget & {
  /** AWS identity of this installation, if the operator configured it. */
  readonly principalArn?: string | null
  /** Whether a role signs the requests. If not, the credentials of this installation do. */
  readonly hasRoles?: boolean
}

/** Returns an ObjectStoreError for a failure of the store, and any other error unchanged. */
export function describeFailure(error: unknown, step: StoreStep, target: DescribedTarget): unknown {
  if (!(error instanceof Error) || error instanceof ObjectStoreError) return error
  const failure = read(error)
  if (failure === undefined) return error
  const reason = reasonOf(failure, step, target)
  return new ObjectStoreError(reason, step, failure.code, messageFor(reason, step, failure, target), failure.region)
}

/** Returns the error for a response with status 200 that does not come from S3 or STS, but from something in between. */
export function foreignResponse(operation: string): Error {
  return Object.assign(new Error(`unexpected response to ${operation}`), {
    name: 'ForeignResponse',
    $metadata: { httpStatusCode: 502 },
  })
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
  const reported = $response?.headers?.['x-amz-bucket-region'] ?? Region
  const status = $metadata?.httpStatusCode ?? $response?.statusCode
  const region = typeof reported === 'string' && /^[a-z0-9-]{1,32}$/.test(reported) ? reported : undefined
  const system = typeof code === 'string' && (networkCodes.has(code) || tlsCode.test(code)) ? code : undefined
  if (system !== undefined) return { code: system, status, text: '', region }
  if (name === 'TimeoutError') return { code: name, status, text: '', region }
  if (name === 'CredentialsProviderError' || name === 'TokenProviderError') return { code: name, status, text: '', region }
  // A response that is not XML, for example from a load balancer, is classified by its status alone.
  if ($fault === undefined && status === undefined) return undefined
  const named = /^[A-Za-z][\w.]{0,63}$/.test(name) && name !== 'Error' && name !== 'SyntaxError' && name !== 'Unknown'
  const isSeaweed = /^SeaweedFS\b/.test($response?.headers?.['server'] ?? '')
  return { code: named ? name : `HTTP ${status ?? 'error'}`, status, text: message, region, isSeaweed }
}

function reasonOf({ code, status, text }: Failure, step: StoreStep, { hasRoles = true }: DescribedTarget): StoreErrorReason {
  if (code === 'CredentialsProviderError' || code === 'TokenProviderError') return 'credentials_missing'
  if (networkCodes.has(code) || tlsCode.test(code) || code === 'TimeoutError') return 'unreachable'
  if (/^RequestTimeTooSkewed|^RequestExpired$|^RequestInTheFuture$/.test(code)) return 'clock_skew'
  if (/^Signature (expired|not yet current)/.test(text)) return 'clock_skew'
  if (/^(SlowDown|Throttl|TooManyRequests|RequestLimitExceeded|BandwidthLimitExceeded)/.test(code) || status === 429)
    return 'throttled'
  if (step === 'assume_role') return reasonOfSts(code, status)
  if (!hasRoles && refusesCredentials(code, text)) return 'credentials_refused'
  // If using the key is denied, the code is AccessDenied and the text names a KMS action. If the key is unusable, the code is KMS.….
  if (/^KMS\./.test(code) || (status === 403 && /\bkms:\w/i.test(text))) return 'kms_denied'
  if (code === 'NoSuchBucket') return 'bucket_missing'
  if (/^(PermanentRedirect|TemporaryRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraintException)$/.test(code))
    return 'wrong_region'
  if (status !== undefined && status >= 300 && status < 400) return 'wrong_region'
  if (/^(ExpiredToken|InvalidToken|InvalidAccessKeyId|TokenRefreshRequired)/.test(code)) return 'session_refused'
  if (/^(BadDigest|InvalidDigest|XAmzContentSHA256Mismatch|XAmzContentChecksumMismatch|IncompleteBody)$/.test(code))
    return 'damaged'
  if (code === 'RequestTimeout') return 'unreachable'
  if (step.startsWith('put') && (status === 501 || status === 400)) {
    if (/encrypt|\bsse\b/i.test(text)) return 'encryption_refused'
    if (/checksum/i.test(`${code} ${text}`)) return 'checksums_refused'
  }
  if (step === 'put_if_absent' && status === 501) return 'condition_refused'
  if (status === 501) return 'refused'
  if (status !== undefined && status >= 500) return 'unavailable'
  if (/^(OperationAborted|ConditionalRequestConflict|InternalError|ServiceUnavailable)$/.test(code)) return 'unavailable'
  if (status === 403 || status === 401) return denied[step]
  return 'refused'
}

/** Keys that a store does not know or accept. Garage and versitygw have words of their own. */
function refusesCredentials(code: string, text: string): boolean {
  return (
    /^(InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken)$/.test(code) ||
    /\baccess key\b|No such key: |Invalid signature/i.test(text)
  )
}

const denied = {
  put: 'put_denied',
  put_if_absent: 'put_denied',
  get: 'get_denied',
  sign: 'get_denied',
  list: 'list_denied',
  remove: 'delete_denied',
  abort: 'abort_denied',
} as const satisfies Record<Exclude<StoreStep, 'assume_role'>, StoreErrorReason>

function reasonOfSts(code: string, status: number | undefined): StoreErrorReason {
  // Ceph responds 404 without a code. AWS does not reveal whether a role exists.
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

const operations = {
  assume_role: 'assuming the role',
  put: 'writing',
  put_if_absent: 'writing',
  get: 'reading',
  sign: 'signing a URL',
  list: 'listing',
  remove: 'deleting',
  abort: 'abandoning an upload',
} as const satisfies Record<StoreStep, string>

function messageFor(reason: StoreErrorReason, step: StoreStep, failure: Failure, target: DescribedTarget): string {
  const { bucket, prefix = '', region, role_arn, external_id, encryption, kms_key_arn, hasRoles = true } = target
  const arn = `arn:${partitionOf(role_arn ?? '')}:s3:::${bucket}`
  const objects = prefix === '' ? `${arn}/*` : `${arn}/${prefix}/*`
  const what = step === 'assume_role' ? `assuming the role ${role_arn} failed` : `${operations[step]} in bucket ${bucket} failed`
  const who = hasRoles ? `the role ${role_arn}` : 'the credentials of this installation'
  const compare = hasRoles
    ? 'compare with bucket_policy of the destination'
    : 'its operator must check that the keys are right, and what they may do'
  return `${what} (${failure.code}${denyingPolicy(failure.text)}): ${advice()}`

  function advice(): string {
    switch (reason) {
      case 'credentials_missing':
        return 'this installation has no AWS credentials; its operator must provide them to control and nodes, for example as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or as the role of the machine'
      case 'credentials_refused':
        return hasRoles
          ? `STS in ${region} rejected the AWS credentials of this installation; its operator must check that they are correct and not expired, and that the region is enabled for its AWS account`
          : 'the store rejected the credentials of this installation; its operator must check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what provides them, for control and nodes'
      case 'assume_role_denied':
        return `either there is no such role, or its trust policy does not allow ${callerDescription(target, failure.text)} to assume it with the external id ${external_id}, or that identity is not allowed sts:AssumeRole; compare with trust_policy of the destination`
      case 'role_missing':
        return 'there is no such role; check role_arn, or create the role with trust_policy of the destination'
      case 'session_refused':
        return 'the session of the role is no longer valid; the next attempt uses a new one'
      case 'bucket_missing':
        return `there is no bucket ${bucket}; check its name, or create it in region ${region}`
      case 'wrong_region':
        return failure.region === undefined || failure.region === region
          ? `the bucket is not in region ${region}; set the region of the destination to that of the bucket`
          : `the bucket is in region ${failure.region}, not in ${region}; set the region of the destination to ${failure.region}`
      case 'put_denied':
        return hasRoles
          ? `${who} must be allowed s3:PutObject on ${objects}, by its own policy and, if the bucket belongs to another account, by the bucket policy; also look for a Deny`
          : `${who} must be allowed s3:PutObject on ${objects}; ${compare}`
      case 'get_denied':
        return `${who} must be allowed s3:GetObject on ${objects}; ${compare}`
      case 'list_denied':
        return `${who} must be allowed s3:ListBucket on ${arn}; ${compare}`
      case 'delete_denied':
        return `${who} must be allowed s3:DeleteObject on ${objects}; ${compare}`
      case 'abort_denied':
        return `${who} must be allowed s3:AbortMultipartUpload on ${objects}; ${compare}`
      case 'kms_denied':
        return `the KMS key ${kms_key_arn ?? 'that the bucket encrypts with'} cannot be used: it must exist and be enabled in region ${region}, and ${who} must be allowed kms:GenerateDataKey and kms:Decrypt by its own policy and by that of the key`
      case 'encryption_refused':
        return encryption === 'kms'
          ? `the store rejects encryption with a KMS key: set encryption to sse-s3 or bucket-default`
          : `the store rejects server-side encryption: set encryption to bucket-default`
      case 'checksums_refused':
        return 'the store rejects checksums: set checksums to none'
      case 'condition_refused':
        return 'the store does not know the condition If-None-Match'
      case 'not_allowed':
        return 'the operator of this installation has not allowed it'
      case 'clock_skew':
        return 'the clock of this installation differs too much from that of the store; its operator must correct it, for example with NTP'
      case 'damaged':
        return 'the data was damaged in transit; it will be sent again'
      case 'throttled':
        return 'the store is throttling requests; retrying more slowly'
      case 'unreachable':
        return `${step === 'assume_role' ? 'STS' : 'S3'} in region ${region} ${unreachableBecause(failure.code, target)}`
      case 'unavailable':
        return `the store returned a server error; retrying${seaweedWithoutKey(step, failure, encryption)}`
      case 'refused':
        return `the store rejected the request${failure.status === undefined ? '' : ` (HTTP ${failure.status})`}; check the settings of the destination and of the bucket`
    }
  }
}

/** SeaweedFS reports the same error for every put with encryption while it has no key, and for puts that fail for another reason. */
function seaweedWithoutKey(step: StoreStep, { isSeaweed }: Failure, encryption: DescribedTarget['encryption']): string {
  if (isSeaweed !== true || step !== 'put' || encryption === 'bucket-default') return ''
  const key = encryption === 'kms' ? 'a KMS' : 's3.sse.key or s3.sse.kek in its security.toml'
  return `. SeaweedFS does so for every object that it must encrypt without a key: configure ${key}, or set encryption of the destination to bucket-default`
}

function unreachableBecause(code: string, { path_style }: DescribedTarget): string {
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return path_style
      ? 'was not found in DNS; check the region, or the host in INLET_S3_ENDPOINT'
      : 'was not found in DNS; check the region and the name of the bucket; for a gateway set path_style to true'
  }
  if (code === 'EPROTO')
    return 'does not speak TLS; if the store is a gateway without TLS, INLET_S3_ENDPOINT must begin with http://'
  if (code === 'ECONNREFUSED') return 'refused the connection; check that it is running and that no firewall blocks it'
  if (tlsCode.test(code))
    return 'has an untrusted certificate; name the PEM file of its CA in NODE_EXTRA_CA_CERTS for control and nodes'
  if (code === 'ETIMEDOUT' || code === 'TimeoutError' || code === 'RequestTimeout')
    return 'did not respond in time; check the network and any firewall in between'
  return 'closed the connection; check the network and any proxy in between'
}

/** Returns the error for a destination without a role, where only a role opens buckets. */
export function missingRole(): ObjectStoreError {
  const message = 'assuming the role failed (NoRole): the destination has no role_arn; set it to the role of the bucket'
  return new ObjectStoreError('role_missing', 'assume_role', 'NoRole', message)
}

/** Names the identity that the trust policy must allow. If this installation runs as a role itself, AWS reports the role's session. */
function callerDescription({ principalArn = null }: DescribedTarget, text: string): string {
  const caller = callerOf(text)
  if (principalArn === null) return caller ?? 'the AWS identity of this installation'
  return caller === undefined || caller === principalArn ? principalArn : `${principalArn} (which calls as ${caller})`
}

/** AWS names the caller in a fixed phrase. The function below finds the kind of policy that denied it. */
function callerOf(text: string): string | undefined {
  return /^User: (arn:[a-z-]+:(?:iam|sts)::\d{12}:[\w+=,.@/-]{1,200}) is not authorized/.exec(text)?.[1]
}

function denyingPolicy(text: string): string {
  const missing = /because no [a-z][a-z -]{0,60} (?:policy|boundary) allows/i.exec(text)
  if (missing !== null) return `, ${missing[0]} it`
  const denied = /with an explicit deny in an? [a-z][a-z -]{0,60} ?(?:policy|boundary)/i.exec(text)
  return denied === null ? '' : `, ${denied[0]}`
}

function partitionOf(arn: string): string {
  return arn.split(':')[1] || 'aws'
}
