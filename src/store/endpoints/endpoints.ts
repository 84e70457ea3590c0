import { sql } from 'kysely'
import { AppError } from '#errors.ts'
import type { AutomaticCompaction } from '#model/compaction.ts'
import type { DestinationStatus } from '#model/destination.ts'
import type { DesiredState, MqttConfig, OutputFormat } from '#model/endpoint.ts'
import type { KeptField } from '#model/kept-fields.ts'
import type { Page, PageQuery } from '#model/page.ts'
import { inChunks } from '../chunks.ts'
import type { ChangeTx } from '../cluster/epoch.ts'
import { isNeededByNodes, touchEndpoint, touchKeysUnlessServed, touchViewUnlessNeeded } from '../cluster/section-versions.ts'
import { fromJsonOrNull, toJsonOrNull, toTime, toTimeOrNull } from '../columns.ts'
import { translateErrors } from '../engines/database-error.ts'
import { countRows, readPage } from '../page.ts'
import type { Database } from '../schema.ts'
import type { Db } from '../store.ts'
import { noteFormerPlaces } from './former-places.ts'

/**
 * Settings chosen by the owner. Null means the default, which the caller fills in. A null `mqtt_config` disables MQTT, a null `compaction` leaves
 * files as they are; a null name is the label.
 */
export type EndpointSettings = {
  readonly name: string | null
  readonly destination_id: string | null
  readonly segment_bytes: number | null
  readonly segment_max_age_seconds: number | null
  readonly output_formats: readonly OutputFormat[] | null
  readonly mqtt_config: MqttConfig | null
  readonly compaction: AutomaticCompaction | null
  readonly kept_headers: readonly string[] | null
  readonly kept_fields: readonly KeptField[] | null
  readonly copies: number | null
}

export type NewEndpoint = EndpointSettings & {
  readonly id: string
  readonly region: string
  readonly label: string
  /** The epoch of the change that created it: a node that applied this epoch knows the endpoint. */
  readonly since_epoch: number
}

/** An endpoint without its status, which is computed from facts. */
export type StoredEndpoint = Omit<NewEndpoint, 'name'> & {
  readonly name: string
  readonly account_id: string
  /** Nodes refuse data for it, whatever its desired state. */
  readonly account_suspended: boolean
  readonly desired_state: DesiredState
  /** The epoch of the change that started draining; null unless it is draining. */
  readonly draining_epoch: number | null
  readonly destination_name: string | null
  readonly destination_status: DestinationStatus | null
  readonly created_at: string
  /** When it was first served under its name; null before. */
  readonly provisioned_at: string | null
}

const notFound = () => new AppError('not_found', 'no such endpoint')
const nameTaken = new AppError('conflict', 'another endpoint of the account has this name')
const noSuchDestination = new AppError('validation_error', 'the destination does not exist', {
  errors: [{ path: 'destination_id', message: 'is not a destination of this account' }],
})

/** Throws validation_error for an unknown destination, and conflict if the name or the label is taken. */
export async function insertEndpoint(
  db: ChangeTx,
  account_id: string,
  endpoint: NewEndpoint,
  now: number,
): Promise<StoredEndpoint> {
  const { id, region, label, since_epoch } = endpoint
  const values = {
    ...{ id, account_id, region, label, since_epoch, desired_state: 'active', created_at: now },
    name: endpoint.name ?? label,
    destination_id: endpoint.destination_id,
    segment_bytes: endpoint.segment_bytes,
    segment_max_age_seconds: endpoint.segment_max_age_seconds,
    output_formats: toJsonOrNull(endpoint.output_formats),
    mqtt_config: toJsonOrNull(endpoint.mqtt_config),
    compaction: toJsonOrNull(endpoint.compaction),
    kept_headers: toJsonOrNull(endpoint.kept_headers),
    kept_fields: toJsonOrNull(endpoint.kept_fields),
    copies: endpoint.copies,
  }
  await touchKeysUnlessServed(db, account_id, region)
  await translateErrors(db.insertInto('endpoints').values(values).execute(), {
    unique: endpoint.name === null ? new AppError('conflict', 'the label is already used') : nameTaken,
    reference: noSuchDestination,
  })
  await touchEndpoint(db, id)
  return getEndpoint(db, account_id, id)
}

