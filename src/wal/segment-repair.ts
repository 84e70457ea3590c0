/** Turns the intact frames of a segment file that was never sealed into a sealed file. */
import { join } from 'node:path'
import type { Clock } from '#lib/clock.ts'
import type { Files, OpenFile } from '#lib/files.ts'
import type { WalLimits } from './limits.ts'
import {
  encodeFooter,
  encodeHeader,
  FOOTER_BYTES,
  HEADER_BYTES,
  type SegmentIdentity,
  segmentName,
  segmentSalt,
} from './segment-file.ts'
import type { SegmentScanned } from './segment-scan.ts'

type RepairOptions = { readonly files: Files; readonly clock: Clock; readonly limits: WalLimits }

/**
 * Cuts the torn tail and writes the missing footer. Returns the size of the file. The last group and the footer are written again as they
 * are: if an fdatasync of the last process failed, the kernel believes that they are on disk and syncs only newly written bytes.
 */
export async function sealInPlace(
  { clock, limits }: RepairOptions,
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

/** Copies every intact frame into a new file and seals that as `sealedPath`. Returns its size. */
export async function copyIntactFrames(
  { files, clock, limits }: RepairOptions,
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

/** Returns where the copy ends. */
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
    if (got === 0) throw new Error(`${from.path} ended while it was being copied`)
    await to.write([buffer.subarray(0, got)], at)
    reading += got
    at += got
  }
  return at
}
