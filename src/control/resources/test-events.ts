/**
 * Sends one record through the address that clients of an endpoint use, to show that it works.
 *
 * Law: it takes the way of every other record. Ingest checks a token, and gives the receipt only after fdatasync.
 */
import { AppError } from '#errors.ts'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { type HttpResponse, sendRequest } from '#lib/http.ts'
import { parseJson } from '#lib/json.ts'
import { newId } from '#model/id.ts'
import type { Principal } from '#model/principal.ts'
import type { SendTestEvent, TestEvent } from '#model/test-event.ts'
import { getEndpoint } from '#store/endpoints/endpoints.ts'
import type { Store } from '#store/store.ts'
import { controlLimits } from '../limits.ts'
import type { EndpointStates } from '../status/endpoint-states.ts'
import { actorOf } from './actor.ts'
import type { Tokens } from './tokens.ts'

export type TestEventsOptions = {
  readonly store: Store
  readonly endpointStates: Pick<EndpointStates, 'findIngestUrl'>
  readonly tokens: Pick<Tokens, 'issueForIngest'>
  readonly clock: Clock
  /** PEM: who signs the certificates of nodes. Undefined: those that Node trusts. */
  readonly ca: Buffer | undefined
}

export type TestEvents = ReturnType<typeof testEventService>

export function testEventService({ store, endpointStates, tokens, clock, ca }: TestEventsOptions) {
  return {
    /** Throws conflict if ingest refuses the record, unavailable if it cannot be reached or cannot take the record now. */
    async send(
      principal: Principal,
      id: string,
      { record = newRecord(principal, clock.now()) }: SendTestEvent,
    ): Promise<TestEvent> {
      const endpoint = await getEndpoint(store.db, principal.account_id, id)
      const url = await endpointStates.findIngestUrl(endpoint)
      const token = await tokens.issueForIngest(principal, endpoint.id)
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const signal = AbortSignal.timeout(controlLimits.testEventTimeoutMs)
      const request = {
        method: 'POST',
        headers,
        body: record,
        signal,
        ca,
        responseBytesMax: controlLimits.testEventResponseBytesMax,
      }
      const sentAt = clock.now()
      const startedAt = clock.monotonic()
      const response = await sendRequest(url, request).catch((error: unknown) => {
        throw unreachable(url, error)
      })
      const acknowledged_after_ms = clock.monotonic() - startedAt
      return { url, record, sent_at: isoTimestamp(sentAt), acknowledged_after_ms, ...receiptIn(response, url) }
    },
  }
}

function newRecord(principal: Principal, now: number): string {
  // The view of the first start wants an event and its time.
  return JSON.stringify({ event: 'inlet.test_event', id: newId(), at: isoTimestamp(now), sent_by: actorOf(principal) })
}

function receiptIn({ status, body }: HttpResponse, url: string): Pick<TestEvent, 'node_id' | 'segment_seq'> {
  const answer = (parseJson(body.toString()) ?? {}) as Partial<Record<'node_id' | 'segment_seq' | 'detail', unknown>>
  const { node_id, segment_seq } = answer
  if (status === 202 && typeof node_id === 'string' && typeof segment_seq === 'number') return { node_id, segment_seq }
  if (typeof answer.detail !== 'string')
    throw new AppError(
      'conflict',
      `what answers at ${new URL(url).host} is not ingest (HTTP ${status}): check where the name leads`,
    )
  const detail = `ingest refused the test event: ${answer.detail}`
  if (status !== 429 && status !== 503) throw new AppError('conflict', detail)
  throw new AppError('unavailable', detail, { retryAfterSeconds: controlLimits.testEventRetrySeconds })
}

function unreachable(url: string, error: unknown): AppError {
  // The connections to several addresses fail together with a code and no message.
  const reason = errorMessage(error) || String((error as { code?: unknown }).code)
  const detail = `control cannot reach ingest at ${new URL(url).host} (${reason}): check that a node of the region runs, and where the name leads`
  return new AppError('unavailable', detail, { retryAfterSeconds: controlLimits.testEventRetrySeconds })
}
