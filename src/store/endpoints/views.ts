/**
 * View versions, one row each. All rows with the same name in an account form a lineage.
 *
 * Law: a version leaves `draft` once. After that its definition never changes. Every change has the expected status in its WHERE,
 * so only one of two concurrent callers succeeds.
 */
import { sql } from 'kysely'
import { AppError } from '#errors.ts'
import { readCanaryRule } from '#model/canary-rule.ts'
import { type Definition, type DefinitionFormat, withListForm } from '#model/definition.ts'
import type { Page, PageQuery } from '#model/page.ts'
import type { ChangeView, CreateView, View, ViewDetail, ViewStatus, ViewWithUsage } from '#model/view.ts'
import { listSecretsOfView, lockSecrets, setSecretsOfView } from '../accounts/secrets.ts'
import type { ChangeTx } from '../cluster/epoch.ts'
import { runningEpoch, touchBoundEndpoints } from '../cluster/section-versions.ts'
import { fromJson, toTime, toTimeOrNull } from '../columns.ts'
import { translateErrors } from '../engines/database-error.ts'
import { storeLimits } from '../limits.ts'
import { readPage } from '../page.ts'
import type { Database } from '../schema.ts'
import type { Db, Tx } from '../store.ts'
import { removeShadowsOfView } from './shadow-removal.ts'

const notFound = () => new AppError('not_found', 'no such view')
const nameTaken = new AppError('validation_error', 'the name is taken', {
  errors: [{ path: 'name', message: 'is the name of another view: create a new version of that view' }],
})

export type NewView = Omit<CreateView, 'definition'> & {
  readonly definition: Definition
  readonly id: string
  readonly created_by: string
  /** Names of the secrets that the definition needs. */
  readonly secrets?: readonly string[] | undefined
}

/** A definition comes with the secrets that it needs. */
export type DraftChange = Omit<ChangeView, 'definition'> &
  Pick<NewView, 'secrets'> & { readonly definition?: Definition | undefined }

/** Inserts the first version of a new lineage, as a draft. Throws validation_error if the account already has the name. */
export async function insertView(db: Tx, account_id: string, view: NewView, now: number): Promise<View> {
  const taken = await db
    .selectFrom('views')
    .select('id')
    .where(({ and }) => and({ account_id, name: view.name }))
    .limit(1)
    .executeTakeFirst()
  if (taken !== undefined) throw nameTaken
  const insert = db
    .insertInto('views')
    .values(newRow(account_id, view, 1, now))
    .returningAll()
  const row = await translateErrors(insert.executeTakeFirstOrThrow(), { unique: nameTaken })
  await insertTags(db, view.id, view.tags)
  await setSecretsOfView(db, account_id, view.id, view.secrets ?? [])
  return toView(row)
}

export type NewVersion = { readonly id: string; readonly created_by: string; readonly description?: string | undefined }

/**
 * Inserts a draft with the next number in the lineage of `id`, copied from version `from`, or the latest one.
 * Throws not_found, and validation_error if the lineage has no version `from`.
 */
export async function insertVersion(
  db: Tx,
  account_id: string,
  id: string,
  version: NewVersion,
  from: number | undefined,
  now: number,
): Promise<View> {
  const { name } = await getView(db, account_id, id)
  for (let attempt = 0; attempt < storeLimits.versionAttemptsMax; attempt += 1) {
    const latest = (await lineageOf(db, account_id, name).select('version').limit(1).executeTakeFirst())?.version ?? 0
    const row = await lineageOf(db, account_id, name)
      .selectAll()
      .where('version', '=', from ?? latest)
      .executeTakeFirst()
    if (row === undefined) {
      throw new AppError('validation_error', `the view has no version ${from}`, {
        errors: [{ path: 'copy_from_version', message: 'is not a version of this view' }],
      })
    }
    const source = toView(row)
    const { format, tags } = source
    const definition = withListForm(source.definition)
    const description = version.description ?? source.description
    const copy = { id: version.id, created_by: version.created_by, name, definition, format, tags, description }
    // Waits for a concurrent insert of the same number, and then returns no row.
    const inserted = await db
      .insertInto('views')
      .values(newRow(account_id, copy, latest + 1, now))
      .onConflict((conflict) => conflict.columns(['account_id', 'name', 'version']).doNothing())
      .returningAll()
      .executeTakeFirst()
    if (inserted !== undefined) {
      await insertTags(db, inserted.id, tags)
      await setSecretsOfView(db, account_id, inserted.id, await listSecretsOfView(db, source.id))
      return toView(inserted)
    }
  }
  throw new AppError('unavailable', 'too many versions of this view are being created at once', { retryAfterSeconds: 1 })
}

