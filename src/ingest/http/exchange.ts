import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError, errorTable } from '#errors.ts'
import { InvariantError } from '#lib/assert.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Principal } from '#model/api-key.ts'
import { requestLimits } from '#model/limits.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import type { FrameInput } from '#wal/frame.ts'
import { WalError } from '#wal/wal-error.ts'
import type { Authenticator } from '../authenticator.ts'
import type { EndpointTable } from '../endpoint-table.ts'
import type { IngestCounters } from '../metrics.ts'
import { bodyFormat } from './body-format.ts'
import type { Connection, Receiving } from './connection.ts'
import { Intake, type Memory } from './intake.ts'
import { httpLimits } from './limits.ts'
import { answerJson, answerProblem } from './responses.ts'

/** Where frames become durable. */
interface AppendLog {
  /** Resolves after fdatasync. */
  append(logName: string, frame: FrameInput): Promise<{ readonly seq: number }>
}

/** What all exchanges of a server share. */
export type Ingest = {
  readonly nodeId: string
  readonly baseUrl: string
  readonly maxRequestBytes: number
  readonly authenticator: Pick<Authenticator, 'authenticate'>
  /** Undefined until the first snapshot. */
  readonly endpoints: () => EndpointTable | undefined
  readonly admission: Memory & { admit(bytes: number): void }
  readonly log: AppendLog
  readonly draining: () => boolean
  readonly counters: IngestCounters
  readonly clock: Clock
  readonly logger: Logger
}

const envelope = encodeEnvelope({ protocol: 'http' })
const retrySoonSeconds = 2

/**
 * One request, from its head to its answer.
 *
 * Owns: the order of the checks; that nothing is answered with 202 before it is durable, nor stored before it is whole (laws 1, 2).
 * Does not own: each check.
 * Law: it answers once, and gives back its memory when it has answered or the client is gone.
 */
export class Exchange implements Receiving {
  readonly #ingest: Ingest
  readonly #connection: Connection
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #awaitsContinue: boolean
  #endpoint: SnapshotEndpoint | undefined
  #intake: Intake | undefined
  /** An answer was given, or nobody is left to read one. */
  #over = false
  #bytesAtLastCheck: number | undefined

  constructor(
    ingest: Ingest,
    call: {
      readonly connection: Connection
      readonly request: IncomingMessage
      readonly response: ServerResponse
      readonly awaitsContinue: boolean
    },
  ) {
    this.#ingest = ingest
    this.#connection = call.connection
    this.#request = call.request
    this.#response = call.response
    this.#awaitsContinue = call.awaitsContinue
  }

