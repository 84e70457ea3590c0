/**
 * A log record of OpenTelemetry as a record of Inlet: one JSON object, with its resource and scope.
 *
 * Owns: the shape (docs/decisions/0058). Does not own: the encodings in which log records arrive.
 */

/** Values of attributes and bodies as JSON. Without a prototype, so that every name is an ordinary key. */
export type Attributes = Record<string, unknown>

/** Numbers are 0, texts and ids are empty if the sender gave none. Ids are in lower-case hexadecimal. */
export type LogRecord = {
  timeUnixNano: bigint
  observedTimeUnixNano: bigint
  severityNumber: number
  severityText: string
  /** null if there is none. */
  body: unknown
  readonly attributes: Attributes
  droppedAttributesCount: number
  flags: number
  traceId: string
  spanId: string
  eventName: string
}

export type Resource = { readonly attributes: Attributes; schemaUrl: string }

export type Scope = { name: string; version: string; readonly attributes: Attributes; schemaUrl: string }

declare global {
  interface JSON {
    /** Not in the library of TypeScript yet. */
    rawJSON(text: string): unknown
  }
}

const NANOS = 1_000_000_000n

export function newAttributes(): Attributes {
  return Object.create(null)
}

export function newRecord(): LogRecord {
  return {
    timeUnixNano: 0n,
    observedTimeUnixNano: 0n,
    severityNumber: 0,
    severityText: '',
    body: null,
    attributes: newAttributes(),
    droppedAttributesCount: 0,
    flags: 0,
    traceId: '',
    spanId: '',
    eventName: '',
  }
}

/** Returns an integer that `JSON.stringify` writes with all its digits. */
export function integerValue(value: bigint): unknown {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : JSON.rawJSON(String(value))
}

/** JSON has no number for NaN and infinities. Protobuf writes them as text, which a view can cast to DOUBLE. */
export function doubleValue(value: number): unknown {
  return Number.isFinite(value) ? value : String(value)
}

/** Returns the end of the records that share a resource and a scope. */
export function groupText(resource: Resource, scope: Scope): string {
  const text = JSON.stringify({
    resource: unlessEmpty(resource.attributes),
    resource_schema_url: resource.schemaUrl || undefined,
    scope: scopeOf(scope),
  })
  return text === '{}' ? text.slice(1) : `,${text.slice(1)}`
}

export function recordText(record: LogRecord, group: string): string {
  const { timeUnixNano, observedTimeUnixNano } = record
  const text = JSON.stringify({
    time: isoTime(timeUnixNano || observedTimeUnixNano),
    observed_time: isoTime(observedTimeUnixNano),
    severity_number: record.severityNumber || undefined,
    severity_text: record.severityText || undefined,
    event_name: record.eventName || undefined,
    // Always there, so that the object is never empty.
    body: record.body,
    attributes: unlessEmpty(record.attributes),
    dropped_attributes_count: record.droppedAttributesCount || undefined,
    trace_id: record.traceId || undefined,
    span_id: record.spanId || undefined,
    flags: record.flags || undefined,
  })
  return text.slice(0, -1) + group
}

function scopeOf({ name, version, attributes, schemaUrl }: Scope): object | undefined {
  return unlessEmpty({
    ...(name === '' ? {} : { name }),
    ...(version === '' ? {} : { version }),
    ...(unlessEmpty(attributes) === undefined ? {} : { attributes }),
    ...(schemaUrl === '' ? {} : { schema_url: schemaUrl }),
  })
}

function unlessEmpty<T extends object>(value: T): T | undefined {
  for (const _ in value) return value
  return undefined
}

/** Nanoseconds since 1970 with all their digits: `2026-11-23T08:15:30.000000001Z`. Undefined for 0, which is unknown. */
function isoTime(unixNano: bigint): string | undefined {
  if (unixNano === 0n) return undefined
  const second = new Date(Number(unixNano / NANOS) * 1000).toISOString().slice(0, 19)
  return `${second}.${String(unixNano % NANOS).padStart(9, '0')}Z`
}
