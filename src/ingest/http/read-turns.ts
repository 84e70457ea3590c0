/**
 * Reads connections that keep the event loop busy in turns.
 *
 * Owns: when such a connection is read again. Does not own: which ones they are (connection.ts).
 * Law: in one turn of the event loop, at most one of them is read, once. Without this, libuv reads 32 times 64 KiB from a socket before it
 * turns to the next one: 350 000 chunks of one byte, or 15 000 requests.
 */
import { Socket } from 'node:net'
import { SocketQueue } from './socket-queue.ts'

export class ReadTurns {
  readonly #queue = new SocketQueue()
  #isScheduled = false

  /** Reads nothing more from the socket until it is its turn. */
  wait(socket: Socket, owner: string): void {
    if (socket.resume === stayPaused) return
    stopReading(socket)
    this.#queue.add(socket, owner)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled || this.#queue.isEmpty) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      const socket = this.#queue.next()
      if (socket !== undefined) continueReading(socket)
      this.#schedule()
    })
  }
}

/** Reads nothing more from the socket. */
export function stopReading(socket: Socket): void {
  socket.pause()
  // node:http resumes the socket whenever a request could hold more.
  socket.resume = stayPaused
}

/** Reads a socket again after `stopReading`. */
export function continueReading(socket: Socket): void {
  socket.resume = Socket.prototype.resume
  socket.resume()
}

function stayPaused(this: Socket): Socket {
  return this
}
