/**
 * One bucket on S3.
 *
 * Owns: the requests of each operation, and a few quick retries. Does not own: credentials and connections, or retrying for longer, which is
 * up to the caller.
 * Law: the signature of every put covers the SHA-256 of its content, which S3 verifies, and puts are encrypted as the destination says. Every
 * failure of the store is an ObjectStoreError. When the signal aborts, its reason is thrown.
 */
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  type HeadObjectCommandOutput,
  ListObjectsV2Command,
  NoSuchKey,
  NotFound,
  PutObjectCommand,
  type PutObjectCommandInput,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { sleep } from '#lib/clock.ts'
import { digestFile } from '#lib/digest-file.ts'
import { Backoff } from '#lib/retry.ts'
import type { Semaphore } from '#lib/semaphore.ts'
import type { System } from '#lib/system.ts'
import { s3Limits } from './limits.ts'
import type { ChecksumTrial, DigestOptions, ObjectEntry, ObjectFacts, ObjectStore, PutOptions } from './object-store.ts'
import type { RoleClient } from './role-client.ts'
import { type DescribedTarget, describeFailure, foreignResponse } from './s3-failure.ts'
import { beginParts, countUploads, putInParts } from './s3-multipart.ts'
import { damagedPuts, isRefusal, putHalf, readTime, trialBody } from './s3-trials.ts'
import { signPayload } from './sign-payload.ts'
import { ObjectStoreError, type StoreStep } from './store-error.ts'

export type S3StoreOptions = System & {
  readonly target: DescribedTarget
  readonly client: () => RoleClient
  /** Client for signing URLs. */
  readonly linkClient: () => RoleClient
  /** Limits multipart uploads over all buckets. */
  readonly multiparts: Semaphore
}

export class S3Store implements ObjectStore {
  readonly #options: S3StoreOptions

  constructor(options: S3StoreOptions) {
    this.#options = options
  }

