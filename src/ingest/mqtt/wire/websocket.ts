/**
 * MQTT over WebSocket, MQTT 5 §6 and RFC 6455: a socket after its handshake.
 *
 * Owns: pongs, and the closing handshake. Does not own: the layout of frames (websocket-frames.ts), their content.
 */
import type { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import type { Clock } from '#lib/clock.ts'
import { wireLimits } from './limits.ts'
import { closeCodes, encodeClose, encodeFrame, FrameReader, type FrameVisitor, opcodes } from './websocket-frames.ts'
import type { Wire, WireReader } from './wire.ts'

export class WebSocketWire implements Wire, FrameVisitor {
  readonly forwardedFor: string | undefined
  readonly #socket: Socket
  readonly #clock: Clock
  readonly #frames = new FrameReader(this)
  #reader: WireReader | undefined
  /** Pongs since the client had read everything. */
  #pongs = 0
  #closeCode: number = closeCodes.normal
  #hasSentClose = false
  #isEnding = false

  constructor(socket: Socket, clock: Clock, forwardedFor: string | undefined) {
    this.forwardedFor = forwardedFor
    this.#socket = socket
    this.#clock = clock
    socket.setTimeout(0)
    socket.setNoDelay(true)
  }

  get address(): string | undefined {
    return this.#socket.remoteAddress
  }

  get unsentBytes(): number {
    return this.#socket.writableLength
  }

  /** Call it once, before any bytes arrive. */
  listen(reader: WireReader): void {
    const socket = this.#socket
    this.#reader = reader
    socket.on('data', (chunk: Buffer) => this.#frames.push(chunk))
    socket.on('drain', () => reader.drained())
    // Without a close frame that ends the connection, too.
    socket.on('end', () => this.#endSocket())
    socket.on('error', () => socket.destroy())
    socket.on('close', () => reader.closed())
  }

  data(bytes: Buffer): void {
    this.#reader?.receive(bytes)
  }

  ping(payload: Buffer): void {
    if (this.#hasSentClose) return
    this.#pongs = this.#socket.writableLength === 0 ? 1 : this.#pongs + 1
    if (this.#pongs > wireLimits.pongsMax) this.#socket.destroy()
    else this.#send(opcodes.pong, payload)
  }

  close(payload: Buffer): void {
    this.#sendClose(payload)
    this.#endSocket()
  }

  invalid(closeCode: number, message: string): void {
    this.#closeCode = closeCode
    this.#reader?.broken(`a WebSocket frame is not valid: ${message}`)
    // Nothing more is read, so the client's close frame is not awaited. [RFC 6455 §7.1.7]
    this.#sendClose(encodeClose(closeCode))
    this.#endSocket()
  }

  write(bytes: Buffer): void {
    if (!this.#hasSentClose) this.#send(opcodes.binary, bytes)
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  end(): void {
    this.#sendClose(encodeClose(this.#closeCode))
    // While paused, it would never read the client's close frame.
    this.#socket.resume()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #send(opcode: number, payload: Buffer): void {
    if (this.#socket.writable) this.#socket.write(encodeFrame(opcode, payload))
  }

  #sendClose(payload: Buffer): void {
    if (this.#hasSentClose) return
    this.#send(opcodes.close, payload)
    this.#hasSentClose = true
    this.#destroyLater()
  }

  #endSocket(): void {
    this.#socket.end()
    // Bytes that still arrive are read and discarded, so that a reset does not discard the last frame to the client.
    this.#socket.resume()
    this.#destroyLater()
  }

  /** The client has this time for its close frame, and to end its side. */
  #destroyLater(): void {
    if (this.#isEnding || this.#socket.destroyed) return
    this.#isEnding = true
    const cancel = this.#clock.setTimer(() => this.#socket.destroy(), wireLimits.closeMs)
    this.#socket.once('close', cancel)
  }
}
