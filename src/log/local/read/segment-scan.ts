/**
 * Reads what is intact of a segment file of any kind, for people and for jobs: plain or zstd, sealed or not, damaged or not.
 *
 * Owns: the report of what is damaged. Does not own: what is delivered (segment-reader.ts, which trusts less).
 * Law: frames() ends without an error only if the segment is sealed and intact.
 */
import { Buffer } from 'node:buffer'
import { basename, dirname } from 'node:path'
import type { Files, OpenFile } from '#lib/files.ts'
import type { Frame } from '../../frame.ts'
import { SegmentError } from '../../segment-error.ts'
import type { SegmentRef } from '../../segment-source.ts'
import type { Salt } from '../format/frame.ts'
import { computeSalt, readSaltKey } from '../format/salt-key.ts'
import {
  claimedSalt,
  decodeFooter,
  FOOTER_BYTES,
  type FooterRecord,
  HEADER_BYTES,
  isLogName,
  parseSegmentName,
  type SegmentFooter,
} from '../format/segment-file.ts'
import { SegmentTally } from '../format/segment-tally.ts'
import { isZstd, plainSource, zstdSource } from './byte-source.ts'
import { type Damage, scanFrames } from './frame-scan.ts'
import { intactFrames, readHeader } from './segment-reader.ts'

export interface SegmentScan {
  readonly header: SegmentRef & {
    /** Undefined if the header is damaged. The rest is from the name of the file then. */
    readonly createdAtMicros: number | undefined
  }
  /** Defined once frames() has ended without an error. */
  footer(): SegmentFooter | undefined
  /**
   * Yields the intact frames like SegmentReader.frames. A plain file is read on behind damage, and SegmentError comes at the end with each
   * damaged place. In a zstd file it comes at the first damage.
   */
  frames(bufferBytesMax: number): AsyncIterable<readonly Frame[]>
  close(): Promise<void>
}

/** Opens a segment file, to be read once from its start. Throws SegmentError if it is not one, or if nothing of it can be read. */
export async function scanSegment(files: Files, path: string): Promise<SegmentScan> {
  const file = await files.open(path, 'read')
  try {
    return (await isZstd(file)) ? await scanZstd(file) : await scanPlain(files, file)
  } catch (error) {
    await file.close()
    throw error
  }
}

async function scanZstd(file: OpenFile): Promise<SegmentScan> {
  const source = zstdSource(file)
  try {
    const header = await readHeader(file.path, source)
    let footer: SegmentFooter | undefined
    return {
      header,
      footer: () => footer,
      async *frames(bufferBytesMax) {
        footer = yield* intactFrames(file.path, source, header, bufferBytesMax, undefined)
      },
      async close() {
        await source.close()
        await file.close()
      },
    }
  } catch (error) {
    await source.close()
    throw error
  }
}

async function scanPlain(files: Files, file: OpenFile): Promise<SegmentScan> {
  const damage: Damage[] = []
  const header = await readHeader(file.path, plainSource(file, 0)).catch(async (error: unknown) => {
    const isDamaged = error instanceof SegmentError && error.offset === 0 && (await file.bytes()) >= HEADER_BYTES
    const found = isDamaged ? await findLostHeader(files, file) : undefined
    if (found === undefined) throw error
    damage.push({ offset: 0, bytes: HEADER_BYTES })
    return found
  })
  let footer: SegmentFooter | undefined
  return {
    header,
    footer: () => footer,
    async *frames(bufferBytesMax) {
      footer = yield* allFrames(file, header.salt, damage, bufferBytesMax)
    },
    close: () => file.close(),
  }
}

async function* allFrames(
  file: OpenFile,
  salt: Salt,
  damage: readonly Damage[],
  bufferBytesMax: number,
): AsyncGenerator<readonly Frame[], FooterRecord> {
  const places = [...damage]
  const tally = new SegmentTally(salt)
  let footer: FooterRecord | undefined
  const end = await file.bytes()
  for await (const found of scanFrames(file, { salt, end, bufferBytesMax })) {
    if (found.kind === 'damage') places.push({ offset: found.offset, bytes: found.bytes })
    else if (found.kind === 'frames') {
      for (const { frame, crc } of found.frames) tally.add(frame, frame.payload.byteLength, crc)
      yield found.frames.map(({ frame }) => frame)
    } else {
      footer = found.footer
      if (places.length === 0 && !tally.matches(footer, found.offset)) {
        throw new SegmentError(file.path, 'damaged', found.offset, 'is damaged: the footer does not match the frames before it')
      }
    }
  }
  const [first, second] = places
  const isTorn = first !== undefined && first.offset > 0 && second === undefined && first.offset + first.bytes === end
  if (first !== undefined && (footer !== undefined || !isTorn)) {
    throw new SegmentError(file.path, 'damaged', first.offset, `is damaged at ${describe(places)}`)
  }
  if (footer === undefined) {
    const torn = first === undefined ? '' : `, and ends inside the frame that starts at byte ${first.offset}`
    const message = `has no footer after its ${tally.frames} intact frames${torn}`
    throw new SegmentError(file.path, 'unsealed', first?.offset ?? end, message)
  }
  return footer
}

const PLACES_SHOWN = 20

function describe(places: readonly Damage[]): string {
  const shown = places.slice(0, PLACES_SHOWN).map(({ offset, bytes }) => `byte ${offset} (${bytes} bytes)`)
  return places.length > PLACES_SHOWN ? `${shown.join(', ')} and ${places.length - PLACES_SHOWN} more places` : shown.join(', ')
}

/**
 * Returns what is known of a segment whose header is damaged: its identity by its name, and its salt by the key of the WAL directory that it
 * is in, or else by its footer. A client can forge a footer at the end of a file that was cut. A person is told of the damage.
 */
async function findLostHeader(
  files: Files,
  file: OpenFile,
): Promise<(SegmentRef & { readonly salt: Salt; readonly createdAtMicros: undefined }) | undefined> {
  const directory = dirname(file.path)
  const name = parseSegmentName(basename(file.path))
  const logName = basename(directory)
  if (name === undefined || !isLogName(logName)) return undefined
  const identity = { logName, seq: name.seq, incarnation: name.incarnation }
  const key = await readSaltKey(files, dirname(directory))
  const salt = key === undefined ? await footerSalt(file) : computeSalt(key.secret, identity)
  return salt === undefined ? undefined : { ...identity, salt, createdAtMicros: undefined }
}

async function footerSalt(file: OpenFile): Promise<Salt | undefined> {
  const bytes = Buffer.alloc(FOOTER_BYTES)
  await file.read(bytes, Math.max((await file.bytes()) - FOOTER_BYTES, 0))
  const salt = claimedSalt(bytes, 0)
  return salt !== undefined && decodeFooter(bytes, 0, salt) !== undefined ? salt : undefined
}
