/** An Inlet of the tests: real processes on free ports, with a data directory that is removed afterwards. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { commandAt, end, freePort, loopback } from '../../tools/services/processes.ts'
import { type Address, ApiClient } from './api-client.ts'
import { artifactPaths, type Marker, readMarkers } from './markers.ts'
import { ownSettings } from './own-settings.ts'
import { until } from './until.ts'

const root = resolve(import.meta.dirname, '../..')
/** Prefix of the objects in each bucket. */
const prefix = 'in/let'
const program = join(root, 'src/main.ts')
const stopMsMax = 45_000

/** Address and directories of a running Inlet, for another process. */
export type InstallationAddress = Address & { readonly directory: string; readonly nodeApiUrl: string }

type Started = { readonly command: string; readonly child: ChildProcess }

type Options = {
  /** The `inlet` to run, if not that of the sources. */
  readonly executable?: string
  readonly environment?: Readonly<Record<string, string>>
  /** Command that runs `inlet <command>`, such as one that enters a namespace. */
  readonly enter?: readonly string[]
}

export class Installation extends ApiClient implements AsyncDisposable {
  readonly directory: string
  readonly nodeApiUrl: string
  #environment: Readonly<Record<string, string | undefined>>
  readonly #enter: readonly string[]
  readonly #inlet: readonly string[]
  /** Everything it started, also what ended: a later process may have the command of one that still runs. */
  readonly #started: Started[] = []
  readonly #log: string[] = []

  readonly #isAttached: boolean

