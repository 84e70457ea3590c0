/**
 * Bytes of one frame: one request, all or nothing. Numbers are little-endian, as every machine we run on has them.
 *
 *    0  length            u32  bytes of the frame from offset 12 to its end
 *    4  check             u32  ~length ^ salt: tells a damaged length from a frame that is cut short
 *    8  crc               u32  CRC32C, started at the salt, of everything after it
 *   12  version           u8   1
 *   13  protocol          u8   1 http, 2 mqtt
 *   14  layout            u8   1 lines, 2 single
 *   15  flags             u8   bit 0: the first frame of a group that became durable at once
 *   16  received at       u64  microseconds since 1970 UTC
 *   24  record count      u32
 *   28  attributes bytes  u32
 *   32  topic bytes       u16
 *   34  client id bytes   u16
 *   36  topic, client id (UTF-8), attributes (opaque), then the payload as it was sent
 *
 * The salt belongs to the segment (segment-file.ts), so bytes that a client sends can't pass for a frame of ours.
 *
 * Owns: this layout. Does not own: files, fsync, or what a record is (records.ts).
 * Law: decoding any prefix of a frame says 'short', decoding anything damaged says 'corrupt'; never a wrong frame.
 */
import { Buffer } from 'node:buffer'
import { crc32c } from '@node-rs/crc32'
import { assert } from '#lib/assert.ts'

type Protocol = 'http' | 'mqtt'

/** `lines`: the payload is records separated by line feeds. `single`: the payload is one record as it is. */
export type Layout = 'lines' | 'single'

export type FrameEnvelope = {
  readonly protocol: Protocol
  readonly layout: Layout
  readonly receivedAtMicros: number
  readonly recordCount: number
  /** At most 65 535 bytes of UTF-8. */
  readonly topic: string
  /** At most 65 535 bytes of UTF-8. */
  readonly clientId: string
  /** Opaque bytes that travel with the frame. */
  readonly attributes: Uint8Array
}

/** A frame to append. The payload's chunks must not change until the append is answered. */
export type FrameInput = FrameEnvelope & { readonly payload: readonly Uint8Array[] }

export type Frame = FrameEnvelope & { readonly payload: Uint8Array }

export type DecodedFrame = {
  readonly frame: Frame
  /** Bytes of the whole frame. */
  readonly bytes: number
  readonly crc: number
  readonly startsGroup: boolean
}

const FRAME_HEADER_BYTES = 36
/** A length above this is damage, not a frame. */
const FRAME_BYTES_MAX = 0x3fff_ffff

const CRC_AT = 8
const PREFIX_BYTES = 12
const VERSION = 1
const STARTS_GROUP = 1
const protocols: readonly (Protocol | undefined)[] = [undefined, 'http', 'mqtt']
const layouts: readonly (Layout | undefined)[] = [undefined, 'lines', 'single']

export function payloadBytes(frame: FrameInput): number {
  let bytes = 0
  for (const chunk of frame.payload) bytes += chunk.byteLength
  return bytes
}

/** Bytes that a frame takes in a segment. A frame that its header can't describe is a broken invariant of the caller's. */
export function encodedBytes(frame: FrameInput): number {
  assert(
    textBytes(frame.topic) <= 0xffff && textBytes(frame.clientId) <= 0xffff,
    'a topic or client id is longer than 65535 bytes',
  )
  assert(frame.recordCount >= 0 && frame.recordCount <= 0xffff_ffff, 'a record count is no u32')
  const bytes = envelopeBytes(frame) + payloadBytes(frame)
  assert(bytes <= FRAME_BYTES_MAX, 'a frame is larger than a segment can hold')
  return bytes
}

/** Bytes of a frame that stand before its payload. */
function envelopeBytes(frame: FrameEnvelope): number {
  return FRAME_HEADER_BYTES + textBytes(frame.topic) + textBytes(frame.clientId) + frame.attributes.byteLength
}

/**
 * Writes a frame to `into` at `offset`, and answers where what it wrote ends. Without its payload, that is only read: the caller writes it
 * behind.
 */
