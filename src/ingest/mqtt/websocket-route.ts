/**
 * MQTT over WebSocket on the HTTP server, MQTT 5 §6.
 *
 * Owns: the opening handshake, RFC 6455 §4.2. Does not own: frames (websocket.ts), sessions.
 */
import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import { forwardedForOf } from '../gate/client-addresses.ts'
import type { Upgraded, UpgradeRoute } from '../http/upgrade-route.ts'
import type { Sessions } from './sessions.ts'
import { WebSocketWire } from './wire/websocket.ts'

const subprotocol = 'mqtt'
const version = '13'
/** 16 bytes in base64. */
const keyPattern = /^[A-Za-z0-9+/]{22}==$/
/** RFC 6455 §1.3. */
const acceptSuffix = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

export type WebSocketRouteOptions = {
  readonly sessions: Sessions
  readonly isSecure: boolean
  readonly clock: Clock
}

export class WebSocketRoute implements UpgradeRoute {
  readonly path = '/mqtt'
  readonly hint: string
  /** RFC 6455 §4.4. */
  readonly problemHeaders = ['Sec-WebSocket-Version', version]
  readonly #sessions: Sessions
  readonly #clock: Clock

  constructor({ sessions, isSecure, clock }: WebSocketRouteOptions) {
    this.hint = `this is MQTT over WebSocket; connect an MQTT client to ${isSecure ? 'wss' : 'ws'}://<host>${this.path}`
    this.#sessions = sessions
    this.#clock = clock
  }

  problem({ headers }: IncomingMessage): AppError | undefined {
    if (this.#sessions.isDraining) {
      return new AppError('unavailable', 'this node is shutting down; connect again', { retryAfterSeconds: 1 })
    }
    if (headers.upgrade?.toLowerCase() !== 'websocket') return new AppError('bad_request', this.hint)
    if (headers['sec-websocket-version'] !== version) {
      return new AppError('bad_request', `Sec-WebSocket-Version must be ${version}`)
    }
    if (!keyPattern.test(headers['sec-websocket-key'] ?? '')) {
      return new AppError('bad_request', 'Sec-WebSocket-Key must be 16 bytes in base64')
    }
    // [MQTT-6.0.0-3], [MQTT-6.0.0-4]
    const offered = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim()) ?? []
    if (offered.includes(subprotocol)) return undefined
    return new AppError('bad_request', `offer the WebSocket subprotocol "${subprotocol}" (Sec-WebSocket-Protocol)`)
  }

  accept(request: IncomingMessage, { socket, slot, head, query }: Upgraded): void {
    const { host, origin } = request.headers
    const accept = hash('sha1', `${request.headers['sec-websocket-key']}${acceptSuffix}`, 'base64')
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: ${subprotocol}\r\n\r\n`,
    )
    if (head.length > 0) socket.unshift(head)
    const wire = new WebSocketWire(socket, this.#clock, forwardedForOf(request.headers))
    wire.listen(this.#sessions.open(wire, { host, query, origin }, slot))
  }
}