  private constructor(
    { directory, nodeApiUrl, ...address }: InstallationAddress,
    { environment = {}, enter = [], executable }: Options,
    isAttached = false,
  ) {
    super(address)
    this.#enter = enter
    this.#inlet = executable === undefined ? [process.execPath, program] : [executable]
    this.directory = directory
    this.nodeApiUrl = nodeApiUrl
    this.#isAttached = isAttached
    this.#environment = {
      PATH: process.env['PATH'],
      ...ownSettings(),
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      INLET_DATA_DIR: directory,
      INLET_CONTROL_LISTEN: new URL(this.apiUrl).host,
      INLET_NODE_API_LISTEN: new URL(this.nodeApiUrl).host,
      INLET_INGEST_LISTEN: new URL(this.ingestUrl).host,
      INLET_BOOTSTRAP_API_KEY: this.apiKey,
      INLET_DISK_RESERVE_BYTES: '0B',
      INLET_API_REQUESTS_PER_MINUTE: '100000',
      INLET_ADDRESS_REQUESTS_PER_MINUTE: '100000',
      INLET_EXCHANGE_REQUESTS_PER_MINUTE: '100000',
      ...environment,
    }
  }

  /** Creates the data directory and picks ports. Starts nothing. */
  static async create(options: Options = {}): Promise<Installation> {
    const directory = await mkdtemp(join(tmpdir(), 'inlet-test-'))
    const [apiUrl, nodeApiUrl, ingestUrl] = [await freeUrl(), await freeUrl(), await freeUrl()]
    const apiKey = `ing_live_${randomBytes(16).toString('hex')}`
    return new Installation({ directory, apiUrl, nodeApiUrl, ingestUrl, apiKey }, options)
  }

  /** Uses the Inlet that another process started with `start`. Waits until it is ready, and never stops it. */
  static async attach(address: InstallationAddress): Promise<Installation> {
    const installation = new Installation(address, {}, true)
    await until('the shared Inlet to be ready', () => installation.#isUp('start'), 60_000)
    return installation
  }

  get address(): InstallationAddress {
    const { directory, apiUrl, nodeApiUrl, ingestUrl, apiKey } = this
    return { directory, apiUrl, nodeApiUrl, ingestUrl, apiKey }
  }

  /** Changes the environment of processes that start later. */
  configure(environment: Readonly<Record<string, string>>): void {
    this.#environment = { ...this.#environment, ...environment }
  }

  /** Starts `inlet <command>`, or another program instead of it, without waiting until it is ready. */
  spawn(
    command: string,
    { instead, args = [] }: { readonly instead?: string; readonly args?: readonly string[] } = {},
  ): ChildProcess {
    const [file = '', ...script] = instead === undefined ? [...this.#inlet, command] : [process.execPath, instead]
    const [first, rest] = commandAt({ ...loopback, enter: this.#enter }, file, [...script, ...args])
    const child = spawn(first, rest, { env: this.#environment, stdio: ['ignore', 'pipe', 'pipe'] })
    return this.#keep(command, child)
  }

  /** Runs `inlet <command>` to its end. `log` is what it wrote itself. */
  async run(command: string, ...args: readonly string[]): Promise<{ readonly exitCode: number | null; readonly log: string }> {
    const child = this.spawn(command, { args })
    const written: Buffer[] = []
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (part: Buffer) => written.push(part))
    await once(child, 'close')
    return { exitCode: child.exitCode, log: Buffer.concat(written).toString() }
  }

  /** Runs `npm start` in a process group of its own, and waits until it is ready. */
  async startWithNpm(): Promise<void> {
    const env = { ...this.#environment, npm_config_update_notifier: 'false' }
    this.#keep('start', spawn('npm', ['start'], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true }))
    await this.#untilUp('start')
  }

  /** Lets the endpoint of a first start without a terminal deliver after a second instead of a minute. */
  async hurryFirstEndpoint(): Promise<void> {
    const path = join(this.directory, 'first-api-key')
    await until('the first API key', () => existsSync(path))
    const api_key = readFileSync(path, 'utf8').trim()
    const call = async (method: string, path: string, body?: object, token = '') => {
      const headers = { 'content-type': 'application/json', ...(token === '' ? {} : { authorization: `Bearer ${token}` }) }
      const sent = body === undefined ? {} : { body: JSON.stringify(body) }
      const response = await fetch(`${this.apiUrl}${path}`, { method, headers, ...sent })
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`)
      return (await response.json()) as { access_token: string; items: { id: string }[] }
    }
    const { access_token } = await call('POST', '/v1/token/exchange', { api_key, scope: 'admin' })
    const { items } = await call('GET', '/v1/endpoints', undefined, access_token)
    for (const { id } of items) await call('PATCH', `/v1/endpoints/${id}`, { segment_max_age_seconds: 1 }, access_token)
  }

  #keep(command: string, child: ChildProcess): ChildProcess {
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text: Buffer) => this.#log.push(text.toString()))
    this.#started.push({ command, child })
    return child
  }

  /** Starts processes and waits until they are ready. */
  async start(...commands: readonly string[]): Promise<void> {
    for (const command of commands) this.spawn(command)
    for (const command of commands) await this.#untilUp(command)
  }

  #latest(command: string): ChildProcess | undefined {
    return this.#started.findLast((each) => each.command === command)?.child
  }

  async #untilUp(command: string): Promise<void> {
    const child = this.#latest(command)
    await until(
      `${command} to be ready`,
      async () => {
        if (child?.exitCode !== null) throw new Error(`${command} ended:\n${this.log}`)
        return this.#isUp(command)
      },
      60_000,
    )
  }

  /** Sends the signal, to the whole group of the process if wished, and waits until the process has ended. Returns its exit code. */
  async end(command: string, signal: NodeJS.Signals, { group = false } = {}): Promise<number | null> {
    const child = this.#latest(command)
    if (child?.pid === undefined || !isRunning(child)) return child?.exitCode ?? null
    const exited = once(child, 'exit')
    process.kill(group ? -child.pid : child.pid, signal)
    await exited
    return child.exitCode
  }

  async kill(command: string): Promise<void> {
    await this.end(command, 'SIGKILL')
  }

  pid(command: string): number | undefined {
    return this.#latest(command)?.pid
  }

  /** Everything the processes printed. */
  get log(): string {
    return this.#log.join('')
  }

  /** Creates an endpoint that seals after a second, with a destination unless one is given, and attaches a published view. */
  async endpoint({
    bucket,
    view,
    ...settings
  }: EndpointSettings): Promise<{ readonly id: string; readonly viewId: string | undefined }> {
    const endpoint = await this.ok('POST', '/v1/endpoints', {
      region: 'loc',
      ...(settings.destination_id === undefined ? { destination_id: await this.#validDestination(bucket) } : {}),
      segment_max_age_seconds: 1,
      output_formats: ['segments', 'parquet', 'parquet_views'],
      ...settings,
    })
    let viewId: string | undefined
    if (view !== undefined) {
      viewId = (await this.ok('POST', '/v1/views', view)).id
      await this.ok('POST', `/v1/views/${viewId}/publish`)
      await this.ok('POST', `/v1/endpoints/${endpoint.id}/views`, { view_id: viewId })
    }
    await this.untilConfigured(endpoint.id, viewId)
    // Without a delivery process it is degraded, but accepts data.
    await until(
      'the endpoint to be deployed',
      async () => (await this.ok('GET', `/v1/endpoints/${endpoint.id}`)).status !== 'deploying',
      60_000,
    )
    return { id: endpoint.id, viewId }
  }

  get buckets(): string {
    return join(this.directory, 'buckets')
  }

  /** The markers of an endpoint, by sequence number. */
  markers(bucket: string, endpointId: string): readonly Marker[] {
    return readMarkers(join(this.buckets, bucket), prefix, endpointId)
  }

  /** Paths of the artifacts of a kind that markers list. */
  artifacts(bucket: string, endpointId: string, kind: string): readonly string[] {
    return artifactPaths(join(this.buckets, bucket), this.markers(bucket, endpointId), kind)
  }

  /** Files of the write-ahead log, sealed and open. */
  walFiles(endpointId: string): readonly string[] {
    const folder = join(this.directory, 'node/wal', endpointId)
    return existsSync(folder) ? readdirSync(folder).filter((name) => /\.(wal|open|quarantine|poisoned)$/.test(name)) : []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isAttached) return
    const isKilled = await Promise.all(this.#started.map(stop))
    // The processes of a node that was killed write until they notice it.
    await rm(this.directory, { recursive: true, force: true, maxRetries: 20 })
    if (isKilled.includes(true)) throw new Error(`start did not stop within ${stopMsMax / 1_000} seconds:\n${this.log}`)
  }

  /** Waits until the running processes have applied a configuration that contains the endpoint and its view. */
  async untilConfigured(endpointId: string, viewId: string | undefined): Promise<void> {
    const isLatestRunning = (command: string) => {
      const child = this.#latest(command)
      return child !== undefined && isRunning(child)
    }
    for (const plane of ['ingest', 'delivery'].filter(
      (name) => this.#isAttached || isLatestRunning('start') || isLatestRunning(name),
    )) {
      const path = join(this.directory, 'node', `${plane}-snapshot.ndjson`)
      await until(
        `${plane} to apply the configuration`,
        () => {
          const snapshot = existsSync(path) ? readFileSync(path, 'utf8') : ''
          return snapshot.includes(endpointId) && snapshot.includes(viewId ?? '')
        },
        60_000,
      )
    }
  }

  async #validDestination(bucket: string): Promise<string> {
    const destination = await this.ok('POST', '/v1/destinations', {
      name: bucket,
      bucket,
      prefix,
      region: 'local',
      role_arn: 'arn:aws:iam::000000000000:role/inlet-test',
    })
    await this.ok('POST', `/v1/destinations/${destination.id}/validate`)
    return destination.id
  }

  async #isUp(command: string): Promise<boolean> {
    // Delivery has no listener.
    const urls = { start: [this.apiUrl, this.ingestUrl], control: [this.apiUrl], ingest: [this.ingestUrl] }[command] ?? []
    for (const url of urls) {
      const response = await fetch(`${url}/readyz`).catch(() => undefined)
      await response?.body?.cancel()
      if (response?.ok !== true) return false
    }
    return true
  }
}

export type EndpointSettings = {
  /** Name and bucket of the destination that is created unless one is given. */
  readonly bucket: string
  readonly destination_id?: string
  readonly region?: string
  readonly view?: { readonly name: string; readonly definition: unknown }
  readonly output_formats?: readonly string[]
  readonly segment_max_age_seconds?: number
  readonly mqtt_config?: object
  readonly kept_headers?: readonly string[]
  readonly kept_fields?: readonly string[]
  readonly segment_bytes?: number
  readonly copies?: 1 | 2
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null
}

/** Stops a supervisor, and kills it if it does not stop in time. Kills any other process at once. Returns whether a supervisor had to be killed. */
async function stop({ command, child }: Started): Promise<boolean> {
  if (!isRunning(child)) return false
  await end(child, command === 'start' ? 'SIGTERM' : 'SIGKILL', stopMsMax)
  return command === 'start' && child.signalCode === 'SIGKILL'
}

async function freeUrl(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`
}
