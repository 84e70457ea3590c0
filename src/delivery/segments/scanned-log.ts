/**
 * State of one log on the node, as a scan found it, and the row about it that control gets.
 *
 * Owns: which files count as what, and which of several reasons is reported. Does not own: the scan (pipeline.ts), the protocol.
 * Law: every segment file counts exactly once, whether or not it can be delivered, and whether or not an endpoint owns the log.
 */

import { isoTimestamp } from '#lib/clock.ts'
import type { LogListing, Segment } from '#log/segment-source.ts'
import { heldMax, joinHeld } from '#model/held-segments.ts'
import type { EndpointLag, FailingView } from '#model/node-protocol.ts'
import type { Parked } from './parked-segments.ts'

export type ScannedLog = Pick<LogListing, 'logName' | 'isClosed'> & {
  readonly open: number
  readonly sealed: number
  readonly parked: readonly Parked[]
  /** In order. */
  readonly quarantined: readonly Segment[]
  readonly bytes: number
  /** The open and the sealed segments, in order. */
  readonly deliverable: readonly Segment[]
  /** Why sealed segments of the log wait for an open one, or why its directory cannot be read. */
  readonly stuckBy: string | null
  /** When it was read, if it cannot be read now (epoch ms). */
  readonly countedAt?: number | undefined
  /** Whether it could not be listed since the start, so nobody knows what it has. */
  readonly isUnlisted?: boolean
}

/** Facts that change between two scans. */
export type LogProgress = {
  readonly isOwned: boolean
  /** Why a delivery, or the end of one, is blocked. */
  readonly blockedBy: string | null
  /** The required view, if that is what blocks the delivery. */
  readonly failingView: FailingView | null
  readonly oldestSealedAt: string | null
  /** Acknowledged records of a segment that is open or sealed; null if they are not counted. */
  readonly recordsOf: (segment: Segment) => number | null
  /** As of when the row is, if the log cannot be read now (epoch ms). */
  readonly countedAt?: number | undefined
}

export function scannedLog({ logName, isClosed, segments }: LogListing, parked: readonly Parked[]): ScannedLog {
  const count = (state: Segment['state']) => segments.filter((segment) => segment.state === state).length
  return {
    logName,
    isClosed,
    open: count('open'),
    sealed: count('sealed'),
    parked,
    quarantined: segments.filter(({ state }) => state === 'quarantined'),
    bytes: segments.reduce((sum, { bytes }) => sum + bytes, 0),
    deliverable: segments.filter(({ state }) => state !== 'quarantined'),
    stuckBy: explainOpenBeforeSealed(segments),
  }
}

/** A log without a directory. */
export function missingLog(logName: string): ScannedLog {
  const nothing = { open: 0, sealed: 0, parked: [], quarantined: [], bytes: 0, deliverable: [] }
  return { logName, isClosed: false, ...nothing, stuckBy: null }
}

/** A log whose directory cannot be read: it has at least a directory, and is taken to hold what it held when it was last read. */
export function unreadableLog(logName: string, reason: string, last: ScannedLog | undefined): ScannedLog {
  const stuckBy =
    last === undefined
      ? `its log cannot be listed, so its segments are not counted: ${reason}`
      : `its log cannot be listed, so its counts are old: ${reason}`
  return { ...(last ?? { ...missingLog(logName), isUnlisted: true }), isClosed: false, stuckBy }
}

export function isEmpty({ open, sealed, quarantined, stuckBy }: ScannedLog): boolean {
  return open + sealed + quarantined.length === 0 && stuckBy === null
}

export function toLag(log: ScannedLog, progress: LogProgress): EndpointLag {
  const held = log.deliverable.map((segment) => ({ ...ofOne(segment), records: progress.recordsOf(segment) }))
  return {
    endpoint_id: log.logName,
    open_segments: log.open,
    undelivered_segments: log.sealed - log.parked.length,
    parked_segments: log.parked.length,
    quarantined_segments: log.quarantined.length,
    undelivered_bytes: log.bytes,
    records: held.reduce<number | null>(
      (sum, { records }) => (sum === null || records === null ? null : sum + records),
      log.isUnlisted === true ? null : 0,
    ),
    first_seq: log.deliverable[0]?.seq ?? null,
    last_seq: log.deliverable.at(-1)?.seq ?? null,
    held: [...joinHeld(held, heldMax)],
    quarantined_first_seq: log.quarantined[0]?.seq ?? null,
    quarantined_last_seq: log.quarantined.at(-1)?.seq ?? null,
    ...(progress.countedAt === undefined ? {} : { counted_at: isoTimestamp(progress.countedAt) }),
    oldest_sealed_at: progress.oldestSealedAt,
    blocked_by: blockedBy(log, progress),
    failing_view: progress.isOwned ? progress.failingView : null,
    closed: log.isClosed,
    scrub_findings: 0,
    scrub_finding: null,
  }
}

function ofOne({ seq, bytes }: Segment) {
  return { first_seq: seq, last_seq: seq, segments: 1, bytes }
}

/** Returns the reason that someone has to act on first. */
function blockedBy(log: ScannedLog, { isOwned, blockedBy }: LogProgress): string | null {
  const [parked] = log.parked
  if (!isOwned && !isEmpty(log)) return 'no endpoint owns this log: see inlet segments'
  if (blockedBy !== null) return blockedBy
  if (log.stuckBy !== null) return log.stuckBy
  if (parked !== undefined) return `${countAre(log.parked.length)} parked: ${parked.reason}`
  return log.quarantined.length === 0 ? null : `${countAre(log.quarantined.length)} quarantined: see inlet segments`
}

function explainOpenBeforeSealed(segments: readonly Segment[]): string | null {
  const open = segments.findIndex(({ state }) => state === 'open')
  const stuck = segments[open]
  if (stuck === undefined || !segments.slice(open).some(({ state }) => state === 'sealed')) return null
  return `segment ${stuck.logName}/${stuck.seq}-${stuck.incarnation} is not sealed, and later segments wait for it`
}

function countAre(count: number): string {
  return count === 1 ? '1 segment is' : `${count} segments are`
}
