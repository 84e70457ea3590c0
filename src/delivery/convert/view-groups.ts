/**
 * Builds the views of a large segment in several processes at once: in the slot of its conversion, and in slots that are lent meanwhile.
 *
 * Owns: the groups, who builds which, and one result of all. Does not own: how a group is built (conversions.ts), who gets slots (fair-slots.ts).
 * Law: a conversion waits for no slot but its own: it builds every group that nobody else is building. If one group fails, all of it fails.
 */
import type { BoundView } from '#model/snapshot.ts'
import { deliveryLimits } from '../segments/limits.ts'
import type { BuiltArtifacts } from './build-directory.ts'

/** Returns the views in groups of nearly one size, in order. One group, unless reading the segment once more for each is little beside the work. */
export function groupsOf(
  views: readonly BoundView[],
  { bytes, slots }: { readonly bytes: number; readonly slots: number },
): readonly (readonly BoundView[])[] {
  const { groupViewsMin, groupBytesMin } = deliveryLimits
  const worthwhile = Math.min(views.length / groupViewsMin, (views.length * bytes) / groupBytesMin)
  // More than there are slots, so that one that is lent late still has something to build.
  const count = slots === 1 ? 1 : Math.max(1, Math.min(2 * slots, Math.floor(worthwhile)))
  const startOf = (group: number): number => Math.ceil((group * views.length) / count)
  return Array.from({ length: count }, (_, group) => views.slice(startOf(group), startOf(group + 1)))
}

export type GroupsRequest<Group> = {
  readonly groups: readonly Group[]
  /** Builds a group. Leaves no file behind if it throws. */
  readonly build: (group: Group, position: number, signal: AbortSignal) => Promise<BuiltArtifacts>
  /** Runs work in another slot, as soon as nobody else wants it. If somebody does, the signal of the work aborts, and it is repeated later. */
  readonly lend: (signal: AbortSignal, work: (signal: AbortSignal) => Promise<void>) => Promise<void>
  /** How many other slots there are. */
  readonly others: number
  readonly signal: AbortSignal
}

/** Throws what `build` throws, or the signal's reason. */
export async function buildGroups<Group>({ groups, build, lend, others, signal }: GroupsRequest<Group>): Promise<BuiltArtifacts> {
  const built = new Map<number, BuiltArtifacts>()
  const left = [...groups.entries()]
  const ended = new AbortController()
  const isEnded = AbortSignal.any([signal, ended.signal])
  let settled = Promise.withResolvers<void>()
  const buildLeft = async (signal: AbortSignal): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [position, group] = next
      try {
        built.set(position, await build(group, position, signal))
      } catch (error) {
        left.unshift(next)
        throw error
      } finally {
        settled.resolve()
        settled = Promise.withResolvers()
      }
    }
  }
  const helpers = Array.from({ length: Math.min(others, groups.length - 1) }, () =>
    lend(isEnded, buildLeft).catch((error: unknown) => {
      ended.abort(error)
      settled.resolve()
    }),
  )
  try {
    while (built.size < groups.length) {
      await buildLeft(isEnded)
      isEnded.throwIfAborted()
      // The others are building the rest. If one has to return its slot, its group is left again.
      if (built.size < groups.length && left.length === 0) await settled.promise
    }
  } catch (error) {
    const cause = ended.signal.aborted ? ended.signal.reason : error
    ended.abort(cause)
    await Promise.all(helpers)
    await Promise.all(built.values().map((each) => each.remove()))
    throw cause
  }
  ended.abort(new Error('all groups are built'))
  await Promise.all(helpers)
  return joined(groups.map((_, position) => built.get(position)).filter((each) => each !== undefined))
}

function joined(all: readonly BuiltArtifacts[]): BuiltArtifacts {
  const files = all.flatMap((each) => each.files)
  return {
    // Each group with a view that failed has all records.
    files: files.filter(
      ({ kind }, index) => kind.type !== 'parquet' || index === files.findIndex((file) => file.kind.type === 'parquet'),
    ),
    views: all.flatMap((each) => each.views),
    failed: all.flatMap((each) => each.failed),
    isComplete: () => all.every((each) => each.isComplete()),
    remove: async () => void (await Promise.all(all.map((each) => each.remove()))),
  }
}
