/**
 * One log: accepts frames in order and produces sealed segments.
 *
 * Owns: the queue and the group commit. Does not own: the segment that is written to (current-segment.ts), whose turn it is (commit-turns.ts).
 * Law: one group is written at a time; while its fdatasync runs, or another log has its turn, the next one gathers. All frames of a group
 * become durable or fail together.
 */

import type { FrameInput } from '../../frame.ts'
import { LogError } from '../../log-error.ts'
import type { Appended, LogHooks, LogSettings } from '../../log-writer.ts'
import { encodedBytes } from '../format/frame.ts'
import type { NotedSegment } from '../recover/open-segments.ts'
import type { CommitTurns } from './commit-turns.ts'
import { CurrentSegment, type CurrentSegmentOptions } from './current-segment.ts'
import { FrameGroup } from './frame-group.ts'

export type LogOptions = CurrentSegmentOptions & {
  /** Bytes waiting for the disk, over all logs. */
  readonly waiting: { bytes: number }
  /** Turns at the disk, over all logs. */
  readonly turns: CommitTurns
  readonly mayAcknowledge: LogHooks['mayAcknowledge']
  /** Resolves when no earlier log uses the directory any more. */
  readonly reclaimed: Promise<void>
}

class Group extends FrameGroup {
  readonly durable = Promise.withResolvers<Appended>()
}

export class Log {
  readonly #options: LogOptions
  readonly #segment: CurrentSegment
  readonly #groups: Group[] = []
  readonly #stopped = Promise.withResolvers<void>()
  #owner: string
  /** The next group is probably about as large as the last one. */
  #lastGroupBytes = 0
  #isReclaimed = false
  #isWorking = false
  #isStopping = false
  #sealsAtStop = false
  /** Set once another writer may have read what is durable: nothing is acknowledged any more. */
  #isFenced = false

  constructor(options: LogOptions) {
    this.#options = options
    this.#owner = options.settings.owner ?? ''
    this.#segment = new CurrentSegment(options, () => this.#scheduleWork())
  }

  /** The highest seq that this log has used, -1 for none. */
  get lastSeq(): number {
    return this.#segment.lastSeq
  }

  /** Why the log cannot go on, and what to do; undefined if it can. */
  get problem(): string | undefined {
    return this.#segment.problem
  }

  /** The segment that is written to, and what is durable in it. */
  get noted(): NotedSegment | undefined {
    return this.#segment.noted
  }

  /** When the open segment was opened, on the monotonic clock; undefined if there is none. */
  get openedAtMs(): number | undefined {
    return this.#segment.openedAtMs
  }

  /** Also seals the open segment if it is too old or too large for the new settings. */
  configure(settings: LogSettings): void {
    this.#owner = settings.owner ?? ''
    this.#segment.configure(settings)
  }

  /** Resolves when the frame is durable. All frames of a group share one promise. */
  append(frame: FrameInput): Promise<Appended> {
    const { limits, waiting, observer } = this.#options
    const bytes = encodedBytes(frame)
    if (this.#isStopping) return Promise.reject(new LogError('stopping', 'the log is being closed'))
    if (waiting.bytes > 0 && waiting.bytes + bytes > limits.waitingBytesMax) {
      return Promise.reject(new LogError('overloaded', `more than ${limits.waitingBytesMax} bytes wait for the disk`))
    }
    let group = this.#groups.at(-1)
    if (group === undefined || group.bytes + bytes > this.#groupBytesMax() || group.frames >= limits.groupFramesMax) {
      const { copiedPayloadBytesMax } = limits
      group = new Group({ copiedPayloadBytesMax, initialBytes: this.#groups.length === 0 ? this.#lastGroupBytes : 0 })
      this.#groups.push(group)
    }
    group.add(frame)
    if (observer?.observes(frame) === true) group.observed.push(frame)
    waiting.bytes += bytes
    this.#scheduleWork()
    return group.durable.promise
  }

  /** Rejects what is not acknowledged yet. Call `stop` too. */
  rejectWaiting(): void {
    this.#isFenced = true
    for (const group of this.#groups.splice(0)) {
      this.#options.waiting.bytes -= group.bytes
      group.durable.reject(fencedError())
    }
  }

  /** Commits what was accepted and, unless the signal has aborted, seals. Never throws: an unsealed segment is recovered later. */
  async stop(signal: AbortSignal): Promise<void> {
    this.#isStopping = true
    this.#sealsAtStop = !signal.aborted
    this.#scheduleWork()
    const aborted = Promise.withResolvers<void>()
    signal.addEventListener('abort', () => aborted.resolve(), { once: true })
    await Promise.race(signal.aborted ? [this.#stopped.promise] : [this.#stopped.promise, aborted.promise])
    if (this.#segment.isUnlinked) this.#options.logger.fatal({ problem: this.problem }, 'acknowledged records lost')
  }

  #groupBytesMax(): number {
    return Math.min(this.#options.limits.groupBytesMax, this.#segment.groupBytesMax)
  }

  /** Starts in the next turn, so that everything else that arrives in this turn of the event loop joins the first group. */
  #scheduleWork(): void {
    if (this.#isWorking) return
    this.#isWorking = true
    this.#options.clock.nextTurn(() => void this.#work())
  }

  async #work(): Promise<void> {
    while (this.#groups.length > 0 || this.#segment.isDue) {
      // Without a turn: the log that it waits for needs turns to end.
      if (!this.#isReclaimed) await this.#options.reclaimed
      this.#isReclaimed = true
      const owner = this.#owner
      const turn = this.#options.turns.begin(owner)
      if (turn !== undefined) await turn
      try {
        const group = this.#groups.shift()
        if (group !== undefined) await this.#commit(group)
        if (this.#segment.isDue) await this.#segment.seal()
      } finally {
        this.#options.turns.end(owner)
      }
    }
    if (this.#isStopping) await this.#end()
    else this.#isWorking = false
  }

  async #end(): Promise<void> {
    const owner = this.#owner
    await this.#options.turns.begin(owner)
    try {
      if (this.#sealsAtStop) {
        await this.#segment.seal()
        // Its records exist only in this process. The timer tries again, until the deadline.
        if (this.#segment.isUnlinked) return
      }
      await this.#segment.abandon()
    } finally {
      this.#options.turns.end(owner)
      // Not before: a second stop would seal the same segment beside this one.
      this.#isWorking = false
    }
    this.#stopped.resolve()
  }

  async #commit(group: Group): Promise<void> {
    try {
      const appended = await this.#segment.append(group)
      const wait = this.#options.mayAcknowledge?.()
      if (wait !== undefined) await wait
      if (this.#isFenced) throw fencedError('unacknowledged')
      group.durable.resolve(appended)
    } catch (error) {
      if (!(error instanceof LogError)) throw error
      group.durable.reject(error)
    } finally {
      this.#lastGroupBytes = group.laidOutBytes
      this.#options.waiting.bytes -= group.bytes
    }
  }
}

function fencedError(reason: 'stopping' | 'unacknowledged' = 'stopping'): LogError {
  return new LogError(reason, 'another writer has taken over the log')
}
