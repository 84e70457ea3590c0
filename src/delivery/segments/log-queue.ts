import { type Clock, isoTimestamp } from '#lib/clock.ts'
import type { Segment, SegmentRef, SegmentSource } from '#log/segment-source.ts'
import type { FailingView } from '#model/node-protocol.ts'
import type { DeliveryRun } from './delivery-run.ts'

/** Segments of one log that are delivered at the same time, so that one uploads and waits for its turn while others are converted. */
const parallelPerLogMax = 3
/** A log blocked for this long does not delay a stop. */
const stuckAfterMs = 3_000

/** A sealed segment with the id of its commit. */
export type QueuedSegment = Segment & { readonly id: string }

export type LogQueueOptions = {
  readonly logName: string
  readonly segments: SegmentSource
  /** Resolves when the segment is committed or parked. Rejects only once the signal aborts. */
  readonly deliver: (segment: QueuedSegment, run: Pick<DeliveryRun, 'turn' | 'report' | 'signal'>) => Promise<unknown>
  /** Called when a delivery has ended. */
  readonly onEnded: () => void
  readonly signal: AbortSignal
  readonly clock: Clock
}

type Block = { readonly reason: string; readonly failingView: FailingView | null; readonly sinceMs: number }

/**
 * Delivers the sealed segments of one log.
 *
 * Owns: which of them are being delivered, their turns, and what blocks them. Does not own: finding segments (pipeline.ts), the steps of
 * a delivery.
 * Law: segments take their turns in order of seq, and a segment is delivered at most once at a time.
 */
export class LogQueue {
  readonly #options: LogQueueOptions
  /** Ids being delivered, with what each waits for. */
  readonly #active = new Map<string, Block | null>()
  /** Sealed, neither committed nor parked, oldest first, as of the last scan. */
  #waiting: readonly QueuedSegment[] = []
  #oldest: { readonly id: string; readonly sealedAt: string | null } | undefined
  /** Settles when every delivery that was started has ended. */
  #tail: Promise<unknown> = Promise.resolve()

  constructor(options: LogQueueOptions) {
    this.#options = options
  }

  get isIdle(): boolean {
    return this.#active.size === 0
  }

  /** Why the first delivery that cannot continue is blocked; null if none is. */
  get block(): Block | null {
    return this.#active.values().find((each) => each !== null) ?? null
  }

  /** When the oldest uncommitted segment was sealed; null if there is none, or if its footer cannot be read. */
  get oldestSealedAt(): string | null {
    return this.#oldest?.sealedAt ?? null
  }

  /**
   * Replaces the segments with those of a scan, oldest first, and starts as many deliveries as allowed. `oldest` is the oldest uncommitted
   * segment, which may be parked.
   */
  async update(waiting: readonly QueuedSegment[], oldest: QueuedSegment | undefined): Promise<void> {
    this.#waiting = waiting
    if (oldest === undefined) this.#oldest = undefined
    else if (oldest.id !== this.#oldest?.id) this.#oldest = { id: oldest.id, sealedAt: await this.#readSealedAt(oldest) }
    this.#startDeliveries()
  }

  /** Whether a stop need not wait for this log, because it is done or stuck. */
  isDoneOrStuck(): boolean {
    const now = this.#options.clock.monotonic()
    if (this.isIdle) return this.#waiting.length === 0
    return this.#active.values().some((block) => block !== null && now - block.sinceMs > stuckAfterMs)
  }

  /** Resolves when every delivery that was started has ended. */
  async ended(): Promise<void> {
    await this.#tail
  }

  #startDeliveries(): void {
    if (this.#options.signal.aborted) return
    for (const segment of this.#waiting) {
      if (this.#active.size >= parallelPerLogMax) break
      if (!this.#active.has(segment.id)) this.#start(segment)
    }
  }

  #start(segment: QueuedSegment): void {
    const { deliver, onEnded, signal, clock } = this.#options
    const { id } = segment
    const turn = this.#tail
    this.#active.set(id, null)
    const report = (reason: string | null, failingView: FailingView | null = null): void => {
      const sinceMs = this.#active.get(id)?.sinceMs ?? clock.monotonic()
      this.#active.set(id, reason === null ? null : { reason, failingView, sinceMs })
    }
    // A signal per delivery: removing a listener from a shared one is linear in its listeners.
    const end = deliver(segment, { turn, report, signal: AbortSignal.any([signal]) })
      .catch((error: unknown) => {
        // Only an abort may end a delivery early. Any other error breaks an invariant.
        if (!signal.aborted) throw error
      })
      .finally(() => {
        this.#active.delete(id)
        this.#waiting = this.#waiting.filter((other) => other.id !== id)
        // The next segments are already known without another scan.
        this.#startDeliveries()
        onEnded()
      })
    // Resolves to undefined: the values would keep every earlier promise alive.
    this.#tail = Promise.all([turn, end]).then(() => undefined)
  }

  /** Returns null if the footer cannot be read; the delivery reports why. */
  async #readSealedAt(segment: SegmentRef): Promise<string | null> {
    try {
      const reader = await this.#options.segments.open(segment)
      await reader.close()
      return isoTimestamp(Math.floor(reader.footer.sealedAtMicros / 1000))
    } catch {
      return null
    }
  }
}
