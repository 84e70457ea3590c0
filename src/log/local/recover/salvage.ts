/**
 * Writes the intact frames of a segment into a new file of the same name: of a damaged one, or of one that lost its name while it was being
 * written.
 *
 * Owns: the order of these steps, and what a salvage leaves behind. Does not own: when a segment counts as damaged (read/segment-reader.ts),
 * which file is recovered otherwise (recover-segment.ts).
 * Law: at every moment the name holds either the original or the complete copy. A damaged original is kept as `.quarantine` before it is
 * replaced. Every step can be repeated after a crash or a failure.
 */
import { dirname, join } from 'node:path'
import type { Clock } from '#lib/clock.ts'
import { copyBytes, type Files, type OpenFile } from '#lib/files.ts'
import { logLimits } from '../../limits.ts'
import { SegmentError } from '../../segment-error.ts'
import type { Salvage, SegmentRef } from '../../segment-source.ts'
import type { Salt } from '../format/frame.ts'
import { readSaltKey } from '../format/salt-key.ts'
import { encodeFooter, encodeHeader, FOOTER_BYTES, HEADER_BYTES, segmentName } from '../format/segment-file.ts'
import { type Inspection, inspectSegment } from './inspection.ts'
import { keepOriginal, readQuarantineNote } from './quarantine.ts'

/** Throws if the disk fails or is full. The segment is then as it was, or salvaged. Throws SegmentError for one of another format version. */
export async function salvageSegment(files: Files, clock: Clock, walDirectory: string, segment: SegmentRef): Promise<Salvage> {
  const directory = join(walDirectory, segment.logName)
  const path = join(directory, segmentName(segment, 'wal'))
  const earlier = join(directory, segmentName(segment, 'quarantine'))
  const size = await files.bytes(path)
  if (size === undefined && (await files.bytes(earlier)) !== undefined) {
    const note = await readQuarantineNote(files, earlier)
    return {
      outcome: 'quarantined',
      recordsLost: note?.records_lost ?? 0,
      reason: note?.reason ?? 'unknown',
      quarantine: earlier,
    }
  }
  const file = await files.open(path, 'read')
  try {
    return await salvage(files, clock, walDirectory, segment, file)
  } finally {
    await file.close()
  }
}

async function salvage(files: Files, clock: Clock, walDirectory: string, segment: SegmentRef, file: OpenFile): Promise<Salvage> {
  const { scanBufferBytes } = logLimits
  const found = await inspectSegment(file, segment, await file.bytes(), true, {
    bufferBytesMax: scanBufferBytes,
    findSaltKey: () => readSaltKey(files, walDirectory),
  })
  if (found === 'other version')
    throw new SegmentError(file.path, 'foreign', 8, 'has a format version that this program cannot read')
  if (found.isIntact) return { outcome: 'intact' }
  const { tally, lostRecords: recordsLost, reason } = found
  // A time that a repeated salvage finds again, so that it gives the same segment.
  const sealedAtMicros = tally.footer(0, 0).lastReceivedAtMicros
  const { bytes, quarantine = '' } = await replaceByIntactFrames(
    { files, clock, copyBufferBytes: scanBufferBytes },
    ...([file, segment, found, sealedAtMicros] as const),
  )
  await files.syncDirectory(dirname(file.path))
  return { outcome: bytes === undefined ? 'quarantined' : 'salvaged', recordsLost, reason, quarantine }
}

export type SalvageOptions = { readonly files: Files; readonly clock: Clock; readonly copyBufferBytes: number }

/** An inspection that has found frames. */
export type Salvageable = Inspection & { readonly salt: Salt }

export type Replaced = {
  /** Size of the sealed file. Absent if there was no intact frame: then the name is gone. */
  readonly bytes?: number
  /** Where the original is kept. Absent if its damage is not proven. */
  readonly quarantine?: string
}

/**
 * Replaces the file by a sealed one that has its intact frames. The original is kept if its damage is proven. The caller syncs the
 * directory. `sealedAtMicros` applies if the footer is lost.
 */
export async function replaceByIntactFrames(
  { files, clock, copyBufferBytes }: SalvageOptions,
  from: OpenFile,
  identity: SegmentRef,
  found: Inspection,
  sealedAtMicros: number,
): Promise<Replaced> {
  const keep = async () =>
    found.hasProvenDamage ? { quarantine: await keepOriginal(files, clock, from.path, identity, found) } : {}
  const path = join(dirname(from.path), segmentName(identity, 'salvage'))
  // An earlier attempt may have failed to remove it, when more frames were intact.
  await files.remove(path)
  if (found.salt === undefined || found.tally.frames === 0) {
    const kept = await keep()
    await files.remove(from.path)
    return kept
  }
  const file = await files.open(path, 'create')
  try {
    const bytes = await copyIntactFrames(from, file, identity, { ...found, salt: found.salt }, sealedAtMicros, copyBufferBytes)
    const kept = await keep()
    await files.rename(path, from.path)
    return { bytes, ...kept }
  } catch (error) {
    await files.remove(path).catch(() => undefined)
    throw error
  }
}

/** Writes a durable segment and closes it. Returns its size. */
async function copyIntactFrames(
  from: OpenFile,
  to: OpenFile,
  { logName, seq, incarnation }: SegmentRef,
  { runs, tally, salt, header, footer, lostRecords, hasProvenDamage }: Salvageable,
  sealedAtMicros: number,
  bufferBytes: number,
): Promise<number> {
  try {
    const createdAtMicros = header?.createdAtMicros ?? tally.footer(0, 0).firstReceivedAtMicros
    await to.write([encodeHeader({ logName, seq, incarnation, createdAtMicros, salt })], 0)
    let at = HEADER_BYTES
    for (const run of runs) at = await copyBytes(from, run, to, at, bufferBytes)
    const damagedRecords = hasProvenDamage ? lostRecords : 0
    await to.write([encodeFooter(tally.footer(at, footer?.sealedAtMicros ?? sealedAtMicros, damagedRecords), salt)], at)
    await to.sync()
    return at + FOOTER_BYTES
  } finally {
    await to.close()
  }
}

const COPY_BYTES = 1024 * 1024

export type Unlinked = {
  readonly file: OpenFile
  readonly identity: SegmentRef
  /** Everything before it is copied: the header and all durable frames. */
  readonly framesEnd: number
  readonly footer: Uint8Array
}

/** Writes a segment again that lost its name while it was written: somebody removed the file, or replaced its directory. Durable. Returns its size. */
export async function salvageUnlinked(
  files: Files,
  { file, identity, framesEnd, footer }: Unlinked,
  path: string,
): Promise<number> {
  const directory = dirname(path)
  const draft = join(directory, segmentName(identity, 'salvage'))
  await files.makeDirectory(directory)
  await files.remove(draft)
  try {
    const copy = await files.open(draft, 'create')
    try {
      await copyBytes(file, { start: 0, end: framesEnd }, copy, 0, COPY_BYTES)
      await copy.write([footer], framesEnd)
      await copy.sync()
    } finally {
      await copy.close()
    }
    await files.rename(draft, path)
  } catch (error) {
    await files.remove(draft).catch(() => undefined)
    throw error
  }
  await files.syncDirectory(directory)
  return framesEnd + footer.byteLength
}