export async function findEndpoint(db: Db, account_id: string, id: string): Promise<StoredEndpoint | undefined> {
  const row = await select(db).where('endpoints.account_id', '=', account_id).where('endpoints.id', '=', id).executeTakeFirst()
  return row === undefined ? undefined : toStoredEndpoint(row)
}

/** Throws not_found. */
export async function getEndpoint(db: Db, account_id: string, id: string): Promise<StoredEndpoint> {
  const endpoint = await findEndpoint(db, account_id, id)
  if (endpoint === undefined) throw notFound()
  return endpoint
}

/** Throws not_found unless the account has the endpoint, or had it before it was deleted. */
export async function assertEverExisted(db: Db, account_id: string, id: string): Promise<void> {
  const row = await db
    .selectFrom('endpoints')
    .select('id')
    .where(({ and }) => and({ account_id, id }))
    .executeTakeFirst()
  if (row === undefined) throw notFound()
}

export type EndpointFilter = {
  /** Only these. */
  readonly ids?: readonly string[] | undefined
  readonly desired_states?: readonly DesiredState[] | undefined
  readonly name?: string | undefined
}

/** Returns one page, newest first, optionally only some endpoints, of some desired states or with one name. */
export async function listEndpoints(
  db: Db,
  account_id: string,
  page: PageQuery,
  { ids, desired_states, name }: EndpointFilter = {},
): Promise<Page<StoredEndpoint>> {
  let found = select(db).where('endpoints.account_id', '=', account_id)
  if (ids !== undefined) found = found.where('endpoints.id', 'in', ids)
  if (desired_states !== undefined) found = found.where('endpoints.desired_state', 'in', desired_states)
  if (name !== undefined) found = found.where('endpoints.name', '=', name)
  return readPage(found.orderBy('endpoints.created_at', 'desc').orderBy('endpoints.id'), page, toStoredEndpoint)
}

/** The fields that the status is computed from. */
export type EndpointFacts = Pick<
  StoredEndpoint,
  | 'id'
  | 'region'
  | 'label'
  | 'account_suspended'
  | 'desired_state'
  | 'created_at'
  | 'provisioned_at'
  | 'since_epoch'
  | 'destination_status'
  | 'copies'
>

/** Returns the active endpoints of an account, newest first, to filter them by computed status; optionally those with one name. */
export async function listEndpointFacts(db: Db, account_id: string, name?: string): Promise<readonly EndpointFacts[]> {
  const rows = await db
    .selectFrom('endpoints')
    .innerJoin('accounts', 'accounts.id', 'endpoints.account_id')
    .leftJoin('destinations', (join) =>
      join
        .onRef('destinations.account_id', '=', 'endpoints.account_id')
        .onRef('destinations.id', '=', 'endpoints.destination_id'),
    )
    .select(['endpoints.id', 'endpoints.region', 'endpoints.label', 'endpoints.since_epoch'])
    .select(['endpoints.created_at', 'endpoints.provisioned_at', 'endpoints.copies'])
    .select(['destinations.status as destination_status', 'accounts.status as account_status'])
    .where(({ and }) => and({ 'endpoints.account_id': account_id, 'endpoints.desired_state': 'active' }))
    .where('endpoints.deleted_at', 'is', null)
    .$if(name !== undefined, (query) => query.where('endpoints.name', '=', name as string))
    .orderBy('endpoints.created_at', 'desc')
    .orderBy('endpoints.id')
    .execute()
  return rows.map(({ account_status, ...row }) => ({
    ...row,
    account_suspended: account_status === 'suspended',
    desired_state: 'active',
    destination_status: row.destination_status as DestinationStatus | null,
    created_at: toTime(row.created_at),
    provisioned_at: toTimeOrNull(row.provisioned_at),
  }))
}

/** Returns the label of one endpoint in each region. */
export async function listLabelsByRegion(db: Db): Promise<ReadonlyMap<string, string>> {
  const rows = await db
    .selectFrom('endpoints')
    .select('region')
    .select(({ fn }) => fn.max('label').as('label'))
    .where('deleted_at', 'is', null)
    .groupBy('region')
    .execute()
  return new Map(rows.map(({ region, label }) => [region, label]))
}

