import type { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import type { Clock } from '#lib/clock.ts'
import { wireLimits } from './limits.ts'
import type { Wire, WireReader } from './wire.ts'

/** MQTT directly over TCP or TLS. */
export class SocketWire implements Wire {
  readonly #socket: Socket
  readonly #clock: Clock

  constructor(socket: Socket, clock: Clock) {
    this.#socket = socket
    this.#clock = clock
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
    socket.on('data', (chunk: Buffer) => reader.receive(chunk))
    socket.on('drain', () => reader.drained())
    // The client ended its side. Without DISCONNECT that ends the whole connection.
    socket.on('end', () => this.end())
    socket.on('error', () => socket.destroy())
    socket.on('close', () => reader.closed())
  }

  write(bytes: Buffer): void {
    if (this.#socket.writable) this.#socket.write(bytes)
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  end(): void {
    const socket = this.#socket
    if (socket.destroyed) return
    socket.end()
    // Bytes that still arrive are read and discarded, so that a reset does not discard the last packet to the client.
    socket.resume()
    const cancel = this.#clock.setTimer(() => socket.destroy(), wireLimits.closeMs)
    socket.once('close', cancel)
  }

  destroy(): void {
    this.#socket.destroy()
  }
}
