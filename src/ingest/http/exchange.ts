/**
 * One request to a path that takes records, from its head to its response.
 *
 * Owns: the order of the checks; that 202 is sent only after the records are durable, and that only complete requests are stored
 * (laws 1, 2). Does not own: the checks themselves (gate.ts, body-format.ts, intake.ts), what OpenTelemetry sends (otlp/).
 * Law: it responds once. It releases its memory when it has responded or the client is gone.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError, errorTable } from '#errors.ts'
import { InvariantError } from '#lib/assert.ts'
import type { Clock } from '#lib/clock.ts'
import type { FrameInput } from '#log/frame.ts'
import type { Appended } from '#log/log-writer.ts'
import { otlpLimits, requestLimits } from '#model/limits.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import type { Route } from '../gate/endpoint-table.ts'
import type { Gate } from '../gate/gate.ts'
import { readIdempotencyKey } from '../gate/idempotency-key.ts'
import type { Receipt } from '../gate/receipt.ts'
import { Rejection } from '../gate/rejection.ts'
import { type BodyFormat, bodyFormat, formatOf } from './body/body-format.ts'
import { Intake } from './body/intake.ts'
import type { Connection, Receiving } from './connection.ts'
import { authenticate, type Verifier } from './credentials.ts'
import type { Discards } from './discards.ts'
import { declaredBytes, hostOf } from './head.ts'
import { keptHeadersOf } from './kept-headers.ts'
import { httpLimits } from './limits.ts'
import type { HttpCounters } from './metrics.ts'
import type { Conversions, ConvertedBody } from './otlp/conversions.ts'
import { otlpEncoding, otlpTypes } from './otlp/encoding.ts'
import { asExportersSeeIt, sendExported, sendExportProblem } from './otlp/responses.ts'
import type { Sent } from './record-paths.ts'
import type { RequestTrace, RequestTraces } from './request-traces.ts'
import { problemHeaders, sendJson, sendProblem, toAppError } from './responses.ts'
import { beaconFormat, takeUrlKey } from './url-key.ts'

/** Dependencies that all exchanges of a server share. */
export type ExchangeContext = {
  readonly nodeId: string
  /** Links in problems begin with it. */
  readonly baseUrl: () => string
  readonly maxRequestBytes: number
  readonly authenticator: Verifier
  readonly gate: Gate
  /** Whether no more requests are accepted. */
  readonly isDraining: () => boolean
  /** Whether each response is the last one of its connection. */
  readonly endsConnections: () => boolean
  readonly counters: HttpCounters
  readonly discards: Discards
  readonly conversions: Conversions
  /** Undefined if no request is traced. */
  readonly traces?: RequestTraces | undefined
  readonly clock: Clock
}

const plainEnvelope = encodeEnvelope({ protocol: 'http' })
const acceptedExports = Object.keys(otlpTypes).join(', ')
/** Status in a span of a request whose client left before its response, as proxies log it. */
const clientGone = 499
/** The records had been stored before, and the receipt is the first one. */
const replayed = ['Idempotent-Replayed', 'true']

export class Exchange implements Receiving, Route {
  readonly #context: ExchangeContext
  readonly #connection: Connection
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #awaitsContinue: boolean
  #query = ''
  #urlKey: string | undefined
  #endpoint: SnapshotEndpoint | undefined
  #idempotencyKey: string | undefined
  #envelope = plainEnvelope
  #intake: Intake | undefined
  #sent: Sent = 'records'
  /** How many records of an export request are left out. */
  #tooLarge = 0
  /** The response was sent, or the client is gone. */
  #isOver = false
  #bytesAtLastCheck: number | undefined
  /** The revision of the credentials that the sender was verified with. */
  #revision = 0
  /** On the monotonic clock; 0 unless requests are traced. */
  #startedAtMs = 0

  constructor(
    context: ExchangeContext,
    call: {
      readonly connection: Connection
      readonly request: IncomingMessage
      readonly response: ServerResponse
      readonly awaitsContinue: boolean
    },
  ) {
    this.#context = context
    this.#connection = call.connection
    this.#request = call.request
    this.#response = call.response
    this.#awaitsContinue = call.awaitsContinue
  }

