/**
 * The life of MQTT on a node: its sessions, and the listener for MQTT without WebSocket where there is one.
 *
 * Law: after `stop` nothing is accepted, and what was received is durable or its connection was closed without an answer.
 */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createSecureServer, type Server as SecureServer, type TLSSocket } from 'node:tls'
import type { Clock } from '#lib/clock.ts'
import type { Service } from '#lib/service.ts'
import type { Certificate } from '../certificate.ts'
import type { Sessions } from './sessions.ts'
import { SocketWire } from './tcp.ts'

export type MqttServerOptions = {
  /** Null for none. */
  readonly listen: { readonly host: string; readonly port: number } | null
  /** Of the whole node: those of the HTTP service count as well. */
  readonly maxConnections: number
  readonly otherConnections: () => number
  readonly onDropped: () => void
  readonly certificate: Pick<Certificate, 'options' | 'subscribe'> | undefined
  readonly sessions: Sessions
  readonly clock: Clock
}

const backlog = 4096

export class MqttServer implements Service {
  readonly name = 'mqtt'
  readonly #options: MqttServerOptions
  readonly #server: Server | undefined
  #connections = 0
  #stopped: Promise<void> | undefined

  constructor(options: MqttServerOptions) {
    this.#options = options
    this.#server = options.listen === null ? undefined : this.#createServer()
  }

  /** Open ones, whatever came of them. Those in a TLS handshake are bound by its time and `maxConnections`. */
  get connections(): number {
    return this.#connections
  }

  get address(): { readonly host: string; readonly port: number } | undefined {
    if (this.#server === undefined) return undefined
    const { address, port } = this.#server.address() as AddressInfo
    return { host: address, port }
  }

  async start(): Promise<void> {
    const server = this.#server
    const { listen } = this.#options
    if (server === undefined || listen === null) return
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    server.once('error', reject)
    server.listen({ ...listen, backlog }, resolve)
    await promise
    server.off('error', reject)
  }

  stop(signal: AbortSignal): Promise<void> {
    this.#stopped ??= this.#drain(signal)
    return this.#stopped
  }

  #createServer(): Server {
    const { certificate, maxConnections, onDropped } = this.#options
    const server =
      certificate === undefined
        ? createServer((socket) => this.#open(socket, undefined))
        : createSecureServer(certificate.options, (socket: TLSSocket) => this.#open(socket, socket.servername || undefined))
    if (certificate !== undefined) certificate.subscribe((options) => (server as SecureServer).setSecureContext(options))
    // Node says that a handshake failed or took too long, and leaves the connection as it is.
    server.on('tlsClientError', (_error: Error, socket: Socket) => socket.destroy())
    server.maxConnections = maxConnections
    server.on('drop', onDropped)
    return server
  }

  #open(socket: Socket, host: string | undefined): void {
    const { maxConnections, otherConnections, onDropped } = this.#options
    if (this.#connections + otherConnections() >= maxConnections) {
      onDropped()
      socket.destroy()
      return
    }
    this.#connections += 1
    socket.once('close', () => {
      this.#connections -= 1
    })
    const wire = new SocketWire(socket, this.#options.clock)
    wire.listen(this.#options.sessions.open(wire, { host, query: '' }))
  }

  async #drain(signal: AbortSignal): Promise<void> {
    const closed = Promise.withResolvers<void>()
    if (this.#server === undefined || !this.#server.listening) closed.resolve()
    else this.#server.close(() => closed.resolve())
    await this.#options.sessions.drain(signal)
    await closed.promise
  }
}
