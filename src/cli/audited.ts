import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import { eventOutsideApi, insertAuditEvent } from '#store/audit-events.ts'
import { type Store, withCompanion } from '#store/store.ts'

export type Audited = {
  /** As in the API, where it has the operation. */
  readonly operation: string
  /** Null if the command spans accounts. */
  readonly account_id: string | null
  readonly resource_id: string | null
}

/** Runs a change together with its event in the audit trail. A failed attempt gets one too. */
export async function audited<T>(store: Store, clock: Clock, what: Audited, work: () => Promise<T>): Promise<T> {
  const event = eventOutsideApi({ actor: 'cli', ...what }, clock.now())
  try {
    return await withCompanion((db) => insertAuditEvent(db, event), work)
  } catch (error) {
    if (error instanceof AppError) await insertAuditEvent(store.db, { ...event, result: 'failed', error: error.code })
    throw error
  }
}
