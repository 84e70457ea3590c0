/**
 * Names, header and footer of a segment file. Numbers are little-endian.
 *
 * Header, 128 bytes:                          Footer, 96 bytes:
 *     0  magic "INLETWAL"                        0  magic "INLETEND"
 *     8  version                u16  3           8  version                  u16  3
 *    10  log name bytes         u16             10  zero                     6 bytes
 *    12  zero                   4 bytes         16  frames                   u64
 *    16  seq                    u64             24  records                  u64
 *    24  created at (µs)        u64             32  payload bytes            u64
 *    32  incarnation, 10 characters             40  earliest received at     u64  microseconds
 *    42  zero                   6 bytes         48  latest received at       u64  microseconds
 *    48  log name, zero-padded  64 bytes        56  sealed at                u64  microseconds
 *   112  salt.length            u32             64  offset of this footer    u64
 *   116  salt.crc               u32             72  damaged records          u64
 *   120  zero                   4 bytes         80  salt.length              u32
 *   124  crc                    u32             84  salt.crc                 u32
 *        CRC32C of the 124 bytes before         88  chain                    u32  CRC32C, started at salt.crc, of the
 *                                                                                 frames' crcs in their order
 *                                               92  crc                      u32  CRC32C, started at salt.crc, of the
 *                                                                                 92 bytes before
 *
 * Owns: these layouts and the names. Does not own: reading and writing files, where a salt comes from (salt-key.ts).
 */
import { Buffer } from 'node:buffer'
import { crc32c } from '@node-rs/crc32'
import { assert } from '#lib/assert.ts'
import { readUInt64, writeUInt64 } from '#lib/uint64.ts'
import type { SegmentRef } from '../../segment-source.ts'
import type { Salt } from './frame.ts'

export type SegmentHeader = SegmentRef & { readonly createdAtMicros: number; readonly salt: Salt }

export type SegmentFooter = {
  readonly frames: number
  readonly records: number
  readonly payloadBytes: number
  /** The earliest and the latest receive time of a frame. */
  readonly firstReceivedAtMicros: number
  readonly lastReceivedAtMicros: number
  readonly sealedAtMicros: number
  /** Records that were acknowledged and lost to damage: at least so many. 0 for a segment that was never salvaged. */
  readonly damagedRecords: number
}

export type FooterRecord = SegmentFooter & {
  /** Where the footer starts and the frames end. */
  readonly offset: number
  readonly chain: number
}

export const HEADER_BYTES = 128
export const FOOTER_BYTES = 96

const HEADER_MAGIC = Buffer.from('INLETWAL', 'latin1')
const FOOTER_MAGIC = Buffer.from('INLETEND', 'latin1')
// Numbers, because a recovery looks for them at every byte behind damage.
const [FOOTER_START, FOOTER_REST] = [FOOTER_MAGIC.readUInt32LE(0), FOOTER_MAGIC.readUInt32LE(4)]
export const SEGMENT_VERSION = 3
const LOG_NAME_BYTES_MAX = 64
const logNamePattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/
const incarnationPattern = /^[a-z0-9]{10}$/
const SEQ_DIGITS = 12

/**
 * `open` is being written. `poisoned` was being written when the disk failed: it is copied, never synced again. `wal` is sealed.
 * `quarantine` is kept for manual inspection. `salvage` is an unfinished copy.
 */
export const segmentSuffixes = ['open', 'poisoned', 'wal', 'quarantine', 'salvage'] as const
export type SegmentSuffix = (typeof segmentSuffixes)[number]

const segmentNamePattern = new RegExp(`^(\\d{${SEQ_DIGITS}})-([a-z0-9]{10})\\.(${segmentSuffixes.join('|')})$`)

export function isLogName(name: string): boolean {
  return logNamePattern.test(name)
}

export function segmentName({ seq, incarnation }: SegmentRef, suffix: SegmentSuffix): string {
  return `${String(seq).padStart(SEQ_DIGITS, '0')}-${incarnation}.${suffix}`
}

export function parseSegmentName(
  name: string,
): { readonly seq: number; readonly incarnation: string; readonly suffix: SegmentSuffix } | undefined {
  const [, seq, incarnation, suffix] = segmentNamePattern.exec(name) ?? []
  if (seq === undefined || incarnation === undefined || suffix === undefined) return undefined
  return { seq: Number(seq), incarnation, suffix: suffix as SegmentSuffix }
}

/** Whether both are the same segment. */
export function isSameSegment(a: SegmentRef, b: SegmentRef): boolean {
  return a.logName === b.logName && a.seq === b.seq && a.incarnation === b.incarnation
}

