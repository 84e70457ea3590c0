/**
 * Repairs a segment file: completes it in place, or replaces it by a copy of its intact frames.
 *
 * Owns: the order of these steps. Does not own: which file needs which repair (recover-segment.ts, repair-sealed.ts).
 * Law: at every moment the name holds either the original or the complete copy. A damaged original is kept as `.quarantine` before it is
 * replaced. Every step can be repeated after a crash, and after a failure the original is as it was.
 */
import { dirname, join } from 'node:path'
import type { Clock } from '#lib/clock.ts'
import { copyBytes, type Files, type OpenFile } from '#lib/files.ts'
import type { SegmentRef } from '../../segment-source.ts'
import type { Salt } from '../format/frame.ts'
import { encodeFooter, encodeHeader, FOOTER_BYTES, HEADER_BYTES, segmentName } from '../format/segment-file.ts'
import type { Inspection } from './inspection.ts'
import { keepOriginal } from './quarantine.ts'

export type RepairOptions = { readonly files: Files; readonly clock: Clock; readonly copyBufferBytes: number }

/** An inspection that has found frames. */
export type Salvageable = Inspection & { readonly salt: Salt }

/**
 * Cuts the torn tail and writes the missing footer. Returns the size of the file. The last group and the footer are written again as they
 * are: if an fdatasync of the last process failed, the kernel believes that they are on disk and syncs only newly written bytes.
 */
export async function sealInPlace(
  { clock, copyBufferBytes }: RepairOptions,
  file: OpenFile,
  { runs, tally, salt, isIntact, lastGroupStart }: Salvageable,
  end: number,
): Promise<number> {
  const framesEnd = runs.at(-1)?.end ?? HEADER_BYTES
  if (!isIntact) await file.truncate(framesEnd)
  await copyBytes(file, { start: lastGroupStart, end: isIntact ? end : framesEnd }, file, lastGroupStart, copyBufferBytes)
  if (!isIntact) {
    // A footer proves that everything before it was durable, and the last group was perhaps never synced.
    await file.sync()
    await file.write([encodeFooter(tally.footer(framesEnd, clock.now() * 1_000), salt)], framesEnd)
  }
  await file.sync()
  return isIntact ? end : framesEnd + FOOTER_BYTES
}

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
  { files, clock, copyBufferBytes }: RepairOptions,
  from: OpenFile,
  identity: SegmentRef,
  found: Inspection,
  sealedAtMicros: number,
): Promise<Replaced> {
  const keep = async () =>
    found.hasProvenDamage ? { quarantine: await keepOriginal(files, clock, from.path, identity, found) } : {}
  if (found.salt === undefined || found.tally.frames === 0) {
    const kept = await keep()
    await files.remove(from.path)
    return kept
  }
  const path = join(dirname(from.path), segmentName(identity, 'salvage'))
  await files.remove(path)
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
