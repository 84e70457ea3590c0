/**
 * MQTT on a node: its sessions, and the listener for MQTT without WebSocket, if there is one.
 *
 * Law: after `stop` nothing is accepted. All received messages are durable, or their connection was closed without an acknowledgement.
 */
import { createServer, type Server, type Socket } from 'node:net'
import type { Server as SecureServer, TLSSocket } from 'node:tls'
import type { Clock } from '#lib/clock.ts'
import { loadTls } from '#lib/http.ts'
import { addressOf, listen } from '#lib/listen.ts'
import type { ListenAddress } from '#lib/option-types.ts'
import type { ServedCertificate } from '#lib/served-certificate.ts'
import type { Service } from '#lib/service.ts'
import type { ConnectionBudget, ConnectionSlot } from '../gate/connection-budget.ts'
import type { Sessions } from './sessions.ts'
import { SocketWire } from './wire/tcp.ts'

export type MqttServerOptions = {
  /** Null for MQTT over WebSocket only. */
  readonly listen: ListenAddress | null
  readonly connections: ConnectionBudget
  readonly certificate: Pick<ServedCertificate, 'options' | 'subscribe'> | undefined
  readonly sessions: Sessions
  readonly clock: Clock
}

export class MqttServer implements Service {
  readonly name = 'mqtt'
  readonly #options: MqttServerOptions
  readonly #server: Server | undefined
  #stopped: Promise<void> | undefined

  constructor(options: MqttServerOptions) {
    this.#options = options
    this.#server = options.listen === null ? undefined : this.#createServer()
  }

  get address(): ListenAddress | undefined {
    return this.#server === undefined ? undefined : addressOf(this.#server)
  }

  async start(): Promise<void> {
    if (this.#server !== undefined && this.#options.listen !== null)
      await listen(this.#server, this.#options.listen, 'INLET_MQTT_LISTEN')
    await this.#options.sessions.start()
  }

  stop(signal: AbortSignal): Promise<void> {
    this.#stopped ??= this.#drain(signal)
    return this.#stopped
  }

  #createServer(): Server {
    const { certificate, connections } = this.#options
    const server =
      certificate === undefined
        ? createServer((socket) => this.#open(socket, connections.accept(socket), undefined))
        : loadTls().createServer(certificate.options, (socket: TLSSocket) =>
            this.#open(socket, connections.secured(socket), socket.servername || undefined),
          )
    if (certificate !== undefined) {
      server.on('connection', (socket) => connections.acceptHandshake(socket))
      certificate.subscribe((options) => (server as SecureServer).setSecureContext(options))
    }
    // Node reports a handshake that failed or took too long, but leaves the connection open.
    server.on('tlsClientError', (_error: Error, socket: Socket) => socket.destroy())
    server.maxConnections = connections.max
    server.on('drop', () => connections.countDropped())
    return server
  }

  #open(socket: Socket, slot: ConnectionSlot | undefined, host: string | undefined): void {
    const { clock, sessions } = this.#options
    if (slot === undefined) {
      socket.destroy()
      return
    }
    const wire = new SocketWire(socket, clock)
    wire.listen(sessions.open(wire, { host, query: '' }, slot))
  }

  async #drain(signal: AbortSignal): Promise<void> {
    const closed = Promise.withResolvers<void>()
    if (this.#server === undefined || !this.#server.listening) closed.resolve()
    else this.#server.close(() => closed.resolve())
    await this.#options.sessions.drain(signal)
    await closed.promise
  }
}
