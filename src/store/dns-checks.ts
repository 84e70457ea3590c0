/** What the name servers last said about the name of each endpoint. */
import { inChunks } from './chunks.ts'
import { fromJson, toTime } from './columns.ts'
import type { Database } from './schema.ts'
import type { Db } from './store.ts'

/** What one name server said. */
export type NameServerAnswer = {
  /** Its address and port. */
  readonly server: string
  readonly A: readonly string[]
  readonly AAAA: readonly string[]
  /** Why it gave no usable answer; null if it did. */
  readonly error: string | null
}

export type DnsCheck = {
  readonly endpoint_id: string
  readonly name: string
  readonly answers: readonly NameServerAnswer[]
  readonly checked_at: string
}

export async function listDnsChecks(db: Db, endpointIds: readonly string[]): Promise<readonly DnsCheck[]> {
  const checks: DnsCheck[] = []
  for (const ids of inChunks(endpointIds)) {
    const rows = await db.selectFrom('dns_checks').selectAll().where('endpoint_id', 'in', ids).execute()
    checks.push(...rows.map(toDnsCheck))
  }
  return checks
}

/**
 * Returns endpoints that were not looked up since `checkedBefore` (epoch ms) or were never served: first those that were never looked up,
 * then the one whose check is oldest.
 */
export function listEndpointsToLookUp(db: Db, checkedBefore: number, limit: number) {
  return db
    .selectFrom('endpoints')
    .leftJoin('dns_checks', 'dns_checks.endpoint_id', 'endpoints.id')
    .select(['endpoints.id', 'endpoints.label', 'endpoints.region'])
    .where('endpoints.deleted_at', 'is', null)
    .where(({ eb, or }) =>
      or([eb('checked_at', 'is', null), eb('checked_at', '<=', checkedBefore), eb('provisioned_at', 'is', null)]),
    )
    .orderBy(({ fn, val }) => fn.coalesce('checked_at', val(0)))
    .limit(limit)
    .execute()
}

/** Replaces what is known about these names. */
export async function recordDnsChecks(db: Db, checks: readonly Omit<DnsCheck, 'checked_at'>[], now: number): Promise<void> {
  for (const some of inChunks(checks))
    await db
      .insertInto('dns_checks')
      .values(some.map(({ answers, ...check }) => ({ ...check, answers: JSON.stringify(answers), checked_at: now })))
      .onConflict((conflict) =>
        conflict.column('endpoint_id').doUpdateSet(({ ref }) => ({
          name: ref('excluded.name'),
          answers: ref('excluded.answers'),
          checked_at: ref('excluded.checked_at'),
        })),
      )
      .execute()
}

function toDnsCheck({ answers, checked_at, ...row }: Database['dns_checks']): DnsCheck {
  return { ...row, answers: fromJson(answers), checked_at: toTime(checked_at) }
}
