/**
 * Segments that an earlier process was writing, and of which no file is left.
 *
 * Owns: whether such a segment was delivered or is lost, and that a loss stays visible. Does not own: which ones are missing (recovery.ts).
 * Law: delivery removes a segment only after control has recorded its commit. So one that control does not know is lost: an empty file in
 * quarantine, whose note says so, takes its place until a person discards it.
 */
import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { FindDelivered } from '../../log-writer.ts'
import type { SealObserver } from '../../seal-observer.ts'
import { segmentName } from '../format/segment-file.ts'
import type { NotedSegment } from './open-segments.ts'
import { noteQuarantine } from './quarantine.ts'

export type MissingSegmentsOptions = {
  readonly directory: string
  readonly files: Files
  readonly clock: Clock
  readonly logger: Logger
  readonly findDelivered: FindDelivered | undefined
  readonly observer?: Pick<SealObserver, 'recovering'>
  readonly onLost: (records: number) => void
}

const askedAtOnce = 100

export class MissingSegments {
  readonly #options: MissingSegmentsOptions
  #segments: readonly NotedSegment[] = []
  #isFailureLogged = false

  constructor(options: MissingSegmentsOptions) {
    this.#options = options
  }

  get count(): number {
    return this.#segments.length
  }

  has(logName: string): boolean {
    return this.#segments.some((segment) => segment.logName === logName)
  }

  all(): readonly NotedSegment[] {
    return this.#segments
  }

  add(segment: NotedSegment): void {
    if (this.#options.findDelivered !== undefined) this.#segments = [...this.#segments, segment]
  }

  /** Never throws: what fails is tried again with the next call. */
  async resolve(signal: AbortSignal): Promise<void> {
    const { findDelivered, logger } = this.#options
    try {
      while (this.#segments.length > 0 && findDelivered !== undefined && !signal.aborted) {
        const some = this.#segments.slice(0, askedAtOnce)
        const delivered = new Set(await findDelivered(some, signal))
        for (const segment of some) if (!delivered.has(segment)) await this.#keepTrace(segment)
        this.#segments = this.#segments.filter((segment) => !some.includes(segment))
        this.#isFailureLogged = false
      }
    } catch (error) {
      if (!this.#isFailureLogged && !signal.aborted)
        logger.warn(
          { reason: errorMessage(error), segments: this.#segments.length },
          'segments are missing, and control cannot be asked whether they were delivered; retrying',
        )
      this.#isFailureLogged = true
    }
  }

  async #keepTrace(segment: NotedSegment): Promise<void> {
    const { directory, files, clock, logger, observer, onLost } = this.#options
    const { logName, seq, records } = segment
    const path = join(directory, logName, segmentName(segment, 'quarantine'))
    const lost = records === 0 ? 'acknowledged records may be lost' : `at least ${records} acknowledged records are lost`
    const reason = `the open segment's file was removed; ${lost}`
    await observer?.recovering(logName, seq).lost()
    await writeDurably(files, path, Buffer.alloc(0))
    await noteQuarantine(files, path, { reason, at: isoTimestamp(clock.now()), damage: [], records_lost: records })
    logger.error({ log: logName, seq, path, lostRecords: records }, 'segment file removed before it was sealed; records lost')
    onLost(records)
  }
}
