/**
 * The storage of logs in memory: segments that a writer fills and a source reads, in one process.
 *
 * Owns: what is durable, so that a test can stop its writer at any moment, crash it, fill the storage or damage a segment.
 */
import type { Frame } from '../frame.ts'
import type { QuarantineNote, SegmentRef } from '../segment-source.ts'

/** Size of a frame beside its envelope and payload. */
const FRAME_HEADER_BYTES = 32

export type StoredSegment = SegmentRef & {
  state: 'open' | 'sealed' | 'quarantined'
  readonly frames: Frame[]
  bytes: number
  sealedAtMicros: number
  damagedRecords: number
  /** Frames that cannot be read any more. */
  readonly damaged: Set<Frame>
  note?: QuarantineNote
}

export type StoredLog = {
  highestSeq: number
  isClosed: boolean
  /** It goes with its last segment. */
  isUnowned: boolean
  segments: StoredSegment[]
}

export class MemoryStorage {
  capacityBytes = Number.POSITIVE_INFINITY
  readonly logs = new Map<string, StoredLog>()
  /** Called with what a log has grown by, or shrunk by. */
  readonly onResized = new Set<(logName: string, bytes: number) => void>()
  readonly onSealed = new Set<(logName: string) => void>()
  #generation = 0

  /** Writers of an earlier one can store nothing any more. */
  get generation(): number {
    return this.#generation
  }

  get bytes(): number {
    return this.logs
      .values()
      .reduce((sum, { segments }) => sum + segments.reduce((bytes, segment) => bytes + segment.bytes, 0), 0)
  }

  log(logName: string): StoredLog {
    const log = this.logs.get(logName) ?? { highestSeq: -1, isClosed: false, isUnowned: false, segments: [] }
    this.logs.set(logName, log)
    return log
  }

  find({ logName, seq, incarnation }: SegmentRef, state: StoredSegment['state']): StoredSegment | undefined {
    const segments = this.logs.get(logName)?.segments ?? []
    return segments.find((each) => each.seq === seq && each.incarnation === incarnation && each.state === state)
  }

  resize(logName: string, bytes: number): void {
    for (const listener of this.onResized) listener(logName, bytes)
  }

  remove(segment: StoredSegment): void {
    const log = this.log(segment.logName)
    log.segments = log.segments.filter((each) => each !== segment)
    this.resize(segment.logName, -segment.bytes)
    this.forgetIfEmpty(segment.logName)
  }

  /** Removes a log that no endpoint owns, once it has no segment. */
  forgetIfEmpty(logName: string): void {
    const log = this.logs.get(logName)
    if (log?.isUnowned === true && log.segments.length === 0) this.logs.delete(logName)
  }

  /** Ends the process that writes. What is not stored by now is gone. */
  crash(): void {
    this.#generation += 1
    this.onResized.clear()
    this.onSealed.clear()
  }

  /** Damages a frame of a sealed segment. */
  damage(ref: SegmentRef, index: number): void {
    const segment = this.find(ref, 'sealed')
    const frame = segment?.frames[index]
    if (frame !== undefined) segment?.damaged.add(frame)
  }
}

export function frameBytes({ envelope, payload }: Pick<Frame, 'envelope' | 'payload'>): number {
  return FRAME_HEADER_BYTES + envelope.byteLength + payload.byteLength
}

/** As long as `frameBytes` says. */
export function frameChunks({ envelope, payload }: Pick<Frame, 'envelope' | 'payload'>): readonly Uint8Array[] {
  return [new Uint8Array(FRAME_HEADER_BYTES), envelope, payload]
}
