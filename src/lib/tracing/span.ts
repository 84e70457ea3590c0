/** A finished span, and its form in JSON of OTLP. */
import type { SpanContext } from './trace-context.ts'

export type Attributes = Readonly<Record<string, string | number | boolean>>

export type Span = SpanContext & {
  readonly parentSpanId?: string | undefined
  readonly name: string
  readonly kind: 'internal' | 'server'
  /** Epoch ms, with parts of a millisecond. */
  readonly startMs: number
  readonly endMs: number
  readonly attributes?: Attributes
  readonly links?: readonly SpanContext[]
  /** Error of the operation, without anything of the records. */
  readonly error?: string | undefined
}

const kinds = { internal: 1, server: 2 } as const
const errorStatus = 2

export function encodeSpans(spans: readonly Span[], resource: Attributes, version: string): string {
  const scopeSpans = [{ scope: { name: 'inlet', version }, spans: spans.map(toJson) }]
  return JSON.stringify({ resourceSpans: [{ resource: { attributes: toAttributes(resource) }, scopeSpans }] })
}

function toJson({ traceId, spanId, parentSpanId, name, kind, startMs, endMs, attributes = {}, links = [], error }: Span): object {
  return {
    ...{ traceId, spanId, parentSpanId, name, kind: kinds[kind] },
    startTimeUnixNano: toNanoseconds(startMs),
    endTimeUnixNano: toNanoseconds(Math.max(startMs, endMs)),
    attributes: toAttributes(attributes),
    ...(links.length === 0 ? {} : { links: links.map(({ traceId, spanId }) => ({ traceId, spanId })) }),
    ...(error === undefined ? {} : { status: { code: errorStatus, message: error } }),
  }
}

function toAttributes(attributes: Attributes): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: toValue(value) }))
}

/** Integers are text in JSON of OTLP, as in that of protobuf. */
function toValue(value: string | number | boolean): object {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}

function toNanoseconds(ms: number): string {
  return String(BigInt(Math.round(ms * 1_000)) * 1_000n)
}
