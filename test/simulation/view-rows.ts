/** Decides on records as a view would, from the bytes of the record, the name of the view and its version. */
import { crc32 } from 'node:zlib'
import type { ViewVersion } from '#model/artifact.ts'
import type { ViewOutcome } from '#model/commit.ts'

const decisions = ['dropped', 'dlq', 'accepted', 'accepted', 'accepted'] as const
export type Decision = (typeof decisions)[number]

/** Returns the records that the view decides on in this way, in their order. Views that `writes` does not name drop all. */
export function decidedAs(as: Decision, view: ViewVersion, records: readonly string[]): readonly string[] {
  if (!writes(view)) return as === 'dropped' ? records : []
  const salt = crc32(`${view.name} ${view.version}`)
  return records.filter((record) => decisions[crc32(record, salt) % decisions.length] === as)
}

/** One view of each endpoint has files, and one with a window: more would only make histories longer. */
function writes(view: ViewVersion): boolean {
  return view.name.endsWith('_0') || hasWindow(view)
}

export function hasWindow({ name }: ViewVersion): boolean {
  return name.endsWith('_window')
}

/** Few: most records of a history have the key of another one. */
const keysMax = 12

/** Returns the key by which a view with a window compares a record. */
export function keyOf(record: string): number {
  return crc32(record) % keysMax
}

/** Returns the first record of each key that is not excepted. */
export function firstOfKeys(records: readonly string[], excepted: ReadonlySet<number>): readonly string[] {
  const seen = new Set(excepted)
  return records.filter((record) => seen.size < seen.add(keyOf(record)).size)
}

export type ViewCounts = Pick<ViewOutcome, 'processed' | 'accepted' | 'dropped' | 'dlq'>

export function countsOf(view: ViewVersion, records: readonly string[]): ViewCounts {
  const count = (as: Decision) => decidedAs(as, view, records).length
  return { processed: records.length, accepted: count('accepted'), dropped: count('dropped'), dlq: count('dlq') }
}
