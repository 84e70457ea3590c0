/**
 * Reads the rest of rejected bodies, so that clients that send first and read later get their response.
 *
 * Owns: when the socket of a rejected request is read. Does not own: how long its connection stays open (connection.ts).
 * Law: however much is sent only to be rejected, all of it together is read at a fixed rate, and owners take turns. Bytes that wait are not
 * in this process: the kernel slows their sender down.
 */
import type { IncomingMessage } from 'node:http'
import type { Clock } from '#lib/clock.ts'
import { hasTinyChunks } from './body/intake.ts'
import { httpLimits } from './limits.ts'
import { SocketQueue } from './socket-queue.ts'

export class Discards {
  readonly #clock: Clock
  readonly #queue = new SocketQueue()
  #isScheduled = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Discards the rest of the request, in turns with those of other owners. */
  add(request: IncomingMessage, owner: string): void {
    const { socket } = request
    const isChunked = request.headers['content-length'] === undefined
    let chunks = 0
    let bytes = 0
    const wait = () => {
      socket.pause()
      this.#queue.add(socket, owner)
      this.#schedule()
    }
    request.on('data', (chunk: Buffer) => {
      chunks += 1
      bytes += chunk.length
      // Reading it costs too much. Without a Content-Length the connection closes after the response in any case.
      if (isChunked && hasTinyChunks(chunks, bytes)) socket.destroy()
      else wait()
    })
    request.on('end', () => this.#queue.remove(socket, owner))
    request.resume()
    // node:http must know that the request is read: otherwise it removes the listener after the response.
    request.read(0)
    // It resumes the socket whenever the request could hold more.
    request._read = () => undefined
    wait()
  }

  #schedule(): void {
    if (this.#isScheduled || this.#queue.isEmpty) return
    this.#isScheduled = true
    this.#clock.setTimer(() => this.#takeTurns(), httpLimits.discardTurnMs)
  }

  #takeTurns(): void {
    this.#isScheduled = false
    for (let reads = 0; reads < httpLimits.discardReadsPerTurn; reads += 1) {
      // Its next bytes pause it again.
      this.#queue.next()?.resume()
    }
    this.#schedule()
  }
}