  async putFile(key: string, path: string, options: PutOptions): Promise<void> {
    const { signal } = options
    signal?.throwIfAborted()
    const { size } = await stat(path)
    if (size > s3Limits.multipartThresholdBytes) return this.#putInParts(key, path, size, options)
    const sha256 = options.sha256 ?? (await digestFile(this.#options.files, path)).sha256
    await this.#putStream(key, () => createReadStream(path, { highWaterMark: s3Limits.readBytes }), size, { ...options, sha256 })
  }

  async put(key: string, body: Uint8Array, options: PutOptions): Promise<void> {
    await this.#putBody(key, body, options)
  }

  async putIfAbsent(key: string, body: Uint8Array, options: PutOptions): Promise<boolean> {
    try {
      await this.#putBody(key, body, { ...options, attempts: 1, ifAbsent: true })
      return true
    } catch (error) {
      if (error instanceof ObjectStoreError && error.code === 'PreconditionFailed') return false
      throw error
    }
  }

  async #putBody(key: string, body: Uint8Array, options: PutOptions & { readonly ifAbsent?: true }): Promise<void> {
    const sha256 = createHash('sha256').update(body).digest('hex')
    await this.#putStream(key, () => Readable.from([body]), body.byteLength, { ...options, sha256 })
  }

  /** Calls `open` for each attempt. The SDK never repeats the request of a stream by itself. */
  async #putStream(
    key: string,
    open: () => Readable,
    bytes: number,
    options: PutOptions & { readonly sha256: string; readonly ifAbsent?: true },
  ): Promise<void> {
    const { sha256, signal, ifAbsent, attempts = s3Limits.attemptsMax } = options
    await this.#try(ifAbsent === true ? 'put_if_absent' : 'put', { signal, attempts }, async ({ client }) => {
      const unreadable = new AbortController()
      const body = open()
      // The SDK pipes the stream and would wait forever if it cannot be read.
      body.once('error', (error) => unreadable.abort(error))
      const command = new PutObjectCommand({
        ...this.#input(key, options),
        Body: body,
        ContentLength: bytes,
        ...(ifAbsent === true && { IfNoneMatch: '*' }),
        ...(this.#options.target.checksums === 'none' ? {} : checksum(sha256)),
      })
      signPayload(command, sha256)
      try {
        const { ETag } = await client.send(command, { abortSignal: either(signal, unreadable.signal) })
        if (ETag === undefined) throw foreignResponse('PutObject')
      } catch (error) {
        // Not earlier: the store may respond before the stream has ended, and without the end of the stream the connection stays occupied.
        body.destroy()
        const failure = unreadable.signal.aborted ? unreadable.signal.reason : error
        // A request that got its response before it was sent completely would occupy its connection.
        unreadable.abort()
        throw failure
      }
    })
  }

  async #putInParts(key: string, path: string, bytes: number, options: PutOptions): Promise<void> {
    const { signal } = options
    using _slot = await this.#options.multiparts.acquire(1, signal ?? new AbortController().signal)
    await this.#try('put', { signal }, ({ client }) =>
      putInParts({ client, input: this.#input(key, options), path, bytes, signal, checksums: this.#options.target.checksums }),
    )
  }

  async get(key: string, signal?: AbortSignal): Promise<Uint8Array | undefined> {
    return this.#read(key, signal, async (body) => {
      const chunks: Uint8Array[] = []
      let bytes = 0
      for await (const chunk of body) {
        bytes += chunk.length
        // The bucket belongs to the customer, so the object may have any size.
        if (bytes > s3Limits.getBytesMax) throw tooLarge(key, this.#options.target.bucket, s3Limits.getBytesMax)
        chunks.push(chunk)
      }
      return Buffer.concat(chunks)
    })
  }

  async head(key: string, signal?: AbortSignal): Promise<ObjectFacts | undefined> {
    const { bucket: Bucket, checksums, encryption } = this.#options.target
    // With a key of KMS, S3 gives its checksum only to those who may decrypt, and denies the others everything.
    const wanted = checksums === 'none' || encryption === 'kms' ? {} : { ChecksumMode: 'ENABLED' as const }
    return this.#orMissing(key, signal, () =>
      this.#try('get', { signal, attempts: 2 }, async ({ client }) => {
        const command = new HeadObjectCommand({ Bucket, Key: key, ...wanted })
        const found = await client.send(command, sendOptions(signal)).catch(undefinedIfMissing)
        return found?.ContentLength === undefined ? undefined : { bytes: found.ContentLength, sha256: sha256Of(found) }
      }),
    )
  }

  async getFile(key: string, path: string, signal?: AbortSignal, bytesMax = Number.POSITIVE_INFINITY): Promise<boolean> {
    const found = await this.#read(key, signal, async (body) => {
      try {
        await pipeline(body, atMost(bytesMax, tooLarge(key, this.#options.target.bucket, bytesMax)), createWriteStream(path))
        return true
      } catch (error) {
        await rm(path, { force: true })
        throw error
      }
    })
    return found ?? false
  }

  async digest(key: string, { signal, onRead }: DigestOptions = {}): ReturnType<ObjectStore['digest']> {
    return this.#read(key, signal, async (body) => {
      const hash = createHash('sha256')
      let bytes = 0
      for await (const chunk of body as AsyncIterable<Uint8Array>) {
        hash.update(chunk)
        bytes += chunk.length
        await onRead?.(chunk.length)
      }
      return { bytes, sha256: hash.digest('hex') }
    })
  }

  async presign(key: string, seconds: number): Promise<string> {
    const { target, clock, linkClient } = this.#options
    const { client, ready } = linkClient()
    try {
      await ready()
      const command = new GetObjectCommand({ Bucket: target.bucket, Key: key })
      // By default the presigner uses the clock of this machine, which may be wrong.
      const signingDate = new Date(clock.now() + client.config.systemClockOffset)
      return await getSignedUrl(client, command, { expiresIn: seconds, signingDate })
    } catch (error) {
      throw describeFailure(error, 'sign', target)
    }
  }

  async remove(key: string, signal?: AbortSignal): Promise<void> {
    const Bucket = this.#options.target.bucket
    await this.#try('remove', { signal }, ({ client }) =>
      client.send(new DeleteObjectCommand({ Bucket, Key: key }), sendOptions(signal)),
    )
  }

  async tryParts(key: string, options: PutOptions): Promise<void> {
    const { signal } = options
    const input = this.#input(key, options)
    const UploadId = await this.#try('put', { signal }, ({ client }) =>
      beginParts({ client, input, signal, checksums: this.#options.target.checksums }),
    )
    const { Bucket, Key } = input
    await this.#try('abort', { signal }, ({ client }) =>
      client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }), sendOptions(signal)),
    )
  }

  async tryTorn(key: string, options: PutOptions): Promise<void> {
    const { signal } = options
    await this.#try('put', { signal }, ({ client }) => putHalf(client, this.#input(key, options), signal))
  }

  async countUploads(prefix: string, signal?: AbortSignal): Promise<number> {
    const Bucket = this.#options.target.bucket
    return this.#try('list', { signal }, ({ client }) => countUploads(client, { Bucket, Prefix: prefix }, signal))
  }

  async tryVersions(key: string, options: PutOptions): Promise<boolean> {
    const { signal } = options
    const command = new PutObjectCommand({ ...this.#input(key, options), Body: trialBody })
    const { VersionId = 'null' } = await this.#try('put', { signal }, ({ client }) => client.send(command, sendOptions(signal)))
    // So it is called while a bucket keeps no versions.
    return VersionId !== 'null'
  }

  async tryChecksums(newKey: () => string, options: PutOptions): Promise<ChecksumTrial> {
    const { signal } = options
    const refused: string[] = []
    const stored: string[] = []
    for (const [name, makeCommand] of damagedPuts) {
      const command = makeCommand(this.#input(newKey(), options))
      try {
        await this.#try('put', { signal }, ({ client }) => client.send(command, sendOptions(signal)))
        stored.push(name)
      } catch (error) {
        if (!isRefusal(error)) throw error
        refused.push(name)
      }
    }
    return { refused, stored }
  }

  async readTime(prefix: string, signal?: AbortSignal): Promise<number | undefined> {
    const Bucket = this.#options.target.bucket
    return this.#try('list', { signal }, ({ client }) => readTime(client, { Bucket, Prefix: prefix, MaxKeys: 1 }, signal))
  }

  async *list(prefix: string, signal?: AbortSignal): AsyncIterable<ObjectEntry> {
    let token: string | undefined
    do {
      const page = await this.#list(prefix, token, undefined, signal)
      for (const { Key, Size } of page.Contents ?? []) if (Key !== undefined) yield { key: Key, bytes: Size ?? 0 }
      token = page.NextContinuationToken
    } while (token !== undefined)
  }

  #list(Prefix: string, ContinuationToken: string | undefined, MaxKeys: number | undefined, signal: AbortSignal | undefined) {
    const Bucket = this.#options.target.bucket
    return this.#try('list', { signal }, ({ client }) =>
      client.send(new ListObjectsV2Command({ Bucket, Prefix, ContinuationToken, MaxKeys }), sendOptions(signal)),
    )
  }

  /** Returns the result of `read` for the content of the object, or undefined if the object is missing. */
  async #read<T>(key: string, signal: AbortSignal | undefined, read: (body: Readable) => Promise<T>): Promise<T | undefined> {
    const Bucket = this.#options.target.bucket
    return this.#orMissing(key, signal, () =>
      this.#try('get', { signal, attempts: 2 }, async ({ client }) => {
        const stop = new AbortController()
        const command = new GetObjectCommand({ Bucket, Key: key })
        const found = await client.send(command, { abortSignal: either(signal, stop.signal) }).catch(undefinedIfMissing)
        if (found === undefined) return undefined
        try {
          return await read(found.Body as Readable)
        } catch (error) {
          // A response that is not read to its end would occupy the connection.
          stop.abort()
          throw error
        }
      }),
    )
  }

  async #orMissing<T>(key: string, signal: AbortSignal | undefined, work: () => Promise<T | undefined>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof ObjectStoreError) || error.reason !== 'get_denied') throw error
      // If listing is allowed only under a prefix, gateways respond 403 for a missing object.
      // Without permission to list, missing and denied look alike. The denial of the object itself says more.
      const { Contents = [] } = await this.#list(key, undefined, 1, signal).catch((listing: unknown) => {
        throw listing instanceof ObjectStoreError && listing.reason === 'list_denied' ? error : listing
      })
      if (Contents.some(({ Key }) => Key === key)) throw error
      return undefined
    }
  }

  #input(key: string, { contentType, metadata }: PutOptions): PutObjectCommandInput {
    const { bucket, encryption, kms_key_arn } = this.#options.target
    return {
      Bucket: bucket,
      Key: key,
      ContentType: contentType,
      Metadata: metadata,
      ...(encryption === 'sse-s3' && { ServerSideEncryption: 'AES256' }),
      ...(encryption === 'kms' &&
        kms_key_arn !== null && { ServerSideEncryption: 'aws:kms', SSEKMSKeyId: kms_key_arn, BucketKeyEnabled: true }),
    }
  }

  /** Makes up to `attempts` attempts. The SDK retries by itself where the body can be sent again. */
  async #try<T>(
    step: StoreStep,
    { signal, attempts = 1 }: { readonly signal?: AbortSignal | undefined; readonly attempts?: number },
    act: (role: RoleClient) => Promise<T>,
  ): Promise<T> {
    const { target, client, clock, random } = this.#options
    const backoff = new Backoff({ delayMsMin: s3Limits.retryDelayMsMin, delayMsMax: s3Limits.retryDelayMsMax, random })
    for (let attempt = 1, renewed = false; ; attempt += 1) {
      signal?.throwIfAborted()
      const role = client()
      let at: StoreStep = 'assume_role'
      try {
        await role.ready(signal)
        at = step
        return await act(role)
      } catch (error) {
        const failure = describeFailure(signal?.aborted === true ? signal.reason : error, at, target)
        if (signal?.aborted === true || !(failure instanceof ObjectStoreError)) throw failure
        if (failure.reason === 'session_refused') {
          role.session.discard()
          if (renewed) throw failure
          renewed = true
          continue
        }
        if (at === step && failure.reason.endsWith('_denied')) role.session.discardIfOld()
        if (attempt >= attempts || !isQuicklyTransient(failure)) throw failure
        await sleep(clock, backoff.next(), signal)
      }
    }
  }
}

