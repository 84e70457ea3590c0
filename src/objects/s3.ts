/**
 * Buckets of customers on S3, each reached by assuming the role of its destination.
 *
 * Owns: connections, and the clients and credentials of roles, each made once and dropped when it is not used.
 * Does not own: what is done in a bucket (`s3-store.ts`), credentials of our own: the SDK finds them.
 * Law: requests to a bucket are signed by its destination's role alone. Nothing is shared between destinations that differ in
 * anything but their bucket and key.
 */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import type { LookupFunction } from 'node:net'
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3'
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts'
import { LRUCache } from 'lru-cache'
import type { Clock } from '#lib/clock.ts'
import { Semaphore } from '#lib/semaphore.ts'
import { s3Limits } from './limits.ts'
import type { BucketTarget, ObjectStore, ObjectStores, OpenOptions } from './object-store.ts'
import type { RoleClient } from './role-client.ts'
import { type Granted, RoleSession, type RoleSessionOptions } from './role-session.ts'
import { describeFailure, noAnswer } from './s3-failure.ts'
import { S3Store } from './s3-store.ts'

export type S3StoresOptions = {
  /** Of a gateway; null for AWS's own. */
  readonly s3Endpoint: string | null
  readonly stsEndpoint: string | null
  readonly clock: Clock
  /** Whose credentials those are, to be named to who must trust them. */
  readonly principalArn?: string | null
  /** Our own credentials; without them the AWS SDK's chain finds them. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string; readonly sessionToken?: string }
  readonly idleTimeoutMs?: number
  readonly assumeTimeoutMs?: number
  /** How names of hosts are resolved, instead of the system's way. */
  readonly lookup?: LookupFunction
}

/** What the SDK has to say besides its errors goes to the console unless it has another place. */
const nothing = () => undefined
const silent = { trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing }

/** Values that are made once and kept while they are used. `memo` takes the function that makes one as its context. */
type Cache<T extends object> = LRUCache<string, T, () => T>

function newCache<T extends object>(clock: Clock, max: number): Cache<T> {
  const cache: Cache<T> = new LRUCache({
    max,
    ttl: s3Limits.sessionIdleMs,
    updateAgeOnGet: true,
    ttlResolution: 0,
    perf: { now: () => clock.monotonic() },
    memoMethod: (_key, _stale, { context: make }) => {
      cache.purgeStale()
      return make()
    },
  })
  return cache
}

export class S3Stores implements ObjectStores {
  readonly #options: S3StoresOptions
  readonly #connections: S3ClientConfig['requestHandler'] & object
  readonly #agents: readonly (HttpAgent | HttpsAgent)[]
  readonly #multiparts = new Semaphore(s3Limits.multipartsParallel)
  /** A client is large and soon made anew. What costs STS a request is kept for many more. */
  readonly #clients: Cache<RoleClient>
  readonly #sessions: Cache<RoleSession>
  readonly #sts: Cache<STSClient>

  constructor(options: S3StoresOptions) {
    this.#options = options
    const { clock, lookup, idleTimeoutMs = s3Limits.idleTimeoutMs } = options
    const own = lookup === undefined ? {} : { lookup }
    const agent = { keepAlive: true, maxSockets: s3Limits.socketsMax, timeout: idleTimeoutMs, ...own }
    const httpAgent = new HttpAgent(agent)
    const httpsAgent = new HttpsAgent(agent)
    this.#agents = [httpAgent, httpsAgent]
    const timeouts = { connectionTimeout: s3Limits.connectTimeoutMs, socketTimeout: idleTimeoutMs }
    this.#connections = { httpAgent, httpsAgent, ...timeouts, logger: silent }
    this.#clients = newCache(clock, s3Limits.clientsMax)
    this.#sessions = newCache(clock, s3Limits.sessionsMax)
    this.#sts = newCache(clock, s3Limits.regionsMax)
  }

