/**
 * The segments that are being written, and how much of each is durable, in one file for all logs: `open-segments` in the WAL directory.
 *
 * Owns: that file. Does not own: what a recovery does about a segment that is missing or shorter (recovery.ts).
 * Law: each list has a higher round than the one before. `high-water` names the segment that its log opened last, with the round of the list
 * at that time: if the round of the list is still the same, the segment was opened later than the list. A segment that ends without a trace,
 * because nothing in it was acknowledged, ends only after a newer list. So a segment that is in the list, or was opened later, and of which no
 * file is left, was delivered or is lost.
 */
import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { Clock } from '#lib/clock.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import type { OpenCounts, SegmentRef } from '../../segment-source.ts'
import type { HighWater } from '../format/high-water.ts'
import { isSameSegment } from '../format/segment-file.ts'

export const openSegmentsName = 'open-segments'

/** A lower bound, unless `isFinal`: what was appended after the list was written is not in it. */
export type NotedSegment = SegmentRef & { readonly bytes: number; readonly records: number; readonly isFinal?: boolean }

export type OpenSegmentsOptions = {
  readonly directory: string
  readonly files: Files
  readonly clock: Clock
  /** Returns the segments that are being written, those without a frame and those that are being opened included. */
  readonly current: () => Iterable<NotedSegment>
  /** Returns those that an earlier process left, and that are not recovered yet. */
  readonly left: () => Iterable<NotedSegment>
}

/** The list is written so often at most, and less often if it is long: at most so many bytes a second. */
const intervalMsMin = 1_000
const bytesPerMs = 64
/** Between two lists, at least. */
const restMsOf = (characters: number) => Math.max(intervalMsMin, characters / bytesPerMs)

export class OpenSegments {
  readonly #options: OpenSegmentsOptions
  #round = 0
  #roundBefore = 0
  #written: string | undefined
  #writtenAtMs = Number.NEGATIVE_INFINITY
  #writing: Promise<void> = Promise.resolve()
  /** Undefined without a list that can be read. */
  #before: ReadonlyMap<string, readonly NotedSegment[]> | undefined
  /** As of when the list of the earlier process was; undefined if it does not say so. */
  #beforeAtMs: number | undefined

  constructor(options: OpenSegmentsOptions) {
    this.#options = options
  }

  get round(): number {
    return this.#round
  }

  /** Whether the earlier process left a list that can be read. */
  get wasListed(): boolean {
    return this.#before !== undefined
  }

  /** Reads what an earlier process left. */
  async load(): Promise<void> {
    const { directory, files, clock } = this.#options
    const bytes = await files.read(join(directory, openSegmentsName)).catch(() => undefined)
    const list = bytes === undefined ? undefined : parseList(bytes)
    this.#before = list && Map.groupBy(list.segments, ({ logName }) => logName)
    // The oldest lines come first.
    const [oldest] = list?.segments ?? []
    this.#beforeAtMs = oldest === undefined ? list?.atMs : oldest.asOfMs
    // Without a list, a round that none before had.
    this.#round = list?.round ?? Math.floor(clock.now())
    this.#roundBefore = this.#round
  }

