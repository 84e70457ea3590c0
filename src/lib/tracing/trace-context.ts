/** Ids of traces and spans, as in the header `traceparent` of W3C Trace Context. */
import { randomBytes } from 'node:crypto'

/** Names a span: 32 and 16 hexadecimal digits. */
export type SpanContext = { readonly traceId: string; readonly spanId: string }

/** The span of the caller, and whether the caller records its trace. */
export type Parent = SpanContext & { readonly isSampled: boolean }

const form = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** Returns undefined for a header that is missing or not valid: the trace begins anew then. */
export function parseTraceparent(header: unknown): Parent | undefined {
  if (typeof header !== 'string') return undefined
  const [, version, traceId = '', spanId = '', flags = '', more] = form.exec(header) ?? []
  if (version === undefined || (version === '00' && more !== undefined)) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export function newTraceId(): string {
  return randomBytes(16).toString('hex')
}

export function newSpanId(): string {
  return randomBytes(8).toString('hex')
}

export function isSpanContext(value: unknown): value is SpanContext {
  const { traceId, spanId } = (value ?? {}) as Record<string, unknown>
  return (
    typeof traceId === 'string' && /^[0-9a-f]{32}$/.test(traceId) && typeof spanId === 'string' && /^[0-9a-f]{16}$/.test(spanId)
  )
}