export async function findView(db: Db, account_id: string, id: string): Promise<View | undefined> {
  const row = await db
    .selectFrom('views')
    .selectAll()
    .where(({ and }) => and({ account_id, id }))
    .executeTakeFirst()
  return row === undefined ? undefined : toView(row)
}

/** Throws not_found. */
export async function getView(db: Db, account_id: string, id: string): Promise<View> {
  const view = await findView(db, account_id, id)
  if (view === undefined) throw notFound()
  return view
}

/** Returns the id of a version of a view by its name; null if it is gone. */
export async function findVersionId(db: Db, account_id: string, name: string, version: number): Promise<string | null> {
  const row = await db
    .selectFrom('views')
    .select('id')
    .where(({ and }) => and({ account_id, name, version }))
    .executeTakeFirst()
  return row?.id ?? null
}

/** Returns a view with the versions of its lineage, latest first, and the endpoints it is attached to. Throws not_found. */
export async function getViewDetail(db: Db, account_id: string, id: string): Promise<ViewDetail> {
  const view = await getView(db, account_id, id)
  const versions = await lineageOf(db, account_id, view.name)
    .select(['id', 'version', 'status', 'published_at', 'created_by'])
    .execute()
  const endpoints = await db
    .selectFrom('bindings')
    .innerJoin('endpoints', 'endpoints.id', 'bindings.endpoint_id')
    .select(['endpoints.id', 'endpoints.region', 'bindings.id as binding_id', 'bindings.is_required'])
    .select('endpoints.name as endpoint_name')
    .select(['bindings.activated_at', 'bindings.canary_start_ts', 'bindings.canary_rule'])
    .where('bindings.view_id', '=', id)
    .where('bindings.deactivated_at', 'is', null)
    .orderBy('bindings.activated_at', 'desc')
    .orderBy('bindings.id')
    .execute()
  return {
    ...view,
    versions: versions.map((row) => ({
      ...row,
      status: row.status as ViewStatus,
      published_at: toTimeOrNull(row.published_at),
    })),
    endpoints: endpoints.map((row) => ({
      ...row,
      is_required: row.is_required === 1,
      activated_at: toTime(row.activated_at),
      canary_start_ts: toTimeOrNull(row.canary_start_ts),
      canary_rule: row.canary_rule === null ? null : readCanaryRule(row.canary_rule),
    })),
    shadows: await listShadowsOfView(db, id),
    stopped_canaries: await listStoppedCanaries(db, id),
  }
}

async function listShadowsOfView(db: Db, view_id: string): Promise<ViewDetail['shadows']> {
  const rows = await db
    .selectFrom('shadows')
    .innerJoin('endpoints', 'endpoints.id', 'shadows.endpoint_id')
    .select(['shadows.id', 'shadows.endpoint_id', 'endpoints.name as endpoint_name', 'shadows.started_at'])
    .where('shadows.view_id', '=', view_id)
    .orderBy('shadows.started_at', 'desc')
    .orderBy('shadows.id')
    .execute()
  return rows.map(({ started_at, ...row }) => ({ ...row, started_at: toTime(started_at) }))
}

