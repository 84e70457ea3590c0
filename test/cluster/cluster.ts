/**
 * The whole cluster: network, services, control processes, nodes, endpoints, and the clients that send to them.
 *
 * Owns: starting and closing all of it, and what the faults act upon. Does not own: which faults come, nor the law.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { Loss } from '#model/loss.ts'
import { resolverOf } from '../../tools/services/bind.ts'
import { ApiClient } from '../support/api-client.ts'
import { Customer } from '../support/object-gateway.ts'
import { until } from '../support/until.ts'
import { Ledger } from '../torture/ledger.ts'
import { Management } from '../torture/management.ts'
import type { Random } from '../torture/random.ts'
import { controlEnvironment, type Installation, newSecrets, nodeEnvironment, rootFile } from './environment.ts'
import {
  bucket,
  type ControlName,
  controlHost,
  controlNames,
  copyBucket,
  type HostName,
  hostNames,
  hostNumbers,
  type NodeName,
  nodeNames,
  ports,
  type RegionCode,
  regionOf,
  regions,
} from './layout.ts'
import { HttpSender } from './load/http-sender.ts'
import { MqttSender } from './load/mqtt-sender.ts'
import { NameCache } from './load/name-cache.ts'
import { Notices } from './load/notices.ts'
import { type Sender, Waits } from './load/sender.ts'
import type { Host } from './network/host.ts'
import type { Network } from './network/network.ts'
import { Program } from './programs/program.ts'
import { type Services, startServices } from './services/services.ts'
import { allActive, awaitTruth, findUntruths } from './truth.ts'

const startMsMax = 90_000
const removalMsMax = 20_000

const columns = [
  { name: 'q', type: 'INTEGER', path: '$.q', required: true },
  { name: 'n', type: 'INTEGER', path: '$.n', required: true },
  { name: 'v', type: 'DOUBLE', path: '$.v', cast_failures: 'dlq' },
]

export type ClusterEndpoint = {
  readonly id: string
  readonly region: RegionCode
  readonly protocol: 'http' | 'mqtt'
  readonly ingestHost: string
}

export type ReportedLog = {
  readonly endpoint_id: string
  readonly open_segments: number
  readonly sealed_segments: number
  readonly records: number | null
}

export type ClusterOptions = { readonly directory: string; readonly network: Network; readonly random: Random }

export class Cluster implements AsyncDisposable {
  readonly directory: string
  readonly network: Network
  readonly installation: Installation
  readonly services: Services
  readonly hosts: ReadonlyMap<HostName, Host>
  readonly programs: ReadonlyMap<ControlName | NodeName, Program>
  /** Through the load balancer. */
  readonly management: Management
  readonly ledger = new Ledger()
  readonly waits = new Waits()
  readonly notices = new Notices()
  /** Addresses in the zone, as clients know them. */
  readonly names: NameCache
  /** How often clients began a connection. */
  dials = 0
  /** Misbehaviour of healthy programs and clients. */
  readonly troubles: string[] = []
  readonly endpoints: ClusterEndpoint[] = []
  viewId = ''
  destinationId = ''
  readonly #random: Random
  readonly #senders = new Set<Sender>()
  readonly #nodeIds = new Map<NodeName, string>()
  readonly #clients = new Map<ControlName, ApiClient>()

  private constructor(options: ClusterOptions, hosts: ReadonlyMap<HostName, Host>, services: Services) {
    this.directory = options.directory
    this.network = options.network
    this.#random = options.random
    this.hosts = hosts
    this.services = services
    const { gateway, database, bind, pebble } = services
    const origin = this.network.hasNames ? `https://${controlHost}` : `http://${this.host('balancer').address}`
    this.installation = {
      ...{ directory: this.directory, gateway, databaseUrl: database.url, controlOrigin: origin },
      ...{ bind: bind.described, pebble: pebble.described },
      ...newSecrets(),
    }
    this.names = new NameCache(resolverOf(bind.described))
    const program = (name: ControlName | NodeName, args: readonly string[], environmentOf: typeof controlEnvironment) => {
      const host = this.host(name)
      const environment = environmentOf(this.installation, host)
      return [name, new Program({ host, args, environment, log: this.path('log.ndjson'), troubles: this.troubles })] as const
    }
    this.programs = new Map([
      ...controlNames.map((name) => program(name, ['control'], controlEnvironment)),
      ...nodeNames.map((name) => program(name, ['node'], nodeEnvironment)),
    ])
    this.management = new Management(this.#address(ports.management))
  }

  /** Starts everything healthy, with endpoints in each region and clients that send to them. */
  static async start(options: ClusterOptions): Promise<Cluster> {
    const { directory, network } = options
    mkdirSync(directory, { recursive: true })
    const hosts = new Map<HostName, Host>()
    for (const name of hostNames) hosts.set(name, await network.addHost(name, hostNumbers[name]))
    const services = await startServices(hosts, network)
    const { root } = services.pebble.described
    writeFileSync(join(directory, rootFile), root)
    setDefaultCACertificates([...getCACertificates(), root])
    const balancer = hosts.get('balancer')?.address
    if (balancer !== undefined) network.addName(controlHost, balancer)
    const cluster = new Cluster(options, hosts, services)
    try {
      // One after the other: both would create the first account.
      for (const name of controlNames) {
        cluster.program(name).start()
        await cluster.untilControlReady(name)
      }
      await new Customer(services.gateway).createBucket(copyBucket)
      for (const name of nodeNames) await cluster.join(name)
      for (const name of nodeNames) await cluster.untilReady(name)
      await cluster.#createEndpoints()
      return cluster
    } catch (error) {
      await cluster[Symbol.asyncDispose]()
      throw error
    }
  }

  host(name: HostName): Host {
    const host = this.hosts.get(name)
    if (host === undefined) throw new Error(`no host ${name}`)
    return host
  }

  program(name: ControlName | NodeName): Program {
    const program = this.programs.get(name)
    if (program === undefined) throw new Error(`no program on ${name}`)
    return program
  }

  path(name: string): string {
    return join(this.directory, name)
  }

  /** A path that nothing has yet: the same fault may come twice in a round. */
  newPath(name: string): string {
    for (let count = 1; ; count += 1) {
      const path = this.path(count === 1 ? name : `${name}-${count}`)
      if (!existsSync(path)) return path
    }
  }

  /** Writes down what happened, for whoever reads the directory later. */
  note(text: string): void {
    appendFileSync(this.path('events.log'), `${new Date().toISOString()} ${text}\n`)
  }

  /** A client of one control process, around the balancer. It keeps its token, also while there is no database. */
  clientOf(name: ControlName): ApiClient {
    const known = this.#clients.get(name)
    if (known !== undefined) return known
    const client = new ApiClient(this.#address(ports.direct[name]))
    this.#clients.set(name, client)
    return client
  }

  /** Id of a node, as reasons name it. */
  nodeId(name: NodeName): string {
    return this.#nodeIds.get(name) ?? ''
  }

  /** Starts a node for the first time, with a token that only one node may use. */
  async join(name: NodeName): Promise<void> {
    const { join_token } = await this.#call('POST', '/v1/join-tokens', { name, region: regionOf(name) })
    this.program(name).configure({ INLET_JOIN_TOKEN: join_token })
    this.program(name).start()
  }

  /** Lets control forget a node that does not come back. It refuses while it may still hear of the node, or the node holds data. */
  async removeNode(id: string): Promise<void> {
    const remove = () => this.#call('DELETE', `/v1/nodes/${id}`)
    const { wrong } = await awaitTruth(
      async () =>
        remove().then(
          () => [],
          (error) => [String(error)],
        ),
      removalMsMax,
    )
    if (wrong.length > 0) this.troubles.push(...wrong)
  }

  /** Runs a command of the operator where control runs, and returns what it prints. Throws an error if it fails. */
  operate(args: readonly string[]): Promise<string> {
    return this.program('control-1').run(args)
  }

  endpointsIn(region: RegionCode): readonly ClusterEndpoint[] {
    return this.endpoints.filter((endpoint) => endpoint.region === region)
  }

  /** Returns what a node last reported to hold, by endpoint. */
  async reportedBy(id: string): Promise<readonly ReportedLog[]> {
    const { items } = await this.#call('GET', `/v1/nodes/${id}/segments?limit=200`)
    return items
  }

  /** When delivery of a node last reported (epoch ms), by the clock of control. */
  async seenAt(id: string): Promise<number> {
    const { items } = await this.#call('GET', '/v1/nodes?limit=200')
    return Date.parse(items.find((node: { readonly id: string }) => node.id === id)?.delivery?.last_seen_at ?? '')
  }

  /** Returns what was lost with a node, as the account of its endpoints sees it. */
  async lossesOf(nodeId: string): Promise<readonly Loss[]> {
    const { items } = await this.management.ok('GET', '/v1/losses?limit=200')
    return (items as readonly Loss[]).filter(({ node_id }) => node_id === nodeId)
  }

  /** Accepts all that was lost with a node, unless another machine has delivered it since. */
  async confirmLosses(nodeId: string): Promise<void> {
    const open = (await this.lossesOf(nodeId)).filter(({ state }) => state === 'open')
    for (const { id } of open) await this.management.ok('POST', `/v1/losses/${id}/confirm`)
  }

  /** Returns what a node says of itself to the operator. */
  async reasonsOf(id: string): Promise<readonly string[]> {
    const { items } = await this.#call('GET', '/v1/nodes?limit=200')
    const nodes = items as readonly { readonly id: string; readonly ingest: { readonly reasons: readonly string[] } | null }[]
    return nodes.find((node) => node.id === id)?.ingest?.reasons ?? []
  }

  async untilControlReady(name: ControlName): Promise<void> {
    await until(`${name} to be ready`, () => isReady(`${this.installation.controlOrigin}:${ports.direct[name]}`), startMsMax)
  }

  async untilReady(name: NodeName): Promise<void> {
    const url = `https://${this.host(name).address}:${ports.ingest}`
    await until(`${name} to be ready`, () => isReady(url), startMsMax)
    this.#nodeIds.set(name, readFileSync(this.path(`${name}/node/id`), 'utf8').trim())
  }

  /** Stops the clients, each when all that it sent is acknowledged. */
  async stopSending(): Promise<void> {
    await Promise.all([...this.#senders].map((sender) => sender.stop().catch((error) => void this.troubles.push(String(error)))))
    for (const sender of this.#senders) if (sender instanceof HttpSender) this.troubles.push(...sender.refusals)
    this.#senders.clear()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { host } of this.programs.values()) host.signal('SIGCONT')
    await Promise.all([...this.programs.values()].map((program) => program.kill()))
    this.host('balancer').signal('SIGKILL')
    await this.services[Symbol.asyncDispose]()
    await this.network.close()
  }

  async #createEndpoints(): Promise<void> {
    const { gateway } = this.services
    this.destinationId = (await new Customer(gateway).destination(this.management, { bucket })).id
    await this.management.ok('POST', `/v1/destinations/${this.destinationId}/validate`)
    this.viewId = (await this.management.ok('POST', '/v1/views', { name: 'records', definition: { columns } })).id
    await this.management.ok('POST', `/v1/views/${this.viewId}/publish`)
    for (const region of regions) {
      for (const protocol of ['http', 'mqtt'] as const) {
        const { id, ingest_host } = await this.management.ok('POST', '/v1/endpoints', {
          region,
          destination_id: this.destinationId,
          segment_max_age_seconds: 2,
          mqtt_config: { enabled: true },
        })
        await this.management.ok('POST', `/v1/endpoints/${id}/views`, { view_id: this.viewId })
        this.endpoints.push({ id, region, protocol, ingestHost: ingest_host })
      }
    }
    const find = () => findUntruths(this, controlNames, allActive)
    const { wrong } = await awaitTruth(find, startMsMax)
    if (wrong.length > 0) throw new Error(`the endpoints were not active after ${startMsMax / 1000} s:\n${wrong.join('\n')}`)
    for (const endpoint of this.endpoints) this.#send(endpoint)
    await until('all clients to connect', () => this.dials >= this.endpoints.length, startMsMax)
  }

  #send({ id: endpointId, protocol, ingestHost, region }: ClusterEndpoint): void {
    const { ledger, waits, notices } = this
    const { apiKey, pebble } = this.installation
    const ca = pebble.root
    const resolve = () => {
      this.dials += 1
      return this.names.addressesOf(ingestHost)
    }
    const transport = region === 'fra' ? 'mqtts' : 'wss'
    const [Kind, port] =
      protocol === 'http' ? [HttpSender, ports.ingest] : [MqttSender, transport === 'wss' ? ports.ingest : ports.mqtt]
    const common = {
      ledger,
      waits,
      notices,
      apiKey,
      endpointId,
      ingestHost,
      port,
      resolve,
      ca,
      transport,
      random: this.#random,
    } as const
    this.#senders.add(new Kind(common))
  }

  // biome-ignore lint/suspicious/noExplicitAny: as in ApiClient
  async #call(method: string, path: string, body?: unknown): Promise<any> {
    const { controlOrigin, operatorToken } = this.installation
    const authorization = `Bearer ${operatorToken}`
    const content = body === undefined ? {} : { body: JSON.stringify(body) }
    const headers = body === undefined ? { authorization } : { authorization, 'content-type': 'application/json' }
    const response = await fetch(`${controlOrigin}:${ports.management}${path}`, { method, headers, ...content })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }

  #address(port: number) {
    return { apiUrl: `${this.installation.controlOrigin}:${port}`, ingestUrl: '', apiKey: this.installation.apiKey }
  }
}

/** The certificate of a node is not for its address. */
async function isReady(url: string): Promise<boolean> {
  const { get } = url.startsWith('https:') ? https : http
  const options = { agent: false, rejectUnauthorized: false, signal: AbortSignal.timeout(1_000) }
  const { promise, resolve } = Promise.withResolvers<boolean>()
  get(`${url}/readyz`, options, (response) => {
    response.resume()
    resolve(response.statusCode === 200)
  }).on('error', () => resolve(false))
  return await promise
}
