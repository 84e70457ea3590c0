/**
 * The bytes of one object of copies. Numbers are little-endian.
 *
 * Header, 96 bytes:                            Body, compressed with zstd: pieces, one behind the other.
 *     0  magic "INLETCPY"                      Each piece:
 *     8  version                u16  1             0  log name bytes         u16
 *    10  kind                   u16                2  incarnation, 10 characters
 *        0 pieces, 1 closing                      12  bytes                  u32
 *    12  pieces                 u32               16  seq                    u64
 *    16  number                 u64               24  at                     u64
 *    24  created at (µs)        u64               32  log name, then the bytes of the segment from `at` on
 *    32  node id, 16 bytes
 *    48  writer, 16 bytes
 *    64  incarnation, 10 characters
 *    74  zero                   2 bytes
 *    76  body bytes             u32  compressed
 *    80  content bytes          u32  not compressed
 *    84  body crc               u32  CRC32 of the compressed body
 *    88  zero                   4 bytes
 *    92  crc                    u32  CRC32 of the 92 bytes before
 *
 * Owns: this layout. Does not own: the names of objects (copy-names.ts).
 */
import { Buffer } from 'node:buffer'
import { promisify } from 'node:util'
import { constants, crc32, zstdCompress, zstdDecompress } from 'node:zlib'
import { readUInt64, writeUInt64 } from '#lib/uint64.ts'
import { pieceBytes, type SegmentPiece } from '#log/segment-piece.ts'
import type { ObjectStore } from '#objects/object-store.ts'
import { copyName } from './copy-names.ts'
import { copyLimits } from './limits.ts'

const compress = promisify(zstdCompress)
const decompress = promisify(zstdDecompress)

export type CopyHeader = {
  readonly kind: 'pieces' | 'closing'
  readonly nodeId: string
  readonly incarnation: string
  readonly number: number
  /** Hexadecimal, 32 digits: new for each object that is put, so that its writer knows it again. */
  readonly writer: string
  readonly createdAtMicros: number
}

export type CopyObject = CopyHeader & { readonly pieces: readonly SegmentPiece[] }

/** The bytes are those of a later release: they must not be taken for damaged. */
export class LaterCopyError extends Error {
  override readonly name = 'LaterCopyError'
}

/** The bytes are not those of a whole object. */
export class DamagedCopyError extends Error {
  override readonly name = 'DamagedCopyError'
}

const MAGIC = Buffer.from('INLETCPY', 'latin1')
const VERSION = 1
const HEADER_BYTES = 96
const PIECE_HEADER_BYTES = 32
const kinds = ['pieces', 'closing'] as const

/** Encodes one object after the other in memory that it keeps: fresh memory for each costs more than its compression. */
export class CopyEncoder {
  #memory = Buffer.alloc(0)
  #last: Promise<unknown> = Promise.resolve()

  encode(header: CopyHeader, pieces: readonly SegmentPiece[]): Promise<Uint8Array> {
    const object = this.#last.then(() => encode(header, pieces.length, this.#lay(pieces)))
    this.#last = object.catch(() => undefined)
    return object
  }

  /** Returns the content of the object, which the next call overwrites. */
  #lay(pieces: readonly SegmentPiece[]): Buffer {
    const chunks = pieces.flatMap((piece) => [encodePieceHeader(piece), ...piece.chunks])
    const bytes = pieceBytes({ chunks })
    if (bytes > this.#memory.length) this.#memory = Buffer.allocUnsafeSlow(bytes)
    let at = 0
    for (const chunk of chunks) {
      this.#memory.set(chunk, at)
      at += chunk.byteLength
    }
    return this.#memory.subarray(0, bytes)
  }
}

export function encodeCopy(header: CopyHeader, pieces: readonly SegmentPiece[]): Promise<Uint8Array> {
  return new CopyEncoder().encode(header, pieces)
}

async function encode(header: CopyHeader, count: number, content: Buffer): Promise<Uint8Array> {
  const body = await compress(content, { params: { [constants.ZSTD_c_compressionLevel]: 1 } })
  const bytes = Buffer.alloc(HEADER_BYTES)
  MAGIC.copy(bytes)
  bytes.writeUInt16LE(VERSION, 8)
  bytes.writeUInt16LE(kinds.indexOf(header.kind), 10)
  bytes.writeUInt32LE(count, 12)
  writeUInt64(bytes, header.number, 16)
  writeUInt64(bytes, header.createdAtMicros, 24)
  bytes.write(header.nodeId.replaceAll('-', ''), 32, 'hex')
  bytes.write(header.writer, 48, 'hex')
  bytes.write(header.incarnation, 64, 'latin1')
  bytes.writeUInt32LE(body.length, 76)
  bytes.writeUInt32LE(content.length, 80)
  bytes.writeUInt32LE(crc32(body), 84)
  bytes.writeUInt32LE(crc32(bytes.subarray(0, HEADER_BYTES - 4)), HEADER_BYTES - 4)
  return Buffer.concat([bytes, body])
}

