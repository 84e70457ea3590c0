/**
 * Tells what is intact in a segment file, sealed or not.
 *
 * Owns: finding the salt of a file, and which damage is proven. Does not own: what happens to the file (recover-segment.ts, salvage.ts).
 * Law: the salt comes from the key of the directory, never from bytes that a client may have sent. A hole is `proven` damage only if something behind it shows that it was durable once: a later group (a group is written only after the
 * one before it is durable), or a footer. Otherwise it may be the torn group of a crash, which was never acknowledged.
 */
import { Buffer } from 'node:buffer'
import type { OpenFile } from '#lib/files.ts'
import type { Frame } from '../../frame.ts'
import type { SegmentRef } from '../../segment-source.ts'
import { type DecodedFrame, FRAME_HEADER_BYTES, isSameSalt, type Salt } from '../format/frame.ts'
import { type SaltKey, trustedSalt } from '../format/salt-key.ts'
import {
  decodeHeader,
  FOOTER_BYTES,
  type FooterRecord,
  HEADER_BYTES,
  isSameSegment,
  type SegmentHeader,
} from '../format/segment-file.ts'
import { SegmentTally } from '../format/segment-tally.ts'
import { type Damage, type Found, scanFrames } from '../read/frame-scan.ts'
import { describeForeignHeader } from '../read/segment-reader.ts'

export type Inspection = {
  /** Undefined if the header is damaged and the directory has no key. Then no frame is found. */
  readonly salt: Salt | undefined
  /** Absent if the header is damaged, or if it belongs to another segment. */
  readonly header: SegmentHeader | undefined
  /** Runs of intact frames, in order: [start, end). */
  readonly runs: readonly { readonly start: number; readonly end: number }[]
  readonly tally: SegmentTally
  /** The intact footer, even if frames before it are missing. */
  readonly footer: FooterRecord | undefined
  /** Complete, with header, footer and all frames that the footer counts. */
  readonly isIntact: boolean
  /** Where the last group starts: everything before it was durable before it was written. 0 for the first group, which includes the header. */
  readonly lastGroupStart: number
  /** There is one run, right behind an intact header. */
  readonly isContiguous: boolean
  readonly damage: readonly Damage[]
  readonly hasProvenDamage: boolean
  /** Records that the damage took: exact if the footer is intact, else at least one per hole. */
  readonly lostRecords: number
  /** Description of the problem, for a person. */
  readonly reason: string
}

export type InspectOptions = {
  readonly bufferBytesMax: number
  readonly findSaltKey: () => Promise<SaltKey | undefined>
  /** Called with each intact frame, whose bytes are valid only during the call. */
  readonly onFrame?: (frame: Frame) => void
}

/** Inspects the first `end` bytes. Returns `'other version'` for a file of a format version that this program cannot read. */
export async function inspectSegment(
  file: OpenFile,
  identity: SegmentRef,
  end: number,
  isSealed: boolean,
  { bufferBytesMax, findSaltKey, onFrame }: InspectOptions,
): Promise<Inspection | 'other version'> {
  const head = Buffer.alloc(HEADER_BYTES)
  const decoded = decodeHeader(head.subarray(0, await file.read(head.subarray(0, Math.min(end, HEADER_BYTES)), 0)))
  if (decoded === 'other version') return decoded
  const isForeign = typeof decoded === 'object' && !isSameSegment(decoded, identity)
  const named = typeof decoded === 'object' && !isForeign ? decoded : undefined
  const key = await findSaltKey().catch((error: unknown) => {
    if (named === undefined) throw error
    return undefined
  })
  const salt = trustedSalt(key, identity, named?.salt)
  const header = named !== undefined && salt !== undefined && isSameSalt(named.salt, salt) ? named : undefined
  const scan = new Scan(header !== undefined, salt, end)
  if (salt === undefined) scan.addDamage({ offset: HEADER_BYTES, bytes: Math.max(end - HEADER_BYTES, 0) })
  else {
    for await (const found of scanFrames(file, { salt, end, bufferBytesMax })) {
      scan.add(found)
      if (onFrame !== undefined && found.kind === 'frames') for (const { frame } of found.frames) onFrame(frame)
    }
  }
  if (isSealed) scan.expectFooter()
  const { tally, runs, footer } = scan
  const isIntact = header !== undefined && scan.damage.length === 0 && footer !== undefined
  // Without the right salt no frame is found, but the file may be full of them.
  const isSaltDoubtful =
    header === undefined && tally.frames === 0 && end >= HEADER_BYTES + FRAME_HEADER_BYTES && key?.isReplacement !== false
  return {
    ...{ salt, header, runs, tally, footer, isIntact },
    damage: scan.damage,
    lastGroupStart: scan.lastGroupStart,
    isContiguous: header !== undefined && (runs.length === 0 || (runs.length === 1 && runs[0]?.start === HEADER_BYTES)),
    hasProvenDamage: !isIntact && (isSealed || footer !== undefined || scan.hasGroupBehindDamage || isForeign || isSaltDoubtful),
    lostRecords: scan.lostRecords(isSealed),
    reason: describe(scan, identity, decoded, header, salt),
  }
}

