/**
 * Records that are published in DNS for each endpoint, and those that were sent there.
 *
 * Owns: the order of an attempt. Does not own: what should be published (naming/dns).
 * Law: a row exists before its records are sent for the first time, until the DNS service confirmed that they are gone. Until an attempt is
 * confirmed, the zone may have `published` or `sent`.
 */

import { inChunks } from '../chunks.ts'
import { fromJson, fromJsonOrNull, toStorableText, toTimeOrNull } from '../columns.ts'
import type { Database } from '../schema.ts'
import type { Db, Tx } from '../store.ts'

type AddressType = 'A' | 'AAAA'

/** Removals of a region that are remembered: the newest. A node whose addresses change all the time must not fill the database. */
export const removalsMax = 10_000

/** The records of one type of one endpoint. */
export type DnsRecord = {
  readonly name: string
  readonly type: AddressType
  readonly endpoint_id: string
  readonly region: string
  /** The DNS service that has them. */
  readonly target: string
  /** Null if nothing was confirmed yet. */
  readonly published: readonly string[] | null
  readonly ttl: number | null
  readonly published_at: string | null
  /** Values that the last attempt sent; null once it is confirmed. */
  readonly sent: readonly string[] | null
  /** When the set may be sent again (epoch ms). */
  readonly retry_at: number | null
  /** How often the service rejected it in a row. */
  readonly failures: number
  readonly last_error: string | null
}

/** A set that is about to be sent. */
export type SentRecord = Pick<DnsRecord, 'name' | 'type' | 'endpoint_id' | 'region' | 'published'> & {
  readonly sent: readonly string[]
}

/** The fields of endpoints that DNS records follow from. */
export type NamedEndpoint = Pick<Database['endpoints'], 'id' | 'region' | 'label' | 'since_epoch'>

/** Returns the endpoints of all accounts that are not deleted. */
export function listNamedEndpoints(db: Db): Promise<readonly NamedEndpoint[]> {
  return db
    .selectFrom('endpoints')
    .select(['id', 'region', 'label', 'since_epoch'])
    .where('deleted_at', 'is', null)
    .orderBy('created_at')
    .execute()
}

export async function listDnsRecords(db: Db): Promise<readonly DnsRecord[]> {
  const rows = await db.selectFrom('dns_records').selectAll().execute()
  return rows.map(toDnsRecord)
}

/** Returns the records of these names. */
export async function listDnsRecordsOf(db: Db, names: readonly string[]): Promise<readonly DnsRecord[]> {
  const records: DnsRecord[] = []
  for (const some of inChunks(names)) {
    const rows = await db.selectFrom('dns_records').selectAll().where('name', 'in', some).execute()
    records.push(...rows.map(toDnsRecord))
  }
  return records
}

/** Records an attempt before it begins. No process repeats it before `retryAt`, when it has ended. */
export async function recordSending(
  db: Tx,
  records: readonly SentRecord[],
  { attempt, target, retryAt: retry_at }: { readonly attempt: string; readonly target: string; readonly retryAt: number },
): Promise<void> {
  const rows = records.map(({ published, sent, ...record }) => ({
    ...record,
    ...{ target, attempt, retry_at, failures: 0 },
    published: published === null ? null : JSON.stringify(published),
    sent: JSON.stringify(sent),
  }))
  for (const chunk of inChunks(rows))
    await db
      .insertInto('dns_records')
      .values(chunk)
      .onConflict((conflict) =>
        conflict.columns(['name', 'type']).doUpdateSet(({ ref }) => ({
          endpoint_id: ref('excluded.endpoint_id'),
          region: ref('excluded.region'),
          target: ref('excluded.target'),
          published: ref('excluded.published'),
          sent: ref('excluded.sent'),
          attempt: ref('excluded.attempt'),
          retry_at: ref('excluded.retry_at'),
        })),
      )
      .execute()
}

export type Removal = { readonly region: string; readonly address: string }

type Confirmed = { readonly ttl: number; readonly removals: readonly Removal[]; readonly lingerMs: number; readonly now: number }

/**
 * Records that the DNS service confirmed an attempt, unless another one began since, and which addresses it took from names. Clients may use
 * these for `lingerMs`. Older ones are forgotten.
 */
