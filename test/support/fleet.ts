/** One control and nodes at loopback addresses of their own: real processes, each node with a data directory of its own. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, Installation } from './installation.ts'
import { until } from './until.ts'

export const fleetRegion = 'fra'
/** Status tells the truth within this time. */
const truthMsMax = 10_000

type Environment = Readonly<Record<string, string>>

export class Fleet implements AsyncDisposable {
  readonly control: Installation
  readonly #joinSecret: string
  readonly #nodes: FleetNode[] = []
  #destinationId: string | undefined

  private constructor(control: Installation, joinSecret: string) {
    this.control = control
    this.#joinSecret = joinSecret
  }

  static async start(environment: Environment): Promise<Fleet> {
    const joinSecret = randomBytes(24).toString('base64url')
    const control = await Installation.create({ environment: { ...environment, INLET_NODE_TOKEN: joinSecret } })
    await control.start('control')
    return new Fleet(control, joinSecret)
  }

  /** Starts a node at a loopback address. It is ready when the status says so. */
  async startNode(address: string, environment: Environment = {}): Promise<FleetNode> {
    const port = await freePort()
    const processes = await Installation.create({
      environment: {
        INLET_CONTROL_URL: this.control.nodeApiUrl,
        INLET_NODE_TOKEN: this.#joinSecret,
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

  /** Waits until the endpoint has the status, and each of these texts is in one of its reasons. Throws after ten seconds. */
  async told(endpointId: string, status: string, reasons: readonly string[] = []): Promise<void> {
    let last = ''
    const isTold = async () => {
      const endpoint = await this.control.ok('GET', `/v1/endpoints/${endpointId}`)
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
    return readFileSync(join(this.processes.directory, 'node', 'id'), 'utf8').trim()
  }

  start(process: 'ingest' | 'delivery'): void {
    this.processes.spawn(process)
  }

  kill(process: 'ingest' | 'delivery'): Promise<void> {
    return this.processes.kill(process)
  }
}
