import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import { requestLimits } from '#model/limits.ts'
import type { ConnectionSlot } from '../gate/connection-budget.ts'
import { httpLimits } from './limits.ts'
import { continueReading, type ReadTurns, stopReading } from './read-turns.ts'
import { rawProblem, requestError } from './responses.ts'

/** The request whose body is arriving on a connection. */
export interface Receiving {
  /** Whether its last byte has arrived. */
  readonly isComplete: boolean
  /** Called if the rest will not arrive. Responds, unless it already has, and closes. */
  fail(error: AppError): void
  /** Called if the client is gone. Releases everything without a response. */
  abort(): void
  /** Called once per rate window. */
  checkRate(): void
}

/**
 * One client connection.
 *
 * Owns: which request a socket error belongs to, how many have no response yet, how long it may take to authenticate, and closing in a way
 * that lets the client read the last response.
 * Does not own: parsing and the order of responses (node:http), the requests.
 * Law: the response to malformed bytes is sent after the responses to all requests before them.
 */
export class Connection {
  readonly socket: Socket
  readonly slot: ConnectionSlot
  /** The request whose body has not ended. */
  receiving: Receiving | undefined
  /** The last response is known. All further bytes are discarded. */
  isClosing = false
  #unfinished = 0
  /** Nothing is read until a response was sent. */
  #isFull = false
  #failure: AppError | undefined
  #isLingering = false
  /** Since when the client has not made progress towards an authenticated request, and how many bytes had arrived by then. */
  #expectedSinceMs: number
  #bytesBefore = 0
  /** Requests and pieces of bodies, and since when they are counted. */
  #pieces = 0
  #piecesSinceMs: number
  readonly #turns: ReadTurns
  readonly #baseUrl: () => string
  readonly #clock: Clock
  /** Bound once per connection, not per request. */
  readonly onResponseSent = (): void => {
    this.#unfinished -= 1
    if (this.#isFull && this.#unfinished < httpLimits.unansweredMax) {
      this.#isFull = false
      continueReading(this.socket)
    }
    if (!this.slot.isAuthenticated) this.#noteProgress()
    if (this.#unfinished === 0 && this.#failure !== undefined) this.#respondToFailure(this.#failure)
  }

  constructor(options: {
    readonly socket: Socket
    readonly slot: ConnectionSlot
    readonly turns: ReadTurns
    readonly baseUrl: () => string
    readonly clock: Clock
  }) {
    this.socket = options.socket
    this.slot = options.slot
    this.#turns = options.turns
    this.#baseUrl = options.baseUrl
    this.#clock = options.clock
    this.#expectedSinceMs = options.clock.monotonic()
    this.#piecesSinceMs = this.#expectedSinceMs
  }

  /** Whether a request has no response yet, or its response is still being sent. */
  get isBusy(): boolean {
    return this.#unfinished > 0
  }

  /** Counts a request that was read. Call `onResponseSent` once its response is sent. */
  opened(): void {
    this.#unfinished += 1
    this.countPiece()
    if (this.#unfinished >= httpLimits.unansweredMax) {
      this.#isFull = true
      stopReading(this.socket)
    }
    if (!this.slot.isAuthenticated) this.#noteProgress()
  }

  /** Counts a request, or a piece of a body. A connection that has many at once waits for its turn. */
  countPiece(): void {
    this.#pieces += 1
    if (this.#pieces < httpLimits.busyPieces) return
    const now = this.#clock.monotonic()
    if (now - this.#piecesSinceMs < httpLimits.busyMs) this.#turns.wait(this.socket, this.slot.owner)
    this.#pieces = 0
    this.#piecesSinceMs = now
  }

  /** Handles bytes on the socket that are malformed or did not arrive in time. */
  fail(error: AppError): void {
    if (this.receiving !== undefined && !this.receiving.isComplete) {
      this.receiving.fail(error)
      return
    }
    if (this.isClosing) return
    this.isClosing = true
    this.#failure = error
    if (this.#unfinished === 0) this.#respondToFailure(error)
  }

  /** Tells a client that has not authenticated how long the connection may stay idle. By default node:http says the longer time of others. */
  announceIdleTime(response: ServerResponse): void {
    if (!this.slot.isAuthenticated) response.setHeader('Keep-Alive', `timeout=${requestLimits.unauthenticatedMs / 1000}`)
  }

  /** Called about once a second until the first authenticated request: closes the connection if that is overdue. */
  expire(now: number): void {
    const waitedMs = now - this.#expectedSinceMs
    if (waitedMs <= requestLimits.unauthenticatedMs) return
    const isSilent = !this.isBusy && this.socket.bytesRead === this.#bytesBefore
    // Twice as long for a client that must first read a response.
    if (isSilent || waitedMs > 2 * requestLimits.unauthenticatedMs) this.socket.destroy()
    else if (!this.isBusy || this.receiving !== undefined) this.fail(requestError('ERR_HTTP_REQUEST_TIMEOUT'))
  }

  /** Marks the current response as the last one. `bytesFollow`: the client is still sending. */
  closeAfterResponse({ bytesFollow }: { readonly bytesFollow: boolean }): void {
    this.isClosing = true
    // After a response with `Connection: close`, node:http calls `destroySoon`. With unread bytes left, that resets the connection,
    // and the client may never receive the response.
    if (bytesFollow) this.socket.destroySoon = () => this.linger()
  }

  /** Ends our side, then reads and discards for a while, until the client closes too. */
  linger(): void {
    this.isClosing = true
    if (this.#isLingering) return
    this.#isLingering = true
    const { socket } = this
    const cancel = this.#clock.setTimer(() => socket.destroy(), httpLimits.lingerMsMax)
    socket.once('close', cancel)
    socket.setTimeout(httpLimits.lingerIdleMs)
    socket.end()
  }

  #noteProgress(): void {
    this.#expectedSinceMs = this.#clock.monotonic()
    this.#bytesBefore = this.socket.bytesRead
  }

  #respondToFailure(error: AppError): void {
    if (this.socket.writable) this.socket.write(rawProblem(error, this.#baseUrl(), { now: this.#clock.now() }))
    this.linger()
  }
}