  /** Takes the request's records in. `query` is what follows the `?`. */
  receive(query: string): void {
    const { authenticator, endpoints, draining } = this.#ingest
    this.#connection.receiving = this
    try {
      if (draining()) throw unavailable('this node is shutting down')
      const table = endpoints()
      if (table === undefined) throw unavailable('this node has not heard of its endpoints yet: control was never reached')
      const principal = authenticator.authenticate(this.#request.headers)
      if (!(principal instanceof Promise)) this.#admit(table, principal, query)
      else {
        principal.then((known) => this.#admit(table, known, query)).catch((error: unknown) => this.refuse(error))
      }
    } catch (error) {
      this.refuse(error)
    }
  }

  get complete(): boolean {
    return this.#request.complete
  }

  /** Answers with the problem. What is left of the body is read and thrown away, or the connection closes softly. */
  refuse(error: unknown, { close = false, allow }: { readonly close?: boolean; readonly allow?: string } = {}): void {
    if (this.#over) return
    const { baseUrl, draining, counters } = this.#ingest
    const problem = this.#asAppError(error)
    const rest = !this.#request.complete
    const last = close || draining() || (rest && !this.#restIsSmall())
    this.#end()
    if (rest) this.#throwAwayRest()
    else this.#bodyEnded()
    if (last) this.#connection.lastAnswer({ bytesFollow: rest })
    counters.answered(errorTable[problem.code].status)
    if (!this.#response.destroyed) answerProblem(this.#response, problem, { baseUrl, close: last, allow })
  }

  fail(error: AppError): void {
    if (this.#over) this.#connection.linger()
    else this.refuse(error, { close: true })
  }

  abort(): void {
    if (this.#over) return
    this.#end()
    this.#ingest.counters.aborted += 1
  }

  checkRate(): void {
    const bytes = this.#intake?.receivedBytes
    if (this.#over || this.complete || bytes === undefined) return
    if (this.#bytesAtLastCheck !== undefined && bytes - this.#bytesAtLastCheck < requestLimits.rateWindowBytesMin) {
      this.fail(
        new AppError(
          'request_timeout',
          `the body came slower than ${requestLimits.rateWindowBytesMin} bytes in ${requestLimits.rateWindowMs / 1000} s; nothing of it was kept`,
        ),
      )
    }
    this.#bytesAtLastCheck = bytes
  }

  /** Everything that the head alone can decide. */
  #admit(table: EndpointTable, principal: Principal, query: string): void {
    const request = this.#request
    const { admission, maxRequestBytes, counters } = this.#ingest
    // While a token was checked, the request may have failed or its client gone.
    if (this.#over) return
    if (request.destroyed) {
      this.abort()
      return
    }
    if (!principal.scopes.includes('ingest')) {
      throw new AppError('forbidden', 'the key or token lacks the scope ingest; use one that has it')
    }
    this.#endpoint = table.resolve(principal, hostOf(request), query)
    const format = bodyFormat(request.headers)
    const declared = declaredBytes(request)
    admission.admit(declared ?? 0)
    this.#intake = new Intake({
      format,
      declaredBytes: declared,
      maxBytes: maxRequestBytes,
      memory: admission,
      done: (error) => (error === undefined ? this.#store() : this.refuse(error)),
    })
    const intake = this.#intake
    if (this.#awaitsContinue) this.#response.writeContinue()
    request.on('data', (chunk: Buffer) => {
      counters.receivedBytes += chunk.length
      intake.push(chunk)
    })
    request.on('end', () => {
      this.#bodyEnded()
      intake.end()
    })
  }

  #store(): void {
    const intake = this.#intake
    const endpoint = this.#endpoint
    if (intake === undefined || endpoint === undefined) throw new InvariantError('only a whole body is stored')
    this.#ingest.log
      .append(endpoint.id, {
        layout: intake.layout,
        receivedAtMicros: this.#ingest.clock.now() * 1000,
        recordCount: intake.records,
        envelope,
        payload: intake.payload,
      })
      .then(
        ({ seq }) => this.#accept(intake, seq),
        (error: unknown) => this.refuse(error),
      )
  }

  #accept(intake: Intake, seq: number): void {
    const { records, payloadBytes } = intake
    intake.free()
    const { nodeId, counters } = this.#ingest
    const last = this.#ingest.draining()
    this.#end()
    counters.accepted(records, payloadBytes)
    if (this.#response.destroyed) return
    const body = `{"accepted_records":${records},"accepted_bytes":${payloadBytes},"node_id":"${nodeId}","segment_seq":${seq}}`
    if (last) this.#connection.lastAnswer({ bytesFollow: false })
    answerJson(this.#response, 202, body, last)
  }

  #throwAwayRest(): void {
    this.#connection.receiving = this
    this.#request.removeAllListeners('data')
    this.#request.on('end', () => this.#bodyEnded())
    this.#request.resume()
  }

  #bodyEnded(): void {
    if (this.#connection.receiving === this) this.#connection.receiving = undefined
  }

  #end(): void {
    this.#over = true
    this.#intake?.close()
    this.#intake = undefined
  }

  /** Whether reading the rest of a refused body costs less than a new connection. */
  #restIsSmall(): boolean {
    // A client that waits for 100 may send the body or not: only closing tells the two apart (RFC 9110 §10.1.1).
    if (this.#awaitsContinue && this.#intake === undefined) return false
    const length = this.#request.headers['content-length']
    if (length === undefined) return false
    return Number(length) - (this.#intake?.receivedBytes ?? 0) <= httpLimits.discardBytesMax
  }

  #asAppError(error: unknown): AppError {
    if (error instanceof AppError) return error
    if (error instanceof WalError) {
      return unavailable(
        error.reason === 'disk_full' ? 'the disk of this node is full' : `the records could not be stored (${error.reason})`,
        error,
      )
    }
    if (error instanceof InvariantError) {
      // A promise must not swallow it: a broken invariant ends the process.
      queueMicrotask(() => {
        throw error
      })
    }
    this.#ingest.logger.error({ err: error }, 'a request failed for a reason that nobody foresaw')
    return new AppError('internal_error', 'the request failed inside this node; nothing was promised, so send it again')
  }
}

function declaredBytes({ headers, httpVersionMinor }: IncomingMessage): number | undefined {
  const coding = headers['transfer-encoding']
  if (coding === undefined) return Number(headers['content-length'] ?? 0)
  // RFC 9112 §6.1: a coding in HTTP/1.0 is a fault, and one beside `chunked` would have to be undone.
  if (httpVersionMinor === 0 || coding.toLowerCase() !== 'chunked') {
    throw new AppError(
      'bad_request',
      `Transfer-Encoding "${coding}" is not taken; send chunked, and compress with Content-Encoding`,
    )
  }
  return undefined
}

/** RFC 9112 §3.2: exactly one Host in HTTP/1.1. */
function hostOf({ headers, rawHeaders, httpVersionMinor }: IncomingMessage): string | undefined {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  if (hosts > 1 || (hosts === 0 && httpVersionMinor === 1)) {
    throw new AppError('bad_request', `the request has ${hosts} Host headers; send one`)
  }
  return headers.host
}

function unavailable(reason: string, cause?: unknown): AppError {
  return new AppError('unavailable', `${reason}; try again in ${retrySoonSeconds} s`, {
    cause,
    retryAfterSeconds: retrySoonSeconds,
  })
}
