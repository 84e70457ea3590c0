/**
 * Turns what a crash or a failing disk left behind into sealed segments.
 *
 * Owns: whether a file that was never sealed is sealed, copied, quarantined or removed. Does not own: sealed files (their names are enough), new frames, how intact
 * frames are copied (salvage.ts).
 * Law: recovery never refuses to start and never guesses. It cuts a torn tail, delivers every intact frame, and keeps a file with proven
 * damage as `.quarantine`. Every step is idempotent: a crash in the middle of a recovery is recovered from as well.
 */
import { basename, dirname, join } from 'node:path'
import type { Clock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { copyBytes, type DirectoryEntry, errorCode, type Files, type OpenFile } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import { isDiskFull } from '../../disk-error.ts'
import type { Frame } from '../../frame.ts'
import type { LogLimits } from '../../limits.ts'
import type { SealObserver } from '../../seal-observer.ts'
import type { SegmentFile } from '../format/directory.ts'
import { type HighWater, readHighWater } from '../format/high-water.ts'
import type { SaltKey } from '../format/salt-key.ts'
import { encodeFooter, FOOTER_BYTES, HEADER_BYTES, parseSegmentName, segmentName } from '../format/segment-file.ts'
import { type Inspection, inspectSegment } from './inspection.ts'
import { type Orphan, poison } from './orphan.ts'
import { keepOriginal } from './quarantine.ts'
import { replaceByIntactFrames, type Salvageable, type SalvageOptions } from './salvage.ts'

export type RecoveryOptions = {
  readonly files: Files
  readonly clock: Clock
  readonly logger: Logger
  readonly limits: LogLimits
  readonly findSaltKey: () => Promise<SaltKey | undefined>
  readonly observer?: SealObserver
  /** Called before a file goes of which no trace is left, because nothing in it was acknowledged. */
  readonly beforeForgotten: () => Promise<void>
  /** Called when acknowledged records are found to be lost: at least so many. */
  readonly onLost: (records: number) => void
}

export type SurveyedLog = {
  /** The highest seq found in the directory, -1 for none. */
  readonly lastSeq: number
  /** Segments that were never sealed, oldest first. */
  readonly orphans: readonly Orphan[]
  readonly highWater: HighWater | undefined | 'damaged'
  /** All entries of the directory. */
  readonly entries: readonly DirectoryEntry[]
}

/** Finds what an earlier process left in the directory of a log, and removes its temporary files. Throws only if the directory cannot be read. */
export async function surveyLog(
  options: Pick<RecoveryOptions, 'files' | 'logger'>,
  directory: string,
  logName: string,
): Promise<SurveyedLog> {
  const { files, logger } = options
  const entries = await files.list(directory)
  const highWater = await readHighWater(files, directory)
  let lastSeq = typeof highWater === 'object' ? highWater.seq : -1
  const orphans: Orphan[] = []
  for (const { kind, name } of entries) {
    const parsed = parseSegmentName(name)
    if (kind !== 'file') {
      if (parsed !== undefined) logger.warn({ path: join(directory, name), kind }, 'named like a segment but not a file: ignored')
      continue
    }
    if (parsed !== undefined) lastSeq = Math.max(lastSeq, parsed.seq)
    if (parsed?.suffix === 'salvage' || name.endsWith('.tmp')) {
      await files
        .remove(join(directory, name))
        .catch((error: unknown) => logger.warn({ err: error, log: logName, name }, 'temporary file not removed'))
    } else if (parsed?.suffix === 'open' || parsed?.suffix === 'poisoned') {
      const { seq, incarnation } = parsed
      const isPoisoned = parsed.suffix === 'poisoned'
      orphans.push({ logName, seq, incarnation, path: join(directory, name), isPoisoned, isUnread: true })
    }
  }
  orphans.sort((a, b) => (a.path < b.path ? -1 : 1))
  return { lastSeq, orphans, highWater, entries }
}

export type RecoveredSegment = {
  /** Absent if the file had no intact frame. */
  readonly segment?: SegmentFile
  /** Set if the disk failed: the orphan to recover later. */
  readonly retry?: Orphan
  /** Neither the file nor a sealed one was there. */
  readonly isGone?: boolean
}

/** Seals the intact frames of the file. */
export async function recoverSegment(options: RecoveryOptions, directory: string, orphan: Orphan): Promise<RecoveredSegment> {
  let [found, { isUnread = false }] = [orphan, orphan]
  const onRead = () => {
    isUnread = false
  }
  try {
    found = await withPresentPath(options.files, directory, orphan)
    const segment = await recover(options, directory, found, onRead)
    return segment === undefined ? {} : segment === 'gone' ? { isGone: true } : { segment }
  } catch (error) {
    const problem = problemOf(error, { ...found, isUnread })
    if (problem !== orphan.problem)
      options.logger.error({ err: error, path: found.path, problem }, 'segment recovery failed; retrying')
    // A file that was not written to needs no copy.
    const left = error instanceof OtherVersionError ? found : await poison(options.files, options.logger, directory, found)
    return { retry: { ...left, isUnread, problem } }
  }
}

/** The rename that marks a segment as poisoned may have happened although the disk said that it failed. */
async function withPresentPath(files: Files, directory: string, orphan: Orphan): Promise<Orphan> {
  const path = join(directory, segmentName(orphan, 'poisoned'))
  const isRenamed = orphan.isPoisoned && (await files.bytes(orphan.path)) === undefined && (await files.bytes(path)) !== undefined
  return isRenamed ? { ...orphan, path } : orphan
}

/** Calls `onRead` once the observer knows all intact frames. */
async function recover(
  options: RecoveryOptions,
  directory: string,
  orphan: Orphan,
  onRead: () => void,
): Promise<SegmentFile | 'gone' | undefined> {
  const { files, logger } = options
  const { logName, seq, incarnation, path } = orphan
  const sealedPath = join(directory, segmentName(orphan, 'wal'))
  const sealedBytes = await files.bytes(sealedPath)
  const size = await files.bytes(path)
  if (size === undefined) {
    if (sealedBytes === undefined) {
      if (orphan.durableBytes !== 0) return 'gone'
      // A disk that failed may not have created it.
      await options.beforeForgotten()
      return undefined
    }
    await files.syncDirectory(directory)
    return { logName, seq, incarnation, path: sealedPath, bytes: sealedBytes, state: 'sealed' }
  }
  if (sealedBytes !== undefined) {
    await quarantineCopy(options, directory, orphan)
    return { logName, seq, incarnation, path: sealedPath, bytes: sealedBytes, state: 'sealed' }
  }
  const end = Math.min(size, orphan.durableBytes ?? size)
  if (end < HEADER_BYTES) {
    await removeWithoutHeader(options, orphan, size)
    return undefined
  }
  const file = await files.open(path, 'update')
  const close = closeOnce(file)
  try {
    const { scanBufferBytes } = options.limits
    const { findSaltKey, observer } = options
    const observed = observer?.recovering(logName, seq)
    const onFrame = observed && ((frame: Frame) => observed.recovered(frame))
    const inspection = { bufferBytesMax: scanBufferBytes, findSaltKey, ...(onFrame !== undefined && { onFrame }) }
    const inspected = await inspectSegment(file, orphan, end, false, inspection)
    if (inspected === 'other version') throw new OtherVersionError()
    onRead()
    const found = withLoss(inspected, orphan)
    const salvage = { files, clock: options.clock, copyBufferBytes: scanBufferBytes }
    const lostBytes = found.damage.reduce((sum, { bytes }) => sum + bytes, 0)
    const facts = { log: logName, seq, path, frames: found.tally.frames, lostBytes }
    let bytes: number | undefined
    if (found.salt !== undefined && found.tally.frames > 0 && canSealInPlace(found, orphan)) {
      bytes = await sealInPlace(salvage, file, { ...found, salt: found.salt }, end)
      logger.info(facts, lostBytes === 0 ? 'segment recovered' : 'segment recovered without its torn tail')
    } else {
      if (found.hasProvenDamage) await observed?.lost()
      else if (found.tally.frames === 0) await options.beforeForgotten()
      const replaced = await replaceByIntactFrames(salvage, file, orphan, found, options.clock.now() * 1_000)
      bytes = replaced.bytes
      const { quarantine } = replaced
      if (quarantine !== undefined) {
        const { reason, lostRecords } = found
        logger.error({ ...facts, quarantine, reason, lostRecords }, 'damaged segment quarantined, intact frames recovered')
        options.onLost(lostRecords)
      } else
        logger.warn(facts, bytes === undefined ? 'segment without intact frames removed' : 'segment recovered into a new file')
    }
    await close()
    await observer?.beforeSeal()
    if (bytes !== undefined) await files.rename(path, sealedPath)
    await files.syncDirectory(directory)
    return bytes === undefined ? undefined : { logName, seq, incarnation, path: sealedPath, bytes, state: 'sealed' }
  } finally {
    await close()
  }
}

/** Keeps an unsealed file whose segment is sealed. A seal is one rename, so no crash leaves both: somebody brought one of them back. */
async function quarantineCopy({ files, clock, logger }: RecoveryOptions, directory: string, orphan: Orphan): Promise<void> {
  const { logName, seq, path } = orphan
  const reason = 'a sealed segment of the same name exists'
  const quarantine = await keepOriginal(files, clock, path, orphan, { reason, damage: [], lostRecords: 0 })
  await files.remove(path)
  await files.syncDirectory(directory)
  logger.error({ log: logName, seq, path, quarantine, reason }, 'segment quarantined')
}

/**
 * Cuts the torn tail and writes the missing footer. Returns the size of the file. The last group and the footer are written again as they
 * are: if an fdatasync of the last process failed, the kernel believes that they are on disk and syncs only newly written bytes.
 */
async function sealInPlace(
  { clock, copyBufferBytes }: SalvageOptions,
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

/** A file that is too short for a header never had a frame, unless it was cut. It must not hold back what came later. */
async function removeWithoutHeader(options: RecoveryOptions, orphan: Orphan, bytes: number): Promise<void> {
  const { files, clock, logger, observer, onLost, beforeForgotten } = options
  const { logName, seq, path, acknowledged } = orphan
  const lostRecords = acknowledged?.records ?? 0
  if (lostRecords === 0) {
    await beforeForgotten()
    await files.remove(path)
    logger.warn({ log: logName, seq, path, bytes }, 'segment without a complete header removed')
    return
  }
  await observer?.recovering(logName, seq).lost()
  const reason = cutReason(lostRecords)
  const quarantine = await keepOriginal(files, clock, path, orphan, { reason, damage: [{ offset: 0, bytes }], lostRecords })
  await files.remove(path)
  await files.syncDirectory(dirname(path))
  logger.error({ log: logName, seq, path, quarantine, reason, lostRecords }, 'damaged segment quarantined')
  onLost(lostRecords)
}

/** Adds records that were acknowledged and left no hole: the end of the file is gone. */
function withLoss(found: Inspection, { acknowledged }: Orphan): Inspection {
  const records = acknowledged?.records ?? 0
  const missing = records - found.tally.records
  const known = found.hasProvenDamage ? found.lostRecords : 0
  if (found.isIntact || missing <= known) return found
  const reason = found.hasProvenDamage ? `${found.reason}; ${cutReason(records)}` : cutReason(records)
  return { ...found, hasProvenDamage: true, lostRecords: missing, reason }
}

function cutReason(records: number): string {
  return `cut: at least ${records} records were acknowledged`
}

/** A poisoned file must not be synced again, and damage must not be overwritten. */
function canSealInPlace({ isContiguous, hasProvenDamage }: Inspection, { isPoisoned }: Orphan): boolean {
  return isContiguous && !hasProvenDamage && !isPoisoned
}

class OtherVersionError extends Error {
  override readonly name = 'OtherVersionError'
}

/** Says what is wrong and what to do, without the path of the directory: owners of endpoints see it. */
function problemOf(error: unknown, { logName, path, isUnread }: Orphan): string {
  const refused =
    isUnread === true ? '; meanwhile requests with an idempotency key are refused unless they are found elsewhere' : ''
  const file = `later data is stored, but its delivery waits for ${logName}/${basename(path)}, which`
  const moveOut =
    'move it out of the WAL and keep it: later data is then delivered without its records, which `inlet segments cat` prints once the file can be read'
  if (error instanceof OtherVersionError) {
    return `${file} was written by another version of Inlet: start that version, or ${moveOut}${refused}`
  }
  const code = errorCode(error) ?? errorMessage(error)
  if (isDiskFull(error)) return `${file} cannot be recovered (${code}): make room on the disk${refused}`
  return `${file} cannot be recovered (${code}): make it readable and writable, or ${moveOut}${refused}`
}

function closeOnce(file: OpenFile): () => Promise<void> {
  let isOpen = true
  return async () => {
    if (isOpen) await file.close()
    isOpen = false
  }
}
