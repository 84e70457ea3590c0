/**
 * S3 and STS in memory, over real HTTP on one address, with faults that tests switch on.
 *
 * Owns: buckets with objects and uploads, roles with the principals they trust, and faults. It checks signatures, session tokens, payload
 * hashes, checksums and the clock as the real ones do. Does not own: policies (a role may or may not do an operation), versions, ACLs.
 */
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { type ErrorAnswer, element, errorBody, s3Errors, stsErrorBody, stsErrors, xml } from './answers.ts'
import { readSignature, type Signed } from './signature.ts'

export type Operation =
  | 'AssumeRole'
  | 'PutObject'
  | 'GetObject'
  | 'HeadObject'
  | 'DeleteObject'
  | 'ListObjectsV2'
  | 'CreateMultipartUpload'
  | 'UploadPart'
  | 'CompleteMultipartUpload'
  | 'AbortMultipartUpload'
  | 'ListMultipartUploads'

export type Fault =
  | ErrorAnswer
  /** Never responds. */
  | 'silence'
  /** Does not even read the body. */
  | 'stall'
  /** Resets the connection after half of the body: of the request, or of the response to a GET. */
  | 'reset'
  /** Performs the operation, then breaks the connection instead of responding. */
  | 'answer lost'
  /** Status 200 with an error in the body, as S3 may respond to CompleteMultipartUpload. */
  | 'error in a 200'
  /** Performs the operation slowly, a kilobyte at a time. */
  | 'crawl'

export type Call = {
  readonly operation: Operation
  readonly bucket: string
  readonly key: string
  readonly headers: IncomingMessage['headers']
  readonly query: URLSearchParams
  /** For AssumeRole. */
  readonly form: URLSearchParams
  readonly signed: Signed | undefined
}

export type StoredObject = {
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string>>
}

export type Role = {
  readonly externalId: string
  /** Longest session. The default of AWS is an hour. */
  maxSeconds?: number
  /** The actual duration of sessions, whatever they request. */
  lifetimeSeconds?: number
  /** Operations that its policy denies. */
  readonly denied: Set<Operation>
}

type Bucket = {
  readonly region: string
  readonly objects: Map<string, StoredObject>
  readonly uploads: Map<string, PendingUpload>
}
type PendingUpload = {
  readonly key: string
  readonly headers: Readonly<Record<string, string>>
  readonly parts: Map<number, { readonly body: Buffer; readonly etag: string }>
}
type Session = {
  readonly secret: string
  readonly token: string | undefined
  readonly role: Role
  readonly arn: string
  readonly endsAt: number
}
type Answer = { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string | Buffer }

const keptHeader = /^(x-amz-meta-|x-amz-server-side-encryption|x-amz-checksum-|content-type$)/
const laterHeader = /^x-amz-(checksum-|sdk-checksum-|server-side-encryption)/
const callerArn = 'arn:aws:iam::111111111111:user/inlet'

export const doubleCredentials = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
}

export class S3Double implements AsyncDisposable {
  readonly url: string
  readonly buckets = new Map<string, Bucket>()
  readonly roles = new Map<string, Role>()
  /** Every request, including those that ended with a fault. */
  readonly calls: Call[] = []
  /** Returns the fault of a request, if any. */
  fault: (call: Call) => Fault | undefined = () => undefined
  /** How far its clock is ahead of the system clock. */
  aheadMs = 0
  keysPerPage = 1_000
  /** Number of connections so far. */
  connections = 0
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #sessions = new Map<string, Session>()
  #own: Role | undefined
  #knowsHeaders = false

