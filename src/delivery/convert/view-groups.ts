/**
 * Divides the views of a large segment into groups that are built in several processes at once.
 *
 * Owns: the groups, and who builds which. Does not own: how a group is built (conversion-runner.ts), who gets slots (fair-slots.ts).
 * Law: a conversion waits for no slot but its own: it builds every group that nobody else is building.
 */
import { settlesBefore } from '#lib/settles-before.ts'
import type { BoundView } from '#model/snapshot.ts'
import { conversionLimits } from './limits.ts'

/** Returns the views in groups of nearly one size, in order: one group, unless rereading the segment is cheap relative to the work. */
export function groupsOf<View extends BoundView>(
  views: readonly View[],
  { bytes, slots }: { readonly bytes: number; readonly slots: number },
): readonly (readonly View[])[] {
  const { groupViewsMin, groupBytesMin } = conversionLimits
  const worthwhile = Math.min(views.length / groupViewsMin, (views.length * bytes) / groupBytesMin)
  // More than there are slots, so that one that is lent late still has something to build.
  const count = slots === 1 ? 1 : Math.max(1, Math.min(2 * slots, Math.floor(worthwhile)))
  const startOf = (group: number): number => Math.ceil((group * views.length) / count)
  return Array.from({ length: count }, (_, group) => views.slice(startOf(group), startOf(group + 1)))
}

export class GroupQueue<Group> {
  readonly #left: Group[]
  readonly #build: (group: Group, signal: AbortSignal) => Promise<void>
  #running = 0
  #ended = Promise.withResolvers<void>()

  constructor(groups: readonly Group[], build: (group: Group, signal: AbortSignal) => Promise<void>) {
    this.#left = [...groups]
    this.#build = build
  }

  /**
   * Builds groups one after the other until none is left. The owner also waits for those that others build: they may give them back. Throws
   * what a build throws, or the signal's reason.
   */
  async work(signal: AbortSignal, role: 'owner' | 'helper'): Promise<void> {
    for (;;) {
      signal.throwIfAborted()
      const group = this.#left.shift()
      if (group !== undefined) {
        this.#running += 1
        try {
          await this.#build(group, signal)
        } catch (error) {
          this.#left.unshift(group)
          throw error
        } finally {
          this.#running -= 1
          this.#ended.resolve()
          this.#ended = Promise.withResolvers()
        }
      } else if (role === 'helper' || this.#running === 0) return
      else await settlesBefore(this.#ended.promise, signal)
    }
  }
}
