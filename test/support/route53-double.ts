/**
 * A hosted zone of Route 53 in memory, over real HTTP, with faults that tests switch on.
 *
 * Owns: the rules that AWS documents for a change batch (API_ChangeResourceRecordSets.html, "Quotas" of the Developer Guide): all of it or
 * nothing, deletions that name the set exactly, bounds, and signatures. Does not own: propagation, other operations.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import { text } from 'node:stream/consumers'
import { element, stsErrorBody, xml } from './s3/answers.ts'
import { readSignature } from './s3/signature.ts'

type RecordSet = { readonly name: string; readonly type: string; readonly ttl: number; readonly values: readonly string[] }
type Change = RecordSet & { readonly action: string }
type Failure = { readonly status: number; readonly code: string; readonly message: string }

const namespace = 'xmlns="https://route53.amazonaws.com/doc/2013-04-01/"'
const valuesMax = 1_000
const charactersMax = 32_000

export const route53Credentials = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
}

export class Route53Double implements AsyncDisposable {
  readonly zoneId = 'Z0123456789ABCDEFGHIJ'
  readonly url: string
  readonly #server: Server
  readonly #zone: string
  readonly #sets = new Map<string, RecordSet>()
  /** Changes of each request, refused ones included. */
  readonly batches: (readonly Change[])[] = []
  /** Returns the failure of the next request, if any. */
  fault: () => Failure | 'silence' | undefined = () => undefined

  private constructor(server: Server, port: number, zone: string) {
    this.#server = server
    this.#zone = zone
    this.url = `http://127.0.0.1:${port}`
    server.on('request', (request, response) => {
      this.#serve(request, response).catch((error) => response.destroy(error))
    })
  }

  static async start(zone: string): Promise<Route53Double> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('a TCP server without a port')
    return new Route53Double(server, address.port, zone)
  }

  /** Returns the values of a set; undefined if there is none. */
  find(type: string, name: string): RecordSet | undefined {
    return this.#sets.get(`${type} ${name}.`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request)
    const fault = this.fault()
    if (fault === 'silence') return
    const failure = fault ?? this.#refuse(request, body)
    if (failure !== undefined) return send(response, failure.status, stsErrorBody(failure))
    const url = new URL(request.url ?? '/', this.url)
    if (request.method === 'GET') return send(response, 200, this.#list(url.searchParams))
    const changes = readChanges(body)
    this.batches.push(changes)
    const problems = this.#apply(changes)
    if (problems.length > 0)
      return send(response, 400, stsErrorBody({ status: 400, code: 'InvalidChangeBatch', message: `[${problems.join(', ')}]` }))
    const info =
      element('Id', '/change/C2682N5HXP0BZ4') + element('Status', 'PENDING') + element('SubmittedAt', new Date().toISOString())
    send(response, 200, xml(`ChangeResourceRecordSetsResponse ${namespace}`, `<ChangeInfo>${info}</ChangeInfo>`))
  }

  #refuse(request: IncomingMessage, body: string): Failure | undefined {
    const signed = readSignature(request)
    const isValid =
      signed?.service === 'route53' &&
      signed.region === 'us-east-1' &&
      signed.accessKeyId === route53Credentials.accessKeyId &&
      signed.isSignedWith(route53Credentials.secretAccessKey, createHash('sha256').update(body).digest('hex'))
    if (!isValid)
      return { status: 403, code: 'InvalidClientTokenId', message: 'The security token included in the request is invalid' }
    if (request.url?.split('?')[0]?.replace(/\/$/, '') === `/2013-04-01/hostedzone/${this.zoneId}/rrset`) return undefined
    return { status: 404, code: 'NoSuchHostedZone', message: 'No hosted zone found' }
  }

  /** Changes all sets, or none. Returns what is wrong. */
  #apply(changes: readonly Change[]): readonly string[] {
    const weighed = changes.flatMap(({ action, values }) => (action === 'UPSERT' ? [...values, ...values] : values))
    if (weighed.length > valuesMax) return [`Number of records limit of ${valuesMax} exceeded.`]
    if (weighed.join('').length > charactersMax) return [`Number of characters limit of ${charactersMax} exceeded.`]
    const problems = changes.flatMap((change, index) => this.#problemOf(change, changes.slice(0, index)) ?? [])
    if (problems.length > 0) return problems
    for (const { action, ...set } of changes) {
      if (action === 'DELETE') this.#sets.delete(`${set.type} ${set.name}`)
      else this.#sets.set(`${set.type} ${set.name}`, set)
    }
    return []
  }

  #problemOf({ action, ...set }: Change, before: readonly Change[]): string | undefined {
    const { name, type, values } = set
    const label = `[name='${name}', type='${type}']`
    if (!name.endsWith(`.${this.#zone}.`)) return `RRSet with DNS name ${name} is not permitted in zone ${this.#zone}.`
    if (values.length === 0 || !values.every((value) => isValid(type, value))) return `Invalid Resource Record: ${label}`
    if (action === 'UPSERT') return undefined
    const found = this.#sets.get(`${type} ${name}`)
    if (action === 'CREATE') {
      const isDeleted = before.some((other) => other.action === 'DELETE' && other.name === name && other.type === type)
      return found === undefined || isDeleted ? undefined : `Tried to create resource record set ${label} but it already exists`
    }
    if (action !== 'DELETE') return `Invalid action ${action}`
    if (found === undefined) return `Tried to delete resource record set ${label} but it was not found`
    const isExact = found.ttl === set.ttl && found.values.toSorted().join() === values.toSorted().join()
    return isExact
      ? undefined
      : `Tried to delete resource record set ${label} but the values provided do not match the current values`
  }

  /** In the order of AWS: by the labels of the name from the right, then by type. */
  #list(query: URLSearchParams): string {
    const keyOf = ({ name, type }: Pick<RecordSet, 'name' | 'type'>) => `${name.split('.').toReversed().join('.')} ${type}`
    const name = (query.get('name') ?? '').replace(/\.?$/, '.')
    const start = keyOf({ name, type: query.get('type') ?? '' })
    const limit = Number(query.get('maxitems'))
    const sets = [...this.#sets.values()].filter((set) => keyOf(set) >= start).sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
    const shown = sets.slice(0, limit).map(({ ttl, values, ...set }) => {
      const records = values.map((value) => `<ResourceRecord>${element('Value', value)}</ResourceRecord>`).join('')
      const fields = element('Name', set.name) + element('Type', set.type) + element('TTL', ttl)
      return `<ResourceRecordSet>${fields}<ResourceRecords>${records}</ResourceRecords></ResourceRecordSet>`
    })
    const paging = element('IsTruncated', String(sets.length > limit)) + element('MaxItems', limit)
    return xml(
      `ListResourceRecordSetsResponse ${namespace}`,
      `<ResourceRecordSets>${shown.join('')}</ResourceRecordSets>${paging}`,
    )
  }
}

function readChanges(body: string): readonly Change[] {
  const field = (part: string, name: string) => toText(new RegExp(`<${name}>([^<]*)</${name}>`).exec(part)?.[1] ?? '')
  return [...body.matchAll(/<Change>(.*?)<\/Change>/gs)].map(([, part = '']) => ({
    action: field(part, 'Action'),
    name: field(part, 'Name'),
    type: field(part, 'Type'),
    ttl: Number(field(part, 'TTL')),
    values: [...part.matchAll(/<Value>([^<]*)<\/Value>/g)].map(([, value = '']) => toText(value)),
  }))
}

function toText(value: string): string {
  return value.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}

function isValid(type: string, value: string): boolean {
  if (type === 'TXT') return /^"([^"\\]|\\.){0,255}"$/.test(value)
  return isIP(value) === (type === 'A' ? 4 : 6)
}

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'text/xml' }).end(body)
}
