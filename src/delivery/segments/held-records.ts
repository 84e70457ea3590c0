/**
 * Counts the acknowledged records of segments that are not delivered, so that control knows what is lost with a disk.
 *
 * Owns: the count of each sealed segment, read once from its footer. Does not own: which segments there are (pipeline.ts).
 * Law: no scan waits for it, and it opens a bounded number of segments after each.
 */
import type { Clock } from '#lib/clock.ts'
import { inParallel } from '#lib/in-parallel.ts'
import type { Segment, SegmentRef, SegmentSource } from '#log/segment-source.ts'
import type { ScannedLog } from './scanned-log.ts'

type Listed = { readonly records: ReadonlyMap<string, number>; readonly asOfMs: number }

/** Segments that are opened after one scan. */
const openedMax = 200
const openedParallel = 8

export class HeldRecords {
  readonly #segments: Pick<SegmentSource, 'open' | 'openRecords'>
  /** By the name of the log, then of the segment. */
  #sealed = new Map<string, Map<string, number | null>>()
  readonly #clock: Pick<Clock, 'now'>
  /** Undefined while ingest has not listed its open segments. */
  #open: Listed | undefined
  /** The list before: it still has a segment that was sealed after a scan saw it open. */
  #openBefore: Listed | undefined
  #counting: Promise<void> | undefined

  constructor(segments: Pick<SegmentSource, 'open' | 'openRecords'>, clock: Pick<Clock, 'now'>) {
    this.#segments = segments
    this.#clock = clock
  }

  /** Records that were acknowledged before are counted by `of` (epoch ms), unless it returns null. Undefined while there is no list. */
  get countedAt(): number | undefined {
    const lists = [this.#open, this.#openBefore].filter((list) => list !== undefined)
    return lists.length === 0 ? undefined : Math.min(...lists.map(({ asOfMs }) => asOfMs))
  }

  /** Counts segments that are new, and forgets those that are gone. Never rejects. Does nothing while it still counts. */
  update(logs: readonly Pick<ScannedLog, 'logName' | 'deliverable'>[]): Promise<void> {
    this.#counting ??= this.#update(logs).finally(() => {
      this.#counting = undefined
    })
    return this.#counting
  }

  async #update(logs: readonly Pick<ScannedLog, 'logName' | 'deliverable'>[]): Promise<void> {
    const readAtMs = this.#clock.now()
    const open = await this.#segments.openRecords().catch(() => undefined)
    this.#openBefore = this.#open
    this.#open = open && {
      records: new Map(open.segments.map((segment) => [fullNameOf(segment), segment.records])),
      asOfMs: readAtMs - open.lateMs,
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
  }

  /**
   * Returns the records of a segment; null if they are not counted. One that was just sealed counts as when it was open. One that was opened after
   * the list was written counts from the next list on.
   */
  of(segment: Segment): number | null {
    const name = fullNameOf(segment)
    const listed = this.#open?.records.get(name) ?? this.#openBefore?.records.get(name)
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