/** Throws DamagedCopyError, and LaterCopyError. */
export async function decodeCopy(object: Uint8Array): Promise<CopyObject> {
  const bytes = Buffer.from(object.buffer, object.byteOffset, object.byteLength)
  const { count, contentBytes, bodyCrc, bodyBytes, ...header } = decodeHeader(bytes)
  const body = bytes.subarray(HEADER_BYTES)
  if (body.length !== bodyBytes || crc32(body) !== bodyCrc) throw new DamagedCopyError('the pieces are damaged or cut')
  const content = await decompress(body, { maxOutputLength: Math.max(1, contentBytes) }).catch(() => undefined)
  if (content === undefined) throw new DamagedCopyError('its pieces cannot be decompressed')
  if (content.length !== contentBytes) throw new DamagedCopyError('the pieces have another size')
  return { ...header, pieces: decodePieces(content, count) }
}

/** Returns an object, undefined for one that is missing, or `damaged`, also for one that is another one than its name says. */
export async function readCopy(
  store: Pick<ObjectStore, 'get'>,
  folder: string,
  { incarnation, number }: { readonly incarnation: string; readonly number: number },
  signal: AbortSignal,
): Promise<CopyObject | 'damaged' | undefined> {
  const object = await store.get(copyName(folder, incarnation, number), signal)
  if (object === undefined) return undefined
  try {
    const decoded = await decodeCopy(object)
    return decoded.incarnation === incarnation && decoded.number === number ? decoded : 'damaged'
  } catch (error) {
    if (error instanceof DamagedCopyError) return 'damaged'
    throw error
  }
}

function decodeHeader(bytes: Buffer) {
  if (bytes.length < HEADER_BYTES || !bytes.subarray(0, MAGIC.length).equals(MAGIC)) throw new DamagedCopyError('it is no copy')
  if (crc32(bytes.subarray(0, HEADER_BYTES - 4)) !== bytes.readUInt32LE(HEADER_BYTES - 4))
    throw new DamagedCopyError('the header is damaged')
  const version = bytes.readUInt16LE(8)
  const kind = kinds[bytes.readUInt16LE(10)]
  if (version > VERSION || kind === undefined)
    throw new LaterCopyError(`an object of copies is of version ${version}: a later release of Inlet has to read it`)
  const contentBytes = bytes.readUInt32LE(80)
  if (contentBytes > copyLimits.contentBytesMax) throw new DamagedCopyError(`it has ${contentBytes} bytes of pieces`)
  return {
    kind,
    number: readUInt64(bytes, 16),
    createdAtMicros: readUInt64(bytes, 24),
    nodeId: bytes.toString('hex', 32, 48).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
    writer: bytes.toString('hex', 48, 64),
    incarnation: bytes.toString('latin1', 64, 74),
    count: bytes.readUInt32LE(12),
    bodyBytes: bytes.readUInt32LE(76),
    contentBytes,
    bodyCrc: bytes.readUInt32LE(84),
  }
}

function encodePieceHeader(piece: SegmentPiece): Buffer {
  const bytes = Buffer.alloc(PIECE_HEADER_BYTES + piece.logName.length)
  bytes.writeUInt16LE(piece.logName.length, 0)
  bytes.write(piece.incarnation, 2, 'latin1')
  bytes.writeUInt32LE(pieceBytes(piece), 12)
  writeUInt64(bytes, piece.seq, 16)
  writeUInt64(bytes, piece.at, 24)
  bytes.write(piece.logName, PIECE_HEADER_BYTES, 'latin1')
  return bytes
}

/** The checksums held, so what does not fit together was written so. */
function decodePieces(content: Buffer, count: number): readonly SegmentPiece[] {
  const pieces: SegmentPiece[] = []
  let offset = 0
  while (offset + PIECE_HEADER_BYTES <= content.length) {
    const dataAt = offset + PIECE_HEADER_BYTES + content.readUInt16LE(offset)
    const end = dataAt + content.readUInt32LE(offset + 12)
    if (end > content.length) break
    pieces.push({
      logName: content.toString('latin1', offset + PIECE_HEADER_BYTES, dataAt),
      incarnation: content.toString('latin1', offset + 2, offset + 12),
      seq: readUInt64(content, offset + 16),
      at: readUInt64(content, offset + 24),
      chunks: [content.subarray(dataAt, end)],
    })
    offset = end
  }
  if (offset !== content.length || pieces.length !== count) throw new DamagedCopyError('its pieces do not fit together')
  return pieces
}
