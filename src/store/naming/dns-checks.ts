/** Last answers of the name servers for the name of each endpoint. */
import { inChunks } from '../chunks.ts'
import { fromJson, toTime } from '../columns.ts'
import type { Database } from '../schema.ts'
import type { Db } from '../store.ts'

/** Answer of one name server. */
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

/** An endpoint, and what is recorded of its name, if anything is. */
export type EndpointToLookUp = {
  readonly id: string
  readonly label: string
  readonly region: string
  readonly name: string | null
  /** As JSON. */
  readonly answers: string | null
  /** In epoch ms. */
  readonly checked_at: number | null
}

/** Returns endpoints by id, beginning after one. */
export function listEndpointsToLookUp(db: Db, afterId: string, limit: number): Promise<readonly EndpointToLookUp[]> {
  return selectToLookUp(db).where('endpoints.id', '>', afterId).orderBy('endpoints.id').limit(limit).execute()
}

/** Returns endpoints that were never served under their names, those first that were not looked up for the longest time. */
export function listUnservedToLookUp(db: Db, limit: number): Promise<readonly EndpointToLookUp[]> {
  return selectToLookUp(db)
    .where('provisioned_at', 'is', null)
    .orderBy(({ fn, val }) => fn.coalesce('checked_at', val(0)))
    .limit(limit)
    .execute()
}

function selectToLookUp(db: Db) {
  return db
    .selectFrom('endpoints')
    .leftJoin('dns_checks', 'dns_checks.endpoint_id', 'endpoints.id')
    .select(['endpoints.id', 'endpoints.label', 'endpoints.region', 'dns_checks.name', 'answers', 'checked_at'])
    .where('endpoints.deleted_at', 'is', null)
}

/** Says whether exactly this is recorded of the name. */
export function isRecorded({ name, answers }: EndpointToLookUp, check: Pick<DnsCheck, 'name' | 'answers'>): boolean {
  return name === check.name && answers === JSON.stringify(check.answers)
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
