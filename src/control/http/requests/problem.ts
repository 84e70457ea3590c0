/**
 * Turns every failure into an RFC 7807 response.
 *
 * Owns: how anything thrown during a request becomes an AppError, and how it is sent.
 * Law: the cause of a failure reaches the log, never the client.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyError, FastifyInstance, FastifyReply, FastifySchemaCompiler } from 'fastify'
import type { z } from 'zod'
import { AppError, type ErrorCode, errorTable, toProblem } from '#errors.ts'
import { MiB } from '#lib/bytes.ts'
import type { Clock } from '#lib/clock.ts'
import { http } from '#lib/http.ts'
import type { Logger } from '#lib/telemetry.ts'
import { ThrottledWarnings } from '#lib/throttled-warnings.ts'
import { previewLimits } from '#model/limits.ts'
import { requireValid } from '#model/request-body.ts'
import { databaseErrorKind } from '#store/engines/database-error.ts'
import { controlLimits } from '../../limits.ts'

export const problemContentType = 'application/problem+json'

/** Validates with zod. A malformed path parameter cannot match a resource: 404. */
export const validatorCompiler: FastifySchemaCompiler<z.ZodType> =
  ({ schema, httpPart }) =>
  (input) => {
    // Fastify passes a missing part as null.
    try {
      return { value: requireValid(schema, input ?? undefined) }
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      return { error: httpPart === 'params' ? new AppError('not_found', 'no resource has this id') : error }
    }
  }

declare module 'fastify' {
  interface FastifyRequest {
    /** The error of the response. */
    failure: AppError | null
  }
}

export type ProblemOptions = { readonly baseUrl: string; readonly logger: Logger; readonly clock: Clock }

export function handleErrors(app: FastifyInstance, { baseUrl, logger, clock }: ProblemOptions): void {
  const warnings = new ThrottledWarnings({ clock, logger, intervalMs: controlLimits.warnIntervalMs })
  app.decorateRequest('failure', null)
  app.setErrorHandler((thrown: FastifyError, request, reply) => {
    const error = toAppError(thrown)
    request.failure = error
    const fields = { request_id: request.id, method: request.method, route: request.routeOptions.url }
    if (errorTable[error.code].status < 500) return sendProblem(reply, error, baseUrl)
    if (error.retryAfterSeconds === undefined) logger.error({ err: thrown, ...fields }, 'request failed')
    // Without a cause it is expected back-pressure. With one, all requests fail alike: every node asks again and again.
    else if (error.cause !== undefined)
      warnings.warn(error.message, { err: thrown, ...fields }, 'request failed; others that fail alike are not logged')
    return sendProblem(reply, error, baseUrl)
  })
}

export function sendProblem(reply: FastifyReply, error: AppError, baseUrl: string): FastifyReply {
  const problem = toProblem(error, baseUrl)
  if (error.retryAfterSeconds !== undefined) reply.header('retry-after', error.retryAfterSeconds)
  if (error.code === 'unauthorized') reply.header('www-authenticate', 'Bearer')
  // Behind a load balancer, the next connection may lead to a process that reaches the database.
  if (error.code === 'unavailable' && error.cause !== undefined) reply.header('connection', 'close')
  // Serialized here: the route's response schemas do not apply, and sending a problem must never fail.
  return reply.code(problem.status).type(problemContentType).serializer(JSON.stringify).send(problem)
}

/** Fastify's own errors about a request, in words of ours. */
const frameworkErrors: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  FST_ERR_BAD_URL: ['not_found', 'the path is not well-formed'],
  FST_ERR_MAX_PARAM_LENGTH: ['not_found', 'no resource has an id of this length'],
  FST_ERR_CTP_BODY_TOO_LARGE: [
    'payload_too_large',
    `the body is larger than ${controlLimits.bodyBytesMax / MiB} MiB (of previews and suggestions: ${previewLimits.bodyBytesMax / MiB} MiB)`,
  ],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'unsupported_media_type',
    'the body must be JSON: send it with the header Content-Type: application/json',
  ],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['bad_request', 'the body has another length than the header Content-Length says'],
}

/** Other errors with a status. Any other 4xx is a bad request. */
const codeOfStatus: Readonly<Record<number, ErrorCode>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  408: 'request_timeout',
  413: 'payload_too_large',
  414: 'not_found',
  415: 'unsupported_media_type',
  429: 'too_many_requests',
  431: 'headers_too_large',
  503: 'unavailable',
}

export function toAppError(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown
  const kind = databaseErrorKind(thrown)
  if (kind === 'unavailable' || kind === 'collision') {
    return new AppError('unavailable', 'the database is not available', { cause: thrown, retryAfterSeconds: 1 })
  }
  const { statusCode = 500, code = '', message = '' } = thrown as Partial<FastifyError>
  const [worded, text = ''] = frameworkErrors[code] ?? []
  if (worded !== undefined) return new AppError(worded, text, { cause: thrown })
  const known = codeOfStatus[statusCode]
  if (known !== undefined) return new AppError(known, message, { cause: thrown })
  if (statusCode >= 400 && statusCode < 500)
    return new AppError('validation_error', message, { cause: thrown, errors: [{ path: '', message }] })
  return new AppError('internal_error', 'internal error; the request id is in the header x-request-id', {
    cause: thrown,
  })
}

/** Responds to errors before there is a request: those of Node's HTTP parser and its timeouts. */
export function respondToClientError(baseUrl: string): (error: Error & { code?: string }, socket: Socket) => void {
  return (error, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    endWithProblem(socket, parserErrorToAppError(error.code), baseUrl)
  }
}

/** Responds to CONNECT, which node:http passes on as a socket. */
export function respondToConnect(baseUrl: string): (request: unknown, socket: Duplex) => void {
  return (_request, socket) => {
    socket.on('error', () => socket.destroy())
    const error = new AppError('method_not_allowed', 'this is not a proxy')
    endWithProblem(socket, error, baseUrl, 'Allow: GET, HEAD, POST, PATCH, DELETE\r\n')
  }
}

/** Responds to an `Expect` other than 100-continue, to which Node would respond without a problem. */
export function respondToExpectation(baseUrl: string): (request: IncomingMessage, response: ServerResponse) => void {
  return ({ headers }, response) => {
    const detail = `Expect "${headers.expect}" is not supported; send 100-continue or leave it out`
    const problem = toProblem(new AppError('expectation_failed', detail), baseUrl)
    response.writeHead(problem.status, { 'content-type': problemContentType, connection: 'close' }).end(JSON.stringify(problem))
  }
}

function endWithProblem(socket: Duplex, error: AppError, baseUrl: string, headers = ''): void {
  const problem = toProblem(error, baseUrl)
  const body = JSON.stringify(problem)
  socket.end(
    `HTTP/1.1 ${problem.status} ${http.STATUS_CODES[problem.status]}\r\nConnection: close\r\n${headers}` +
      `Content-Type: ${problemContentType}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}

function parserErrorToAppError(code: string | undefined): AppError {
  if (code === 'HPE_HEADER_OVERFLOW') return new AppError('headers_too_large', 'the request headers are too large')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new AppError('request_timeout', 'the request took too long to arrive')
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return new AppError('payload_too_large', 'the chunk extensions are too long')
  return new AppError('bad_request', `the bytes are not a valid HTTP/1.1 request${code === undefined ? '' : ` (${code})`}`)
}
