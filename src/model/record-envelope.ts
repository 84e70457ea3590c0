/**
 * Metadata that ingest stores with a payload: its protocol, and fields of that protocol. All records of one frame share it.
 *
 * Owns: the encoding, JSON as UTF-8. Does not own: when it is encoded. The log stores it as opaque bytes, so a new protocol adds fields
 * here and changes neither the frame nor the log.
 */
import { Buffer } from 'node:buffer'

export type RecordEnvelope = {
  readonly protocol: string
  readonly topic?: string
  readonly client_id?: string
  readonly content_type?: string
  /** By which the sender marked a request over HTTP that it may repeat. Over MQTT it is one of the user properties. */
  readonly idempotency_key?: string
  /** By lower-case name, the headers of the request that the endpoint keeps. */
  readonly headers?: Readonly<Record<string, string>>
  /** IPv4 or IPv6 address of the client, or its network if the endpoint masks it. Only if the endpoint keeps it. */
  readonly address?: string
  /** Name of the API key with which the record was sent. Only if the endpoint keeps it. */
  readonly key_name?: string
  /** A name that occurs several times has a list of its values. */
  readonly user_properties?: Readonly<Record<string, string | readonly string[]>>
}

const encoder = new TextEncoder()

export function encodeEnvelope(envelope: RecordEnvelope): Uint8Array {
  return encoder.encode(JSON.stringify(envelope))
}

/** Throws if the bytes are not an envelope. */
export function decodeEnvelope({ buffer, byteOffset, byteLength }: Uint8Array): RecordEnvelope {
  return parseEnvelope(Buffer.from(buffer, byteOffset, byteLength).toString('utf8'))
}

/** Parses an envelope that was decoded as UTF-8. Throws if it is not one. */
export function parseEnvelope(text: string): RecordEnvelope {
  const envelope: unknown = JSON.parse(text)
  if (!isEnvelope(envelope)) throw new Error(`not a record envelope: ${text.slice(0, 200)}`)
  return envelope
}

/** The user property of MQTT that corresponds to the header `Idempotency-Key`. */
export const idempotencyProperty = 'idempotency-key'

/** Returns the key of an encoded envelope. Looks for it before it decodes, as nearly no envelope has one. */
export function idempotencyKeyIn({ buffer, byteOffset, byteLength }: Uint8Array): string | undefined {
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  if (!bytes.includes('idempotency')) return undefined
  const { idempotency_key, user_properties } = parseEnvelope(bytes.toString('utf8'))
  const property = user_properties?.[idempotencyProperty]
  return idempotency_key ?? (typeof property === 'string' ? property : property?.[0])
}

/** Returns the topic of an encoded envelope. Looks for one before it decodes. */
export function topicIn({ buffer, byteOffset, byteLength }: Uint8Array): string | undefined {
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  return bytes.includes('"topic"') ? parseEnvelope(bytes.toString('utf8')).topic : undefined
}

function isEnvelope(value: unknown): value is RecordEnvelope {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const { protocol, topic, client_id } = value as Record<string, unknown>
  return typeof protocol === 'string' && isTextOrAbsent(topic) && isTextOrAbsent(client_id)
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || typeof value === 'string'
}

/** Groups properties by name, in the order in which the names first occur. */
export function groupProperties(
  pairs: readonly (readonly [name: string, value: string])[],
): Readonly<Record<string, string | readonly string[]>> {
  // Without a prototype every name is an ordinary key, including `__proto__`.
  const grouped: Record<string, string | string[]> = Object.create(null)
  for (const [name, value] of pairs) {
    const known = grouped[name]
    if (known === undefined) grouped[name] = value
    else if (typeof known === 'string') grouped[name] = [known, value]
    else known.push(value)
  }
  return grouped
}
