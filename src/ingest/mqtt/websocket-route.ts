/**
 * MQTT over WebSocket on the HTTP server, MQTT 5 §6.
 *
 * Owns: the handshake. Does not own: frames (websocket.ts), sessions.
 */
import type { IncomingMessage } from 'node:http'
import { WebSocketServer } from 'ws'
import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import type { Upgraded, UpgradeRoute } from '../http/upgrade-route.ts'
import { sessionLimits } from './limits.ts'
import type { Sessions } from './sessions.ts'
import { WebSocketWire } from './websocket.ts'

const subprotocol = 'mqtt'

const settings = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: sessionLimits.frameBytesMax,
  maxFragments: sessionLimits.frameFragmentsMax,
  maxBufferedChunks: sessionLimits.frameChunksMax,
  // Bounds the pongs to a client that pings without reading. Above it, ws ends the connection.
  maxPendingAutoPongs: sessionLimits.pongsMax,
  handleProtocols: () => subprotocol,
}

export type WebSocketRouteOptions = {
  readonly sessions: Sessions
  readonly isSecure: boolean
  readonly clock: Clock
}

export class WebSocketRoute implements UpgradeRoute {
  readonly path = '/mqtt'
  readonly hint: string
  readonly #sessions: Sessions
  readonly #clock: Clock
  readonly #server = new WebSocketServer(settings)

  constructor({ sessions, isSecure, clock }: WebSocketRouteOptions) {
    this.hint = `this is MQTT over WebSocket; connect an MQTT client to ${isSecure ? 'wss' : 'ws'}://<host>${this.path}`
    this.#sessions = sessions
    this.#clock = clock
  }

  problem({ headers }: IncomingMessage): AppError | undefined {
    if (this.#sessions.isDraining) {
      return new AppError('unavailable', 'this node is shutting down; connect again', { retryAfterSeconds: 1 })
    }
    // [MQTT-6.0.0-3], [MQTT-6.0.0-4]
    const offered = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim()) ?? []
    if (offered.includes(subprotocol)) return undefined
    return new AppError('bad_request', `offer the WebSocket subprotocol "${subprotocol}" (Sec-WebSocket-Protocol)`)
  }

  /** Responds with 101, or with 400 if the handshake is not valid. */
  accept(request: IncomingMessage, { socket, slot, head, query }: Upgraded): void {
    socket.setNoDelay(true)
    const { host, origin } = request.headers
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      const wire = new WebSocketWire(webSocket, socket, this.#clock)
      wire.listen(this.#sessions.open(wire, { host, query, origin }, slot))
    })
  }
}