  open(target: BucketTarget, { fresh = false }: OpenOptions = {}): ObjectStore {
    const { principalArn = null } = this.#options
    const own = fresh ? this.#newClient(target, this.#newSession(target, 'request')) : undefined
    const client = () => own ?? this.#client(target, 'request')
    return new S3Store({
      target: { ...target, principalArn },
      client,
      linkClient: () => this.#client(target, 'link'),
      multiparts: this.#multiparts,
      clock: this.#options.clock,
    })
  }

  /** Closes connections that are kept open. What is still under way fails. */
  close(): void {
    for (const agent of this.#agents) agent.destroy()
  }

  #client(target: BucketTarget, purpose: RoleSessionOptions['purpose']): RoleClient {
    const { region, path_style, role_arn, external_id, session: name = '' } = target
    const key = JSON.stringify([purpose, region, role_arn, external_id, name])
    // Asked for each time, so that a session is not forgotten before its client is.
    const session = this.#sessions.memo(key, { context: () => this.#newSession(target, purpose) })
    const made = this.#clients.memo(`${path_style} ${key}`, { context: () => this.#newClient(target, session) })
    return made.session === session ? made : this.#newClient(target, session)
  }

  #newSession(target: BucketTarget, purpose: RoleSessionOptions['purpose']): RoleSession {
    return new RoleSession({ purpose, clock: this.#options.clock, assume: (seconds) => this.#assume(target, seconds) })
  }

  #newClient(target: BucketTarget, session: RoleSession): RoleClient {
    const { s3Endpoint } = this.#options
    // Marked as one that remembers: the SDK asks it each time, and keeps nothing itself.
    const credentials = Object.assign(() => session.get(), { memoized: true })
    const client: S3Client = new S3Client({
      ...this.#ofClient(s3Endpoint),
      region: target.region,
      forcePathStyle: target.path_style,
      credentials,
      // It costs a connection of its own for each put.
      expectContinueHeader: false,
      // What is read is compared with our own SHA-256 by who reads; the SDK's stream for it never ends when the connection breaks.
      responseChecksumValidation: 'WHEN_REQUIRED',
      // Checksums of puts are given by us; the SDK's default would end up in signed addresses, too.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      followRegionRedirects: false,
    })
    const ready = async (signal?: AbortSignal) => {
      await session.get(signal)
      // Learnt from the Date of STS's answers: a request that is signed before S3 answered for the first time needs it.
      if (client.config.systemClockOffset === 0)
        client.config.systemClockOffset = this.#stsOf(target.region).config.systemClockOffset
    }
    return { client, session, ready }
  }

  async #assume(target: BucketTarget, durationSeconds: number): Promise<Granted> {
    const { principalArn = null, assumeTimeoutMs = s3Limits.assumeTimeoutMs } = this.#options
    const { role_arn, external_id, region, session = 'inlet' } = target
    const sts = this.#stsOf(region)
    const command = new AssumeRoleCommand({
      RoleArn: role_arn,
      RoleSessionName: session,
      ExternalId: external_id,
      DurationSeconds: durationSeconds,
    })
    const abortSignal = AbortSignal.timeout(assumeTimeoutMs)
    try {
      const { Credentials } = await sts.send(command, { abortSignal })
      const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = Credentials ?? {}
      if (!AccessKeyId || !SecretAccessKey || !SessionToken || !Expiration) throw noAnswer('AssumeRole')
      return {
        accessKeyId: AccessKeyId,
        secretAccessKey: SecretAccessKey,
        sessionToken: SessionToken,
        lifetimeMs: Expiration.getTime() - (Date.now() + sts.config.systemClockOffset),
      }
    } catch (error) {
      throw describeFailure(abortSignal.aborted ? abortSignal.reason : error, 'assume_role', { ...target, principalArn })
    }
  }

  #stsOf(region: string): STSClient {
    const { stsEndpoint, credentials } = this.#options
    const own = credentials === undefined ? {} : { credentials }
    return this.#sts.memo(region, { context: () => new STSClient({ ...this.#ofClient(stsEndpoint), region, ...own }) })
  }

  #ofClient(endpoint: string | null) {
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
