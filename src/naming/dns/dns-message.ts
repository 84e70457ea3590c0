/** The messages of a dynamic update (RFC 2136). */
import { type Answer, decode, encode } from 'dns-packet'
import type { RecordChange, TextRecord } from './provider.ts'

const updateOpcode = 5 << 11
/** Numbers of the types, for records without data, which the library encodes only for types that it does not know. */
const typeNumbers = { A: 1, AAAA: 28 } as const
/** Class of a record to delete while others of its set stay. The library does not know it. */
const noneClass = 254

/** Codes of responses that mean something for an update. */
export const rcodes = { noError: 0, serverFailure: 2, nameError: 3, refused: 5, notAuthoritative: 9, notInZone: 10 } as const

/** Returns a message that replaces the sets of all changes, or none of them. */
export function encodeUpdate(id: number, zone: string, changes: readonly RecordChange[]): Buffer {
  return encode({
    type: 'query',
    id,
    flags: updateOpcode,
    questions: [{ name: zone, type: 'SOA' }],
    authorities: changes.flatMap(toRecords),
  })
}

/** Returns a message that adds one text to those at its name, or deletes only this one (RFC 2136 §2.5.1, §2.5.4). */
export function encodeTextUpdate(id: number, zone: string, { name, text, ttl }: TextRecord, isPublished: boolean): Buffer {
  const message = encode({
    type: 'query',
    id,
    flags: updateOpcode,
    questions: [{ name: zone, type: 'SOA' }],
    authorities: [{ name, type: 'TXT', class: 'IN', ttl: isPublished ? ttl : 0, data: text }],
  })
  // The message ends with class, TTL, length of the data, and the data: the length of the text and the text.
  const dataBytes = 1 + Buffer.byteLength(text)
  if (!isPublished) message.writeUInt16BE(noneClass, message.length - dataBytes - 8)
  return message
}

/** Returns an upper bound of the bytes that a change adds to a message. */
export function updateBytes({ name, values }: RecordChange): number {
  const fieldsBytes = name.length + 12
  return fieldsBytes + values.reduce((sum, value) => sum + fieldsBytes + Math.max(16, value.length + 1), 0)
}

/** Returns a message that asks which zone a name belongs to. */
export function encodeZoneQuery(id: number, name: string): Buffer {
  return encode({ type: 'query', id, questions: [{ name, type: 'SOA' }] })
}

/** Returns the zone that the response to `encodeZoneQuery` names. */
export function readZone(response: Buffer): string | undefined {
  const { answers = [], authorities = [] } = decode(response)
  return [...answers, ...authorities].find(({ type }) => type === 'SOA')?.name.toLowerCase()
}

export function readRcode(response: Buffer): number {
  return response.readUInt16BE(2) & 0xf
}

/** RFC 2136 §2.5.2: class ANY and no data deletes a set. */
function toRecords({ name, type, values, ttl }: RecordChange): Answer[] {
  const deletion = { name, type: `UNKNOWN_${typeNumbers[type]}`, class: 'ANY', ttl: 0, data: Buffer.alloc(0) }
  return [deletion as unknown as Answer, ...values.map((data): Answer => ({ name, type, class: 'IN', ttl, data }))]
}
