/**
 * Reads the rest of rejected bodies, so that clients that send first and read later get their response.
 *
 * Owns: when the socket of a rejected request is read. Does not own: how long its connection stays open (connection.ts).
 * Law: however much is sent only to be rejected, all of it together is read at a fixed rate, and owners take turns. Bytes that wait are not
 * in this process: the kernel slows their sender down.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '#lib/clock.ts'
import { httpLimits } from './limits.ts'

export class Discards {
  readonly #clock: Clock
  /** Paused sockets by owner. The next turn goes to the first owner. */
  readonly #waiting = new Map<string, Set<Socket>>()
  #isScheduled = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Discards the rest of the request, in turns with those of other owners. */
  add(request: IncomingMessage, owner: string): void {
    const { socket } = request
    const wait = () => {
      socket.pause()
      this.#enqueue(socket, owner)
    }
    request.on('data', wait)
    request.on('end', () => this.#leave(socket, owner))
    request.resume()
    // node:http must know that the request is read: otherwise it removes the listener after the response.
    request.read(0)
    // It resumes the socket whenever the request could hold more.
    request._read = () => undefined
    wait()
  }

  #enqueue(socket: Socket, owner: string): void {
    const sockets = this.#waiting.get(owner)
    if (sockets === undefined) this.#waiting.set(owner, new Set([socket]))
    else sockets.add(socket)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.size === 0) return
    this.#isScheduled = true
    this.#clock.setTimer(() => this.#takeTurns(), httpLimits.discardTurnMs)
  }

  #leave(socket: Socket, owner: string): void {
    const sockets = this.#waiting.get(owner)
    if (sockets?.delete(socket) === true && sockets.size === 0) this.#waiting.delete(owner)
  }

  #takeTurns(): void {
    this.#isScheduled = false
    for (let reads = 0; reads < httpLimits.discardReadsPerTurn; ) {
      const next = this.#next()
      if (next === undefined) break
      if (next.destroyed) continue
      // Its next bytes pause it again.
      next.resume()
      reads += 1
    }
    this.#schedule()
  }

  /** Takes the socket that has waited longest from the owner whose turn it is. */
  #next(): Socket | undefined {
    for (const [owner, sockets] of this.#waiting) {
      // To the end of the queue.
      this.#waiting.delete(owner)
      for (const socket of sockets) {
        sockets.delete(socket)
        if (sockets.size > 0) this.#waiting.set(owner, sockets)
        return socket
      }
    }
    return undefined
  }
}