/** Results of a scan so far. */
class Scan {
  readonly tally: SegmentTally
  readonly runs: { readonly start: number; end: number }[] = []
  readonly damage: Damage[] = []
  readonly #end: number
  footer: FooterRecord | undefined
  lastGroupStart = 0
  hasGroupBehindDamage = false
  #holes = 0
  #provenHoles = 0
  /** Size of the last one. It may begin where another one ends, if the disk reads the same bytes in two ways. */
  #lastHoleBytes = 0
  #endsInFrame = false

  constructor(hasHeader: boolean, salt: Salt | undefined, end: number) {
    this.tally = new SegmentTally(salt ?? { length: 0, crc: 0 })
    this.#end = end
    if (!hasHeader) this.damage.push({ offset: 0, bytes: Math.min(HEADER_BYTES, end) })
  }

  add(found: Found): void {
    if (found.kind === 'frames') this.#addFrames(found.offset, found.frames)
    else if (found.kind === 'damage') {
      this.addDamage(found)
      this.#endsInFrame = found.startsFrame
    } else {
      this.footer = found.footer
      this.#provenHoles = this.#holes
      // Frames that vanished without a trace leave no hole.
      if (this.damage.length === 0 && !this.tally.matches(found.footer, found.offset))
        this.addDamage({ offset: found.offset, bytes: FOOTER_BYTES })
    }
  }

  addDamage({ offset, bytes }: Damage): void {
    if (this.footer === undefined) this.#holes += 1
    this.#lastHoleBytes = bytes
    const last = this.damage.at(-1)
    if (last !== undefined && last.offset + last.bytes === offset)
      this.damage.splice(-1, 1, { offset: last.offset, bytes: last.bytes + bytes })
    else this.damage.push({ offset, bytes })
  }

  /** Adds the missing footer of a sealed file to the damage. */
  expectFooter(): void {
    if (this.footer !== undefined) return
    const last = this.damage.at(-1)
    if (last === undefined || last.offset + last.bytes < this.#end) this.damage.push({ offset: this.#end, bytes: 0 })
    // The last hole may be no more than the footer.
    else if (!this.#endsInFrame && this.#lastHoleBytes <= FOOTER_BYTES) this.#holes -= 1
  }

  lostRecords(isSealed: boolean): number {
    // A sealed file had a frame at least, even if nothing is left of it.
    if (this.footer === undefined) return isSealed ? Math.max(this.#holes, this.tally.frames === 0 ? 1 : 0) : this.#provenHoles
    return Math.max(this.footer.records + this.footer.damagedRecords - this.tally.records, 0)
  }

  #addFrames(offset: number, frames: readonly DecodedFrame[]): void {
    let at = offset
    for (const { frame, bytes, crc, startsGroup } of frames) {
      this.tally.add(frame, frame.payload.byteLength, crc)
      // The first group became durable together with the header before it, so it proves nothing about the header.
      if (startsGroup && at > HEADER_BYTES) {
        this.lastGroupStart = at
        if (this.damage.length > 0) {
          this.hasGroupBehindDamage = true
          this.#provenHoles = this.#holes
        }
      }
      at += bytes
    }
    const run = this.runs.at(-1)
    if (run?.end === offset) run.end = at
    else this.runs.push({ start: offset, end: at })
  }
}

function describe(
  { tally, footer }: Scan,
  identity: SegmentRef,
  decoded: SegmentHeader | string,
  header: SegmentHeader | undefined,
  salt: Salt | undefined,
): string {
  const parts: string[] = []
  if (header === undefined && typeof decoded === 'object') parts.push(describeForeignHeader(decoded, identity))
  else if (header === undefined) parts.push('the header is damaged')
  if (salt === undefined) parts.push('the salt-key of the WAL directory is missing, so that frames cannot be recognised')
  else if (tally.frames === 0) parts.push('no frame is intact')
  if (footer === undefined) parts.push('the footer is damaged or missing')
  return parts.length === 0 ? 'frames are damaged' : parts.join('; ')
}
