import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import { eventOutsideApi, insertAuditEvent, upsertAuditEvent } from '#store/accounts/audit-events.ts'
import { type Db, type Store, withCompanion } from '#store/store.ts'

type Subject = {
  /** Null if the command spans accounts. */
  readonly account_id: string | null
  readonly resource_id: string | null
}

export type Audited<T> = Subject & {
  /** As in the API, where it has the operation. */
  readonly operation: string
  /** Returns what only the result knows: the id of what was created. */
  readonly nameCreated?: (result: T) => Partial<Subject>
}

/** Runs a change together with its event in the audit trail. A failed attempt gets one too. */
export async function audited<T>(store: Store, clock: Clock, what: Audited<T>, work: () => Promise<T>): Promise<T> {
  const { nameCreated, ...attempt } = what
  const event = eventOutsideApi({ actor: 'cli', ...attempt }, clock.now())
  const companion = { write: (db: Db) => insertAuditEvent(db, event), isSkipped: false }
  try {
    const result = await withCompanion(companion, work)
    if (nameCreated !== undefined && !companion.isSkipped) await upsertAuditEvent(store.db, { ...event, ...nameCreated(result) })
    return result
  } catch (error) {
    if (error instanceof AppError) await insertAuditEvent(store.db, { ...event, result: 'failed', error: error.code })
    throw error
  }
}