/** Returns the number of endpoints of all accounts. */
export function countEndpoints(db: Db): Promise<number> {
  return countRows(db.selectFrom('endpoints').where('deleted_at', 'is', null))
}

/** Returns endpoints of all accounts that were never served under their name, newest first. */
export async function listUnprovisionedEndpoints(db: Db, limit: number): Promise<readonly StoredEndpoint[]> {
  const rows = await select(db)
    .where('endpoints.provisioned_at', 'is', null)
    .where('endpoints.desired_state', '=', 'active')
    .orderBy('endpoints.created_at', 'desc')
    .limit(limit)
    .execute()
  return rows.map(toStoredEndpoint)
}

/** Records that these endpoints have been served under their names. */
export async function markProvisioned(db: Db, ids: readonly string[], now: number): Promise<void> {
  for (const some of inChunks(ids))
    await db
      .updateTable('endpoints')
      .set({ provisioned_at: now })
      .where('id', 'in', some)
      .where('provisioned_at', 'is', null)
      .execute()
}

/** Returns these endpoints in this order, without any that were deleted in the meantime. */
export async function listEndpointsById(db: Db, account_id: string, ids: readonly string[]): Promise<readonly StoredEndpoint[]> {
  if (ids.length === 0) return []
  const rows = await select(db).where('endpoints.account_id', '=', account_id).where('endpoints.id', 'in', ids).execute()
  const found = new Map(rows.map((row) => [row.id, toStoredEndpoint(row)]))
  return ids.flatMap((id) => found.get(id) ?? [])
}

/** Changes the given settings. Throws not_found, validation_error for an unknown destination, and conflict if the name is taken. */
export async function updateEndpoint(
  db: ChangeTx,
  account_id: string,
  id: string,
  change: { readonly [Name in keyof EndpointSettings]?: EndpointSettings[Name] | undefined },
  now: number,
): Promise<StoredEndpoint> {
  const columns = {
    name: change.name === null ? sql.ref('label') : change.name,
    destination_id: change.destination_id,
    segment_bytes: change.segment_bytes,
    segment_max_age_seconds: change.segment_max_age_seconds,
    output_formats: change.output_formats && toJsonOrNull(change.output_formats),
    mqtt_config: change.mqtt_config && toJsonOrNull(change.mqtt_config),
    compaction: change.compaction && toJsonOrNull(change.compaction),
    kept_headers: change.kept_headers && toJsonOrNull(change.kept_headers),
    kept_fields: change.kept_fields && toJsonOrNull(change.kept_fields),
    copies: change.copies,
  } satisfies Record<keyof EndpointSettings, unknown>
  const values = Object.fromEntries(Object.entries(columns).filter(([, value]) => value !== undefined))
  if (change.destination_id !== undefined) await noteFormerPlaces(db, { endpoint_id: id }, now)
  if (Object.keys(values).length > 0) {
    const update = db
      .updateTable('endpoints')
      .set(values)
      .where(({ and }) => and({ account_id, id }))
      .where('deleted_at', 'is', null)
    await translateErrors(update.execute(), { unique: nameTaken, reference: noSuchDestination })
    await touchEndpoint(db, id)
  }
  return getEndpoint(db, account_id, id)
}

/** Pauses or resumes. Idempotent. Throws not_found, and conflict if the endpoint is draining. */
export async function setDesiredState(
  db: ChangeTx,
  account_id: string,
  id: string,
  desired_state: 'active' | 'paused',
): Promise<StoredEndpoint> {
  const { numUpdatedRows } = await db
    .updateTable('endpoints')
    .set({ desired_state })
    .where(({ and }) => and({ account_id, id }))
    .where('desired_state', 'in', ['active', 'paused'])
    .executeTakeFirstOrThrow()
  const endpoint = await getEndpoint(db, account_id, id)
  if (numUpdatedRows === 0n) throw new AppError('conflict', 'the endpoint is being deleted')
  await touchEndpoint(db, id)
  return endpoint
}