/** Failures worth a quick retry. For others the caller waits longer. */
function isQuicklyTransient({ reason, step }: ObjectStoreError): boolean {
  return step !== 'assume_role' && ['clock_skew', 'unreachable', 'unavailable', 'throttled', 'damaged'].includes(reason)
}

function checksum(sha256: string) {
  return { ChecksumAlgorithm: 'SHA256', ChecksumSHA256: Buffer.from(sha256, 'hex').toString('base64') } as const
}

/** The checksum of an object that was uploaded in parts is one of checksums: its metadata has that of the content. */
function sha256Of({
  ChecksumSHA256: verified,
  Metadata: { sha256: named = '' } = {},
}: HeadObjectCommandOutput): string | undefined {
  if (verified !== undefined && !verified.includes('-')) return Buffer.from(verified, 'base64').toString('hex')
  return /^[0-9a-f]{64}$/.test(named) ? named : undefined
}

function sendOptions(signal: AbortSignal | undefined) {
  return signal === undefined ? {} : { abortSignal: signal }
}

function either(signal: AbortSignal | undefined, other: AbortSignal): AbortSignal {
  return signal === undefined ? other : AbortSignal.any([signal, other])
}

function undefinedIfMissing(error: unknown): undefined {
  if (error instanceof NoSuchKey || error instanceof NotFound) return undefined
  throw error
}

/** Passes bytes on, and throws if there are more. */
function atMost(bytesMax: number, error: Error): (body: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array> {
  return async function* (body) {
    let bytes = 0
    for await (const chunk of body) {
      bytes += chunk.length
      if (bytes > bytesMax) throw error
      yield chunk
    }
  }
}

function tooLarge(key: string, bucket: string, bytesMax: number): ObjectStoreError {
  const advice = `it is larger than ${bytesMax} bytes, so Inlet did not write it; delete it`
  return new ObjectStoreError('refused', 'get', 'TooLarge', `reading ${key} in bucket ${bucket} failed: ${advice}`)
}