  /** Reads and stores the records of the request. `query` is what follows the `?`. */
  receive(query: string, sent: Sent): void {
    const { gate, isDraining, traces, clock } = this.#context
    this.#connection.receiving = this
    if (traces !== undefined) this.#startedAtMs = clock.monotonic()
    this.#sent = sent
    try {
      if (query !== '') ({ key: this.#urlKey, query: this.#query } = takeUrlKey(query))
      if (isDraining()) throw shuttingDown()
      gate.requireConfiguration()
      this.#authenticate((principal) => this.#admit(principal))
    } catch (error) {
      this.reject(error)
    }
  }

  /** Throws AppError bad_request. The gate reads it only after its earlier checks have passed. */
  get host(): string | undefined {
    return hostOf(this.#request)
  }

  get query(): string {
    return this.#query
  }

  get isComplete(): boolean {
    return this.#request.complete
  }

  /** Responds with the problem. The rest of the body is read and discarded, or the connection closes after the response. */
  reject(error: unknown, { close = false, allow }: { readonly close?: boolean; readonly allow?: string } = {}): void {
    if (this.#isOver) return
    const { baseUrl, gate, endsConnections, counters } = this.#context
    const refusal = error instanceof AppError ? error : gate.rejectionOf(error)
    const known = refusal instanceof AppError ? refusal : toAppError(refusal)
    const problem = this.#sent === 'logs' ? asExportersSeeIt(known) : known
    const hasRest = !this.#request.complete
    const isLast = close || endsConnections() || (hasRest && !this.#isRestAtMost(httpLimits.discardBytesMax))
    if (hasRest) this.#discardRest()
    else this.#bodyEnded()
    this.#end()
    if (isLast) this.#connection.closeAfterResponse({ bytesFollow: hasRest })
    counters.countResponse(errorTable[problem.code].status)
    const reason = refusal instanceof AppError ? refusal.code : refusal.outcome
    if (this.#endpoint !== undefined) gate.counters(this.#endpoint.id).refused(reason)
    if (!isLast) this.#connection.announceIdleTime(this.#response)
    if (this.#response.destroyed) return
    if (this.#sent !== 'logs') sendProblem(this.#response, problem, { baseUrl: baseUrl(), close: isLast, allow })
    else {
      const encoding = otlpEncoding(this.#request.headers)
      const more = problemHeaders(problem, acceptedExports)
      sendExportProblem(this.#response, problem, { encoding, baseUrl: baseUrl(), close: isLast, more })
    }
  }

  fail(error: AppError): void {
    if (this.#isOver) this.#connection.linger()
    else this.reject(error, { close: true })
  }

  abort(): void {
    if (this.#isOver) return
    this.#end()
    this.#context.counters.aborted += 1
  }

  checkRate(): void {
    const { rateWindowBytesMin, rateWindowMs } = requestLimits
    const bytes = this.#intake?.receivedBytes
    if (this.#isOver || this.isComplete || bytes === undefined) return
    if (this.#bytesAtLastCheck !== undefined && bytes - this.#bytesAtLastCheck < rateWindowBytesMin) {
      const detail = `the body was slower than ${rateWindowBytesMin} bytes in ${rateWindowMs / 1000} s; none of it was stored`
      this.fail(new AppError('request_timeout', detail))
    }
    this.#bytesAtLastCheck = bytes
  }

  /** Continues with the sender: synchronously for an API key. Throws, or rejects the request. */
  #authenticate(proceed: (principal: KeyPrincipal) => void): void {
    const { authenticator } = this.#context
    this.#revision = authenticator.revision
    const principal = authenticate(this.#request.headers, authenticator, this.#urlKey)
    if (!(principal instanceof Promise)) proceed(principal)
    else principal.then(proceed).catch((error: unknown) => this.reject(error))
  }

  /** Runs all checks that need only the head, then reads the body. */
  #admit(principal: KeyPrincipal): void {
    const request = this.#request
    const { gate, maxRequestBytes, counters } = this.#context
    // While the token was being verified, the request may have failed or the client may have left.
    if (this.#isOver) return
    if (request.destroyed) {
      this.abort()
      return
    }
    this.#endpoint = gate.open(principal, this)
    const refusal = this.#connection.slot.claim(principal.account_id)
    if (refusal !== undefined) {
      this.reject(refusal, { close: true })
      return
    }
    const key = request.headers['idempotency-key']
    if (typeof key === 'string') this.#idempotencyKey = readIdempotencyKey(key)
    this.#envelope = envelopeOf(request, this.#endpoint, this.#idempotencyKey)
    const format = this.#format()
    const declared = declaredBytes(request)
    const room = gate.room(this.#endpoint.id)
    room.admit(declared ?? 0)
    const endpoint = this.#endpoint
    const intake = new Intake({
      format,
      declaredBytes: declared,
      maxBytes: maxRequestBytes,
      moreBytes: this.#envelope === plainEnvelope ? 0 : this.#envelope.byteLength,
      room,
      done: (error) => {
        if (error !== undefined) this.#rejectBody(error)
        else if (this.#sent === 'logs') this.#convert(endpoint, intake)
        else this.#store()
      },
    })
    this.#intake = intake
    const connection = this.#connection
    if (this.#awaitsContinue) this.#response.writeContinue()
    request.on('data', (chunk: Buffer) => {
      counters.receivedBytes += chunk.length
      connection.countPiece()
      intake.push(chunk)
    })
    request.on('end', () => {
      this.#bodyEnded()
      intake.end()
    })
  }

  #format(): BodyFormat {
    const { headers } = this.#request
    if (this.#sent !== 'records') return formatOf(this.#sent, headers)
    return this.#urlKey === undefined ? bodyFormat(headers) : beaconFormat(headers)
  }

  /** Makes records of an export request, then stores them. */
  #convert(endpoint: SnapshotEndpoint, intake: Intake): void {
    const { conversions, maxRequestBytes } = this.#context
    conversions
      .run({
        owner: { group: endpoint.account_id, member: endpoint.id, weight: endpoint.account_weight },
        encoding: otlpEncoding(this.#request.headers),
        maxBytes: otlpLimits.growthMax * maxRequestBytes,
        body: () => (this.#isOver ? undefined : intake.payload),
      })
      .then((converted) => this.#storeConverted(endpoint, intake, converted))
      .catch((error: AppError | Rejection) => this.#rejectBody(error))
  }

  #storeConverted(endpoint: SnapshotEndpoint, intake: Intake, converted: ConvertedBody | undefined): void {
    if (this.#isOver || converted === undefined) return
    const { payload, records, tooLarge } = converted
    intake.replace(payload, records)
    this.#tooLarge = tooLarge
    if (tooLarge > 0) this.#context.gate.counters(endpoint.id).refused('payload_too_large')
    // OTLP allows a request without records, and there may be none that is left.
    if (records > 0) this.#store()
    else this.#acknowledge(intake, { seq: 0, records: 0, bytes: 0 })
  }

  /** An endpoint that was deleted while the body arrived has no share any more, but that is not what the sender should read. */
  #rejectBody(error: AppError | Rejection): void {
    try {
      if (error instanceof Rejection && this.#endpoint !== undefined) this.#context.gate.recheck(this.#endpoint)
      this.reject(error)
    } catch (deleted) {
      this.reject(deleted)
    }
  }

  #store(): void {
    try {
      // The configuration may have changed while the body arrived: its endpoint may be paused by now, and its key revoked.
      if (this.#revision === this.#context.authenticator.revision) this.#append()
      else this.#authenticate(() => this.#append())
    } catch (error) {
      this.reject(error)
    }
  }

  #append(): void {
    const intake = this.#intake
    const endpoint = this.#endpoint
    if (intake === undefined || endpoint === undefined) throw new InvariantError('only a complete body is stored')
    // While the token was being verified again, the request may have failed or the client may have left.
    if (this.#isOver) return
    const { gate, counters, traces, clock } = this.#context
    gate.recheck(endpoint)
    const now = clock.now()
    const completeAtMs = clock.monotonic()
    const allowance = gate.allowance(endpoint.account_id)
    const spend = () => gate.spend(allowance, intake.records, now)
    const key = this.#idempotencyKey
    const frame: FrameInput = {
      layout: intake.layout,
      receivedAtMicros: now * 1000,
      recordCount: intake.records,
      envelope: this.#envelope,
      payload: intake.payload,
    }
    const trace = traces?.begin(this.#request.headers['traceparent'], {
      ...{ endpointId: endpoint.id, startedAtMs: this.#startedAtMs },
      ...{ records: intake.records, bytes: intake.payloadBytes },
    })
    const stored = (appended: Appended) => {
      const { seq } = appended
      const { records, payloadBytes } = intake
      allowance.count(records, payloadBytes)
      const durationMs = clock.monotonic() - completeAtMs
      counters.acknowledgements.observe(durationMs)
      gate.counters(endpoint.id).accepted(1, records, payloadBytes, durationMs)
      trace?.appended(appended)
      this.#acknowledge(intake, { seq, records, bytes: payloadBytes })
      this.#endTrace(trace)
    }
    const failed = (error: unknown) => {
      this.reject(error)
      this.#endTrace(trace)
    }
    if (key === undefined) {
      spend()
      gate.append(endpoint.id, frame).then(stored, failed)
    } else {
      gate.appendOnce(endpoint.id, key, frame, spend, trace?.appended).then((outcome) => {
        if (!outcome.isRepeated) return stored(outcome)
        this.#acknowledge(intake, outcome, replayed)
        this.#endTrace(trace)
      }, failed)
    }
  }

  #endTrace(trace: RequestTrace | undefined): void {
    trace?.end(this.#response.destroyed ? clientGone : this.#response.statusCode)
  }

  #acknowledge(intake: Intake, { seq, records, bytes }: Receipt, more: readonly string[] = []): void {
    intake.free()
    const { nodeId, counters } = this.#context
    const isLast = this.#context.endsConnections()
    this.#end()
    const status = this.#sent === 'records' ? 202 : 200
    if (more === replayed) counters.countResponse(status)
    else counters.accepted(records, bytes, status)
    if (this.#response.destroyed) return
    if (isLast) this.#connection.closeAfterResponse({ bytesFollow: false })
    if (this.#sent === 'logs') {
      sendExported(this.#response, otlpEncoding(this.#request.headers), this.#tooLarge, { close: isLast, more })
      return
    }
    const receipt = `"accepted_records":${records},"accepted_bytes":${bytes},"node_id":"${nodeId}","segment_seq":${seq}`
    const body = this.#sent === 'records' ? `{${receipt}}` : `{"success":true,${receipt}}`
    sendJson(this.#response, status, body, { close: isLast, more })
  }

  #discardRest(): void {
    this.#connection.receiving = this
    this.#request.removeAllListeners('data')
    this.#request.on('end', () => this.#bodyEnded())
    if (this.#isRestAtMost(httpLimits.discardAtOnceBytesMax)) this.#request.resume()
    else this.#context.discards.add(this.#request, this.#connection.slot.owner)
  }

  #bodyEnded(): void {
    if (this.#connection.receiving === this) this.#connection.receiving = undefined
  }

  #end(): void {
    this.#isOver = true
    this.#intake?.close()
    this.#intake = undefined
  }

  #isRestAtMost(bytes: number): boolean {
    // A client that waits for 100 may still send the body or not. Only closing avoids the ambiguity (RFC 9110 §10.1.1).
    if (this.#awaitsContinue && this.#intake === undefined) return false
    const length = this.#request.headers['content-length']
    if (length === undefined) return false
    return Number(length) - (this.#intake?.receivedBytes ?? 0) <= bytes
  }
}

/** Throws AppError headers_too_large. */
function envelopeOf({ headers }: IncomingMessage, { kept_headers }: SnapshotEndpoint, key: string | undefined): Uint8Array {
  const kept = kept_headers.length === 0 ? undefined : keptHeadersOf(headers, kept_headers)
  if (key === undefined && kept === undefined) return plainEnvelope
  return encodeEnvelope({
    protocol: 'http',
    ...(key === undefined ? {} : { idempotency_key: key }),
    ...(kept === undefined ? {} : { headers: kept }),
  })
}

function shuttingDown(): AppError {
  const { retryAfterSeconds } = httpLimits
  return new AppError('unavailable', `this node is shutting down; try again in ${retryAfterSeconds} s`, { retryAfterSeconds })
}
