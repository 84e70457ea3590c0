/**
 * Finds the intact frames of a segment file that was never sealed, or whose seal was not finished.
 *
 * Owns: finding every intact frame, also behind damage. Does not own: what happens to the file (recovery.ts).
 * Law: a hole is `proven` damage only if something behind it shows that it was durable once: a later group (a group is written only after
 * the one before it is durable), or a footer. Otherwise it may be the torn group of a crash, which was never acknowledged.
 */
import { Buffer } from 'node:buffer'
import type { OpenFile } from '#lib/files.ts'
import { plainSource } from './byte-source.ts'
import { decodeFrame, peekFrameBytes } from './frame.ts'
import { readFrames } from './frame-stream.ts'
import {
  decodeFooter,
  decodeHeader,
  FOOTER_BYTES,
  type FooterRecord,
  HEADER_BYTES,
  type SegmentIdentity,
  segmentSalt,
} from './segment-file.ts'
import { SegmentTally } from './segment-tally.ts'

export type SegmentScanned = {
  readonly createdAtMicros: number | undefined
  /** Runs of intact frames, in order: [start, end). */
  readonly runs: readonly { readonly start: number; readonly end: number }[]
  readonly tally: SegmentTally
  /** The file is intact and has its footer: only the rename is missing. */
  readonly sealed: boolean
  /** Where the last group starts: everything before it was durable before it was written. 0 for the first group, which includes the header. */
  readonly lastGroupStart: number
  /** There is one run, right behind an intact header. */
  readonly contiguous: boolean
  readonly provenDamage: boolean
  /** Bytes that belong to no intact frame, header or footer. */
  readonly lostBytes: number
}

type ScanLimits = {
  readonly scanBufferBytes: number
  /** Bytes that may be read to check candidates for a frame behind damage. A hostile payload can be full of them. */
  readonly searchBytesMax: number
}

/** Scans the first `end` bytes. Returns `'other version'` for a file of a format version that this program cannot read. */
export async function scanOpenSegment(
  file: OpenFile,
  identity: SegmentIdentity,
  end: number,
  limits: ScanLimits,
): Promise<SegmentScanned | 'other version'> {
  const salt = segmentSalt(identity)
  const head = Buffer.alloc(HEADER_BYTES)
  const header = decodeHeader(head.subarray(0, await file.read(head.subarray(0, Math.min(end, HEADER_BYTES)), 0)))
  if (header === 'other version') return header
  const headerIsIntact = typeof header === 'object' && segmentSalt(header) === salt
  const closing = await footerAtEnd(file, end, salt)

  const search = { bytesLeft: limits.searchBytesMax }
  const tally = new SegmentTally(salt)
  const runs: { readonly start: number; readonly end: number }[] = []
  let lastGroupStart = 0
  let hasGroupBehindHole = false
  let footer: FooterRecord | undefined
  let at = Math.min(HEADER_BYTES, end)
  let lostBytes = headerIsIntact ? 0 : at
  while (at < end) {
    const start = at
    const run = readFrames(plainSource(file, start, end), { salt, offset: start, bufferBytesMax: limits.scanBufferBytes })
    for (at = start; ; ) {
      const step = await run.next()
      if (step.done === true) {
        if (step.value.kind === 'footer' && !step.value.trailing) footer = step.value.footer
        break
      }
      for (const { frame, bytes, crc, startsGroup } of step.value) {
        tally.add(frame, frame.payload.byteLength, crc)
        // The first group became durable together with the header before it, so it proves nothing about the header.
        if (startsGroup && at > HEADER_BYTES) {
          lastGroupStart = at
          hasGroupBehindHole ||= lostBytes > 0
        }
        at += bytes
      }
    }
    if (at > start) runs.push({ start, end: at })
    if (footer !== undefined || at >= end) break
    const otherwise = closing === undefined ? end : Math.max(at + 1, end - FOOTER_BYTES)
    const next = (await findNextIntact(file, at + 1, end, salt, search)) ?? otherwise
    lostBytes += next - at
    at = next
  }
  const matches = footer !== undefined && tally.matches(footer, end - FOOTER_BYTES)
  return {
    createdAtMicros: headerIsIntact ? header.createdAtMicros : undefined,
    runs,
    tally,
    sealed: matches && headerIsIntact && lostBytes === 0,
    lastGroupStart,
    contiguous: headerIsIntact && (runs.length === 0 || (runs.length === 1 && runs[0]?.start === HEADER_BYTES)),
    // A search that gave up may have missed intact frames, so the file is kept as well.
    provenDamage: hasGroupBehindHole || search.bytesLeft <= 0 || (closing !== undefined && !(matches && headerIsIntact)),
    lostBytes,
  }
}

async function footerAtEnd(file: OpenFile, end: number, salt: number): Promise<FooterRecord | undefined> {
  if (end < HEADER_BYTES + FOOTER_BYTES) return undefined
  const bytes = Buffer.alloc(FOOTER_BYTES)
  await file.read(bytes, end - FOOTER_BYTES)
  return decodeFooter(bytes, 0, salt)
}

const SEARCH_BYTES = 1024 * 1024
const PREFIX_BYTES = 8

/** Returns the offset of the first intact frame at or after `from`, if one is found. */
async function findNextIntact(
  file: OpenFile,
  from: number,
  end: number,
  salt: number,
  search: { bytesLeft: number },
): Promise<number | undefined> {
  const buffer = Buffer.allocUnsafe(SEARCH_BYTES + PREFIX_BYTES)
  for (let base = from; base < end; base += SEARCH_BYTES) {
    const got = await file.read(buffer.subarray(0, Math.min(buffer.byteLength, end - base)), base)
    const bytes = buffer.subarray(0, got)
    for (let at = 0; at < Math.min(SEARCH_BYTES, got - PREFIX_BYTES + 1); at += 1) {
      const frameBytes = peekFrameBytes(bytes, at, salt)
      if (typeof frameBytes === 'string' || base + at + frameBytes > end) continue
      if (search.bytesLeft <= 0) return undefined
      search.bytesLeft -= frameBytes
      if (await isIntact(file, base + at, frameBytes, salt)) return base + at
    }
  }
  return undefined
}

async function isIntact(file: OpenFile, at: number, frameBytes: number, salt: number): Promise<boolean> {
  const bytes = Buffer.allocUnsafe(frameBytes)
  const got = await file.read(bytes, at)
  return got === frameBytes && typeof decodeFrame(bytes, 0, salt) === 'object'
}
