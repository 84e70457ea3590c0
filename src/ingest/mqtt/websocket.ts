/**
 * The frames of MQTT over WebSocket, MQTT 5 §6 and RFC 6455.
 *
 * Owns: that only binary frames reach the reader, and how many bytes of an incomplete one are held. Does not own: their content.
 */
import type { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import type { Clock } from '#lib/clock.ts'
import { sessionLimits } from './limits.ts'
import type { Wire, WireReader } from './wire.ts'

/** Close codes, RFC 6455 §7.4.1. */
const closeCodes = { normal: 1000, unsupportedData: 1003 } as const

/** Head of a control frame from a client: two bytes, and a mask of four. */
const controlFrameHeadBytes = 6

export class WebSocketWire implements Wire {
  readonly #webSocket: WebSocket
  readonly #socket: Socket
  readonly #clock: Clock
  /** Bytes of an incomplete message. Bytes after the last complete message in the same chunk are not counted. */
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

  /** Call it once, before any bytes arrive. */
  listen(reader: WireReader): void {
    const webSocket = this.#webSocket
    // Runs before the listener of ws, which may find a complete frame in the chunk.
    this.#socket.prependListener('data', (chunk: Buffer) => {
      this.#heldBytes += chunk.length
    })
    this.#socket.on('data', () => {
      if (this.#heldBytes > 0) reader.accountHeldBytes()
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
    // Control frames may arrive between the fragments of a message, which ws still holds.
    const subtract = (payload: Buffer) => {
      this.#heldBytes = Math.max(0, this.#heldBytes - payload.length - controlFrameHeadBytes)
    }
    webSocket.on('ping', subtract)
    webSocket.on('pong', subtract)
    this.#socket.on('drain', () => reader.drained())
    // ws chooses the close code.
    webSocket.on('error', (error) => reader.broken(`a WebSocket frame is not valid: ${error.message}`))
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
    // While paused, it would never read the client's close frame.
    webSocket.resume()
    webSocket.close(this.#closeCode)
    const cancel = this.#clock.setTimer(() => webSocket.terminate(), sessionLimits.closeMs)
    webSocket.once('close', cancel)
  }

  destroy(): void {
    this.#webSocket.terminate()
  }
}
