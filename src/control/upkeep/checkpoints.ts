import type { Clock } from '#lib/clock.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Store } from '#store/store.ts'
import { controlLimits } from '../limits.ts'

/** Empties the write-ahead log of SQLite from time to time, and at the start. Returns no service for Postgres, which does so itself. */
export function createCheckpoints(
  { checkpoint }: Pick<Store, 'checkpoint'>,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): readonly Periodic[] {
  if (checkpoint === undefined) return []
  const run = async () => {
    // A failed checkpoint is not retried here: readers of the log end soon, and the next attempt is near.
    checkpoint()
  }
  const options = { name: 'checkpoints', intervalMs: controlLimits.checkpointMs, runAtStart: true, run }
  return [new Periodic({ ...options, failure: 'database checkpoint failed', clock, logger })]
}
