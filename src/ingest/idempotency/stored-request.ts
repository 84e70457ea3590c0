/** How a stored request is remembered, in memory and as 80 bytes in a file. Numbers are little-endian. */
import { Buffer } from 'node:buffer'
import { crc32 } from 'node:zlib'
import type { Receipt } from '../gate/receipt.ts'
import { DIGEST_BYTES, type RequestDigests } from './request-digests.ts'

export type StoredRequest = RequestDigests & Receipt & { readonly storedAtMs: number }

export const STORED_REQUEST_BYTES = 80
const CRC_AT = 76

export function encodeStoredRequest(request: StoredRequest, into: Buffer, at: number): void {
  request.id.copy(into, at)
  request.body.copy(into, at + DIGEST_BYTES)
  into.write(request.endpointId.replaceAll('-', ''), at + 32, 'hex')
  into.writeDoubleLE(request.storedAtMs, at + 48)
  into.writeDoubleLE(request.seq, at + 56)
  into.writeUInt32LE(request.records, at + 64)
  into.writeDoubleLE(request.bytes, at + 68)
  into.writeUInt32LE(crc32(into.subarray(at, at + CRC_AT)), at + CRC_AT)
}

/** Returns undefined for bytes that are not a request. */
export function decodeStoredRequest(from: Buffer, at: number): StoredRequest | undefined {
  const bytes = from.subarray(at, at + STORED_REQUEST_BYTES)
  if (bytes.length < STORED_REQUEST_BYTES || bytes.readUInt32LE(CRC_AT) !== crc32(bytes.subarray(0, CRC_AT))) return undefined
  return {
    id: Buffer.from(bytes.subarray(0, DIGEST_BYTES)),
    body: Buffer.from(bytes.subarray(DIGEST_BYTES, 2 * DIGEST_BYTES)),
    endpointId: endpointIn(bytes),
    storedAtMs: bytes.readDoubleLE(48),
    seq: bytes.readDoubleLE(56),
    records: bytes.readUInt32LE(64),
    bytes: bytes.readDoubleLE(68),
  }
}

export type RequestSegment = Pick<StoredRequest, 'endpointId' | 'seq'>

/** Returns the segment alone, which takes a third of the time; undefined for bytes that are not a request. */
export function decodeSegment(from: Buffer, at: number): RequestSegment | undefined {
  const bytes = from.subarray(at, at + STORED_REQUEST_BYTES)
  if (bytes.length < STORED_REQUEST_BYTES || bytes.readUInt32LE(CRC_AT) !== crc32(bytes.subarray(0, CRC_AT))) return undefined
  return { endpointId: endpointIn(bytes), seq: bytes.readDoubleLE(56) }
}

/** Whether the bytes at both places name the same segment. */
export function isOfSameSegment(bytes: Buffer, at: number, other: number): boolean {
  return (
    bytes.readDoubleLE(at + 56) === bytes.readDoubleLE(other + 56) &&
    bytes.compare(bytes, at + 32, at + 48, other + 32, other + 48) === 0
  )
}

function endpointIn(request: Buffer): string {
  const hex = request.toString('hex', 32, 48)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
