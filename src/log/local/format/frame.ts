/**
 * The bytes of one frame: one request, all or nothing. Numbers are little-endian, as on every machine that we run on.
 *
 *    0  length            u32  bytes of the frame from offset 12 to its end
 *    4  check             u32  ~length ^ salt.length: tells a damaged length from a frame that is cut short
 *    8  crc               u32  CRC32C, started at salt.crc, of everything after it
 *   12  version           u8   3
 *   13  layout            u8   1 lines, 2 single, 3 texts
 *   14  flags             u8   bit 0: the first frame of a group that became durable at once
 *   15  zero              u8
 *   16  received at       u64  microseconds since 1970 UTC
 *   24  record count      u32
 *   28  envelope bytes    u32
 *   32  envelope (opaque), then the payload as it was sent
 *
 * The salt is a secret of the segment (salt-key.ts), so bytes that a client sends cannot pass for a frame.
 *
 * Owns: this layout. Does not own: files, fsync, or what a record is (records.ts).
 * Law: decoding any prefix of a frame returns 'short', decoding damaged bytes returns 'corrupt'; never a wrong frame.
 */
import { Buffer } from 'node:buffer'
import { crc32c } from '@node-rs/crc32'
import { assert } from '#lib/assert.ts'
import { readUInt64, writeUInt64 } from '#lib/uint64.ts'
import { type Frame, type FrameInput, type Layout, payloadBytes } from '../../frame.ts'

export type DecodedFrame = {
  readonly frame: Frame
  /** Size of the encoded frame. */
  readonly bytes: number
  readonly crc: number
  readonly startsGroup: boolean
}

/** A secret of the segment. Two independent numbers, so that a frame is guessed once in 2^64 tries. */
export type Salt = {
  /** Mixed into the check of a length. Never all ones, so that zero bytes cannot look like a length and its check. */
  readonly length: number
  /** Start of the checksums. */
  readonly crc: number
}

export const FRAME_HEADER_BYTES = 32
/** A greater length is damage, not a frame. */
const FRAME_BYTES_MAX = 0x3fff_ffff

const CRC_AT = 8
const PREFIX_BYTES = 12
const VERSION = 3
const STARTS_GROUP = 1
const layouts: readonly (Layout | undefined)[] = [undefined, 'lines', 'single', 'texts']

/** Returns the size of the frame in a segment. Asserts that the frame's header can describe it. */
export function encodedBytes(frame: FrameInput): number {
  assert(frame.recordCount >= 0 && frame.recordCount <= 0xffff_ffff, 'the record count must be a u32')
  const bytes = FRAME_HEADER_BYTES + frame.envelope.byteLength + payloadBytes(frame)
  assert(bytes <= FRAME_BYTES_MAX, 'the frame must not be larger than 1 GiB')
  return bytes
}

/**
 * Writes what of a frame does not depend on its segment to `into` at `offset`. Without `withPayload` the caller writes the payload right
 * after the rest of the frame.
 */
export function layOutFrame(into: Buffer, offset: number, frame: FrameInput, withPayload: boolean): void {
  const envelopeAt = offset + FRAME_HEADER_BYTES
  const payloadAt = envelopeAt + frame.envelope.byteLength
  into.set(frame.envelope, envelopeAt)
  if (withPayload) {
    let end = payloadAt
    for (const chunk of frame.payload) {
      into.set(chunk, end)
      end += chunk.byteLength
    }
  }
  into.writeUInt32LE(payloadAt - offset - PREFIX_BYTES + payloadBytes(frame), offset)
  into[offset + 12] = VERSION
  into[offset + 13] = layouts.indexOf(frame.layout)
  into[offset + 15] = 0
  writeUInt64(into, frame.receivedAtMicros, offset + 16)
  into.writeUInt32LE(frame.recordCount, offset + 24)
  into.writeUInt32LE(payloadAt - envelopeAt, offset + 28)
}

