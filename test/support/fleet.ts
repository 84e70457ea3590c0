/** One control and nodes at loopback addresses of their own: real processes, each node with a data directory of its own. */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../tools/services/processes.ts'
import { ApiClient } from './api-client.ts'
import { Installation } from './installation.ts'
import { until } from './until.ts'

export const fleetRegion = 'fra'
/** Status tells the truth within this time. */
const truthMsMax = 10_000
/** A busy machine may take long to start a process. */
const startMsMax = 60_000

type Environment = Readonly<Record<string, string>>

export class Fleet implements AsyncDisposable {
  readonly control: Installation
  readonly #environment: Environment
  readonly #nodes: FleetNode[] = []
  #other: Installation | undefined
  #destinationId: string | undefined

  private constructor(control: Installation, environment: Environment) {
    this.control = control
    this.#environment = environment
  }

  /** `enter` is a command that runs control. */
  static async start(environment: Environment, enter: readonly string[] = []): Promise<Fleet> {
    const shared = { ...environment, INLET_NODE_TOKEN: randomBytes(24).toString('base64url') }
    const control = await Installation.create({ environment: shared, enter })
    await control.start('control')
    return new Fleet(control, shared)
  }

  /** Starts another control process on the same database, which `environment` names. */
  async startOtherControl(): Promise<Installation> {
    const environment = { ...this.#environment, INLET_BOOTSTRAP_API_KEY: this.control.apiKey }
    this.#other = await Installation.create({ environment })
    await this.#other.start('control')
    return this.#other
  }

  /** Starts a node at a loopback address. It is ready when the status says so. */
  async startNode(address: string, environment: Environment = {}): Promise<FleetNode> {
    const port = await freePort()
    const processes = await Installation.create({
      environment: {
        INLET_CONTROL_URL: this.control.nodeApiUrl,
        INLET_NODE_TOKEN: this.#environment['INLET_NODE_TOKEN'] ?? '',
        INLET_REGION: fleetRegion,
        INLET_NODE_ADDRESSES: address,
        INLET_INGEST_LISTEN: `${address}:${port}`,
        ...environment,
      },
    })
    const node = new FleetNode(processes, address, port)
    this.#nodes.push(node)
    for (const process of ['ingest', 'delivery'] as const) node.start(process)
    return node
  }

  /** Creates an endpoint with a destination that is valid. */
  async newEndpoint(settings: object = {}): Promise<{ readonly id: string; readonly ingest_host: string }> {
    this.#destinationId ??= await this.#createDestination()
    return this.control.ok('POST', '/v1/endpoints', { region: fleetRegion, destination_id: this.#destinationId, ...settings })
  }

  /** Returns a client of control with a token of its own. */
  newClient(): ApiClient {
    return new ApiClient(this.control)
  }

  /** Calls the API as the operator of the installation. */
  async operate(method: string, path: string, body?: object): Promise<Response> {
    const authorization = `Bearer ${readFileSync(join(this.control.directory, 'operator-token'), 'utf8').trim()}`
    const headers = { authorization, ...(body && { 'content-type': 'application/json' }) }
    const response = await fetch(`${this.control.apiUrl}${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return response
  }

  /** Waits until the endpoint has the status, and each of these texts is in one of its reasons. Throws after ten seconds. */
  async told(endpointId: string, status: string, reasons: readonly string[] = [], api: ApiClient = this.control): Promise<void> {
    let last = ''
    const isTold = async () => {
      const endpoint = await api.ok('GET', `/v1/endpoints/${endpointId}`)
      const given: readonly string[] = endpoint.status_reasons
      last = `${endpoint.status}: ${given.join('; ')}`
      return endpoint.status === status && reasons.every((reason) => given.some((text) => text.includes(reason)))
    }
    const what = `${status}: ${reasons.join('; ')}`
    await until(what, isTold, truthMsMax).catch((error: Error) => {
      throw new Error(`${error.message}; the status was ${last}`)
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const node of this.#nodes) await node.processes[Symbol.asyncDispose]()
    await this.#other?.[Symbol.asyncDispose]()
    await this.control[Symbol.asyncDispose]()
  }

  async #createDestination(): Promise<string> {
    const role = { region: 'local', role_arn: 'arn:aws:iam::000000000000:role/inlet-test' }
    const { id } = await this.control.ok('POST', '/v1/destinations', { name: 'lake', bucket: 'lake', ...role })
    await this.control.ok('POST', `/v1/destinations/${id}/validate`)
    return id
  }
}

export class FleetNode {
  readonly processes: Installation
  readonly address: string
  readonly port: number

  constructor(processes: Installation, address: string, port: number) {
    this.processes = processes
    this.address = address
    this.port = port
  }

  /** Known once ingest has started. */
  get id(): string {
    return readFileSync(this.#idFile, 'utf8').trim()
  }

  get hasId(): boolean {
    return existsSync(this.#idFile)
  }

  get #idFile(): string {
    return join(this.processes.directory, 'node', 'id')
  }

  /** Waits until ingest accepts data. */
  async untilReady(): Promise<void> {
    const isReady = () =>
      fetch(`http://${this.address}:${this.port}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      )
    await until('the node to be ready', isReady, startMsMax)
  }

  /** Sends a record to this node. */
  async ingest(endpointId: string, apiKey: string): Promise<void> {
    const client = new ApiClient({ ...this.processes.address, ingestUrl: `http://${this.address}:${this.port}`, apiKey })
    const { status } = await client.ingest(endpointId, '{"n":1}\n')
    if (status !== 202) throw new Error(`the node did not accept a record: ${status}`)
  }

  start(process: 'ingest' | 'delivery'): void {
    this.processes.spawn(process)
  }

  kill(process: 'ingest' | 'delivery'): Promise<void> {
    return this.processes.kill(process)
  }
}
