/** The messages of a dynamic update (RFC 2136). */
import { type Answer, decode, encode } from 'dns-packet'
import type { RecordChange } from './provider.ts'

const updateOpcode = 5 << 11
/** Numbers of the types, for records without data, which the library encodes only for types that it does not know. */
const typeNumbers = { A: 1, TXT: 16, AAAA: 28 } as const

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