async function listStoppedCanaries(db: Db, view_id: string): Promise<ViewDetail['stopped_canaries']> {
  const rows = await db
    .selectFrom('bindings')
    .innerJoin('endpoints', 'endpoints.id', 'bindings.endpoint_id')
    .select(['bindings.id as binding_id', 'bindings.endpoint_id', 'endpoints.name as endpoint_name'])
    .select(['bindings.deactivated_at', 'bindings.stopped_reason as reason'])
    .where('bindings.view_id', '=', view_id)
    .where('bindings.stopped_reason', 'is not', null)
    .where('bindings.deactivated_at', 'is not', null)
    .where('endpoints.deleted_at', 'is', null)
    .orderBy('bindings.deactivated_at', 'desc')
    .limit(storeLimits.stoppedCanariesShown)
    .$narrowType<{ deactivated_at: number; reason: string }>()
    .execute()
  return rows.map(({ deactivated_at, ...row }) => ({ ...row, stopped_at: toTime(deactivated_at) }))
}

export type ViewFilter = {
  readonly status?: ViewStatus | undefined
  readonly name?: string | undefined
  /** Matches views that have all of these tags. */
  readonly tags?: readonly string[] | undefined
}

/** Returns one page, newest first. */
export async function listViews(db: Db, account_id: string, filter: ViewFilter, page: PageQuery): Promise<Page<ViewWithUsage>> {
  const { status, name, tags = [] } = filter
  let matching = db.selectFrom('views').where('views.account_id', '=', account_id)
  if (status !== undefined) matching = matching.where('views.status', '=', status)
  if (name !== undefined) matching = matching.where('views.name', '=', name)
  for (const tag of new Set(tags)) {
    matching = matching.where(({ exists, selectFrom }) =>
      exists(
        selectFrom('view_tags').whereRef('view_tags.view_id', '=', 'views.id').where('view_tags.tag', '=', tag).select('tag'),
      ),
    )
  }
  const ordered = matching.orderBy('views.created_at', 'desc').orderBy('views.id')
  const sizes = await translateErrors(
    ordered.select(sql<number>`octet_length(views.definition)`.as('bytes')).limit(page.limit).offset(page.offset).execute(),
  )
  return readPage(
    ordered.selectAll('views').select(({ selectFrom }) =>
      selectFrom('bindings')
        .whereRef('bindings.view_id', '=', 'views.id')
        .where('bindings.deactivated_at', 'is', null)
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .as('usage_count'),
    ),
    page,
    (row) => ({ ...toView(row), usage_count: row.usage_count ?? 0 }),
    countFitting(sizes.map(({ bytes }) => bytes)),
  )
}

/** Returns one page of the published versions, newest first, without their definitions. */
export async function listPublishedVersions(
  db: Db,
  account_id: string,
  page: PageQuery,
): Promise<Page<Pick<View, 'id' | 'name' | 'version'>>> {
  const published = db.selectFrom('views').where('account_id', '=', account_id).where('status', '=', 'published')
  const versions = published.select(['id', 'name', 'version']).orderBy('created_at', 'desc').orderBy('id')
  return readPage(versions, page, (version) => version)
}

/** Returns how many of the definitions fit into a page: at least one. */
function countFitting(sizes: readonly number[]): number {
  let bytes = 0
  let count = 0
  for (const size of sizes) {
    bytes += size
    if (bytes > storeLimits.pageDefinitionBytesMax) break
    count += 1
  }
  return Math.max(1, count)
}

/** Changes the given fields. Throws not_found, and validation_error if the view is not a draft. */
export async function updateDraft(db: Tx, account_id: string, id: string, change: DraftChange): Promise<View> {
  const { description, definition, format, tags, secrets = [] } = change
  const values = {
    // Sets at least one column, to lock the row even if no field is given.
    status: 'draft',
    ...(description === undefined ? {} : { description }),
    ...(format === undefined ? {} : { format }),
    ...(definition === undefined ? {} : { definition: JSON.stringify(definition) }),
    ...(tags === undefined ? {} : { tags: JSON.stringify(tags) }),
  }
  const view = await changeIf(db, 'draft', account_id, id, values, 'only a draft can be changed: create a new version')
  if (tags !== undefined) {
    await db.deleteFrom('view_tags').where('view_id', '=', id).execute()
    await insertTags(db, id, tags)
  }
  if (definition !== undefined) await setSecretsOfView(db, account_id, id, secrets)
  return view
}

