/**
 * Reads sealed segments.
 *
 * Owns: the check that a segment is intact: every frame's crc, the footer's counts and its chain. Does not own: what to do with a damaged
 * segment (recover/salvage.ts).
 * Law: frames() ends without an error only after it has yielded every sealed frame, in order.
 */
import { Buffer } from 'node:buffer'
import type { Files, OpenFile } from '#lib/files.ts'
import type { Frame } from '../../frame.ts'
import { SegmentError } from '../../segment-error.ts'
import type { SegmentReader, SegmentRef } from '../../segment-source.ts'
import { isSameSalt } from '../format/frame.ts'
import { type SaltKey, trustedSalt } from '../format/salt-key.ts'
import {
  decodeFooter,
  decodeHeader,
  FOOTER_BYTES,
  type FooterRecord,
  HEADER_BYTES,
  isSameSegment,
  SEGMENT_VERSION,
  type SegmentFooter,
  type SegmentHeader,
} from '../format/segment-file.ts'
import { SegmentTally } from '../format/segment-tally.ts'
import { type ByteSource, fileChunks, plainSource } from './byte-source.ts'
import { type FrameRunEnd, readFrames } from './frame-stream.ts'

/** Opens a sealed segment. Throws SegmentError if the file is not one, or does not belong to `expected`. */
export async function openSegment(files: Files, path: string, expected?: ExpectedSegment): Promise<SegmentReader> {
  const file = await files.open(path, 'read')
  try {
    const bytes = await file.bytes()
    const header = await readHeader(path, plainSource(file, 0))
    if (expected !== undefined && !belongsTo(header, expected)) {
      throw new SegmentError(path, 'damaged', 0, `is damaged: ${describeForeignHeader(header, expected.segment)}`)
    }
    const footer = await readFooter(file, bytes, header)
    return {
      header,
      footer,
      bytes,
      framesEnd: bytes - FOOTER_BYTES,
      frames: (bufferBytesMax) => intactFrames(path, plainSource(file, HEADER_BYTES), header, bufferBytesMax, footer),
      reread: file.readSync?.bind(file),
      content: () => fileChunks(file),
      close: () => file.close(),
    }
  } catch (error) {
    await file.close()
    throw error
  }
}

export type ExpectedSegment = { readonly segment: SegmentRef; readonly key: SaltKey | undefined }

function belongsTo(header: SegmentHeader, { segment, key }: ExpectedSegment): boolean {
  const salt = trustedSalt(key, segment, header.salt)
  return isSameSegment(header, segment) && salt !== undefined && isSameSalt(header.salt, salt)
}

/** Says why an intact header is not that of the segment. */
export function describeForeignHeader(header: SegmentHeader, segment: SegmentRef): string {
  if (isSameSegment(header, segment)) return 'the header was not written with the salt-key of this WAL'
  const { logName, seq, incarnation } = header
  return `the header belongs to another segment, ${logName}/${seq}-${incarnation}`
}

/** Reads the header of a segment, from the start of the source. Throws SegmentError if it is damaged. */
export async function readHeader(path: string, source: ByteSource): Promise<SegmentHeader> {
  const bytes = Buffer.alloc(HEADER_BYTES)
  const got = await readSource(path, source, bytes)
  const header = decodeHeader(bytes.subarray(0, got))
  switch (header) {
    case 'foreign':
      throw new SegmentError(path, 'foreign', 0, 'is not a segment of Inlet: it does not start with INLETWAL')
    case 'other version':
      throw new SegmentError(path, 'foreign', 8, otherVersion(bytes.readUInt16LE(8)))
    case 'short':
      throw new SegmentError(path, 'damaged', got, `ends after ${got} bytes, inside the header`)
    case 'corrupt':
      throw new SegmentError(path, 'damaged', 0, 'the header is damaged: its checksum does not match')
    default:
      return header
  }
}

function otherVersion(version: number): string {
  const writer = version < SEGMENT_VERSION ? 'an unreleased version of Inlet' : 'a later version of Inlet'
  return `has format version ${version}, written by ${writer}; this one reads version ${SEGMENT_VERSION}: use the version that wrote it`
}

/** Reports a damaged zstd stream as damage like any other. */
async function readSource(path: string, source: ByteSource, into: Uint8Array): Promise<number> {
  try {
    return await source.read(into)
  } catch (error) {
    throw decompressionError(path, error)
  }
}

function decompressionError(path: string, error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error) || !/^Z(STD)?_/.test(String(error.code))) return error
  return new SegmentError(path, 'damaged', 0, `the zstd compression is damaged: ${error.message}`)
}

async function readFooter(file: OpenFile, bytes: number, header: SegmentHeader): Promise<FooterRecord> {
  const offset = bytes - FOOTER_BYTES
  const last = Buffer.alloc(FOOTER_BYTES)
  if (offset >= HEADER_BYTES) await file.read(last, offset)
  const footer = decodeFooter(last, 0, header.salt)
  if (footer === undefined) {
    throw new SegmentError(file.path, 'unsealed', Math.max(offset, 0), 'has no footer: it was not sealed, or its end is missing')
  }
  return footer
}

/** Yields the frames behind the header. Throws SegmentError at the first damage. */
export async function* intactFrames(
  path: string,
  source: ByteSource,
  header: SegmentHeader,
  bufferBytesMax: number,
  expected: FooterRecord | undefined,
): AsyncGenerator<readonly Frame[], SegmentFooter> {
  const salt = header.salt
  const tally = new SegmentTally(salt)
  const run = readFrames(source, { salt, offset: HEADER_BYTES, bufferBytesMax })
  for (;;) {
    const step = await run.next().catch((error: unknown) => {
      throw decompressionError(path, error)
    })
    if (step.done === true) return checkEnd(path, step.value, tally, expected)
    const frames: Frame[] = []
    for (const { frame, crc } of step.value) {
      tally.add(frame, frame.payload.byteLength, crc)
      frames.push(frame)
    }
    yield frames
  }
}

function checkEnd(path: string, end: FrameRunEnd, tally: SegmentTally, expected: FooterRecord | undefined): FooterRecord {
  if (end.kind === 'corrupt') throw new SegmentError(path, 'damaged', end.offset, `is damaged at byte ${end.offset}`)
  if (end.kind === 'end') {
    const torn = end.bytes === 0 ? '' : `, and ends inside the frame that starts at byte ${end.offset}`
    const problem = expected === undefined ? 'unsealed' : 'damaged'
    throw new SegmentError(path, problem, end.offset, `has no footer after its ${tally.frames} intact frames${torn}`)
  }
  if (end.trailing) throw new SegmentError(path, 'damaged', end.offset, `has bytes after its footer at byte ${end.offset}`)
  if (!tally.matches(end.footer, end.offset)) {
    throw new SegmentError(path, 'damaged', end.offset, 'is damaged: the footer does not match the frames before it')
  }
  return end.footer
}
