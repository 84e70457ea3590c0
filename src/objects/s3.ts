/**
 * Buckets on S3. Each is accessed with the role of its destination, or all with the credentials of this installation.
 *
 * Owns: connections, and the caches of clients and role sessions. Does not own: operations on a bucket (`s3-store.ts`), or the credentials
 * of this installation, which the SDK finds.
 * Law: only the role of a destination signs requests to its bucket. Destinations share a session only if their region, role,
 * external id and session name are equal. Without roles the credentials of this installation sign, only for keys that `AllowedStore` lets through.
 */
import type { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import type { LookupFunction } from 'node:net'
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3'
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts'
import { LRUCache } from 'lru-cache'
import type { Clock } from '#lib/clock.ts'
import { http } from '#lib/http.ts'
import { Semaphore } from '#lib/semaphore.ts'
import type { System } from '#lib/system.ts'
import { AllowedStore } from './allowed-store.ts'
import { s3Limits } from './limits.ts'
import type { BucketTarget, ObjectStore, ObjectStores, OpenOptions } from './object-store.ts'
import type { RoleClient } from './role-client.ts'
import { type GrantedCredentials, RoleSession, type RoleSessionOptions } from './role-session.ts'
import { describeFailure, foreignResponse, missingRole } from './s3-failure.ts'
import { S3Store } from './s3-store.ts'

export type S3StoresOptions = System & {
  /** URL of a gateway; null for AWS. */
  readonly s3Endpoint: string | null
  readonly stsEndpoint: string | null
  /** False: the credentials of this installation sign every request. */
  readonly hasRoles?: boolean
  /** AWS identity of this installation, for error messages. */
  readonly principalArn?: string | null
  /** Credentials of this installation. By default the AWS SDK finds them. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string; readonly sessionToken?: string }
  readonly clientsMax?: number
  readonly idleTimeoutMs?: number
  readonly assumeTimeoutMs?: number
  /** Resolves host names instead of the system's resolver. */
  readonly lookup?: LookupFunction
}

/** Without a logger the SDK writes to the console. */
const ignore = () => undefined
const silent = { trace: ignore, debug: ignore, info: ignore, warn: ignore, error: ignore }

/** A cache whose `memo` takes the function that creates a missing value as its context. */
type Cache<T extends object> = LRUCache<string, T, () => T>

function newCache<T extends object>(clock: Clock, max: number): Cache<T> {
  const cache: Cache<T> = new LRUCache({
    max,
    ttl: s3Limits.sessionIdleMs,
    updateAgeOnGet: true,
    ttlResolution: 0,
    perf: { now: () => clock.monotonic() },
    memoMethod: (_key, _stale, { context: create }) => {
      cache.purgeStale()
      return create()
    },
  })
  return cache
}

export class S3Stores implements ObjectStores {
  readonly #options: S3StoresOptions
  readonly #connections: S3ClientConfig['requestHandler'] & object
  readonly #agents: readonly (HttpAgent | HttpsAgent)[]
  readonly #multiparts = new Semaphore(s3Limits.multipartsParallel)
  /** A client is large and cheap to recreate. A session is small and costs a request to STS, so many more are kept. */
  readonly #clients: Cache<RoleClient>
  readonly #sessions: Cache<RoleSession>
  readonly #sts: Cache<STSClient>
  /** Sign with the credentials of this installation. By region and style of addresses. */
  readonly #own: Cache<RoleClient>

  constructor(options: S3StoresOptions) {
    this.#options = options
    const { clock, lookup, clientsMax = s3Limits.clientsMax, idleTimeoutMs = s3Limits.idleTimeoutMs } = options
    const own = lookup === undefined ? {} : { lookup }
    const agent = { keepAlive: true, maxSockets: s3Limits.socketsMax, timeout: idleTimeoutMs, ...own }
    const httpAgent = new http.Agent(agent)
    const httpsAgent = new HttpsAgent(agent)
    this.#agents = [httpAgent, httpsAgent]
    const timeouts = { connectionTimeout: s3Limits.connectTimeoutMs, socketTimeout: idleTimeoutMs }
    this.#connections = { httpAgent, httpsAgent, ...timeouts, logger: silent }
    this.#clients = newCache(clock, clientsMax)
    this.#sessions = newCache(clock, s3Limits.sessionsMax)
    this.#sts = newCache(clock, s3Limits.regionsMax)
    this.#own = newCache(clock, s3Limits.regionsMax)
  }

  open(target: BucketTarget, { fresh = false }: OpenOptions = {}): ObjectStore {
    const { principalArn = null, hasRoles = true } = this.#options
    const own = fresh && hasRoles ? this.#newClient(target, this.#newSession(target, 'request')) : undefined
    const clientFor = (purpose: RoleSessionOptions['purpose']) =>
      hasRoles ? this.#client(target, purpose) : this.#ownClient(target)
    const store = new S3Store({
      ...this.#options,
      target: { ...target, principalArn, hasRoles },
      client: () => own ?? clientFor('request'),
      linkClient: () => clientFor('link'),
      multiparts: this.#multiparts,
    })
    return hasRoles ? store : new AllowedStore(store, target)
  }

  /** Closes idle connections. Requests in flight fail. */
  close(): void {
    for (const agent of this.#agents) agent.destroy()
  }

  #client(target: BucketTarget, purpose: RoleSessionOptions['purpose']): RoleClient {
    const { region, path_style, role_arn, external_id, session: name = '' } = target
    const key = JSON.stringify([purpose, region, role_arn, external_id, name])
    // Looked up every time, so that a session is not evicted before its client.
    const session = this.#sessions.memo(key, { context: () => this.#newSession(target, purpose) })
    const cached = this.#clients.memo(`${path_style} ${key}`, { context: () => this.#newClient(target, session) })
    return cached.session === session ? cached : this.#newClient(target, session)
  }

  #newSession(target: BucketTarget, purpose: RoleSessionOptions['purpose']): RoleSession {
    return new RoleSession({ purpose, clock: this.#options.clock, assume: (seconds) => this.#assume(target, seconds) })
  }

  #newClient(target: BucketTarget, session: RoleSession): RoleClient {
    // `memoized` makes the SDK call the function for every request instead of caching the result.
    const client = this.#newS3Client(
      target,
      Object.assign(() => session.get(), { memoized: true }),
    )
    const ready = async (signal?: AbortSignal) => {
      await session.get(signal)
      // Known from the Date header of the response that granted the session. A request needs it if it is signed before the first response of S3.
      if (client.config.systemClockOffset === 0)
        client.config.systemClockOffset = this.#stsClient(target.region).config.systemClockOffset
    }
    return { client, session, ready }
  }

  #newS3Client({ region, path_style }: BucketTarget, credentials: S3ClientConfig['credentials']): S3Client {
    return new S3Client({
      ...this.#clientConfig(this.#options.s3Endpoint),
      region,
      forcePathStyle: path_style,
      ...(credentials === undefined ? {} : { credentials }),
      // Otherwise every put needs a new connection.
      expectContinueHeader: false,
      // Readers compare with our own SHA-256. The SDK's verifying stream never ends if the connection breaks.
      responseChecksumValidation: 'WHEN_REQUIRED',
      // Puts carry our own checksums. The SDK's default would be part of signed URLs as well.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      followRegionRedirects: false,
    })
  }

  #ownClient(target: BucketTarget): RoleClient {
    const session = { discard: () => undefined, discardIfOld: () => undefined }
    // The SDK finds the credentials at the first request, and renews them.
    const create = () => ({
      client: this.#newS3Client(target, this.#options.credentials),
      session,
      ready: () => Promise.resolve(),
    })
    return this.#own.memo(`${target.path_style} ${target.region}`, { context: create })
  }

  async #assume(target: BucketTarget, durationSeconds: number): Promise<GrantedCredentials> {
    const { principalArn = null, assumeTimeoutMs = s3Limits.assumeTimeoutMs, clock } = this.#options
    const { role_arn, external_id, region, session = 'inlet' } = target
    if (role_arn === null) throw missingRole()
    const sts = this.#stsClient(region)
    const command = new AssumeRoleCommand({
      RoleArn: role_arn,
      RoleSessionName: session,
      ExternalId: external_id,
      DurationSeconds: durationSeconds,
    })
    const abortSignal = clock.timeout(assumeTimeoutMs)
    try {
      const { Credentials } = await sts.send(command, { abortSignal })
      const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = Credentials ?? {}
      if (!AccessKeyId || !SecretAccessKey || !SessionToken || !Expiration) throw foreignResponse('AssumeRole')
      return {
        accessKeyId: AccessKeyId,
        secretAccessKey: SecretAccessKey,
        sessionToken: SessionToken,
        lifetimeMs: Expiration.getTime() - (clock.now() + sts.config.systemClockOffset),
      }
    } catch (error) {
      throw describeFailure(abortSignal.aborted ? abortSignal.reason : error, 'assume_role', { ...target, principalArn })
    }
  }

  #stsClient(region: string): STSClient {
    const { stsEndpoint, credentials } = this.#options
    const own = credentials === undefined ? {} : { credentials }
    return this.#sts.memo(region, { context: () => new STSClient({ ...this.#clientConfig(stsEndpoint), region, ...own }) })
  }

  #clientConfig(endpoint: string | null) {
    return {
      requestHandler: this.#connections,
      logger: silent,
      maxAttempts: s3Limits.attemptsMax,
      retryMode: 'standard',
      customUserAgent: 'inlet',
      ...(endpoint === null ? {} : { endpoint }),
    } as const
  }
}