export function encodeInto(
  into: Buffer,
  offset: number,
  frame: FrameInput,
  { salt, startsGroup, withPayload }: { readonly salt: number; readonly startsGroup: boolean; readonly withPayload: boolean },
): number {
  const textAt = offset + FRAME_HEADER_BYTES
  const clientIdAt = frame.topic === '' ? textAt : textAt + into.write(frame.topic, textAt, 'utf8')
  const attributesAt = frame.clientId === '' ? clientIdAt : clientIdAt + into.write(frame.clientId, clientIdAt, 'utf8')
  const payloadAt = attributesAt + frame.attributes.byteLength
  if (payloadAt > attributesAt) into.set(frame.attributes, attributesAt)
  let end = payloadAt
  if (withPayload) {
    for (const chunk of frame.payload) {
      into.set(chunk, end)
      end += chunk.byteLength
    }
  }
  const length = payloadAt - offset - PREFIX_BYTES + (withPayload ? end - payloadAt : payloadBytes(frame))

  into.writeUInt32LE(length, offset)
  into.writeUInt32LE(lengthCheck(length, salt), offset + 4)
  into[offset + 12] = VERSION
  into[offset + 13] = protocols.indexOf(frame.protocol)
  into[offset + 14] = layouts.indexOf(frame.layout)
  into[offset + 15] = startsGroup ? STARTS_GROUP : 0
  writeUInt64(into, frame.receivedAtMicros, offset + 16)
  into.writeUInt32LE(frame.recordCount, offset + 24)
  into.writeUInt32LE(payloadAt - attributesAt, offset + 28)
  into.writeUInt16LE(clientIdAt - textAt, offset + 32)
  into.writeUInt16LE(attributesAt - clientIdAt, offset + 34)

  // A call costs more than the bytes of a small frame: one for all of it.
  let crc = crc32c(into.subarray(offset + PREFIX_BYTES, end), salt)
  if (!withPayload) for (const chunk of frame.payload) crc = crc32c(chunk, crc)
  into.writeUInt32LE(crc, offset + CRC_AT)
  return end
}

/** The crc of a frame that was written at `offset`. */
export function crcAt(bytes: Buffer, offset: number): number {
  return bytes.readUInt32LE(offset + CRC_AT)
}

/** The whole frame in one piece. */
export function encodeFrame(frame: FrameInput, salt: number, startsGroup: boolean): Buffer {
  const bytes = Buffer.alloc(encodedBytes(frame))
  encodeInto(bytes, 0, frame, { salt, startsGroup, withPayload: true })
  return bytes
}

/** Bytes of the frame that starts at `offset`, as far as its first bytes can tell. */
export function peekFrameBytes(bytes: Buffer, offset: number, salt: number): number | 'short' | 'corrupt' {
  if (bytes.byteLength - offset < 8) return 'short'
  const length = bytes.readUInt32LE(offset)
  if (bytes.readUInt32LE(offset + 4) !== lengthCheck(length, salt)) return 'corrupt'
  const whole = length + PREFIX_BYTES
  return whole >= FRAME_HEADER_BYTES && whole <= FRAME_BYTES_MAX ? whole : 'corrupt'
}

/** The frame at `offset`. Its payload and attributes are views of `bytes`. */
export function decodeFrame(bytes: Buffer, offset: number, salt: number): DecodedFrame | 'short' | 'corrupt' {
  const whole = peekFrameBytes(bytes, offset, salt)
  if (typeof whole === 'string') return whole
  if (bytes.byteLength - offset < whole) return 'short'
  const end = offset + whole
  const crc = crcAt(bytes, offset)
  if (crc32c(bytes.subarray(offset + PREFIX_BYTES, end), salt) !== crc) return 'corrupt'

  const protocol = protocols[bytes[offset + 13] ?? 0]
  const layout = layouts[bytes[offset + 14] ?? 0]
  const topicAt = offset + FRAME_HEADER_BYTES
  const clientIdAt = topicAt + bytes.readUInt16LE(offset + 32)
  const attributesAt = clientIdAt + bytes.readUInt16LE(offset + 34)
  const payloadAt = attributesAt + bytes.readUInt32LE(offset + 28)
  if (bytes[offset + 12] !== VERSION || protocol === undefined || layout === undefined || payloadAt > end) return 'corrupt'
  const frame: Frame = {
    protocol,
    layout,
    receivedAtMicros: readUInt64(bytes, offset + 16),
    recordCount: bytes.readUInt32LE(offset + 24),
    topic: text(bytes, topicAt, clientIdAt),
    clientId: text(bytes, clientIdAt, attributesAt),
    attributes: bytes.subarray(attributesAt, payloadAt),
    payload: bytes.subarray(payloadAt, end),
  }
  return { frame, bytes: whole, crc, startsGroup: ((bytes[offset + 15] ?? 0) & STARTS_GROUP) !== 0 }
}

/** A number up to 2^53 as eight bytes. Twice as fast as going through a BigInt. */
export function writeUInt64(into: Buffer, value: number, offset: number): void {
  into.writeUInt32LE(value % 0x1_0000_0000, offset)
  into.writeUInt32LE(Math.floor(value / 0x1_0000_0000), offset + 4)
}

export function readUInt64(bytes: Buffer, offset: number): number {
  return bytes.readUInt32LE(offset) + bytes.readUInt32LE(offset + 4) * 0x1_0000_0000
}

function lengthCheck(length: number, salt: number): number {
  return (~length ^ salt) >>> 0
}

function textBytes(value: string): number {
  return value === '' ? 0 : Buffer.byteLength(value, 'utf8')
}

function text(bytes: Buffer, start: number, end: number): string {
  return start === end ? '' : bytes.toString('utf8', start, end)
}
