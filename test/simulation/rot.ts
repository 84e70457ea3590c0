/**
 * Bits of files that flip, and what they can have taken.
 *
 * Owns: where a bit may flip. Does not own: when.
 * Law: damage falls where the product promises to repair it, to refuse it, or to count it. So a file that is not sealed is damaged only in front
 * of something that proves the damage: the last group of a segment could be the torn one of a crash. And where the header of a segment is
 * damaged, the key of salts is not.
 */
import type { Frame as LogFrame } from '#log/frame.ts'
import { decodeFrame } from '#log/local/format/frame.ts'
import { decodeFooter, decodeHeader, FOOTER_BYTES, HEADER_BYTES, parseSegmentName } from '#log/local/format/segment-file.ts'
import type { Draw } from './kernel.ts'

/** Content as it was written, and as much of it as is durable. */
export type Rotting = {
  readonly content: Buffer
  readonly durable: Buffer
  /** By offset: the bits that are not as they were written. */
  readonly flips: Map<number, number>
  /** Where parts begin that were damaged, also by a misread. */
  readonly damaged: Set<number>
  /** How many it has. */
  readonly names: number
}

/** Losses that the damage of one segment can explain. */
export type Taken = {
  /** By id: how often the segment has it. A client that sends again without a key stores a record twice. */
  readonly records: Map<string, number>
  /** How many records are in rows or counted as damaged. Undefined if the footer does not tell any more. */
  total: number | undefined
}

const mergedFile = /\/scratch\/merged\//

/** Small files that may be damaged at any place, and those that are not, with the reason. */
const spared: readonly (readonly [pattern: RegExp, why: string])[] = [
  [/\/adoption$/, 'it has no checksum: an id with a flipped bit is another id, and files of it stay without a marker'],
  [/\/marker-key\b/, 'delivery refuses a damaged one until a person restores it'],
  [/\.quarantine(\.json)?$/, 'for people: nothing is delivered from it'],
  [mergedFile, 'units read a few rows of it: to check all of it again for each would take longer than the unit'],
]

/** A page of a download that is misread stays in memory, where the check after its use finds it. Here each read is one of its own. */
const neverMisread = /\/scratch\/job-[^/]+\/(\d+\.parquet|source)$/
/** It may be another name of a merged file. */
const source = /\/scratch\/job-[^/]+\/source$/

export class Rot {
  /** Files of which a bit flipped or was misread. */
  readonly paths = new Set<string>()
  /** By the name of the segment: its endpoint, seq and incarnation. */
  readonly taken = new Map<string, Taken>()
  /** Whether the id of the node has its copy beside the log. Before, a damaged id is simply another one. */
  areIdsKept = false
  readonly #takesKey: boolean

  constructor(draw: Draw) {
    this.#takesKey = draw.chance(0.3)
  }

  /** Knows what another one knows, of a disk that was copied. */
  copyTo(other: Rot): void {
    for (const [segment, { records, total }] of this.taken) other.taken.set(segment, { records: new Map(records), total })
    for (const path of this.paths) other.paths.add(path)
    other.areIdsKept = this.areIdsKept
  }

  /** Whether a bit of the file may flip here. If so, what that can take is known from then on. */
  mayFlip(path: string, file: Rotting, offset: number): boolean {
    const mayFlip = this.#mayFlip(path, file, offset)
    if (mayFlip) this.paths.add(path)
    return mayFlip
  }

  /** Whether a bit may be another one in a single read. */
  mayMisread(path: string, file: Rotting, offset: number): boolean {
    return !neverMisread.test(path) && this.mayFlip(path, file, offset)
  }

  #mayFlip(path: string, file: Rotting, offset: number): boolean {
    const [name = '', logName = ''] = path.split('/').toReversed()
    if (spared.some(([pattern]) => pattern.test(path)) || (source.test(path) && file.names > 1)) return false
    if (name.startsWith('salt-key')) return this.#takesKey
    // Never at one place of both: with the same bit the two would agree.
    if (/^(node-)?id\b/.test(name)) return this.areIdsKept && offset % 2 === Number(name.startsWith('node'))
    const parsed = parseSegmentName(name)
    if (parsed === undefined) return true
    if (parsed.suffix === 'quarantine') return false
    const layout = readLayout(file)
    const part = layout?.parts.find(({ start, end }) => start <= offset && offset < end)
    if (layout === undefined || part === undefined || (part.kind === 'header' && this.#takesKey)) return false
    const isSealed = parsed.suffix === 'wal' || parsed.suffix === 'salvage'
    if (isSealed ? layout.total === undefined : !isProven(layout, file, part)) return false
    file.damaged.add(part.start)
    const segment = `${logName}/${parsed.seq}-${parsed.incarnation}`
    const known = this.taken.get(segment)
    const taken = known ?? { records: new Map(), total: layout.total }
    this.taken.set(segment, taken)
    if (part.kind === 'footer' || !isSealed) taken.total = undefined
    for (const id of part.ids) {
      const copies = layout.parts.filter(({ ids }) => ids.includes(id)).length
      taken.records.set(id, Math.max(copies, taken.records.get(id) ?? 0))
    }
    return true
  }
}

type Part = {
  readonly kind: 'header' | 'frame' | 'footer'
  readonly start: number
  readonly end: number
  readonly startsGroup: boolean
  readonly ids: readonly string[]
}

/** `total`: how many records the footer has, lost ones included. Undefined without a footer. */
type Layout = { readonly parts: readonly Part[]; readonly total: number | undefined }

/** Returns the parts of a segment. Undefined if it was damaged when it was copied. */
function readLayout({ content }: Rotting): Layout | undefined {
  const header = decodeHeader(content)
  if (typeof header === 'string') return undefined
  const parts: Part[] = [{ kind: 'header', start: 0, end: HEADER_BYTES, startsGroup: false, ids: [] }]
  for (let at = HEADER_BYTES; ; ) {
    const decoded = decodeFrame(content, at, header.salt)
    if (typeof decoded === 'string') {
      const footer = decodeFooter(content, at, header.salt)
      if (footer === undefined) return { parts, total: undefined }
      parts.push({ kind: 'footer', start: at, end: at + FOOTER_BYTES, startsGroup: false, ids: [] })
      return { parts, total: footer.records + footer.damagedRecords }
    }
    const end = at + decoded.bytes
    parts.push({ kind: 'frame', start: at, end, startsGroup: decoded.startsGroup, ids: idsOf(decoded.frame) })
    at = end
  }
}

function idsOf({ payload }: LogFrame): readonly string[] {
  return [
    ...Buffer.from(payload)
      .toString('latin1')
      .matchAll(/"id":"([^"]+)"/g),
  ].map(([, id = '']) => id)
}

/** Whether something durable and intact behind all damage proves that this was durable. */
function isProven({ parts }: Layout, { content, durable, damaged }: Rotting, part: Part): boolean {
  const last = Math.max(part.start, ...damaged)
  return parts.some(
    ({ kind, start, end, startsGroup }) =>
      (startsGroup || kind === 'footer') &&
      start > Math.max(last, HEADER_BYTES) &&
      durable.subarray(start, end).equals(content.subarray(start, end)),
  )
}