  private constructor(server: Server, port: number) {
    this.#server = server
    this.url = `http://127.0.0.1:${port}`
    server.on('connection', (socket) => {
      this.connections += 1
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    server.on('request', (request, response) => {
      // Some faults break the connection on purpose.
      this.#serve(request, response).catch(() => response.destroy())
    })
  }

  static async start(port = 0): Promise<S3Double> {
    const server = createServer({ keepAliveTimeout: 60_000 }).listen(port, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('a TCP server without a port')
    return new S3Double(server, address.port)
  }

  addBucket(name: string, region = 'eu-central-1'): Bucket {
    const bucket = { region, objects: new Map(), uploads: new Map() }
    this.buckets.set(name, bucket)
    return bucket
  }

  addRole(arn: string, role: { readonly externalId: string } & Partial<Role>): Role {
    const added = { denied: new Set<Operation>(), ...role }
    this.roles.set(arn, added)
    return added
  }

  /**
   * Makes it a store without roles, as R2, B2 and MinIO are: the keys of the installation open every bucket, and headers for checksums and
   * encryption are rejected, unless it knows them. Returns what these keys may not do.
   */
  withoutRoles({ knowsHeaders = false } = {}): Role {
    this.#knowsHeaders = knowsHeaders
    const own: Role = { externalId: '', denied: new Set() }
    const { accessKeyId, secretAccessKey: secret } = doubleCredentials
    this.#sessions.set(accessKeyId, { secret, token: undefined, role: own, arn: callerArn, endsAt: Number.POSITIVE_INFINITY })
    this.#own = own
    return own
  }

  /** Whether it keeps an object that is there if it is told to. */
  heedsConditions = true

  /** Whether it stores a part of an object if the connection breaks. */
  keepsTorn = false

  /** Whether an upload stays although it was aborted. */
  keepsAbandoned = false

  /** Whether a put is a version that stays. */
  keepsVersions = false

  /** Checksums that it does not compare: `signature`, and those of `x-amz-checksum-…`. */
  ignoresChecksums: readonly string[] = []

  object(bucket: string, key: string): StoredObject | undefined {
    return this.buckets.get(bucket)?.objects.get(key)
  }

  count(operation: Operation): number {
    return this.calls.filter((call) => call.operation === operation).length
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  get #now(): number {
    return Date.now() + this.aheadMs
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url)
    const call = callOf(request, url)
    this.calls.push(call)
    const fault = this.fault(call)
    if (fault === 'stall') return
    const onTorn = (part: Buffer) => {
      if (this.keepsTorn) this.buckets.get(call.bucket)?.objects.set(call.key, { body: part, headers: {} })
    }
    const body =
      fault === 'reset' && request.method !== 'GET' ? await halfOf(request) : await wholeOf(request, fault === 'crawl', onTorn)
    if (call.operation === 'AssumeRole')
      for (const [name, value] of new URLSearchParams(body.toString())) call.form.set(name, value)
    if (fault === 'silence') return
    if (fault === 'reset' && request.method !== 'GET') return void request.socket.resetAndDestroy()
    const answer = typeof fault === 'object' ? error(call, fault) : this.#answer(call, request, body)
    if (fault === 'answer lost') return void request.socket.destroy()
    if (fault === 'error in a 200') return this.#send(response, { status: 200, body: errorBody(s3Errors.internalError) })
    if (fault === 'reset') {
      response.writeHead(answer.status, { ...answer.headers, 'content-length': String(Buffer.byteLength(answer.body ?? '')) })
      response.write(Buffer.from(answer.body ?? '').subarray(0, Buffer.byteLength(answer.body ?? '') / 2), () =>
        request.socket.resetAndDestroy(),
      )
      return
    }
    this.#send(response, answer)
  }

  #send(response: ServerResponse, { status, headers, body = '' }: Answer): void {
    response.writeHead(status, {
      date: new Date(this.#now).toUTCString(),
      'x-amz-request-id': '4442587FB7D0A2F9',
      'content-length': String(Buffer.byteLength(body)),
      ...headers,
    })
    response.end(body)
  }

  #answer(call: Call, request: IncomingMessage, body: Buffer): Answer {
    return call.operation === 'AssumeRole' ? this.#assumeRole(call, body) : this.#inBucket(call, request, body)
  }

  #assumeRole(call: Call, body: Buffer): Answer {
    const { signed, form } = call
    const arn = form.get('RoleArn') ?? ''
    if (signed?.accessKeyId !== doubleCredentials.accessKeyId) return error(call, stsErrors.invalidClientTokenId)
    if (!signed.isSignedWith(doubleCredentials.secretAccessKey, sha256(body).toString('hex')))
      return error(call, s3Errors.signatureDoesNotMatch)
    if (this.#isSkewed(signed.date)) return error(call, stsErrors.signatureExpired(signed.date, this.#now))
    const role = this.roles.get(arn)
    if (role === undefined || role.externalId !== form.get('ExternalId'))
      return error(call, stsErrors.accessDenied(callerArn, arn))
    const seconds = Number(form.get('DurationSeconds') ?? 3600)
    if (seconds > (role.maxSeconds ?? 3600)) return error(call, stsErrors.durationTooLong)
    const name = form.get('RoleSessionName') ?? ''
    if (!/^[\w+=,.@-]{2,64}$/.test(name)) {
      return error(call, {
        status: 400,
        code: 'ValidationError',
        message: `1 validation error detected: Value '${name}' at 'roleSessionName'`,
      })
    }
    const id = `ASIA${randomUUID().replaceAll('-', '').slice(0, 16).toUpperCase()}`
    const endsAt = this.#now + (role.lifetimeSeconds ?? seconds) * 1000
    const assumed = arn.replace(':iam:', ':sts:').replace(':role/', ':assumed-role/')
    const session = { secret: randomUUID(), token: `token+${randomUUID()}/==`, role, arn: `${assumed}/${name}`, endsAt }
    this.#sessions.set(id, session)
    const credentials = [
      element('AccessKeyId', id),
      element('SecretAccessKey', session.secret),
      element('SessionToken', session.token),
      element('Expiration', new Date(endsAt).toISOString().replace(/\.\d+/, '')),
    ].join('')
    const user = element('Arn', session.arn) + element('AssumedRoleId', `AROA123EXAMPLE123:${name}`)
    return {
      status: 200,
      headers: { 'content-type': 'text/xml' },
      body: `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><AssumedRoleUser>${user}</AssumedRoleUser><Credentials>${credentials}</Credentials></AssumeRoleResult><ResponseMetadata><RequestId>c6104cbe</RequestId></ResponseMetadata></AssumeRoleResponse>`,
    }
  }

  /** Checks in the order of S3: caller, bucket, permission, body. */
  #inBucket(call: Call, request: IncomingMessage, body: Buffer): Answer {
    const { signed, operation, headers } = call
    const session = this.#sessions.get(signed?.accessKeyId ?? '')
    if (signed === undefined) return error(call, s3Errors.accessDenied)
    if (session === undefined) return error(call, s3Errors.invalidAccessKeyId)
    if (session.token !== signed.token) return error(call, s3Errors.invalidToken)
    if (!signed.isSignedWith(session.secret, sha256(body).toString('hex'))) return error(call, s3Errors.signatureDoesNotMatch)
    if (this.#isSkewed(signed.date, signed.expires)) return error(call, s3Errors.requestTimeTooSkewed(signed.date, this.#now))
    if (session.endsAt <= this.#now) return error(call, s3Errors.expiredToken)
    if (![...this.roles.values(), this.#own].includes(session.role)) return error(call, s3Errors.invalidAccessKeyId)
    const isSimple = this.#own !== undefined && !this.#knowsHeaders
    const unsupported = isSimple ? Object.keys(headers).find((name) => laterHeader.test(name)) : undefined
    if (unsupported !== undefined) return error(call, s3Errors.unsupportedHeader(unsupported))
    const bucket = this.buckets.get(call.bucket)
    if (bucket === undefined) return error(call, s3Errors.noSuchBucket)
    if (bucket.region !== signed.region) return error(call, s3Errors.permanentRedirect(call.bucket, bucket.region))
    if (session.role.denied.has(operation)) {
      return error(call, s3Errors.notAuthorized(session.arn, actionOf(operation), `arn:aws:s3:::${call.bucket}/${call.key}`))
    }
    const isMissing = /^(Get|Head)Object$/.test(operation) && !bucket.objects.has(call.key)
    if (isMissing && session.role.denied.has('ListObjectsV2')) return error(call, s3Errors.accessDenied)
    const told = headers['x-amz-content-sha256']
    const isSigned = told !== undefined && told !== 'UNSIGNED-PAYLOAD' && !this.ignoresChecksums.includes('signature')
    if (isSigned && told !== sha256(body).toString('hex')) return error(call, s3Errors.contentHashMismatch)
    const wrong = wrongChecksum(headers, body, this.ignoresChecksums)
    if (wrong !== undefined) return error(call, s3Errors.badDigest(wrong))
    return this.#act(call, bucket, request, body)
  }

  #act(call: Call, bucket: Bucket, request: IncomingMessage, body: Buffer): Answer {
    const { operation, key, query } = call
    const { objects, uploads } = bucket
    const upload = uploads.get(query.get('uploadId') ?? '')
    switch (operation) {
      case 'PutObject':
        if (this.heedsConditions && call.headers['if-none-match'] === '*' && objects.has(key))
          return error(call, s3Errors.preconditionFailed)
        objects.set(key, { body, headers: kept(request) })
        return {
          status: 200,
          headers: { etag: etagOf(body), ...(this.keepsVersions ? { 'x-amz-version-id': randomUUID() } : {}) },
        }
      case 'GetObject':
      case 'HeadObject': {
        const found = objects.get(key)
        if (found === undefined) return error(call, s3Errors.noSuchKey)
        return {
          status: 200,
          headers: { ...found.headers, etag: etagOf(found.body), 'content-length': String(found.body.length) },
          ...(operation === 'GetObject' ? { body: found.body } : {}),
        }
      }
      case 'DeleteObject':
        objects.delete(key)
        return { status: 204 }
      case 'ListObjectsV2':
        return this.#list(call, objects)
      case 'CreateMultipartUpload': {
        const id = randomUUID()
        uploads.set(id, { key, headers: kept(request), parts: new Map() })
        const names = element('Bucket', call.bucket) + element('Key', key) + element('UploadId', id)
        return { status: 200, body: xml('InitiateMultipartUploadResult', names) }
      }
      case 'UploadPart': {
        if (upload === undefined) return error(call, s3Errors.noSuchUpload)
        upload.parts.set(Number(query.get('partNumber')), { body, etag: etagOf(body) })
        const checksums = Object.entries(kept(request)).filter(([name]) => name.startsWith('x-amz-checksum-'))
        return { status: 200, headers: { etag: etagOf(body), ...Object.fromEntries(checksums) } }
      }
      case 'CompleteMultipartUpload': {
        if (upload === undefined) return error(call, s3Errors.noSuchUpload)
        const asked = [...body.toString().matchAll(/<Part>(.*?)<\/Part>/gs)].map(([, part = '']) => ({
          number: Number(/<PartNumber>(\d+)</.exec(part)?.[1]),
          etag: /<ETag>(.*?)</.exec(part)?.[1]?.replaceAll('&quot;', '"'),
        }))
        const parts = asked.map(({ number, etag }) => {
          const found = upload.parts.get(number)
          return found?.etag === etag ? found : undefined
        })
        if (parts.length === 0 || parts.includes(undefined)) return error(call, s3Errors.invalidPart)
        const bodies = parts.map((part) => must(part, 'part').body)
        if (bodies.slice(0, -1).some(({ length }) => length < 5 * 1024 * 1024)) return error(call, s3Errors.entityTooSmall)
        objects.set(key, { body: Buffer.concat(bodies), headers: upload.headers })
        uploads.delete(query.get('uploadId') ?? '')
        return {
          status: 200,
          body: xml('CompleteMultipartUploadResult', element('Key', key) + element('ETag', `"x-${parts.length}"`)),
        }
      }
      case 'AbortMultipartUpload':
        if (upload === undefined) return error(call, s3Errors.noSuchUpload)
        if (!this.keepsAbandoned) uploads.delete(query.get('uploadId') ?? '')
        return { status: 204 }
      case 'ListMultipartUploads': {
        const prefix = query.get('prefix') ?? ''
        const listed = [...uploads].filter(([, { key }]) => key.startsWith(prefix))
        const shown = listed.map(([id, { key }]) => `<Upload>${element('Key', key)}${element('UploadId', id)}</Upload>`)
        return { status: 200, body: xml('ListMultipartUploadsResult', element('IsTruncated', 'false') + shown.join('')) }
      }
      case 'AssumeRole':
        throw new Error('not in a bucket')
    }
  }

  #list({ query, bucket }: Call, objects: Bucket['objects']): Answer {
    const prefix = query.get('prefix') ?? ''
    const after = query.get('continuation-token') ?? ''
    const max = Math.min(this.keysPerPage, Number(query.get('max-keys') ?? 1_000))
    const keys = [...objects.keys()]
      .filter((key) => key.startsWith(prefix))
      .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
      .filter((key) => after === '' || Buffer.compare(Buffer.from(key), Buffer.from(after, 'base64')) > 0)
    const page = keys.slice(0, max)
    const contents = page.map(
      (key) => `<Contents>${element('Key', key)}${element('Size', must(objects.get(key), key).body.length)}</Contents>`,
    )
    const isTruncated = keys.length > page.length
    const token = isTruncated ? element('NextContinuationToken', Buffer.from(page.at(-1) ?? '').toString('base64')) : ''
    const head =
      element('Name', bucket) +
      element('Prefix', prefix) +
      element('KeyCount', page.length) +
      element('IsTruncated', String(isTruncated))
    return {
      status: 200,
      body: xml('ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"', head + token + contents.join('')),
    }
  }

  #isSkewed(date: string, expiresSeconds?: number): boolean {
    const at = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
    if (expiresSeconds !== undefined) return this.#now > at + expiresSeconds * 1000 || at - this.#now > 900_000
    return Math.abs(at - this.#now) > 900_000
  }
}

function callOf(request: IncomingMessage, url: URL): Call {
  const { method = 'GET', headers } = request
  // Virtual-hosted style: the host name contains the bucket.
  const [, hosted] = /^(.+)\.gateway\.test(:\d+)?$/.exec(headers.host ?? '') ?? []
  const path = hosted === undefined ? url.pathname : `/${hosted}${url.pathname}`
  const [, bucket = '', ...parts] = path.split('/').map(decodeURIComponent)
  const key = parts.join('/')
  const query = url.searchParams
  const rest = { bucket, key, headers, query, form: new URLSearchParams(), signed: readSignature(request) }
  return { operation: operationOf(method, bucket, key, query), ...rest }
}

function operationOf(method: string, bucket: string, key: string, query: URLSearchParams): Operation {
  if (bucket === '') return 'AssumeRole'
  if (key === '') return query.has('uploads') ? 'ListMultipartUploads' : 'ListObjectsV2'
  if (method === 'POST') return query.has('uploads') ? 'CreateMultipartUpload' : 'CompleteMultipartUpload'
  if (method === 'PUT') return query.has('uploadId') ? 'UploadPart' : 'PutObject'
  if (method === 'DELETE') return query.has('uploadId') ? 'AbortMultipartUpload' : 'DeleteObject'
  return method === 'HEAD' ? 'HeadObject' : 'GetObject'
}

function actionOf(operation: Operation): string {
  const own = {
    PutObject: 's3:PutObject',
    DeleteObject: 's3:DeleteObject',
    GetObject: 's3:GetObject',
    HeadObject: 's3:GetObject',
  }
  if (operation in own) return own[operation as keyof typeof own]
  if (operation === 'ListObjectsV2') return 's3:ListBucket'
  if (operation === 'ListMultipartUploads') return 's3:ListBucketMultipartUploads'
  return operation === 'AbortMultipartUpload' ? 's3:AbortMultipartUpload' : 's3:PutObject'
}

function error(call: Call, answer: ErrorAnswer): Answer {
  const body = call.operation === 'AssumeRole' ? stsErrorBody(answer) : errorBody(answer)
  return {
    status: answer.status,
    headers: { 'content-type': 'application/xml', ...answer.headers },
    ...(call.operation === 'HeadObject' ? {} : { body }),
  }
}

function kept({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (keptHeader.test(name) ? [[name, String(value)]] : [])),
  )
}

function wrongChecksum(headers: IncomingMessage['headers'], body: Buffer, ignored: readonly string[]): string | undefined {
  const crc = Buffer.alloc(4)
  crc.writeUInt32BE(crc32(body))
  // The only CRC32C that tests send is wrong.
  const right: Readonly<Record<string, Buffer>> = { SHA256: sha256(body), CRC32: crc, CRC32C: Buffer.alloc(0) }
  return Object.keys(right).find((algorithm) => {
    const told = headers[`x-amz-checksum-${algorithm.toLowerCase()}`]
    return told !== undefined && told !== right[algorithm]?.toString('base64') && !ignored.includes(algorithm.toLowerCase())
  })
}

async function wholeOf(request: IncomingMessage, slowly: boolean, onTorn: (part: Buffer) => void): Promise<Buffer> {
  const chunks: Buffer[] = []
  request.once('aborted', () => onTorn(Buffer.concat(chunks)))
  for await (const chunk of request) {
    chunks.push(chunk)
    if (slowly) await delay(2)
  }
  return Buffer.concat(chunks)
}

/** Reads half of the announced body. */
async function halfOf(request: IncomingMessage): Promise<Buffer> {
  let bytes = 0
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length
    if (bytes * 2 >= Number(request.headers['content-length'] ?? 0)) break
  }
  return Buffer.alloc(0)
}

function sha256(body: Buffer): Buffer {
  return createHash('sha256').update(body).digest()
}

function etagOf(body: Buffer): string {
  return `"${createHash('md5').update(body).digest('hex')}"`
}

function must<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new Error(`${name} is missing`)
  return value
}
