import type { EndpointLag } from '#model/node-protocol.ts'

/** Logs that a node holds, and the part of them that control knows. */
export type Backlog = {
  /** Whether the scan applied the newest configuration of control. */
  readonly isCurrent: boolean
  readonly lags: readonly EndpointLag[]
  /** The same as control knows it; undefined before the first heartbeat. */
  readonly reportedLags: readonly EndpointLag[] | undefined
  /** Commits that control has not recorded. */
  readonly reports: number
  /** Why the segments cannot be listed; null if they can. */
  readonly problem: string | null
}

/** Data that is not delivered yet. */
export type Waiting = {
  /** Segments that are not delivered, and reports that control has not recorded. */
  readonly segments: number
  readonly bytes: number
  /** Reasons why segments are not delivered. */
  readonly reasons: readonly string[]
}

export function countWaiting({ lags, reports, problem }: Pick<Backlog, 'lags' | 'reports' | 'problem'>): Waiting {
  const sum = (read: (lag: EndpointLag) => number) => lags.reduce((total, lag) => total + read(lag), 0)
  return {
    segments: Math.max(reports, sum(waiting)),
    bytes: sum((lag) => lag.undelivered_bytes),
    reasons: [...new Set([problem, ...lags.map(({ blocked_by }) => blocked_by)].filter((reason) => reason !== null))],
  }
}

export function isWaiting(lag: EndpointLag): boolean {
  return waiting(lag) > 0
}

function waiting({ open_segments, undelivered_segments }: EndpointLag): number {
  return open_segments + undelivered_segments
}
