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
    let now: number | undefined = isUnlisted === true ? undefined : scannedAtMs
    for (const segment of deliverable) {
      const asOfMs = this.#find(segment)?.asOfMs
      now = now === undefined || asOfMs === undefined ? undefined : Math.min(now, asOfMs)
    }
    const countedAt = now === undefined ? before : Math.max(now, before ?? now)
    return countedAt === undefined ? [] : [[logName, countedAt]]
  }

  /**
   * Returns the records of a segment; null if they are not counted. One that was just sealed counts as when it was open. One that was opened after
   * the list was written counts from the next list on.
   */
  of(segment: Segment): number | null {
    return this.#find(segment)?.records ?? null
  }

  /** `asOfMs`: records that were acknowledged before are counted; without an end if that is all of the segment, as the scan measured it. */
  #find(segment: Segment): { readonly records: number; readonly asOfMs: number } | undefined {
    const { state, logName, bytes } = segment
    const isSealed = state === 'sealed'
    const records = isSealed ? this.#sealed.get(logName)?.get(nameOf(segment)) : undefined
    if (typeof records === 'number') return { records, asOfMs: Number.POSITIVE_INFINITY }
    if (!isSealed && this.#open === undefined) return undefined
    const name = fullNameOf(segment)
    const listed = this.#open?.segments.get(name) ?? this.#openBefore?.segments.get(name)
    if (listed !== undefined)
      return { records: listed.records, asOfMs: listed.bytes >= bytes ? Number.POSITIVE_INFINITY : listed.asOfMs }
    if (isSealed || this.#open === undefined) return undefined
    return { records: 0, asOfMs: Math.min(this.#open.atMs, this.#openBefore?.atMs ?? this.#open.atMs) }
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
