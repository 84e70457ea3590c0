/**
 * Brings what a crash or a failing disk left behind into the form of sealed segments.
 *
 * Owns: the decision what becomes of a file that was never sealed. Does not own: sealed files (their names are enough), new frames.
 * Law: recovery never refuses to start and never guesses. A torn tail is cut; every whole frame is delivered; a file with proven
 * damage is kept as `.quarantine`. Each step can be repeated: a crash in the middle of a recovery is recovered as well.
 */
import { join } from 'node:path'
import type { Clock } from '#lib/clock.ts'
import type { Files, OpenFile } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { SegmentFile } from './directory.ts'
import { readHighWater } from './high-water.ts'
import type { WalLimits } from './limits.ts'
import { type Orphan, poison } from './orphan.ts'
import {
  encodeFooter,
  encodeHeader,
  FOOTER_BYTES,
  HEADER_BYTES,
  parseSegmentName,
  type SegmentIdentity,
  segmentName,
  segmentSalt,
} from './segment-file.ts'
import { type SegmentScanned, scanOpenSegment } from './segment-scan.ts'

export type RecoveryOptions = {
  readonly files: Files
  readonly clock: Clock
  readonly logger: Logger
  readonly limits: WalLimits
}

export type RecoveredLog = {
  /** The highest seq that the directory knows of; -1 for none. */
  readonly lastSeq: number
  readonly sealed: readonly SegmentFile[]
  /** What could not be recovered now, because the disk failed. */
  readonly orphans: readonly Orphan[]
}

/** All that one log's directory holds. Throws only if the directory can't be read. */
export async function recoverLog(options: RecoveryOptions, directory: string, logName: string): Promise<RecoveredLog> {
  const { files, logger } = options
  const names = (await files.list(directory)).filter(({ kind }) => kind === 'file').map(({ name }) => name)
  const highWater = await readHighWater(files, directory)
  if (highWater === 'damaged')
    logger.error({ log: logName }, 'the high-water file is damaged: the seq goes on from the file names')
  let lastSeq = typeof highWater === 'number' ? highWater : -1
  const sealed: SegmentFile[] = []
  const orphans: Orphan[] = []
  for (const name of names.sort()) {
    const parsed = parseSegmentName(name)
    if (parsed !== undefined) lastSeq = Math.max(lastSeq, parsed.seq)
    if (parsed?.suffix === 'salvage' || name.endsWith('.tmp')) {
      await files
        .remove(join(directory, name))
        .catch((error: unknown) => logger.warn({ err: error, name }, 'a leftover could not be removed'))
    } else if (parsed?.suffix === 'open' || parsed?.suffix === 'poisoned') {
      const { seq, incarnation } = parsed
      const path = join(directory, name)
      const orphan = { logName, seq, incarnation, path, isPoisoned: parsed.suffix === 'poisoned' }
      const { segment, retry } = await recoverSegment(options, directory, orphan)
      if (segment !== undefined) sealed.push(segment)
      if (retry !== undefined) orphans.push(retry)
    }
  }
  return { lastSeq, sealed, orphans }
}

export type RecoveredSegment = {
  /** Absent where nothing in the file was whole. */
  readonly segment?: SegmentFile
  /** The disk failed: what to come back with. */
  readonly retry?: Orphan
}

/** Makes a sealed segment of what is whole in the file. */
export async function recoverSegment(options: RecoveryOptions, directory: string, orphan: Orphan): Promise<RecoveredSegment> {
  try {
    const segment = await recover(options, directory, orphan)
    return segment === undefined ? {} : { segment }
  } catch (error) {
    options.logger.error({ err: error, path: orphan.path }, 'a segment could not be recovered; trying again later')
    return { retry: await poison(options.files, options.logger, directory, orphan) }
  }
}