export function encodeHeader(header: SegmentHeader): Buffer {
  assert(isLogName(header.logName), `not a log name: ${header.logName}`)
  assert(incarnationPattern.test(header.incarnation), `not an incarnation: ${header.incarnation}`)
  const bytes = Buffer.alloc(HEADER_BYTES)
  HEADER_MAGIC.copy(bytes, 0)
  bytes.writeUInt16LE(SEGMENT_VERSION, 8)
  bytes.writeUInt16LE(header.logName.length, 10)
  writeUInt64(bytes, header.seq, 16)
  writeUInt64(bytes, header.createdAtMicros, 24)
  bytes.write(header.incarnation, 32, 'latin1')
  bytes.write(header.logName, 48, 'latin1')
  writeSalt(bytes, header.salt, 112)
  bytes.writeUInt32LE(crc32c(bytes.subarray(0, 124)), 124)
  return bytes
}

/** `foreign`: not a segment at all. `other version`: of a format version that this program cannot read. */
export function decodeHeader(bytes: Buffer): SegmentHeader | 'foreign' | 'other version' | 'short' | 'corrupt' {
  const magic = bytes.subarray(0, 8)
  if (!HEADER_MAGIC.subarray(0, magic.byteLength).equals(magic)) return 'foreign'
  if (bytes.byteLength < HEADER_BYTES) return 'short'
  if (bytes.readUInt32LE(124) !== crc32c(bytes.subarray(0, 124))) return 'corrupt'
  if (bytes.readUInt16LE(8) !== SEGMENT_VERSION) return 'other version'
  const nameBytes = bytes.readUInt16LE(10)
  if (nameBytes > LOG_NAME_BYTES_MAX) return 'corrupt'
  return {
    logName: bytes.toString('latin1', 48, 48 + nameBytes),
    incarnation: bytes.toString('latin1', 32, 42),
    seq: readUInt64(bytes, 16),
    createdAtMicros: readUInt64(bytes, 24),
    salt: readSalt(bytes, 112),
  }
}

export function encodeFooter(footer: FooterRecord, salt: Salt): Buffer {
  const bytes = Buffer.alloc(FOOTER_BYTES)
  FOOTER_MAGIC.copy(bytes, 0)
  bytes.writeUInt16LE(SEGMENT_VERSION, 8)
  writeUInt64(bytes, footer.frames, 16)
  writeUInt64(bytes, footer.records, 24)
  writeUInt64(bytes, footer.payloadBytes, 32)
  writeUInt64(bytes, footer.firstReceivedAtMicros, 40)
  writeUInt64(bytes, footer.lastReceivedAtMicros, 48)
  writeUInt64(bytes, footer.sealedAtMicros, 56)
  writeUInt64(bytes, footer.offset, 64)
  writeUInt64(bytes, footer.damagedRecords, 72)
  writeSalt(bytes, salt, 80)
  bytes.writeUInt32LE(footer.chain, 88)
  bytes.writeUInt32LE(crc32c(bytes.subarray(0, 92), salt.crc), 92)
  return bytes
}

/** Returns the footer that starts at `offset`, or undefined if it is incomplete, damaged, or of another segment. */
export function decodeFooter(bytes: Buffer, offset: number, salt: Salt): FooterRecord | undefined {
  if (bytes.byteLength - offset < FOOTER_BYTES || !startsFooter(bytes, offset)) return undefined
  if (bytes.readUInt32LE(offset + 80) !== salt.length || bytes.readUInt32LE(offset + 84) !== salt.crc) return undefined
  if (bytes.readUInt32LE(offset + 92) !== crc32c(bytes.subarray(offset, offset + 92), salt.crc)) return undefined
  if (bytes.readUInt16LE(offset + 8) !== SEGMENT_VERSION) return undefined
  return {
    frames: readUInt64(bytes, offset + 16),
    records: readUInt64(bytes, offset + 24),
    payloadBytes: readUInt64(bytes, offset + 32),
    firstReceivedAtMicros: readUInt64(bytes, offset + 40),
    lastReceivedAtMicros: readUInt64(bytes, offset + 48),
    sealedAtMicros: readUInt64(bytes, offset + 56),
    offset: readUInt64(bytes, offset + 64),
    damagedRecords: readUInt64(bytes, offset + 72),
    chain: bytes.readUInt32LE(offset + 88),
  }
}

/** Whether the bytes at `offset` start a footer rather than a frame. */
export function startsFooter(bytes: Buffer, offset: number): boolean {
  return (
    bytes.byteLength - offset >= 8 &&
    bytes.readUInt32LE(offset) === FOOTER_START &&
    bytes.readUInt32LE(offset + 4) === FOOTER_REST
  )
}

/**
 * Returns the salt that the bytes at `offset` would have as a footer. It proves nothing: a client can send such bytes. Only for a person who
 * looks at a file whose header is damaged.
 */
export function claimedSalt(bytes: Buffer, offset: number): Salt | undefined {
  return startsFooter(bytes, offset) && bytes.byteLength - offset >= FOOTER_BYTES ? readSalt(bytes, offset + 80) : undefined
}

function writeSalt(into: Buffer, { length, crc }: Salt, offset: number): void {
  into.writeUInt32LE(length, offset)
  into.writeUInt32LE(crc, offset + 4)
}

function readSalt(bytes: Buffer, offset: number): Salt {
  return { length: bytes.readUInt32LE(offset), crc: bytes.readUInt32LE(offset + 4) }
}
