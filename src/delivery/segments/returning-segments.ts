/**
 * Recognizes segments that may have been delivered before: those that an earlier run left, and those that came back, for
 * example with a restored volume or a copy from a backup.
 *
 * Owns: recognition, without asking anyone. Does not own: finding out what happened to them (publish/adopter.ts).
 * Law: a segment counts as new only if its seq is greater than every seq that this process has seen in its log before. The first of a log that
 * this process sees are not new. So a delivery asks for a commit only at a start, and where something is odd.
 */
import type { QueuedSegment } from './log-queue.ts'

export class ReturningSegments {
  readonly #ids = new Set<string>()
  readonly #highestSeqs = new Map<string, number>()
  /** By log, as found last. */
  readonly #present = new Map<string, ReadonlySet<string>>()

  /** Takes the segments of a scan of all logs, by log. Returns their ids. */
  update(found: ReadonlyMap<string, readonly QueuedSegment[]>): ReadonlySet<string> {
    for (const [logName, segments] of found) this.updateLog(logName, segments)
    for (const logName of this.#present.keys()) if (!found.has(logName)) this.#present.delete(logName)
    const present = new Set(this.#present.values().flatMap((ids) => ids.values()))
    for (const id of this.#ids) if (!present.has(id)) this.#ids.delete(id)
    return present
  }

  /** Takes the segments of one log. */
  updateLog(logName: string, segments: readonly QueuedSegment[]): void {
    const before = this.#present.get(logName)
    const highest = this.#highestSeqs.get(logName)
    let seen = highest ?? -1
    for (const { id, seq } of segments) {
      seen = Math.max(seen, seq)
      if (before?.has(id) !== true && (highest === undefined || seq <= highest)) this.#ids.add(id)
    }
    if (seen >= 0) this.#highestSeqs.set(logName, seen)
    this.#present.set(logName, new Set(segments.map(({ id }) => id)))
  }

  add(id: string): void {
    this.#ids.add(id)
  }

  has(id: string): boolean {
    return this.#ids.has(id)
  }
}