/** Writes the rest of a frame that is laid out from `offset` to `end`. `pieces` are of a payload that is not. */
export function completeFrame(
  into: Buffer,
  offset: number,
  end: number,
  { salt, startsGroup, pieces }: { readonly salt: Salt; readonly startsGroup: boolean; readonly pieces: readonly Uint8Array[] },
): void {
  into.writeUInt32LE(lengthCheck(into.readUInt32LE(offset), salt.length), offset + 4)
  into[offset + 14] = startsGroup ? STARTS_GROUP : 0
  // For a small frame a call costs more than its bytes, so one call covers all of it.
  let crc = crc32c(into.subarray(offset + PREFIX_BYTES, end), salt.crc)
  for (const piece of pieces) crc = crc32c(piece, crc)
  into.writeUInt32LE(crc, offset + CRC_AT)
}

/** Returns the size in a segment of the frame that is laid out at `offset`. */
export function laidOutFrameBytes(bytes: Buffer, offset: number): number {
  return bytes.readUInt32LE(offset) + PREFIX_BYTES
}

/** Returns what a segment counts of the frame that is laid out at `offset`. */
export function readLaidOutFrame(
  bytes: Buffer,
  offset: number,
): { readonly recordCount: number; readonly receivedAtMicros: number; readonly payloadBytes: number } {
  return {
    recordCount: bytes.readUInt32LE(offset + 24),
    receivedAtMicros: readUInt64(bytes, offset + 16),
    payloadBytes: laidOutFrameBytes(bytes, offset) - FRAME_HEADER_BYTES - bytes.readUInt32LE(offset + 28),
  }
}

/** Returns the crc of the frame that was written at `offset`. */
export function crcAt(bytes: Buffer, offset: number): number {
  return bytes.readUInt32LE(offset + CRC_AT)
}

/** Returns the encoded frame in one buffer. */
export function encodeFrame(frame: FrameInput, salt: Salt, startsGroup: boolean): Buffer {
  const bytes = Buffer.alloc(encodedBytes(frame))
  layOutFrame(bytes, 0, frame, true)
  completeFrame(bytes, 0, bytes.length, { salt, startsGroup, pieces: [] })
  return bytes
}

/** Returns the size of the frame that starts at `offset`, from its first eight bytes. */
export function peekFrameBytes(bytes: Buffer, offset: number, salt: Salt): number | 'short' | 'corrupt' {
  if (bytes.byteLength - offset < 8) return 'short'
  const length = bytes.readUInt32LE(offset)
  if (bytes.readUInt32LE(offset + 4) !== lengthCheck(length, salt.length)) return 'corrupt'
  const frameBytes = length + PREFIX_BYTES
  return frameBytes >= FRAME_HEADER_BYTES && frameBytes <= FRAME_BYTES_MAX ? frameBytes : 'corrupt'
}

/** Decodes the frame at `offset`. Its envelope and payload are views of `bytes`. */
export function decodeFrame(bytes: Buffer, offset: number, salt: Salt, base = 0): DecodedFrame | 'short' | 'corrupt' {
  const frameBytes = peekFrameBytes(bytes, offset, salt)
  if (typeof frameBytes === 'string') return frameBytes
  if (bytes.byteLength - offset < frameBytes) return 'short'
  const end = offset + frameBytes
  const crc = crcAt(bytes, offset)
  if (crc32c(bytes.subarray(offset + PREFIX_BYTES, end), salt.crc) !== crc) return 'corrupt'

  const layout = layouts[bytes[offset + 13] ?? 0]
  const envelopeAt = offset + FRAME_HEADER_BYTES
  const payloadAt = envelopeAt + bytes.readUInt32LE(offset + 28)
  if (bytes[offset + 12] !== VERSION || layout === undefined || payloadAt > end) return 'corrupt'
  const frame: Frame = {
    layout,
    receivedAtMicros: readUInt64(bytes, offset + 16),
    recordCount: bytes.readUInt32LE(offset + 24),
    envelope: bytes.subarray(envelopeAt, payloadAt),
    payload: bytes.subarray(payloadAt, end),
    at: base + payloadAt,
  }
  return { frame, bytes: frameBytes, crc, startsGroup: ((bytes[offset + 14] ?? 0) & STARTS_GROUP) !== 0 }
}

function lengthCheck(length: number, salt: number): number {
  return (~length ^ salt) >>> 0
}

export function isSameSalt(a: Salt, b: Salt): boolean {
  return a.length === b.length && a.crc === b.crc
}