  /** The logs that had an open segment when the earlier process wrote its last list. */
  logNames(): readonly string[] {
    return [...(this.#before?.keys() ?? [])]
  }

  /** Returns the segments of the log that the earlier process may not have sealed. */
  leftOpen(logName: string, highWater: HighWater | undefined): readonly NotedSegment[] {
    if (this.#before === undefined) return []
    const noted = this.#before.get(logName) ?? []
    const opened = highWater?.opened
    if (highWater === undefined || opened === undefined || opened.round < this.#roundBefore) return noted
    const last = { logName, incarnation: opened.incarnation, seq: highWater.seq, bytes: 0, records: 0 }
    return noted.some((segment) => isSameSegment(segment, last)) ? noted : [...noted, last]
  }

  /** Writes the list if it has changed and it is time for it. */
  async refresh(): Promise<void> {
    const { clock } = this.#options
    const { left, current } = this.#lines()
    const lines = left + current
    if (lines === this.#written) return
    if (clock.monotonic() - this.#writtenAtMs < restMsOf(lines.length)) return
    await this.write()
  }

  /** Writes the list with a new round. One at a time. */
  write(): Promise<void> {
    const writing = this.#writing.then(() => this.#write())
    this.#writing = writing.catch(() => undefined)
    return writing
  }

  async #write(): Promise<void> {
    const { directory, files, clock } = this.#options
    // A directory that is away for a while must not be created anew in its place.
    if (this.#written !== undefined && (await files.list(directory)).length === 0) throw new Error(`${directory} is away`)
    // Before the list is taken: a segment that is opened from now on has this round.
    this.#round += 1
    const { left, current } = this.#lines()
    const text = left + timeLine(clock.now()) + current
    await writeDurably(files, join(directory, openSegmentsName), Buffer.from(`${this.#round} ${checksumOf(text)}\n${text}`))
    this.#written = left + current
    this.#writtenAtMs = clock.monotonic()
  }

  /** A time is that of the lines below it. Lower bounds of an earlier process come first, without a time if its list had none. */
  #lines(): { readonly left: string; readonly current: string } {
    const { left = [], exact = [] } = Object.groupBy(this.#options.left(), ({ isFinal }) => (isFinal ? 'exact' : 'left'))
    const since = left.length === 0 || this.#beforeAtMs === undefined ? '' : timeLine(this.#beforeAtMs)
    return { left: since + toLines(left), current: toLines(this.#options.current()) + toLines(exact) }
  }
}

/** Returns the segments of the last list; undefined without one that can be read, or that says as of when it is. */
export async function readOpenSegments(files: Files, directory: string): Promise<OpenCounts | undefined> {
  const bytes = await files.read(join(directory, openSegmentsName)).catch(() => undefined)
  const list = bytes === undefined ? undefined : parseList(bytes)
  if (list?.atMs === undefined) return undefined
  const segments = list.segments.flatMap(({ asOfMs, ...segment }) => (asOfMs === undefined ? [] : [{ ...segment, asOfMs }]))
  return segments.length === list.segments.length ? { segments, atMs: list.atMs } : undefined
}

function toLines(segments: Iterable<NotedSegment>): string {
  let text = ''
  for (const { logName, seq, incarnation, bytes, records, isFinal } of segments)
    text += `${logName} ${seq} ${incarnation} ${bytes} ${records}${isFinal ? ' final' : ''}\n`
  return text
}

function timeLine(ms: number): string {
  return `at ${Math.floor(ms)}\n`
}

function checksumOf(text: string): string {
  return crc32(text).toString(16).padStart(8, '0')
}

const number = String.raw`(\d{1,15})`
const head = new RegExp(`^${number} ([0-9a-f]{8})\n`)
const time = new RegExp(`^at ${number}$`)
const line = new RegExp(`^([\\w-]+) ${number} ([a-z0-9]{10}) ${number} ${number}( final)?$`)

type List = {
  readonly round: number
  readonly segments: readonly (NotedSegment & { readonly asOfMs: number | undefined })[]
  /** As of when the list is; undefined in one of an earlier release. */
  readonly atMs: number | undefined
}

/** Returns undefined for a list that is damaged. */
function parseList(bytes: Uint8Array): List | undefined {
  const content = Buffer.from(bytes).toString('latin1')
  const [start = '', round, checksum] = head.exec(content) ?? []
  const text = content.slice(start.length)
  if (round === undefined || checksum !== checksumOf(text)) return undefined
  let asOfMs: number | undefined
  const segments = text.split('\n').flatMap((row): List['segments'] => {
    const at = time.exec(row)?.[1]
    if (at !== undefined) asOfMs = Number(at)
    const [, logName, seq, incarnation, size, records, final] = line.exec(row) ?? []
    if (logName === undefined || incarnation === undefined) return []
    const noted = { logName, seq: Number(seq), incarnation, bytes: Number(size), records: Number(records) }
    return [{ ...noted, isFinal: final !== undefined, asOfMs }]
  })
  return { round: Number(round), segments, atMs: asOfMs }
}
