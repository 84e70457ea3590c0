/**
 * Repairs a sealed segment that is damaged.
 *
 * Owns: what a salvage leaves behind. Does not own: when a segment counts as damaged (segment-reader.ts), files that were never sealed
 * (recover-segment.ts).
 * Law: the intact frames stay deliverable under the same name, and the original is kept. Neither is missing at any moment, so a salvage can
 * be repeated after a crash, a full disk, or a failed read.
 */
import { dirname, join } from 'node:path'
import type { Clock } from '#lib/clock.ts'
import type { Files, OpenFile } from '#lib/files.ts'
import { SegmentError } from '../../segment-error.ts'
import type { Salvage, SegmentRef } from '../../segment-source.ts'
import { readSaltKey } from '../format/salt-key.ts'
import { segmentName } from '../format/segment-file.ts'
import { walLimits } from '../limits.ts'
import { inspectSegment } from './inspection.ts'
import { readQuarantineNote } from './quarantine.ts'
import { replaceByIntactFrames } from './repair.ts'

/** Throws if the disk fails or is full. The segment is then as it was. Throws SegmentError for a segment of another format version. */
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
  const { scanBufferBytes } = walLimits
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
