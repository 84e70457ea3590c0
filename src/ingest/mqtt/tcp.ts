import type { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import type { Clock } from '#lib/clock.ts'
import { sessionLimits } from './limits.ts'
import type { Wire, WireReader } from './wire.ts'

/** MQTT straight over TCP or TLS. */
export class SocketWire implements Wire {
  readonly heldBytes = 0
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

  /** To be called once, before anything comes. */
  listen(reader: WireReader): void {
    const socket = this.#socket
    socket.on('data', (chunk: Buffer) => reader.receive(chunk))
    socket.on('drain', () => reader.drained())
    // The client has ended its side: it sends nothing more, and without DISCONNECT that is an end of the whole.
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
    // What it still sends is read and thrown away, so that the last answer isn't lost to a reset.
    socket.resume()
    const cancel = this.#clock.setTimer(() => socket.destroy(), sessionLimits.closeMs)
    socket.once('close', cancel)
  }

  destroy(): void {
    this.#socket.destroy()
  }
}
