import type { Socket } from 'node:net'
import type { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import { httpLimits } from './limits.ts'
import { rawProblem } from './responses.ts'

/** What a connection asks of the request whose body is arriving on it. */
export interface Receiving {
  /** Whether the parser has seen its last byte. */
  readonly complete: boolean
  /** The rest of it won't come. Answers it, if it isn't answered, and closes. */
  fail(error: AppError): void
  /** The client is gone. */
  abort(): void
  /** Called once in each rate window. */
  checkRate(): void
}

/**
 * One client connection.
 *
 * Owns: whose fault an error on the socket is, and closing so that the client sees the last answer.
 * Does not own: parsing and the order of answers (node:http), the requests.
 * Law: an answer to broken bytes goes out after the answers to all requests before them.
 */
export class Connection {
  readonly socket: Socket
  /** The request whose body has not ended. */
  receiving: Receiving | undefined
  /** The last answer is decided: what comes now is thrown away. */
  closing = false
  #unfinished = 0
  #failure: AppError | undefined
  #lingering = false
  readonly #baseUrl: string
  readonly #clock: Clock
  /** Bound once, not for each request. */
  readonly onAnswered = (): void => {
    this.#unfinished -= 1
    if (this.#unfinished === 0 && this.#failure !== undefined) this.#answerFailure(this.#failure)
  }

  constructor(options: { readonly socket: Socket; readonly baseUrl: string; readonly clock: Clock }) {
    this.socket = options.socket
    this.#baseUrl = options.baseUrl
    this.#clock = options.clock
  }

  /** Whether a request waits for its answer, or for the answer to be sent. */
  get busy(): boolean {
    return this.#unfinished > 0
  }

  /** A request was read; `onAnswered` must be called when its answer is through. */
  opened(): void {
    this.#unfinished += 1
  }

  /** The bytes on the socket can't be understood, or don't come. */
  fail(error: AppError): void {
    if (this.receiving !== undefined && !this.receiving.complete) {
      this.receiving.fail(error)
      return
    }
    if (this.closing) return
    this.closing = true
    this.#failure = error
    if (this.#unfinished === 0) this.#answerFailure(error)
  }

  /** The answer now given is the last one. `bytesFollow`: the client is still sending. */
  lastAnswer({ bytesFollow }: { readonly bytesFollow: boolean }): void {
    this.closing = true
    // node:http calls `destroySoon` once an answer with `Connection: close` is out. That resets the connection when bytes are
    // left unread, and then the client may never see the answer.
    if (bytesFollow) this.socket.destroySoon = () => this.linger()
  }

  /** Ends our side and reads on for a while, throwing away what comes, until the client closes too. */
  linger(): void {
    this.closing = true
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