async function recover(options: RecoveryOptions, directory: string, orphan: Orphan): Promise<SegmentFile | undefined> {
  const { files, logger } = options
  const { logName, seq, incarnation, path } = orphan
  const sealedPath = join(directory, segmentName(orphan, 'wal'))
  const sealedBytes = await files.bytes(sealedPath)
  const size = await files.bytes(path)
  if (size === undefined) {
    if (sealedBytes === undefined) return undefined
    await files.syncDirectory(directory)
    return { logName, seq, incarnation, path: sealedPath, bytes: sealedBytes, state: 'sealed' }
  }
  const file = await files.open(path, 'update')
  let isOpen = true
  const close = async () => {
    if (isOpen) await file.close()
    isOpen = false
  }
  try {
    const end = Math.min(size, orphan.durableBytes ?? size)
    const scanned = await scanOpenSegment(file, orphan, end, options.limits)
    if (scanned === 'other version') {
      logger.error(
        { path },
        'segment of another format version left alone: later segments of its log wait until it is moved away',
      )
      return undefined
    }
    const { frames } = scanned.tally
    const facts = { log: logName, seq, path, frames, lostBytes: scanned.lostBytes }
    let bytes = sealedBytes ?? 0
    if (sealedBytes !== undefined || frames === 0) await close()
    else if (!orphan.isPoisoned && scanned.contiguous && !scanned.provenDamage) {
      bytes = await sealInPlace(options, file, orphan, scanned, end)
      await close()
      await files.rename(path, sealedPath)
      await files.syncDirectory(directory)
      logger.info(facts, scanned.lostBytes === 0 ? 'segment recovered' : 'segment recovered; its torn tail was cut')
      return { logName, seq, incarnation, path: sealedPath, bytes, state: 'sealed' }
    } else {
      bytes = await copyWhole(options, file, orphan, scanned, directory, sealedPath)
      await close()
    }
    if (scanned.provenDamage) {
      const quarantine = join(directory, segmentName(orphan, 'quarantine'))
      await files.rename(path, quarantine)
      await files.syncDirectory(directory)
      logger.error({ ...facts, quarantine }, 'segment is damaged: what is whole goes on, the file is kept in quarantine')
    } else {
      await files.remove(path)
      logger.warn(facts, frames === 0 ? 'segment without a whole frame removed' : 'segment recovered into a new file')
    }
    return bytes === 0 ? undefined : { logName, seq, incarnation, path: sealedPath, bytes, state: 'sealed' }
  } finally {
    await close()
  }
}

/**
 * Cuts the torn tail and writes the footer that is missing. Answers the bytes of the file. The last group and the footer are written
 * again as they are: if the process before this one died of a failed fdatasync, the kernel takes them for written, and only bytes that
 * are new to it reach the disk.
 */
async function sealInPlace(
  { clock, limits }: RecoveryOptions,
  file: OpenFile,
  identity: SegmentIdentity,
  { runs, tally, sealed, lastGroupStart }: SegmentScanned,
  end: number,
): Promise<number> {
  const framesEnd = runs.at(-1)?.end ?? HEADER_BYTES
  if (!sealed) await file.truncate(framesEnd)
  await copyBytes(file, { start: lastGroupStart, end: sealed ? end : framesEnd }, file, lastGroupStart, limits.scanBufferBytes)
  if (!sealed) await file.write([encodeFooter(tally.footer(framesEnd, clock.now() * 1_000), segmentSalt(identity))], framesEnd)
  await file.sync()
  return sealed ? end : framesEnd + FOOTER_BYTES
}

/** Copies every whole frame into a new file and seals that. Answers its bytes. */
async function copyWhole(
  { files, clock, limits }: RecoveryOptions,
  from: OpenFile,
  identity: SegmentIdentity,
  { runs, tally, createdAtMicros }: SegmentScanned,
  directory: string,
  sealedPath: string,
): Promise<number> {
  const path = join(directory, segmentName(identity, 'salvage'))
  await files.remove(path)
  const file = await files.open(path, 'create')
  let at = HEADER_BYTES
  try {
    const first = tally.footer(0, 0).firstReceivedAtMicros
    const { logName, seq, incarnation } = identity
    await file.write([encodeHeader({ logName, seq, incarnation, createdAtMicros: createdAtMicros ?? first })], 0)
    for (const run of runs) at = await copyBytes(from, run, file, at, limits.scanBufferBytes)
    const footer = encodeFooter(tally.footer(at, clock.now() * 1_000), segmentSalt(identity))
    await file.write([footer], at)
    at += footer.byteLength
    await file.sync()
  } catch (error) {
    await file.close()
    await files.remove(path).catch(() => undefined)
    throw error
  }
  await file.close()
  await files.rename(path, sealedPath)
  await files.syncDirectory(directory)
  return at
}

/** Answers where the copy ends. */
async function copyBytes(
  from: OpenFile,
  { start, end }: { readonly start: number; readonly end: number },
  to: OpenFile,
  position: number,
  bufferBytes: number,
): Promise<number> {
  const buffer = new Uint8Array(Math.min(bufferBytes, end - start))
  let at = position
  for (let reading = start; reading < end; ) {
    const got = await from.read(buffer.subarray(0, Math.min(buffer.byteLength, end - reading)), reading)
    if (got === 0) throw new Error(`${from.path} ended while it was copied`)
    await to.write([buffer.subarray(0, got)], at)
    reading += got
    at += got
  }
  return at
}
