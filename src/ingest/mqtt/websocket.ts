/**
 * MQTT over WebSocket, MQTT 5 §6 and RFC 6455.
 *
 * Owns: the handshake, and that only binary frames come through. Does not own: what is in them.
 */
import type { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Clock } from '#lib/clock.ts'
import { sessionLimits } from './limits.ts'
import type { Wire, WireReader } from './wire.ts'

const subprotocol = 'mqtt'

/** Close codes, RFC 6455 §7.4.1. */
const closeCodes = { normal: 1000, unsupportedData: 1003 } as const

/** Of a client: two bytes, and four of a mask. */
const controlFrameHeadBytes = 6

const settings = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: sessionLimits.frameBytesMax,
  maxFragments: sessionLimits.frameFragmentsMax,
  maxBufferedChunks: sessionLimits.frameChunksMax,
  // Of a client that pings without reading; ws then ends the connection.
  maxPendingAutoPongs: sessionLimits.pongsMax,
  handleProtocols: () => subprotocol,
}
const upgrades = new WebSocketServer(settings)

/** Why a request can't be upgraded, or undefined. [MQTT-6.0.0-3], [MQTT-6.0.0-4] */
export function upgradeProblem({ headers }: IncomingMessage): string | undefined {
  const offered = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim()) ?? []
  return offered.includes(subprotocol) ? undefined : `offer the WebSocket subprotocol "${subprotocol}" (Sec-WebSocket-Protocol)`
}

/** Answers the request with 101, or, where it is no good handshake, with 400. */
export function upgrade(
  request: IncomingMessage,
  socket: Socket,
  head: Buffer,
  clock: Clock,
  open: (wire: WebSocketWire) => void,
): void {
  socket.setNoDelay(true)
  upgrades.handleUpgrade(request, socket, head, (webSocket) => open(new WebSocketWire(webSocket, socket, clock)))
}

export class WebSocketWire implements Wire {
  readonly #webSocket: WebSocket
  readonly #socket: Socket
  readonly #clock: Clock
  /** Of a frame that is not whole. What came behind the last whole one in the same chunk is not counted. */
  #heldBytes = 0
  #closeCode: number = closeCodes.normal

  constructor(webSocket: WebSocket, socket: Socket, clock: Clock) {
    this.#webSocket = webSocket
    this.#socket = socket
    this.#clock = clock
  }

  get address(): string | undefined {
    return this.#socket.remoteAddress
  }

  get unsentBytes(): number {
    return this.#webSocket.bufferedAmount
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** To be called once, before anything comes. */
  listen(reader: WireReader): void {
    const webSocket = this.#webSocket
    // Before the listener of ws, which may find a whole frame in the chunk.
    this.#socket.prependListener('data', (chunk: Buffer) => {
      this.#heldBytes += chunk.length
    })
    this.#socket.on('data', () => {
      if (this.#heldBytes > 0) reader.holds()
    })
    webSocket.on('message', (chunk: Buffer, isBinary: boolean) => {
      this.#heldBytes = 0
      if (isBinary) {
        reader.receive(chunk)
        return
      }
      this.#closeCode = closeCodes.unsupportedData
      reader.broken('a WebSocket frame is not binary') // [MQTT-6.0.0-1]
    })
    // They may come amid the fragments of a message, which ws goes on holding.
    const passed = (payload: Buffer) => {
      this.#heldBytes = Math.max(0, this.#heldBytes - payload.length - controlFrameHeadBytes)
    }
    webSocket.on('ping', passed)
    webSocket.on('pong', passed)
    this.#socket.on('drain', () => reader.drained())
    // ws closes with the code that fits.
    webSocket.on('error', (error) => reader.broken(`a WebSocket frame can't be read: ${error.message}`))
    webSocket.on('close', () => reader.closed())
  }

  write(bytes: Buffer): void {
    if (this.#webSocket.readyState === this.#webSocket.OPEN) this.#webSocket.send(bytes)
  }

  pause(): void {
    this.#webSocket.pause()
  }

  resume(): void {
    this.#webSocket.resume()
  }

  end(): void {
    const webSocket = this.#webSocket
    // A paused one would never read the client's close.
    webSocket.resume()
    webSocket.close(this.#closeCode)
    const cancel = this.#clock.setTimer(() => webSocket.terminate(), sessionLimits.closeMs)
    webSocket.once('close', cancel)
  }

  destroy(): void {
    this.#webSocket.terminate()
  }
}
