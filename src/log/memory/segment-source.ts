/** Reads the segments of logs in memory. Another process cannot open them. */
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import type { Frame } from '../frame.ts'
import { SegmentError } from '../segment-error.ts'
import type {
  HighestSeq,
  LogListing,
  OpenCounts,
  QuarantineNote,
  Salvage,
  SegmentReader,
  SegmentRef,
  SegmentSource,
} from '../segment-source.ts'
import { frameBytes, frameChunks, type MemoryStorage, type StoredSegment } from './storage.ts'

export class MemorySegmentSource implements SegmentSource {
  readonly location = 'memory'
  readonly #storage: MemoryStorage
  readonly #clock: Clock

  constructor(storage: MemoryStorage, clock: Clock) {
    this.#storage = storage
    this.#clock = clock
  }

  async logNames(): Promise<readonly string[]> {
    return [...this.#storage.logs.keys()].sort()
  }

  async readLog(logName: string): Promise<LogListing> {
    const { isClosed = false, segments = [] } = this.#storage.logs.get(logName) ?? {}
    const listed = segments.map(({ seq, incarnation, state, bytes }) => ({ logName, seq, incarnation, state, bytes }))
    const order = (a: SegmentRef, b: SegmentRef) => a.seq - b.seq || (a.incarnation < b.incarnation ? -1 : 1)
    return { logName, isClosed, segments: listed.sort(order) }
  }

  async open(ref: SegmentRef): Promise<SegmentReader> {
    const segment = this.#get(ref)
    const { frames, sealedAtMicros, damagedRecords, bytes } = segment
    return {
      header: ref,
      footer: {
        records: recordsOf(frames),
        firstReceivedAtMicros: frames[0]?.receivedAtMicros ?? sealedAtMicros,
        sealedAtMicros,
        damagedRecords,
      },
      ...{ bytes, framesEnd: bytes },
      async *frames() {
        for (const frame of frames) {
          if (segment.damaged.has(frame)) throw damageOf(segment)
          yield [frame]
        }
      },
      async *content() {
        for (const frame of frames) yield* frameChunks(frame)
      },
      close: () => Promise.resolve(),
    }
  }

  filesOf(): readonly string[] {
    return []
  }

  async has(ref: SegmentRef): Promise<boolean> {
    return this.#storage.find(ref, 'sealed') !== undefined
  }

  async salvage(ref: SegmentRef): Promise<Salvage> {
    const original = this.#storage.find(ref, 'quarantined')
    const segment = original !== undefined && !(await this.has(ref)) ? original : this.#get(ref)
    if (segment.state === 'sealed' && segment.damaged.size === 0) return { outcome: 'intact' }
    const intact = segment.frames.filter((frame) => !segment.damaged.has(frame))
    const recordsLost = recordsOf([...segment.damaged])
    const reason = 'frames are damaged'
    if (segment.state === 'sealed' && intact.length > 0) {
      this.#storage
        .log(ref.logName)
        .segments.push({ ...segment, frames: intact, damaged: new Set(), damagedRecords: recordsLost })
      this.#storage.resize(ref.logName, segment.bytes)
    }
    this.#keep(segment, { reason, records_lost: recordsLost })
    return { outcome: intact.length > 0 ? 'salvaged' : 'quarantined', recordsLost, reason, quarantine: nameOf(segment) }
  }

  async remove(ref: SegmentRef): Promise<void> {
    const segment = this.#storage.find(ref, 'sealed')
    if (segment !== undefined) this.#storage.remove(segment)
  }

  async quarantine(ref: SegmentRef, reason: string): Promise<string> {
    const segment = this.#storage.find(ref, 'sealed') ?? this.#storage.find(ref, 'quarantined')
    if (segment === undefined) throw new Error(`there is no segment ${nameOf(ref)}`)
    this.#keep(segment, { reason, records_lost: 0 })
    return nameOf(segment)
  }

  async quarantineNote(ref: SegmentRef): Promise<QuarantineNote | undefined> {
    return this.#storage.find(ref, 'quarantined')?.note
  }

  async highestSeq(logName: string): Promise<HighestSeq> {
    const seq = this.#storage.logs.get(logName)?.highestSeq ?? -1
    return seq < 0 ? {} : { seq }
  }

  async openRecords(): Promise<OpenCounts> {
    const segments = [...this.#storage.logs.values()].flatMap((log) => log.segments)
    const atMs = this.#clock.now()
    const open = segments.flatMap(({ logName, seq, incarnation, state, bytes, frames }) =>
      state === 'open' ? [{ logName, seq, incarnation, bytes, records: recordsOf(frames), asOfMs: atMs }] : [],
    )
    return { segments: open, atMs }
  }

  async watch(onSealed: (logName: string | null) => void): Promise<() => void> {
    this.#storage.onSealed.add(onSealed)
    return () => this.#storage.onSealed.delete(onSealed)
  }

  #keep(segment: StoredSegment, note: Pick<QuarantineNote, 'reason' | 'records_lost'>): void {
    segment.state = 'quarantined'
    segment.note ??= { ...note, at: isoTimestamp(this.#clock.now()), damage: [] }
  }

  #get(ref: SegmentRef): StoredSegment {
    const segment = this.#storage.find(ref, 'sealed')
    if (segment !== undefined) return segment
    if (this.#storage.find(ref, 'open') !== undefined) throw new SegmentError(nameOf(ref), 'unsealed', 0, 'is not sealed')
    throw Object.assign(new Error(`there is no segment ${nameOf(ref)}`), { code: 'ENOENT' })
  }
}

function damageOf(segment: StoredSegment): SegmentError {
  const index = segment.frames.findIndex((frame) => segment.damaged.has(frame))
  const offset = segment.frames.slice(0, index).reduce((sum, frame) => sum + frameBytes(frame), 0)
  return new SegmentError(nameOf(segment), 'damaged', offset, `is damaged at byte ${offset}`)
}

function recordsOf(frames: readonly Frame[]): number {
  return frames.reduce((sum, { recordCount }) => sum + recordCount, 0)
}

function nameOf({ logName, seq, incarnation }: SegmentRef): string {
  return `${logName}/${seq}-${incarnation}`
}
