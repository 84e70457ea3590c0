import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { ApplyChange } from '#store/cluster/changes.ts'
import type { Leadership } from '#store/cluster/leadership.ts'
import type { Store } from '#store/store.ts'

/** Most parts of control work with some of these: each names its own. */
export type ControlContext = {
  readonly store: Store
  /** Makes a change that nodes must see. */
  readonly applyChange: ApplyChange
  readonly leadership: Leadership
  readonly clock: Clock
  readonly logger: Logger
}