export async function recordPublished(db: Tx, attempt: string, { ttl, removals, lingerMs, now }: Confirmed): Promise<void> {
  await db.deleteFrom('dns_records').where('attempt', '=', attempt).where('sent', '=', '[]').execute()
  await db
    .updateTable('dns_records')
    .set(({ ref }) => ({
      published: ref('sent'),
      ...{ ttl, published_at: now, sent: null, attempt: null, retry_at: null, failures: 0, last_error: null },
    }))
    .where('attempt', '=', attempt)
    .execute()
  for (const some of inChunks(removals))
    await db
      .insertInto('dns_removals')
      .values(some.map((removal) => ({ ...removal, removed_at: now })))
      .onConflict((conflict) => conflict.columns(['region', 'address']).doUpdateSet({ removed_at: now }))
      .execute()
  await db
    .deleteFrom('dns_removals')
    .where('removed_at', '<', now - lingerMs)
    .execute()
  for (const region of new Set(removals.map((removal) => removal.region))) await boundRemovals(db, region)
}

async function boundRemovals(db: Tx, region: string): Promise<void> {
  const inRegion = db.selectFrom('dns_removals').where('region', '=', region)
  const excess = await inRegion.select('removed_at').orderBy('removed_at', 'desc').limit(1).offset(removalsMax).executeTakeFirst()
  if (excess === undefined) return
  await db.deleteFrom('dns_removals').where('region', '=', region).where('removed_at', '<=', excess.removed_at).execute()
}

/** Returns when one of the addresses was last taken from a name of the region (epoch ms); null if none was lately. */
export async function findLastRemoval(db: Db, region: string, addresses: readonly string[]): Promise<number | null> {
  if (addresses.length === 0) return null
  const { removed_at } = await db
    .selectFrom('dns_removals')
    .select(({ fn }) => fn.max('removed_at').as('removed_at'))
    .where('region', '=', region)
    .where('address', 'in', addresses)
    .executeTakeFirstOrThrow()
  return removed_at
}

/** Records that an attempt failed, unless another one began since. `failures` is null if the service did not judge it. */
export async function recordUnpublished(
  db: Db,
  attempt: string,
  { error, retryAt: retry_at, failures }: { readonly error: string; readonly retryAt: number; readonly failures: number | null },
): Promise<void> {
  await db
    .updateTable('dns_records')
    .set({ last_error: toStorableText(error), retry_at, ...(failures === null ? {} : { failures }) })
    .where('attempt', '=', attempt)
    .execute()
}

/** Forgets what other DNS services have, because they are no longer used. Returns the number of sets. */
export async function forgetOtherTargets(db: Db, target: string): Promise<number> {
  const { numDeletedRows } = await db.deleteFrom('dns_records').where('target', '!=', target).executeTakeFirst()
  return Number(numDeletedRows)
}

/** Makes the leader send the records of these names again, because the zone does not have what was published. */
export async function sendAgain(db: Db, names: readonly string[]): Promise<void> {
  for (const some of inChunks(names))
    await db
      .updateTable('dns_records')
      .set(({ ref }) => ({ sent: ref('published'), attempt: null }))
      .where('name', 'in', some)
      .where('sent', 'is', null)
      .execute()
}

/** Returns whether a name of the region has one of the addresses, among endpoints that were created up to an epoch. */
export async function isAddressPublished(
  db: Db,
  { region, addresses, epoch }: { readonly region: string; readonly addresses: readonly string[]; readonly epoch: number },
): Promise<boolean> {
  if (addresses.length === 0) return false
  // Few sets differ from each other. To search the text of every record for every address would take as many steps as both multiplied.
  const sets = await db
    .selectFrom('dns_records')
    .innerJoin('endpoints', 'endpoints.id', 'dns_records.endpoint_id')
    .select(['dns_records.published', 'dns_records.sent'])
    .distinct()
    .where('dns_records.region', '=', region)
    .where('endpoints.since_epoch', '<=', epoch)
    .execute()
  const searched = new Set(addresses)
  return sets
    .flatMap(({ published, sent }) => [published, sent])
    .some((text) => fromJsonOrNull<readonly string[]>(text)?.some((address) => searched.has(address)))
}

function toDnsRecord({ attempt: _, ...row }: Database['dns_records']): DnsRecord {
  return {
    ...row,
    type: row.type as AddressType,
    published: fromJsonOrNull<readonly string[]>(row.published),
    published_at: toTimeOrNull(row.published_at),
    sent: row.sent === null ? null : fromJson<readonly string[]>(row.sent),
  }
}
