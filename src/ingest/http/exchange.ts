/**
 * One request to a path that takes records, from its head to its response.
 *
 * Owns: what is read of the request, in which order, and the response. Does not own: whether and when records are stored (gate/), how a body
 * is read (body/), what OpenTelemetry sends (otlp/).
 * Law: it responds once. It releases its memory when it has responded or the client is gone.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError, errorTable } from '#errors.ts'
import { InvariantError } from '#lib/assert.ts'
import type { Clock } from '#lib/clock.ts'
import type { Appended } from '#log/log-writer.ts'
import { ackLevelName } from '#model/ack-level.ts'
import { otlpLimits, requestLimits } from '#model/limits.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import { parseReceiptId } from '#model/receipt.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { type AckRequest, readAckRequest, readWaitMs } from '../gate/ack-request.ts'
import type { Admitted, Responder } from '../gate/admitted.ts'
import { forwardedForOf, type Remote } from '../gate/client-addresses.ts'
import type { ConnectionSlot } from '../gate/connection-budget.ts'
import type { Gate } from '../gate/gate.ts'
import { readIdempotencyKey } from '../gate/idempotency-key.ts'
import type { KeptSender } from '../gate/kept-sender.ts'
import type { Acknowledged } from '../gate/receipt.ts'
import type { Rejection } from '../gate/rejection.ts'
import type { Sender, Verifier } from '../gate/sender.ts'
import { type BodyFormat, bodyFormat, formatOf } from './body/body-format.ts'
import { Intake } from './body/intake.ts'
import type { Connection, Receiving } from './connection.ts'
import { authenticate } from './credentials.ts'
import type { Discards } from './discards.ts'
import { declaredBytes, hostOf } from './head.ts'
import { keptHeadersOf } from './kept-headers.ts'
import { httpLimits } from './limits.ts'
import type { HttpCounters } from './metrics.ts'
import { otlpEncoding, otlpTypes } from './otlp/encoding.ts'
import type { ConvertedBody, ExportConversions } from './otlp/export-conversions.ts'
import { sendExported, sendExportProblem, toExportError } from './otlp/responses.ts'
import type { ContentKind } from './record-paths.ts'
import type { RequestTrace, RequestTraces } from './request-traces.ts'
import { problemHeaders, sendJson, sendProblem, toAppError } from './responses.ts'
import { beaconFormat, takeUrlKey } from './url-key.ts'

/** Dependencies that all exchanges of a server share. */
export type ExchangeContext = {
  readonly nodeId: string
  /** Links in problems begin with it. */
  readonly baseUrl: () => string
  readonly maxRequestBytes: number
  readonly gate: Gate
  /** Whether no more requests are accepted. */
  readonly isDraining: () => boolean
  /** Whether each response is the last one of its connection. */
  readonly endsConnections: () => boolean
  readonly counters: HttpCounters
  readonly discards: Discards
  readonly conversions: ExportConversions
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
const nothingMore: readonly string[] = []

export class Exchange implements Receiving, Sender, Responder {
  readonly protocol = 'http'
  readonly #context: ExchangeContext
  readonly #connection: Connection
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #awaitsContinue: boolean
  #query = ''
  #urlKey: string | undefined
  /** Undefined until the gate has admitted the sender. */
  #admitted: Admitted | undefined
  #idempotencyKey: string | undefined
  #ack: AckRequest | undefined
  #envelope = plainEnvelope
  #intake: Intake | undefined
  #content: ContentKind = 'records'
  /** How many records of an export request are left out. */
  #tooLarge = 0
  /** The response was sent, or the client is gone. */
  #isOver = false
  #bytesAtLastCheck: number | undefined
  #trace: RequestTrace | undefined
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
  receive(query: string, content: ContentKind): void {
    const { traces, clock } = this.#context
    this.#connection.receiving = this
    if (traces !== undefined) this.#startedAtMs = clock.monotonic()
    this.#content = content
    this.#admit(query, (admitted) => this.#receiveBody(admitted))
  }

  /** Responds with the commit of records that were acknowledged, once there is one. */
  lookUp(query: string, receiptId: string): void {
    const receipt = parseReceiptId(receiptId)
    if (receipt === undefined)
      this.reject(new AppError('not_found', 'this is no receipt: it is <node_id>-<segment_seq>, from the response of ingest'))
    else this.#admit(query, (admitted) => this.#awaitDelivery(admitted, receipt))
  }

  #admit(query: string, onAdmitted: (admitted: Admitted) => void): void {
    const { gate, isDraining } = this.#context
    try {
      if (query !== '') ({ key: this.#urlKey, query: this.#query } = takeUrlKey(query))
      if (isDraining()) throw shuttingDown()
      const admitted = gate.admit(this)
      if (!(admitted instanceof Promise)) onAdmitted(admitted)
      else admitted.then(onAdmitted, (error: unknown) => this.reject(error))
    } catch (error) {
      this.reject(error)
    }
  }

  get slot(): ConnectionSlot {
    return this.#connection.slot
  }

  get remote(): Remote {
    const { socket, headers } = this.#request
    return { address: socket.remoteAddress, forwardedFor: forwardedForOf(headers) }
  }

  authenticate(verifier: Verifier): KeyPrincipal | Promise<KeyPrincipal> {
    return authenticate(this.#request.headers, verifier, this.#urlKey)
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
    const { gate, endsConnections, counters } = this.#context
    const refusal = error instanceof AppError ? error : gate.rejectionOf(error)
    const [known, reason, mustClose] =
      refusal instanceof AppError
        ? [refusal, refusal.code, close]
        : [toAppError(refusal), refusal.outcome, close || refusal.endsConnection]
    const problem = this.#content === 'logs' ? toExportError(known) : known
    const hasRest = !this.#request.complete
    const isLast = mustClose || endsConnections() || (hasRest && !this.#isRestAtMost(httpLimits.discardBytesMax))
    if (hasRest) this.#discardRest()
    else this.#bodyEnded()
    this.#end()
    if (isLast) this.#connection.closeAfterResponse({ bytesFollow: hasRest })
    counters.countResponse(errorTable[problem.code].status)
    this.#admitted?.refused(reason)
    if (!isLast) this.#connection.announceIdleTime(this.#response)
    if (!this.#response.destroyed) this.#sendProblem(problem, { close: isLast, allow })
    this.#endTrace()
  }

  #sendProblem(problem: AppError, { close, allow }: { readonly close: boolean; readonly allow: string | undefined }): void {
    const baseUrl = this.#context.baseUrl()
    if (this.#content !== 'logs') {
      sendProblem(this.#response, problem, { baseUrl, close, allow })
      return
    }
    const encoding = otlpEncoding(this.#request.headers)
    sendExportProblem(this.#response, problem, { encoding, baseUrl, close, more: problemHeaders(problem, acceptedExports) })
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

  #receiveBody(admitted: Admitted): void {
    // While the token was being verified, the request may have failed or the client may have left.
    if (this.#isOver) return
    this.#admitted = admitted
    try {
      if (this.#request.destroyed) this.abort()
      else this.#readBody(this.#openIntake(admitted))
    } catch (error) {
      this.reject(error)
    }
  }

  #awaitDelivery(admitted: Admitted, { node_id, segment_seq }: { readonly node_id: string; readonly segment_seq: number }): void {
    this.#admitted = admitted
    const waitMs = Math.max(readWaitMs(this.#request.headers['prefer']?.toString()), httpLimits.lookUpMsMin)
    const delivery = admitted.awaitDelivery({ nodeId: node_id, seq: segment_seq }, waitMs)
    this.#endOnceClientIsGone(admitted)
    delivery
      .then((delivered) => {
        const close = this.#context.endsConnections()
        const commit = delivered && { commit_id: delivered.commitId, keys: delivered.keys }
        this.#end()
        const status = delivered === undefined ? 202 : 200
        this.#context.counters.countResponse(status)
        if (this.#response.destroyed) return
        if (close) this.#connection.closeAfterResponse({ bytesFollow: false })
        sendJson(this.#response, status, JSON.stringify({ node_id, segment_seq, ...commit }), { close })
      })
      .catch((error: unknown) => this.reject(error))
  }

  /** Runs all other checks that need only the head. */
  #openIntake(admitted: Admitted): Intake {
    const request = this.#request
    const key = request.headers['idempotency-key']
    if (typeof key === 'string') this.#idempotencyKey = readIdempotencyKey(key)
    const level = request.headers[ackLevelName]
    if (typeof level === 'string') this.#ack = readAckRequest(level, request.headers['prefer']?.toString())
    this.#envelope = envelopeOf(request, admitted.endpoint, this.#idempotencyKey, admitted.keptSender())
    const format = this.#format()
    const declared = declaredBytes(request)
    admitted.announce(declared ?? 0)
    return new Intake({
      format,
      declaredBytes: declared,
      maxBytes: this.#context.maxRequestBytes,
      moreBytes: this.#envelope === plainEnvelope ? 0 : this.#envelope.byteLength,
      memory: admitted,
      done: (error) => this.#onBody(admitted, error),
    })
  }

  #readBody(intake: Intake): void {
    this.#intake = intake
    const request = this.#request
    const { counters } = this.#context
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

  #onBody(admitted: Admitted, error: AppError | Rejection | undefined): void {
    const intake = this.#intake
    if (error !== undefined) this.reject(error)
    else if (intake === undefined) throw new InvariantError('a body is complete once it was read')
    else if (this.#content === 'logs') this.#convert(admitted, intake)
    else this.#store(admitted, intake)
  }

  #format(): BodyFormat {
    const { headers } = this.#request
    if (this.#content !== 'records') return formatOf(this.#content, headers)
    return this.#urlKey === undefined ? bodyFormat(headers) : beaconFormat(headers)
  }

  /** Makes records of an export request, then stores them. */
  #convert(admitted: Admitted, intake: Intake): void {
    const { conversions, maxRequestBytes } = this.#context
    const { id, account_id, account_weight } = admitted.endpoint
    conversions
      .run({
        owner: { tenant: account_id, member: id, weight: account_weight },
        encoding: otlpEncoding(this.#request.headers),
        maxBytes: otlpLimits.growthMax * maxRequestBytes,
        body: () => (this.#isOver ? undefined : intake.payload),
      })
      .then((converted) => this.#storeConverted(admitted, intake, converted))
      .catch((error: AppError | Rejection) => this.reject(error))
  }

  #storeConverted(admitted: Admitted, intake: Intake, converted: ConvertedBody | undefined): void {
    if (this.#isOver || converted === undefined) return
    const { payload, records, tooLarge } = converted
    intake.replace(payload, records)
    this.#tooLarge = tooLarge
    if (tooLarge > 0) admitted.refused('payload_too_large')
    // OTLP allows a request without records, and there may be none that is left.
    this.#store(admitted, intake)
  }

  #store(admitted: Admitted, body: Intake): void {
    admitted.append({ body, envelope: this.#envelope, key: this.#idempotencyKey, ack: this.#ack }, this)
  }

  appending(): void {
    const { traces } = this.#context
    if (traces === undefined || this.#admitted === undefined || this.#intake === undefined) return
    const { records, payloadBytes: bytes } = this.#intake
    this.#trace = traces.begin(this.#request.headers['traceparent'], {
      ...{ endpointId: this.#admitted.endpoint.id, startedAtMs: this.#startedAtMs, records, bytes },
    })
  }

  appended(appended: Appended): void {
    this.#trace?.appended(appended)
  }

  awaitingCommit(): void {
    this.#freeBody()
    if (this.#admitted !== undefined) this.#endOnceClientIsGone(this.#admitted)
  }

  /** It may have left while its token was verified, or its records were stored. */
  #endOnceClientIsGone(admitted: Admitted): void {
    if (this.#response.destroyed) admitted.end()
    else this.#response.once('close', () => admitted.end())
  }

  acknowledge(acknowledged: Acknowledged): void {
    const { records, bytes, isRepeated, delivered } = acknowledged
    this.#freeBody()
    const { counters } = this.#context
    const isLast = this.#context.endsConnections()
    this.#end()
    const status = this.#content === 'records' && delivered === undefined ? 202 : 200
    if (isRepeated) counters.countResponse(status)
    else counters.accepted(records, bytes, status)
    if (!this.#response.destroyed) {
      if (isLast) this.#connection.closeAfterResponse({ bytesFollow: false })
      this.#sendReceipt(status, acknowledged, isLast)
    }
    this.#endTrace()
  }

  #freeBody(): void {
    this.#intake?.free()
    this.#intake?.close()
    this.#intake = undefined
  }

  #sendReceipt(status: number, acknowledged: Acknowledged, close: boolean): void {
    const { nodeId = this.#context.nodeId, seq, records, bytes, isRepeated, level, delivered } = acknowledged
    const more = this.#ack === undefined ? nothingMore : ['Inlet-Ack', level]
    const end = { close, more: isRepeated ? [...replayed, ...more] : more }
    if (this.#content === 'logs') {
      sendExported(this.#response, otlpEncoding(this.#request.headers), this.#tooLarge, end)
      return
    }
    const stored = `"accepted_records":${records},"accepted_bytes":${bytes},"node_id":"${nodeId}","segment_seq":${seq}`
    const commit = delivered === undefined ? '' : `,"commit_id":"${delivered.commitId}","keys":${JSON.stringify(delivered.keys)}`
    const receipt = stored + commit
    sendJson(this.#response, status, this.#content === 'records' ? `{${receipt}}` : `{"success":true,${receipt}}`, end)
  }

  #endTrace(): void {
    this.#trace?.end(this.#response.destroyed ? clientGone : this.#response.statusCode)
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
    this.#admitted?.end()
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
function envelopeOf(
  { headers }: IncomingMessage,
  { kept_headers }: SnapshotEndpoint,
  key: string | undefined,
  sender: KeptSender | undefined,
): Uint8Array {
  const kept = kept_headers.length === 0 ? undefined : keptHeadersOf(headers, kept_headers)
  if (key === undefined && kept === undefined && sender === undefined) return plainEnvelope
  return encodeEnvelope({
    protocol: 'http',
    ...(key === undefined ? {} : { idempotency_key: key }),
    ...(kept === undefined ? {} : { headers: kept }),
    ...sender,
  })
}

function shuttingDown(): AppError {
  const { retryAfterSeconds } = httpLimits
  return new AppError('unavailable', `this node is shutting down; try again in ${retryAfterSeconds} s`, { retryAfterSeconds })
}
