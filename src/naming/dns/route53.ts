/**
 * Publishes records in a hosted zone of Amazon Route 53.
 *
 * Owns: the size of requests, and how sets are removed. Does not own: credentials, which the AWS SDK finds, or what is published.
 */
import {
  type Change,
  ChangeResourceRecordSetsCommand,
  ListResourceRecordSetsCommand,
  type ResourceRecordSet,
  Route53Client,
  type RRType,
} from '@aws-sdk/client-route-53'
import type { Clock } from '#lib/clock.ts'
import { route53Limits } from './limits.ts'
import { type DnsProvider, type RecordChange, RecordsRejected, type TextRecord } from './provider.ts'
import { splitBySize } from './split.ts'
import { Turns } from './turns.ts'

export type Route53Options = {
  readonly zoneId: string
  readonly clock: Clock
  /** URL of the API; by default that of AWS. */
  readonly endpoint?: string
  /** By default the AWS SDK finds them. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string }
  readonly intervalMs?: number
}

/** Without a logger the SDK writes to the console. */
const ignore = () => undefined
const silent = { trace: ignore, debug: ignore, info: ignore, warn: ignore, error: ignore }

export class Route53Provider implements DnsProvider {
  readonly target: string
  readonly applyTimeoutMs = route53Limits.applyTimeoutMs
  readonly settleSeconds = route53Limits.settleSeconds
  readonly #client: Route53Client
  readonly #zoneId: string
  readonly #turns: Turns

  constructor({ zoneId, clock, intervalMs = route53Limits.intervalMs, ...given }: Route53Options) {
    this.#zoneId = zoneId
    this.target = `route53 ${zoneId}`
    this.#turns = new Turns(intervalMs, clock)
    this.#client = new Route53Client({
      // The API is global. This is the region of its signatures.
      region: 'us-east-1',
      logger: silent,
      // Each attempt takes its turn, so the caller repeats.
      maxAttempts: 1,
      requestHandler: { requestTimeout: route53Limits.requestTimeoutMs, connectionTimeout: route53Limits.requestTimeoutMs },
      customUserAgent: 'inlet',
      ...given,
    })
  }

  async apply(changes: readonly RecordChange[], signal: AbortSignal): Promise<void> {
    const wanted: Change[] = []
    for (const change of changes) {
      if (change.values.length > 0) wanted.push({ Action: 'UPSERT', ResourceRecordSet: toRecordSet(change) })
      else wanted.push(...(await this.#deletionOf(change, signal)))
    }
    for (const part of splitBySize(wanted, sizesOf, [route53Limits.valuesMax, route53Limits.charactersMax]))
      await this.#change(part, signal)
  }

  /** Replaces the set that it has read. If somebody changes the set meanwhile, the deletion fails, and it reads again. */
  async setText({ name, text, ttl }: TextRecord, isPublished: boolean, signal: AbortSignal): Promise<void> {
    const value = quote(text)
    for (let attempt = 1; ; attempt += 1) {
      const [found] = await this.#find(name, 'TXT', signal)
      const before = found?.ResourceRecords ?? []
      if (before.some(({ Value }) => Value === value) === isPublished) return
      const after = isPublished ? [...before, { Value: value }] : before.filter(({ Value }) => Value !== value)
      const set = { Name: `${name}.`, Type: 'TXT', TTL: found?.TTL ?? ttl, ResourceRecords: after } as const
      const changes: Change[] = [
        ...(found === undefined ? [] : [{ Action: 'DELETE', ResourceRecordSet: found } as const]),
        ...(after.length === 0 ? [] : [{ Action: 'CREATE', ResourceRecordSet: set } as const]),
      ]
      try {
        return await this.#change(changes, signal)
      } catch (error) {
        if (!(error instanceof RecordsRejected) || attempt >= route53Limits.textAttemptsMax) throw error
      }
    }
  }

  close(): void {
    this.#client.destroy()
  }

  /** A deletion names the set exactly as it is. There is none if the set does not exist. */
  async #deletionOf({ name, type }: RecordChange, signal: AbortSignal): Promise<readonly Change[]> {
    const sets = await this.#find(name, type, signal)
    return sets.map((ResourceRecordSet) => ({ Action: 'DELETE', ResourceRecordSet }))
  }

  async #change(changes: readonly Change[], signal: AbortSignal): Promise<void> {
    const command = new ChangeResourceRecordSetsCommand({ HostedZoneId: this.#zoneId, ChangeBatch: { Changes: [...changes] } })
    await this.#call((abortSignal) => this.#client.send(command, { abortSignal }), signal)
  }

  /** Returns the set, if it exists. */
  async #find(name: string, type: RRType, signal: AbortSignal): Promise<readonly ResourceRecordSet[]> {
    const command = new ListResourceRecordSetsCommand({
      HostedZoneId: this.#zoneId,
      StartRecordName: name,
      StartRecordType: type,
      MaxItems: 1,
    })
    const found = await this.#call((abortSignal) => this.#client.send(command, { abortSignal }), signal)
    const sets = found.ResourceRecordSets ?? []
    return sets.filter(({ Name, Type }) => Name?.toLowerCase() === `${name}.`.toLowerCase() && Type === type)
  }

  async #call<T>(send: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    try {
      return await this.#turns.run(() => send(signal), signal)
    } catch (error) {
      signal.throwIfAborted()
      throw describeFailure(error, this.#zoneId)
    }
  }
}

function toRecordSet({ name, type, values, ttl }: RecordChange): ResourceRecordSet {
  const records = values.map((Value) => ({ Value }))
  return { Name: `${name}.`, Type: type, TTL: ttl, ResourceRecords: records }
}

function quote(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

function describeFailure(error: unknown, zoneId: string): Error {
  const { name = '', message = '' } = error instanceof Error ? error : {}
  // AWS says which change is wrong and why.
  if (name === 'InvalidChangeBatch') return new RecordsRejected(`Route 53 refused the change: ${message}`)
  const hint: Readonly<Record<string, string>> = {
    NoSuchHostedZone: `there is no hosted zone ${zoneId}: check INLET_DNS_ROUTE53_ZONE_ID`,
    AccessDenied: `allow the AWS identity of control route53:ChangeResourceRecordSets and route53:ListResourceRecordSets on hosted zone ${zoneId}`,
    InvalidClientTokenId: 'the AWS credentials of control are not valid',
    ExpiredToken: 'the AWS credentials of control have expired',
    CredentialsProviderError: 'control has no AWS credentials',
  }
  return new Error(`Route 53 cannot be used: ${hint[name] ?? (name || 'unknown error')}`, { cause: error })
}

/** Returns the number of values and of characters, as AWS counts them. */
function sizesOf({ Action, ResourceRecordSet }: Change): readonly number[] {
  const factor = Action === 'UPSERT' ? 2 : 1
  const records = ResourceRecordSet?.ResourceRecords ?? []
  return [factor * records.length, factor * records.reduce((sum, { Value = '' }) => sum + Value.length, 0)]
}
