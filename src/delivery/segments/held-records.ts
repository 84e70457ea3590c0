/**
 * Counts the acknowledged records of segments that are not delivered, so that control knows what is lost with a disk.
 *
 * Owns: the count of each sealed segment, read once from its footer. Does not own: which segments there are (pipeline.ts).
 * Law: no scan waits for it, and it opens a bounded number of segments after each.
 */
import { inParallel } from '#lib/in-parallel.ts'
import type { OpenRecords, Segment, SegmentRef, SegmentSource } from '#log/segment-source.ts'
import type { ScannedLog } from './scanned-log.ts'

type Listed = { readonly segments: ReadonlyMap<string, OpenRecords>; readonly atMs: number }
type Counted = Pick<ScannedLog, 'logName' | 'deliverable' | 'countedAt' | 'isUnlisted'>

/** Segments that are opened after one scan. */
const openedMax = 200
const openedParallel = 8

export class HeldRecords {
  readonly #segments: Pick<SegmentSource, 'open' | 'openRecords'>
  /** By the name of the log, then of the segment. */
  #sealed = new Map<string, Map<string, number | null>>()
  /** Undefined while ingest has not listed its open segments. */
  #open: Listed | undefined
  /** The list before: it still has a segment that was sealed after a scan saw it open. */
  #openBefore: Listed | undefined
  /** By the name of the log. Counts only grow, so what was true of a time stays true. */
  #countedAt: ReadonlyMap<string, number> = new Map()
  #scannedAtMs: number | undefined
  #counting: Promise<void> | undefined

  constructor(segments: Pick<SegmentSource, 'open' | 'openRecords'>) {
    this.#segments = segments
  }

  /** Records of the log that were acknowledged before are counted by `of` (epoch ms), unless it returns null. Undefined before the first update. */
  countedAt(logName: string): number | undefined {
    // A log that is new has nothing from before.
    return this.#countedAt.get(logName) ?? this.#scannedAtMs
  }

  /**
   * Counts segments that are new, and forgets those that are gone. `scannedAtMs`: when the scan began that found them (epoch ms). Never rejects. Does
   * nothing while it still counts.
   */
  update(logs: readonly Counted[], scannedAtMs: number): Promise<void> {
    this.#counting ??= this.#update(logs, scannedAtMs).finally(() => {
      this.#counting = undefined
    })
    return this.#counting
  }

  async #update(logs: readonly Counted[], scannedAtMs: number): Promise<void> {
    const open = await this.#segments.openRecords().catch(() => undefined)
    this.#openBefore = this.#open
    this.#open = open && {
      segments: new Map(open.segments.map((segment) => [fullNameOf(segment), segment])),
      atMs: open.atMs,
    }
    const before = this.#sealed
    this.#sealed = new Map()
    const isNew: Segment[] = []
    for (const { logName, deliverable } of logs) {
      const known = before.get(logName)
      const counts = new Map<string, number | null>()
      for (const segment of deliverable) {
        const count = known?.get(nameOf(segment))
        if (count !== undefined) counts.set(nameOf(segment), count)
        else if (segment.state === 'sealed' && isNew.length < openedMax) isNew.push(segment)
      }
      if (deliverable.length > 0) this.#sealed.set(logName, counts)
    }
    await inParallel(openedParallel, isNew, async (segment) => {
      this.#sealed.get(segment.logName)?.set(nameOf(segment), await this.#count(segment))
    })
    this.#countedAt = new Map(logs.flatMap((log) => this.#nextCountedAt(log, log.countedAt ?? scannedAtMs)))
    this.#scannedAtMs = scannedAtMs
  }

  #nextCountedAt({ logName, deliverable, isUnlisted }: Counted, scannedAtMs: number): [string, number][] {
    const before = this.#countedAt.get(logName)
    const isCounted = isUnlisted !== true && deliverable.every((segment) => this.of(segment) !== null)
    if (!isCounted) return before === undefined ? [] : [[logName, before]]
    const now = deliverable.reduce((least, segment) => Math.min(least, this.#asOf(segment)), scannedAtMs)
    return [[logName, Math.max(now, before ?? now)]]
  }

  /** As of when `of` counts the segment: as of the scan that measured its bytes, if not earlier. */
  #asOf(segment: Segment): number {
    const { state, logName, bytes } = segment
    if (state === 'sealed' && this.#sealed.get(logName)?.get(nameOf(segment)) !== undefined) return Number.POSITIVE_INFINITY
    const listed = this.#listed(segment)
    if (listed !== undefined) return listed.bytes >= bytes ? Number.POSITIVE_INFINITY : listed.asOfMs
    return Math.min(...[this.#open, this.#openBefore].flatMap((list) => list?.atMs ?? []))
  }

  #listed(segment: SegmentRef): OpenRecords | undefined {
    const name = fullNameOf(segment)
    return this.#open?.segments.get(name) ?? this.#openBefore?.segments.get(name)
  }

  /**
   * Returns the records of a segment; null if they are not counted. One that was just sealed counts as when it was open. One that was opened after
   * the list was written counts from the next list on.
   */
  of(segment: Segment): number | null {
    const listed = this.#listed(segment)?.records
    if (segment.state === 'sealed') return this.#sealed.get(segment.logName)?.get(nameOf(segment)) ?? listed ?? null
    return this.#open === undefined ? null : (listed ?? 0)
  }

  /** Returns null for one that cannot be read: delivery says so by itself. */
  async #count(segment: Segment): Promise<number | null> {
    try {
      const opened = await this.#segments.open(segment)
      await opened.close()
      return opened.footer.records
    } catch {
      return null
    }
  }
}

function nameOf({ seq, incarnation }: SegmentRef): string {
  return `${seq}-${incarnation}`
}

function fullNameOf(segment: SegmentRef): string {
  return `${segment.logName}/${nameOf(segment)}`
}
