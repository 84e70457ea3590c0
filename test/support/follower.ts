/**
 * Clients that follow DNS, and send again what was not acknowledged: HTTP with connections that are kept, and MQTT with QoS 1.
 *
 * Each keeps what was acknowledged and every failure that it noticed, although it went on.
 */
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import mqtt from 'mqtt'

export type FollowerOptions = {
  /** Returns an address of a node, as a resolver would. */
  readonly resolve: () => string
  readonly port: number
  readonly endpointId: string
  readonly apiKey: string
  /** Between two records. */
  readonly pauseMs: number
}

export class HttpFollower {
  readonly acknowledged: string[] = []
  readonly failures: string[] = []
  readonly #options: FollowerOptions
  readonly #name: string
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  #isStopping = false
  readonly #done: Promise<void>

  constructor(name: string, options: FollowerOptions) {
    this.#name = name
    this.#options = options
    this.#done = this.#run()
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#done
    this.#agent.destroy()
  }

  async #run(): Promise<void> {
    // Like a connection pool: an address is looked up for a new connection only.
    let host = this.#options.resolve()
    for (let count = 0; !this.#isStopping; ) {
      const record = `{"from":"${this.#name}","n":${count}}`
      const { status, isLast } = await this.#send(host, record).catch((error: Error) => ({ status: error.message, isLast: true }))
      if (status === 202) {
        this.acknowledged.push(record)
        count += 1
      } else this.failures.push(`${this.#name} ${count} to ${host}: ${status}`)
      if (isLast) host = this.#options.resolve()
      await pause(this.#options.pauseMs)
    }
  }

  #send(host: string, record: string): Promise<{ readonly status: number | undefined; readonly isLast: boolean }> {
    const { port, endpointId, apiKey } = this.#options
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number | undefined; isLast: boolean }>()
    const headers = { 'content-type': 'application/json', 'x-api-key': apiKey, 'content-length': Buffer.byteLength(record) }
    const path = `/v1/ingest?endpoint=${endpointId}`
    request({ host, port, path, method: 'POST', headers, agent: this.#agent, timeout: 10_000 })
      .on('response', (response) => {
        const isLast = response.headers.connection === 'close'
        response.resume().on('end', () => resolve({ status: response.statusCode, isLast }))
      })
      .on('timeout', () => reject(new Error('no response in 10 s')))
      .on('error', reject)
      .end(record)
    return promise
  }
}

export class MqttFollower {
  readonly acknowledged: string[] = []
  readonly failures: string[] = []
  connections = 0
  readonly #client: mqtt.MqttClient
  #isStopping = false
  readonly #done: Promise<void>

  constructor(name: string, { resolve, port, endpointId, apiKey, pauseMs }: FollowerOptions) {
    const properties = { userProperties: { endpoint: endpointId } }
    const options = { protocolVersion: 5, clientId: name, username: 'somebody', password: apiKey, properties } as const
    this.#client = new mqtt.MqttClient(() => connect(port, resolve()), {
      ...options,
      reconnectPeriod: 100,
      connectTimeout: 5_000,
    })
    this.#client.on('connect', () => {
      this.connections += 1
    })
    this.#client.on('error', (error) => this.failures.push(`${name}: ${error.message}`))
    this.#done = this.#run(name, pauseMs)
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#done
    await this.#client.endAsync()
  }

  async #run(name: string, pauseMs: number): Promise<void> {
    for (let count = 0; !this.#isStopping; count += 1) {
      const record = `{"from":"${name}","n":${count}}`
      // The client sends it again on its next connection, until it is acknowledged.
      await this.#client.publishAsync('fleet/x', record, { qos: 1 })
      this.acknowledged.push(record)
      await pause(pauseMs)
    }
  }
}
