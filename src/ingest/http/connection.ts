import type { Socket } from 'node:net'
import type { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import { httpLimits } from './limits.ts'
import { rawProblem } from './responses.ts'

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
 * Owns: which request a socket error belongs to, and closing in a way that lets the client read the last response.
 * Does not own: parsing and the order of responses (node:http), the requests.
 * Law: the response to malformed bytes is sent after the responses to all requests before them.
 */
export class Connection {
  readonly socket: Socket
  /** The request whose body has not ended. */
  receiving: Receiving | undefined
  /** The last response is known. All further bytes are discarded. */
  isClosing = false
  #unfinished = 0
  #failure: AppError | undefined
  #isLingering = false
  readonly #baseUrl: string
  readonly #clock: Clock
  /** Bound once per connection, not per request. */
  readonly onResponseSent = (): void => {
    this.#unfinished -= 1
    if (this.#unfinished === 0 && this.#failure !== undefined) this.#respondToFailure(this.#failure)
  }

  constructor(options: { readonly socket: Socket; readonly baseUrl: string; readonly clock: Clock }) {
    this.socket = options.socket
    this.#baseUrl = options.baseUrl
    this.#clock = options.clock
  }

  /** Whether a request has no response yet, or its response is still being sent. */
  get isBusy(): boolean {
    return this.#unfinished > 0
  }

  /** Counts a request that was read. Call `onResponseSent` once its response is sent. */
  opened(): void {
    this.#unfinished += 1
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

  #respondToFailure(error: AppError): void {
    if (this.socket.writable) this.socket.write(rawProblem(error, this.#baseUrl, { now: this.#clock.now() }))
    this.linger()
  }
}