/** Returns the latest version before this one that was published. */
export async function findPublishedBefore(db: Db, account_id: string, { name, version }: View): Promise<View | undefined> {
  const row = await lineageOf(db, account_id, name)
    .selectAll()
    .where('version', '<', version)
    .where('published_at', 'is not', null)
    .limit(1)
    .executeTakeFirst()
  return row === undefined ? undefined : toView(row)
}

/** Throws not_found, and validation_error if the view is not a draft, or a secret that it needs is gone. */
export async function publishView(db: Tx, account_id: string, id: string, now: number): Promise<View> {
  await lockSecrets(db, account_id, id)
  return changeIf(db, 'draft', account_id, id, { status: 'published', published_at: now }, 'only a draft can be published')
}

/**
 * Archives a view and detaches it from every endpoint.
 * Throws not_found, and validation_error if the view is not published.
 */
export async function archiveView(db: ChangeTx, account_id: string, id: string, now: number): Promise<View> {
  const refusal = 'only a published view can be archived'
  const view = await changeIf(db, 'published', account_id, id, { status: 'archived' }, refusal)
  await touchBoundEndpoints(db, id)
  await db
    .updateTable('bindings')
    .set({ deactivated_at: now, unsettled_epoch: runningEpoch })
    .where('view_id', '=', id)
    .where('deactivated_at', 'is', null)
    .execute()
  await removeShadowsOfView(db, id)
  return view
}

/** Throws not_found, and validation_error if the view is not a draft. */
export async function removeDraft(db: Db, account_id: string, id: string): Promise<void> {
  const deletion = db
    .deleteFrom('views')
    .where(({ and }) => and({ account_id, id, status: 'draft' }))
    .executeTakeFirstOrThrow()
  const { numDeletedRows } = await translateErrors(deletion, {
    reference: new AppError('conflict', 'the draft shadows an endpoint: end its shadows first'),
  })
  if (numDeletedRows === 0n) await throwWrongStatus(db, account_id, id, 'only a draft can be deleted')
}

/** Changes a version that has this status. Throws not_found, and validation_error with `refusal` if it has another. */
async function changeIf(
  db: Db,
  status: ViewStatus,
  account_id: string,
  id: string,
  values: Partial<Database['views']>,
  refusal: string,
): Promise<View> {
  const row = await db
    .updateTable('views')
    .set(values)
    .where(({ and }) => and({ account_id, id, status }))
    .returningAll()
    .executeTakeFirst()
  return row === undefined ? throwWrongStatus(db, account_id, id, refusal) : toView(row)
}

/** Throws the reason why a guarded change matched no row. */
async function throwWrongStatus(db: Db, account_id: string, id: string, message: string): Promise<never> {
  const { status } = await getView(db, account_id, id)
  throw new AppError('validation_error', `${message}; this version is ${status}`)
}

/** The versions of a view, latest first. */
function lineageOf(db: Db, account_id: string, name: string) {
  return db.selectFrom('views').where('account_id', '=', account_id).where('name', '=', name).orderBy('version', 'desc')
}

async function insertTags(db: Db, view_id: string, tags: readonly string[]): Promise<void> {
  const values = [...new Set(tags)].map((tag) => ({ view_id, tag }))
  if (values.length > 0) await db.insertInto('view_tags').values(values).execute()
}

function newRow(account_id: string, view: NewView, version: number, now: number): Database['views'] {
  const { id, name, definition, format, description, tags, created_by } = view
  return {
    ...{ id, account_id, name, version, format, description, created_by },
    definition: JSON.stringify(definition),
    tags: JSON.stringify(tags),
    status: 'draft',
    created_at: now,
    published_at: null,
  }
}

function toView(row: Database['views']): View {
  return {
    id: row.id,
    name: row.name,
    version: row.version,
    definition: fromJson(row.definition),
    format: row.format as DefinitionFormat,
    status: row.status as ViewStatus,
    description: row.description,
    tags: fromJson(row.tags),
    created_by: row.created_by,
    created_at: toTime(row.created_at),
    published_at: toTimeOrNull(row.published_at),
  }
}
