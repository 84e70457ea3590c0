import type { EndpointLag } from '#model/node-protocol.ts'

/** What a node holds, and what control knows of it. */
export type Held = {
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