/** Makes nodes reject new data from this epoch on. Idempotent. Throws not_found. */
export async function drainEndpoint(
  db: ChangeTx,
  account_id: string,
  id: string,
  { epoch, now }: { readonly epoch: number; readonly now: number },
): Promise<void> {
  const { numUpdatedRows } = await db
    .updateTable('endpoints')
    .set({ desired_state: 'draining', draining_at: now, draining_epoch: epoch })
    .where(({ and }) => and({ account_id, id }))
    .where('desired_state', '!=', 'draining')
    .executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) await getEndpoint(db, account_id, id)
  else await touchEndpoint(db, id)
}

export type DrainingEndpoint = Pick<StoredEndpoint, 'id' | 'region' | 'since_epoch'> & {
  readonly draining_at: number
  readonly draining_epoch: number
}

/** Returns draining endpoints of all accounts, oldest first, from those that started at `from` (epoch ms) on. */
export function listDrainingEndpoints(db: Db, from: number, limit: number): Promise<DrainingEndpoint[]> {
  return db
    .selectFrom('endpoints')
    .select(['id', 'region', 'since_epoch', 'draining_at', 'draining_epoch'])
    .where('desired_state', '=', 'draining')
    .where('deleted_at', 'is', null)
    .where('draining_at', '>=', from)
    .orderBy('draining_at')
    .limit(limit)
    .$narrowType<{ draining_at: number; draining_epoch: number }>()
    .execute()
}

/**
 * Deletes a draining endpoint for its account, with its bindings. The row stays, because commits, DLQ files and metrics refer
 * to it, and so do reports of nodes that still hold data. Returns false if another process deleted it first.
 */
export async function removeDrainingEndpoint(db: ChangeTx, id: string, now: number): Promise<boolean> {
  await noteFormerPlaces(db, { endpoint_id: id }, now)
  const removed = await db
    .updateTable('endpoints')
    .set({ deleted_at: now, destination_id: null })
    .where(({ and }) => and({ id, desired_state: 'draining' }))
    .where('deleted_at', 'is', null)
    .returning(['account_id', 'region'])
    .executeTakeFirst()
  if (removed === undefined) return false
  const detached = await db
    .updateTable('bindings')
    .set({ deactivated_at: sql<number>`coalesce(deactivated_at, ${now})`, unsettled_epoch: null })
    .where('endpoint_id', '=', id)
    .where(isNeededByNodes)
    .returning('view_id')
    .execute()
  await db.deleteFrom('shadows').where('endpoint_id', '=', id).execute()
  await db.deleteFrom('dns_checks').where('endpoint_id', '=', id).execute()
  await touchEndpoint(db, id)
  await touchKeysUnlessServed(db, removed.account_id, removed.region)
  for (const { view_id } of detached) await touchViewUnlessNeeded(db, view_id, removed.region)
  return true
}

function select(db: Db) {
  return db
    .selectFrom('endpoints')
    .innerJoin('accounts', 'accounts.id', 'endpoints.account_id')
    .leftJoin('destinations', 'destinations.id', 'endpoints.destination_id')
    .selectAll('endpoints')
    .select(['destinations.name as destination_name', 'destinations.status as destination_status'])
    .select('accounts.status as account_status')
    .where('endpoints.deleted_at', 'is', null)
}

type Row = Database['endpoints'] & {
  destination_name: string | null
  destination_status: string | null
  account_status: string
}

export function toStoredEndpoint(row: Row): StoredEndpoint {
  return {
    id: row.id,
    account_id: row.account_id,
    account_suspended: row.account_status === 'suspended',
    region: row.region,
    label: row.label,
    name: row.name,
    desired_state: row.desired_state as DesiredState,
    draining_epoch: row.draining_epoch,
    destination_id: row.destination_id,
    destination_name: row.destination_name,
    destination_status: row.destination_status as DestinationStatus | null,
    segment_bytes: row.segment_bytes,
    segment_max_age_seconds: row.segment_max_age_seconds,
    output_formats: fromJsonOrNull(row.output_formats),
    mqtt_config: fromJsonOrNull(row.mqtt_config),
    compaction: fromJsonOrNull(row.compaction),
    kept_headers: fromJsonOrNull(row.kept_headers),
    kept_fields: fromJsonOrNull(row.kept_fields),
    copies: row.copies,
    since_epoch: row.since_epoch,
    created_at: toTime(row.created_at),
    provisioned_at: toTimeOrNull(row.provisioned_at),
  }
}
