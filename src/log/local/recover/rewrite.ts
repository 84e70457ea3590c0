/**
 * Writes a segment again whose file lost its name while it was being written: somebody removed it, or replaced its directory. The bytes
 * can still be read through the open descriptor, and would be gone with it.
 *
 * Law: the segment keeps its identity, so its frames have the seq that they were acknowledged with. After a failure it can be repeated.
 */
import { dirname, join } from 'node:path'
import { copyBytes, type Files, type OpenFile } from '#lib/files.ts'
import type { SegmentRef } from '../../segment-source.ts'
import { segmentName } from '../format/segment-file.ts'

const COPY_BYTES = 1024 * 1024

export type Unlinked = {
  readonly file: OpenFile
  readonly identity: SegmentRef
  /** Everything before it is copied: the header and all durable frames. */
  readonly framesEnd: number
  readonly footer: Uint8Array
}

/** Writes the sealed segment as `path`, durably. Returns its size. */
export async function rescueSegment(
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
