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
  const endpoint = bytes.toString('hex', 32, 48)
  return {
    id: Buffer.from(bytes.subarray(0, DIGEST_BYTES)),
    body: Buffer.from(bytes.subarray(DIGEST_BYTES, 2 * DIGEST_BYTES)),
    endpointId: endpoint.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'),
    storedAtMs: bytes.readDoubleLE(48),
    seq: bytes.readDoubleLE(56),
    records: bytes.readUInt32LE(64),
    bytes: bytes.readDoubleLE(68),
  }
}
