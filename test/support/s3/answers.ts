/**
 * Errors of S3 and STS, word for word.
 *
 * Sources: "Error responses" in the Amazon S3 API Reference (API/ErrorResponses.html), "Errors" of STS AssumeRole
 * (STS/latest/APIReference/API_AssumeRole.html, CommonErrors.html), "Troubleshoot access denied (403 Forbidden) errors" in the S3 User Guide.
 */
export type ErrorAnswer = {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly headers?: Readonly<Record<string, string>>
  /** A body instead of the XML, from something in between. */
  readonly page?: string
  /** More elements of the error, such as Region. */
  readonly fields?: Readonly<Record<string, string>>
}

const redirected =
  'The bucket you are attempting to access must be addressed using the specified endpoint. Please send all future requests to this endpoint.'

export const s3Errors = {
  internalError: { status: 500, code: 'InternalError', message: 'We encountered an internal error. Please try again.' },
  internalErrorOfSeaweed: {
    ...{ status: 500, code: 'InternalError', message: 'We encountered an internal error, please try again.' },
    headers: { server: 'SeaweedFS 8000GB 4.48' },
  },
  slowDown: { status: 503, code: 'SlowDown', message: 'Please reduce your request rate.' },
  serviceUnavailable: { status: 503, code: 'ServiceUnavailable', message: 'Service is unable to handle request.' },
  accessDenied: { status: 403, code: 'AccessDenied', message: 'Access Denied' },
  noSuchBucket: { status: 404, code: 'NoSuchBucket', message: 'The specified bucket does not exist' },
  preconditionFailed: {
    status: 412,
    code: 'PreconditionFailed',
    message: 'At least one of the pre-conditions you specified did not hold',
  },
  noSuchKey: { status: 404, code: 'NoSuchKey', message: 'The specified key does not exist.' },
  /** As B2 words it. */
  unsupportedHeader: (name: string) => ({
    ...{ status: 400, code: 'InvalidArgument', message: `Unsupported header '${name}' received for this API call.` },
  }),
  noSuchUpload: {
    status: 404,
    code: 'NoSuchUpload',
    message:
      'The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.',
  },
  invalidPart: { status: 400, code: 'InvalidPart', message: 'One or more of the specified parts could not be found.' },
  entityTooSmall: {
    status: 400,
    code: 'EntityTooSmall',
    message: 'Your proposed upload is smaller than the minimum allowed size',
  },
  expiredToken: { status: 400, code: 'ExpiredToken', message: 'The provided token has expired.' },
  invalidToken: { status: 400, code: 'InvalidToken', message: 'The provided token is malformed or otherwise invalid.' },
  invalidAccessKeyId: {
    status: 403,
    code: 'InvalidAccessKeyId',
    message: 'The AWS Access Key Id you provided does not exist in our records.',
  },
  signatureDoesNotMatch: {
    status: 403,
    code: 'SignatureDoesNotMatch',
    message: 'The request signature we calculated does not match the signature you provided. Check your key and signing method.',
  },
  contentHashMismatch: {
    status: 400,
    code: 'XAmzContentSHA256Mismatch',
    message: 'The provided x-amz-content-sha256 header does not match what was computed.',
  },
  badDigest: (algorithm: string) => ({
    status: 400,
    code: 'BadDigest',
    message: `The ${algorithm} you specified did not match the calculated checksum.`,
  }),
  notAuthorized: (caller: string, action: string, resource: string) => ({
    status: 403,
    code: 'AccessDenied',
    message: `User: ${caller} is not authorized to perform: ${action} on resource: "${resource}" because no identity-based policy allows the ${action} action`,
  }),
  permanentRedirect: (bucket: string, region: string) => ({
    status: 301,
    code: 'PermanentRedirect',
    message: redirected,
    headers: { 'x-amz-bucket-region': region },
    fields: { Endpoint: `${bucket}.s3.${region}.amazonaws.com`, Bucket: bucket },
  }),
  authorizationHeaderMalformed: (signed: string, region: string) => ({
    status: 400,
    code: 'AuthorizationHeaderMalformed',
    message: `The authorization header is malformed; the region '${signed}' is wrong; expecting '${region}'`,
    fields: { Region: region },
  }),
  kmsNotFound: (key: string) => ({ status: 400, code: 'KMS.NotFoundException', message: `Key '${key}' does not exist` }),
  kmsDisabled: (key: string) => ({ status: 400, code: 'KMS.DisabledException', message: `${key} is disabled.` }),
  kmsDenied: (caller: string, key: string) => ({
    status: 403,
    code: 'AccessDenied',
    message: `User: ${caller} is not authorized to perform: kms:GenerateDataKey on resource: ${key} because no identity-based policy allows the kms:GenerateDataKey action`,
  }),
  /** From a load balancer in front of the store. */
  badGateway: { status: 502, code: '', message: '', page: '<html><body><h1>502 Bad Gateway</h1></body></html>' },
  /** From a network with a captive portal. */
  portal: { status: 200, code: '', message: '', page: '<html><body>Welcome to our guest network</body></html>' },
  forbiddenPage: { status: 403, code: '', message: '', page: 'Blocked by corporate proxy.' },
  explicitlyDenied: (caller: string, action: string, resource: string) => ({
    status: 403,
    code: 'AccessDenied',
    message: `User: ${caller} is not authorized to perform: ${action} on resource: "${resource}" with an explicit deny in a resource-based policy`,
  }),
  requestTimeTooSkewed: (requestTime: string, now: number) => ({
    status: 403,
    code: 'RequestTimeTooSkewed',
    message: 'The difference between the request time and the current time is too large.',
    fields: {
      RequestTime: requestTime,
      ServerTime: new Date(now).toISOString().replace(/\.\d+/, ''),
      MaxAllowedSkewMilliseconds: '900000',
    },
  }),
} as const

