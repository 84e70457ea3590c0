/**
 * The versions of snapshot sections, by region.
 *
 * Law: a transaction that changes the content of a section also gives the section the version of the running change. Keys belong
 * to the regions in which their account has an endpoint. Views belong to the regions whose nodes need a binding of them.
 */
import { type Expression, type OnConflictBuilder, type RawBuilder, sql } from 'kysely'
import type { SectionKind } from '#model/snapshot-sections.ts'
import type { Database } from '../schema.ts'
import type { Db } from '../store.ts'
import type { ChangeTx } from './epoch.ts'

/** Sections of this region are sent to nodes of every region. */
const everyRegion = '*'

/** Indexes use this expression, so it has no parameters. */
export const shard = (column: string): RawBuilder<string> => sql<string>`substr(${sql.ref(column)}, 35, 2)`

/** Whether a binding is in the section of its endpoint: it is active, or a node may hold a segment that was sealed before it was detached. */
export const isNeededByNodes = sql<boolean>`(bindings.deactivated_at is null or bindings.unsettled_epoch is not null)`

/** For `unsettled_epoch`: the epoch of the running change. */
export const runningEpoch = sql<number>`(select value from epoch)`

/** By region, then by section. */
export type SectionVersions = ReadonlyMap<string, ReadonlyMap<string, string>>

/** Returns the versions for one region, or for all. */
export async function listSectionVersions(db: Db, region?: string): Promise<SectionVersions> {
  let query = db.selectFrom('snapshot_sections').selectAll()
  if (region !== undefined) query = query.where('region', 'in', [region, everyRegion])
  const byRegion = new Map<string, Map<string, string>>()
  for (const row of await query.execute()) {
    const versions = byRegion.get(row.region) ?? new Map<string, string>()
    byRegion.set(row.region, versions.set(row.section, row.version))
  }
  return byRegion
}

export function versionsFor(region: string, all: SectionVersions): ReadonlyMap<string, string> {
  return new Map([...(all.get(everyRegion) ?? []), ...(all.get(region) ?? [])])
}

export async function touchInstallation(db: ChangeTx): Promise<void> {
  await db
    .insertInto('snapshot_sections')
    .values({ region: everyRegion, section: 'installation', version: runningVersion })
    .onConflict(replaceVersion)
    .execute()
}

export async function touchEndpoint(db: ChangeTx, id: string): Promise<void> {
  await touch(db, selectEndpointSections(db).where('id', '=', id))
}

export async function touchEndpointsOfDestination(db: ChangeTx, account_id: string, destination_id: string): Promise<void> {
  await touch(db, selectEndpointSections(db).where('account_id', '=', account_id).where('destination_id', '=', destination_id))
}

export async function touchEndpointsOfAccount(db: ChangeTx, account_id: string): Promise<void> {
  await touch(db, selectEndpointSections(db).where('account_id', '=', account_id).where('deleted_at', 'is', null))
}

export async function touchKey(db: ChangeTx, account_id: string, id: string): Promise<void> {
  await touch(
    db,
    db
      .selectFrom('endpoints')
      .select(['region', sectionName('keys', shardOf(id)), runningVersion.as('version')])
      .distinct()
      .where('account_id', '=', account_id)
      .where('deleted_at', 'is', null),
  )
}

/** Adds an account's keys to a region, or removes them. Call while the account has no endpoint there. */
export async function touchKeysUnlessServed(db: ChangeTx, account_id: string, region: string): Promise<void> {
  const served = await db
    .selectFrom('endpoints')
    .select('id')
    .where(({ and }) => and({ account_id, region }))
    .where('deleted_at', 'is', null)
    .limit(1)
    .executeTakeFirst()
  if (served !== undefined) return
  await touch(
    db,
    db
      .selectFrom('api_keys')
      .select([sql<string>`cast(${region} as text)`.as('region'), sectionName('keys', shard('id')), runningVersion.as('version')])
      .distinct()
      .where('account_id', '=', account_id),
  )
}

/** Adds a view's definition to a region, or removes it. Call while no node there needs a binding of the view. */
export async function touchViewUnlessNeeded(db: ChangeTx, view_id: string, region: string): Promise<void> {
  const needed = await db
    .selectFrom('bindings')
    .innerJoin('endpoints', 'endpoints.id', 'bindings.endpoint_id')
    .select('bindings.id')
    .where('bindings.view_id', '=', view_id)
    .where(isNeededByNodes)
    .where('endpoints.region', '=', region)
    .limit(1)
    .executeTakeFirst()
  if (needed !== undefined) return
  await db
    .insertInto('snapshot_sections')
    .values({ region, section: `views/${view_id.slice(-2)}`, version: runningVersion })
    .onConflict(replaceVersion)
    .execute()
}

/** Touches the views that need a secret, where nodes need them. */
export async function touchViewsOfSecret(db: ChangeTx, account_id: string, name: string): Promise<void> {
  await touch(
    db,
    db
      .selectFrom('view_secrets')
      .innerJoin('bindings', 'bindings.view_id', 'view_secrets.view_id')
      .innerJoin('endpoints', 'endpoints.id', 'bindings.endpoint_id')
      .select(['endpoints.region', sectionName('views', shard('view_secrets.view_id')), runningVersion.as('version')])
      .distinct()
      .where('view_secrets.account_id', '=', account_id)
      .where('view_secrets.name', '=', name)
      .where(isNeededByNodes),
  )
}

/** Touches the endpoints of a view that is being archived. Call while it is still attached. Nodes keep its definition until it is settled. */
export async function touchBoundEndpoints(db: ChangeTx, view_id: string): Promise<void> {
  await touch(
    db,
    db
      .selectFrom('bindings')
      .innerJoin('endpoints', 'endpoints.id', 'bindings.endpoint_id')
      .where('bindings.view_id', '=', view_id)
      .where('bindings.deactivated_at', 'is', null)
      .select(['endpoints.region', sectionName('endpoints', shard('endpoints.id')), runningVersion.as('version')])
      .distinct(),
  )
}

const shardOf = (id: string) => sql<string>`cast(${id.slice(-2)} as text)`

const runningVersion = sql<string>`(select version from epoch)`

const sectionName = (kind: SectionKind, part: RawBuilder<unknown>) => sql<string>`${sql.lit(`${kind}/`)} || ${part}`.as('section')

const replaceVersion = (conflict: OnConflictBuilder<Database, 'snapshot_sections'>) =>
  conflict.columns(['region', 'section']).doUpdateSet(({ ref }) => ({ version: ref('excluded.version') }))

function selectEndpointSections(db: ChangeTx) {
  return db
    .selectFrom('endpoints')
    .select(['region', sectionName('endpoints', shard('id')), runningVersion.as('version')])
    .distinct()
}

async function touch(
  db: ChangeTx,
  sections: Expression<{ readonly region: string; readonly section: string; readonly version: string }>,
): Promise<void> {
  await db
    .insertInto('snapshot_sections')
    .columns(['region', 'section', 'version'])
    .expression(sections)
    .onConflict(replaceVersion)
    .execute()
}
