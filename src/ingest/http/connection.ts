import type { Socket } from 'node:net'
import type { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import { httpLimits } from './limits.ts'
import { rawProblem } from './responses.ts'

/** The request whose body is arriving on a connection. */
export interface Receiving {
  /** Whether the parser has seen its last byte. */
  readonly isComplete: boolean
  /** The rest will not arrive. Answers, unless it has answered, and closes. */
  fail(error: AppError): void
  /** The client is gone: releases everything without an answer. */
  abort(): void
  /** Called once per rate window. */
  checkRate(): void
}

/**
 * One client connection.
 *
 * Owns: which request a socket error belongs to, and closing in a way that lets the client see the last answer.
 * Does not own: parsing and the order of answers (node:http), the requests.
 * Law: the answer to malformed bytes goes out after the answers to all requests before them.
 */
export class Connection {
  readonly socket: Socket
  /** The request whose body has not ended. */
  receiving: Receiving | undefined
  /** The last answer is decided: whatever still arrives is discarded. */
  isClosing = false
  #unfinished = 0
  #failure: AppError | undefined
  #lingering = false
  readonly #baseUrl: string
  readonly #clock: Clock
  /** Bound once per connection, not per request. */
  readonly onAnswered = (): void => {
    this.#unfinished -= 1
    if (this.#unfinished === 0 && this.#failure !== undefined) this.#answerFailure(this.#failure)
  }

  constructor(options: { readonly socket: Socket; readonly baseUrl: string; readonly clock: Clock }) {
    this.socket = options.socket
    this.#baseUrl = options.baseUrl
    this.#clock = options.clock
  }

  /** Whether a request has no answer yet, or its answer is still being sent. */
  get isBusy(): boolean {
    return this.#unfinished > 0
  }

  /** A request was read. `onAnswered` must be called once its answer is sent. */
  opened(): void {
    this.#unfinished += 1
  }

  /** The bytes on the socket are malformed, or did not arrive in time. */
  fail(error: AppError): void {
    if (this.receiving !== undefined && !this.receiving.isComplete) {
      this.receiving.fail(error)
      return
    }
    if (this.isClosing) return
    this.isClosing = true
    this.#failure = error
    if (this.#unfinished === 0) this.#answerFailure(error)
  }

  /** Marks the current answer as the last one. `bytesFollow`: the client is still sending. */
  lastAnswer({ bytesFollow }: { readonly bytesFollow: boolean }): void {
    this.isClosing = true
    // After an answer with `Connection: close`, node:http calls `destroySoon`. With unread bytes left that resets the connection,
    // and the client may never see the answer.
    if (bytesFollow) this.socket.destroySoon = () => this.linger()
  }

  /** Ends our side, then reads and discards for a while, until the client closes too. */
  linger(): void {
    this.isClosing = true
    if (this.#lingering) return
    this.#lingering = true
    const { socket } = this
    const cancel = this.#clock.setTimer(() => socket.destroy(), httpLimits.lingerMsMax)
    socket.once('close', cancel)
    socket.setTimeout(httpLimits.lingerIdleMs)
    socket.end()
  }

  #answerFailure(error: AppError): void {
    if (this.socket.writable) this.socket.write(rawProblem(error, this.#baseUrl, this.#clock.now()))
    this.linger()
  }
}