export const stsErrors = {
  /** The same for a missing role, a role that does not trust the caller, and a wrong external id. */
  accessDenied: (caller: string, role: string) => ({
    status: 403,
    code: 'AccessDenied',
    message: `User: ${caller} is not authorized to perform: sts:AssumeRole on resource: ${role}`,
  }),
  /** How gateways report a missing role. Ceph uses the form of S3 errors. */
  noSuchRole: { status: 404, code: 'NoSuchEntity', message: 'No such role' },
  noSuchRoleOfCeph: {
    status: 404,
    code: '',
    message: '',
    page: '<?xml version="1.0" encoding="UTF-8"?><Error><Code>NoSuchEntity</Code><Message></Message><RequestId>tx0</RequestId><HostId>1</HostId></Error>',
  },
  invalidClientTokenId: {
    status: 403,
    code: 'InvalidClientTokenId',
    message: 'The security token included in the request is invalid.',
  },
  durationTooLong: {
    status: 400,
    code: 'ValidationError',
    message: 'The requested DurationSeconds exceeds the MaxSessionDuration set for this role.',
  },
  signatureExpired: (requestTime: string, now: number) => ({
    status: 403,
    code: 'SignatureDoesNotMatch',
    message: `Signature expired: ${requestTime} is now earlier than ${compact(now - 900_000)} (${compact(now)} - 15 min.)`,
  }),
  throttling: { status: 400, code: 'Throttling', message: 'Rate exceeded' },
} as const

export function compact(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:]|\.\d+/g, '')
}

export function xml(root: string, content: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n<${root}>${content}</${root.split(' ')[0]}>`
}

export function element(name: string, value: string | number): string {
  const text = String(value).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`)
  return `<${name}>${text}</${name}>`
}

export function errorBody({ code, message, page, fields = {} }: ErrorAnswer): string {
  if (page !== undefined) return page
  const all = { Code: code, Message: message, ...fields, RequestId: '4442587FB7D0A2F9', HostId: 'aG9zdA==' }
  return xml(
    'Error',
    Object.entries(all)
      .map(([name, value]) => element(name, value))
      .join(''),
  )
}

export function stsErrorBody({ code, message, page }: ErrorAnswer): string {
  if (page !== undefined) return page
  const inner = element('Type', 'Sender') + element('Code', code) + element('Message', message)
  return `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error>${inner}</Error><RequestId>c6104cbe-af31-11e0-8154-cbc7ccf896c7</RequestId></ErrorResponse>`
}
