import type { Clock } from '#lib/clock.ts'
import type { DiskSpace } from '#lib/files.ts'
import { reportLimits } from './limits.ts'

/**
 * Disk fields of heartbeats. Free space is reported at most once a minute: it changes all the time, and control
 * records unchanged heartbeats together.
 */
export class SpaceReport {
  readonly #space: () => DiskSpace | undefined
  readonly #clock: Clock
  #recordedAt = Number.NEGATIVE_INFINITY
  #wasSent = false

  constructor(space: () => DiskSpace | undefined, clock: Clock) {
    this.#space = space
    this.#clock = clock
  }

  /** Returns what the heartbeat that is sent now says: nothing until the room is known, nor before a minute is over. */
  next(): { readonly disk?: DiskSpace } {
    const disk = this.#space()
    const isFresh = this.#clock.monotonic() - this.#recordedAt < reportLimits.spaceReportMs
    this.#wasSent = disk !== undefined && !isFresh
    return disk === undefined || isFresh ? {} : { disk }
  }

  /** Control has the last heartbeat. */
  recorded(): void {
    if (this.#wasSent) this.#recordedAt = this.#clock.monotonic()
  }
}
