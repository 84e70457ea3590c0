/**
 * An Inlet of the tests' own: real processes on free ports and a data directory that goes away. Imports nothing of the program,
 * so what it shows is what a user gets.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { until } from './until.ts'

const root = resolve(import.meta.dirname, '../..')
const program = join(root, 'src/main.ts')

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
export type Answer = { readonly status: number; readonly body: any; readonly headers: Headers }

export type Marker = {
  readonly id: string
  readonly seq: number
  readonly log: string
  readonly records: number
  readonly artifacts: Readonly<
    Record<string, { readonly key: string; readonly bytes: number; readonly rows: number; readonly sha256: string }>
  >
  readonly views: readonly {
    readonly view_name: string
    readonly processed: number
    readonly accepted: number
    readonly dropped: number
    readonly dlq: number
  }[]
}

type Options = {
  readonly environment?: Readonly<Record<string, string>>
}

export class Installation implements AsyncDisposable {
  readonly directory: string
  readonly apiKey: string
  readonly apiUrl: string
  readonly ingestUrl: string
  #environment: Readonly<Record<string, string | undefined>>
  readonly #running = new Map<string, ChildProcess>()
  readonly #log: string[] = []
  #token: string | undefined

  private constructor(directory: string, ports: readonly number[], { environment = {} }: Options) {
    this.directory = directory
    this.apiKey = `ing_live_${randomBytes(16).toString('hex')}`
    this.apiUrl = `http://127.0.0.1:${ports[0]}`
    this.ingestUrl = `http://127.0.0.1:${ports[1]}`
    this.#environment = {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      INLET_DATA_DIR: directory,
      INLET_CONTROL_LISTEN: `127.0.0.1:${ports[0]}`,
      INLET_INGEST_LISTEN: `127.0.0.1:${ports[1]}`,
      INLET_BOOTSTRAP_API_KEY: this.apiKey,
      INLET_DISK_RESERVE_BYTES: '0B',
      INLET_API_REQUESTS_PER_MINUTE: '100000',
      INLET_ADDRESS_REQUESTS_PER_MINUTE: '100000',
      INLET_EXCHANGE_REQUESTS_PER_MINUTE: '100000',
      ...environment,
    }
  }

  /** A data directory and ports; nothing runs yet. */
  static async create(options: Options = {}): Promise<Installation> {
    const directory = await mkdtemp(join(tmpdir(), 'inlet-test-'))
    return new Installation(directory, [await freePort(), await freePort()], options)
  }

  /** For processes that start from now on. */
  configure(environment: Readonly<Record<string, string>>): void {
    this.#environment = { ...this.#environment, ...environment }
  }

  /** Starts `inlet <command>`, or another program in the place of it. Resolves at once. */
  spawn(
    command: string,
    { instead, args = [] }: { readonly instead?: string; readonly args?: readonly string[] } = {},
  ): ChildProcess {
    const what = instead === undefined ? [program, command] : [instead]
    const child = spawn(process.execPath, [...what, ...args], { env: this.#environment, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text: Buffer) => this.#log.push(text.toString()))
    this.#running.set(command, child)
    return child
  }

  /** Starts processes and waits until they serve. */
  async start(...commands: readonly string[]): Promise<void> {
    for (const command of commands) this.spawn(command)
    for (const command of commands) {
      const child = this.#running.get(command)
      await until(
        `${command} to serve`,
        async () => {
          if (child?.exitCode !== null) throw new Error(`${command} ended:\n${this.log}`)
          return this.#isUp(command)
        },
        60_000,
      )
    }
  }

  /** Sends the signal and waits for the end. */
  async end(command: string, signal: NodeJS.Signals): Promise<void> {
    const child = this.#running.get(command)
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }

  kill(command: string): Promise<void> {
    return this.end(command, 'SIGKILL')
  }

  pid(command: string): number | undefined {
    return this.#running.get(command)?.pid
  }

  /** All that the processes said. */
  get log(): string {
    return this.#log.join('')
  }

  async api(method: string, path: string, body?: unknown): Promise<Answer> {
    this.#token ??= await this.#exchange()
    const response = await fetch(`${this.apiUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
  }

  /** The body of an answer that must be a success. */
  // biome-ignore lint/suspicious/noExplicitAny: see Answer
  async ok(method: string, path: string, body?: unknown): Promise<any> {
    const answer = await this.api(method, path, body)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  async ingest(
    endpointId: string,
    body: string | Uint8Array<ArrayBuffer>,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const response = await fetch(`${this.ingestUrl}/v1/ingest?endpoint=${endpointId}`, {
      method: 'POST',
      headers: { 'x-api-key': this.apiKey, 'content-type': 'application/x-ndjson', ...headers },
      body,
    })
    return { status: response.status, headers: response.headers, body: await response.json() }
  }

  /** A destination unless one is given, an endpoint that seals after a second, and a published view bound to it. */
  async endpoint({
    bucket,
    view,
    ...settings
  }: EndpointWish): Promise<{ readonly id: string; readonly viewId: string | undefined }> {
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
    await this.#known(endpoint.id, viewId)
    // Without a delivery process it is degraded, and takes data all the same.
    await until(
      'the endpoint to be deployed',
      async () => (await this.ok('GET', `/v1/endpoints/${endpoint.id}`)).status !== 'deploying',
      60_000,
    )
    return { id: endpoint.id, viewId }
  }

  /** Every commit of the endpoint, newest first, over all pages. */
  async commits(endpointId: string): Promise<readonly { readonly id: string; readonly node_id: string; readonly seq: number }[]> {
    const all = []
    for (let before = ''; ; ) {
      const page = await this.ok('GET', `/v1/endpoints/${endpointId}/commits?limit=200${before && `&before=${before}`}`)
      all.push(...page.items)
      if (page.next_cursor === null) return all
      before = page.next_cursor
    }
  }

  /** Waits until control has the commits of these segments. */
  async committed(endpointId: string, seqs: Iterable<number>, timeoutMs = 60_000): Promise<void> {
    const wanted = new Set(seqs)
    await until(
      `the commits of ${[...wanted].join(', ')}`,
      async () => {
        const seen = new Set((await this.commits(endpointId)).map(({ seq }) => seq))
        return [...wanted].every((seq) => seen.has(seq))
      },
      timeoutMs,
    )
  }

  get buckets(): string {
    return join(this.directory, 'buckets')
  }

  /** The markers of an endpoint, in order of their names within a log. */
  markers(bucket: string, endpointId: string): readonly Marker[] {
    const folder = join(this.buckets, bucket, 'in/let', endpointId, 'commits')
    if (!existsSync(folder)) return []
    const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.json'))
    return names.map((name): Marker => JSON.parse(readFileSync(join(folder, name), 'utf8'))).toSorted((a, b) => a.seq - b.seq)
  }

  /** Paths of the artifacts of a kind that markers list. */
  artifacts(bucket: string, endpointId: string, kind: string): readonly string[] {
    return this.markers(bucket, endpointId).flatMap(({ artifacts }) => {
      const artifact = artifacts[kind]
      return artifact === undefined ? [] : [join(this.buckets, bucket, artifact.key)]
    })
  }

  /** Files of the write-ahead log, sealed and open. */
  walFiles(endpointId: string): readonly string[] {
    const folder = join(this.directory, 'node/wal', endpointId)
    return existsSync(folder) ? readdirSync(folder).filter((name) => /\.(wal|open|quarantine|poisoned)$/.test(name)) : []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running.keys()].map((command) => this.end(command, command === 'start' ? 'SIGTERM' : 'SIGKILL')))
    await rm(this.directory, { recursive: true, force: true })
  }

  /** Waits until the processes that run work by a configuration with the endpoint and its view in it. */
  async #known(endpointId: string, viewId: string | undefined): Promise<void> {
    const all = this.#running.has('start')
    for (const plane of ['ingest', 'delivery'].filter((name) => all || this.#running.has(name))) {
      const path = join(this.directory, 'node', `${plane}-snapshot.ndjson`)
      await until(
        `${plane} to know the endpoint`,
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
      prefix: 'in/let',
      region: 'local',
      role_arn: 'arn:aws:iam::000000000000:role/inlet-test',
    })
    await this.ok('POST', `/v1/destinations/${destination.id}/validate`)
    return destination.id
  }

  async #exchange(): Promise<string> {
    const response = await fetch(`${this.apiUrl}/v1/token/exchange`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ api_key: this.apiKey, scope: 'admin', ttl: '1h' }),
    })
    const { access_token } = (await response.json()) as { access_token: string }
    return access_token
  }

  async #isUp(command: string): Promise<boolean> {
    // delivery has no listener; what it does shows.
    const urls = { start: [this.apiUrl, this.ingestUrl], control: [this.apiUrl], ingest: [this.ingestUrl] }[command] ?? []
    for (const url of urls) {
      const response = await fetch(`${url}/readyz`).catch(() => undefined)
      await response?.body?.cancel()
      if (response?.ok !== true) return false
    }
    return true
  }
}

export type EndpointWish = {
  /** Of the destination that is made where none is given. */
  readonly bucket: string
  readonly destination_id?: string
  readonly view?: { readonly name: string; readonly definition: unknown }
  readonly output_formats?: readonly string[]
  readonly segment_max_age_seconds?: number
  readonly mqtt_config?: object
  readonly segment_bytes?: number
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  if (address === null || typeof address === 'string') throw new Error('a TCP server without a port')
  return address.port
}
