import { type Definition, type DefinitionFormat, isListFormed } from '#model/definition.ts'
import { newId } from '#model/id.ts'
import type { Page, PageQuery } from '#model/page.ts'
import type { DefinitionWarning } from '#model/preview.ts'
import type { Principal } from '#model/principal.ts'
import type { CheckedView, CreateViewVersion, View, ViewDetail, ViewStatus, ViewWithUsage } from '#model/view.ts'
import type { ViewMetrics } from '#model/view-metrics.ts'
import type { CheckedChange, ReadView } from '#preview/preview-protocol.ts'
import { withinQuotas } from '#store/accounts/quotas.ts'
import { listSecretNames } from '#store/accounts/secrets.ts'
import type { ChangeTx } from '#store/cluster/epoch.ts'
import { listOutdatedShadows, type OutdatedShadow, settleShadows } from '#store/endpoints/shadow-removal.ts'
import {
  archiveView,
  findPublishedBefore,
  findView,
  getView,
  getViewDetail,
  insertVersion,
  insertView,
  listPublishedVersions,
  listViews,
  publishView,
  removeDraft,
  updateDraft,
} from '#store/endpoints/views.ts'
import { getViewMetrics, noViewMetrics, readViewMetrics } from '#store/series/view-counters.ts'
import { transact } from '#store/store.ts'
import type { ControlContext } from '../context.ts'
import { actorOf } from './actor.ts'
import { addColumnMetrics } from './column-metrics.ts'

/** Throws validation_error if delivery could not run the definition, or it names another secret than these. Provided by the composition: `preview/preview-workers.ts`. */
export type DefinitionReader = {
  readonly readView: (body: Uint8Array, secrets: readonly string[], account: string, signal: AbortSignal) => Promise<ReadView>
  readonly readChange: (
    body: Uint8Array,
    format: DefinitionFormat,
    secrets: readonly string[],
    account: string,
    signal: AbortSignal,
  ) => Promise<CheckedChange>
  /** Returns the warnings about the definition. */
  readonly compile: (
    definition: Definition,
    secrets: readonly string[],
    account: string,
    signal: AbortSignal,
  ) => Promise<readonly DefinitionWarning[]>
}

export type ViewsQuery = PageQuery & {
  readonly status: ViewStatus | 'all'
  readonly name?: string | undefined
  readonly tag?: readonly string[] | undefined
}

export type ViewMetricsOfVersion = ViewMetrics & {
  readonly view_id: string
  readonly view_name: string
  readonly view_version: number
}

export type ViewsOptions = Pick<ControlContext, 'store' | 'applyChange' | 'clock'> & {
  readonly definitions: DefinitionReader
}

const viewQuotas = ['views', 'view_versions'] as const

export type Views = ReturnType<typeof viewService>

/**
 * View versions and their life cycle: draft, published, archived.
 *
 * Law: every definition in the store has been compiled. Nodes see a view only once it is bound, or shadows an endpoint. So only publishing
 * and archiving need a new epoch: they end shadows, and archiving detaches the view from every endpoint.
 */
export function viewService({ applyChange, clock, definitions, store }: ViewsOptions) {
  return {
    ...metricsQueries({ store, clock }),

    /** Takes the body of the request. */
    async create(principal: Principal, body: Uint8Array, signal: AbortSignal): Promise<CheckedView> {
      const { account_id } = principal
      const names = await listSecretNames(store.db, account_id)
      const { warnings, ...view } = await definitions.readView(body, names, account_id, signal)
      const created = { ...view, id: newId(), created_by: actorOf(principal) }
      const inserted = await transact(store, (db) =>
        withinQuotas(db, account_id, viewQuotas, () => insertView(db, account_id, created, clock.now())),
      )
      return { ...inserted, warnings: [...warnings] }
    },

    list({ account_id }: Principal, { status, name, tag, limit, offset }: ViewsQuery): Promise<Page<ViewWithUsage>> {
      const filter = { status: status === 'all' ? undefined : status, name, tags: tag }
      return listViews(store.db, account_id, filter, { limit, offset })
    },

    get({ account_id }: Principal, id: string): Promise<ViewDetail> {
      return getViewDetail(store.db, account_id, id)
    },

    /** Takes the body of the request. */
    async change({ account_id }: Principal, id: string, body: Uint8Array, signal: AbortSignal): Promise<CheckedView> {
      // Whether there is such a draft shows below, in the transaction.
      const view = await findView(store.db, account_id, id)
      const names = await listSecretNames(store.db, account_id)
      const format = view?.format ?? 'json'
      const { warnings, ...change } = await definitions.readChange(body, format, names, account_id, signal)
      const changed = await transact(store, (db) => updateDraft(db, account_id, id, change))
      const shadows = change.definition === undefined ? [] : await listOutdatedShadows(store.db, changed)
      return { ...changed, warnings: [...warnings, ...shadows.map(shadowWarning)] }
    },

    remove({ account_id }: Principal, id: string): Promise<void> {
      return transact(store, (db) => removeDraft(db, account_id, id))
    },

    /** Compiles again: the draft may be older than the rules of this release. */
    async publish({ account_id }: Principal, id: string, signal: AbortSignal): Promise<CheckedView> {
      const { definition } = await getView(store.db, account_id, id)
      const names = await listSecretNames(store.db, account_id)
      const warnings = await definitions.compile(definition, names, account_id, signal)
      const published = await applyChange((db) => publishSettled(db, account_id, id, clock.now()))
      const before = await findPublishedBefore(store.db, account_id, published)
      return { ...published, warnings: [...warnings, ...listWarnings(published, before)] }
    },

    /** A new version of an archived view counts as a view again. */
    createVersion(principal: Principal, id: string, { copy_from_version, description }: CreateViewVersion): Promise<View> {
      const { account_id } = principal
      const version = { id: newId(), created_by: actorOf(principal), description }
      return transact(store, (db) =>
        withinQuotas(db, account_id, viewQuotas, () =>
          insertVersion(db, account_id, id, version, copy_from_version, clock.now()),
        ),
      )
    },

    archive({ account_id }: Principal, id: string): Promise<View> {
      return applyChange((db) => archiveView(db, account_id, id, clock.now()))
    },
  }
}

function metricsQueries({ store, clock }: Pick<ViewsOptions, 'store' | 'clock'>) {
  return {
    async listMetrics({ account_id }: Principal, query: PageQuery): Promise<Page<ViewMetricsOfVersion>> {
      const { items, ...page } = await listPublishedVersions(store.db, account_id, query)
      const ids = items.map(({ id }) => id)
      const metrics = await readViewMetrics(store.db, account_id, ids, clock.now())
      const described = items.map(({ id, name, version }) => ({
        ...{ view_id: id, view_name: name, view_version: version },
        ...(metrics.get(id) ?? noViewMetrics()),
      }))
      return { items: described, ...page }
    },

    async metrics({ account_id }: Principal, id: string, detail?: 'columns'): Promise<ViewMetricsOfVersion> {
      const { name, version, definition } = await getView(store.db, account_id, id)
      const now = clock.now()
      const metrics = await getViewMetrics(store.db, account_id, id, now)
      const of = { view_id: id, view_name: name, view_version: version }
      return { ...of, ...(detail === 'columns' ? await addColumnMetrics(store, id, definition, metrics, now) : metrics) }
    },
  }
}

async function publishSettled(db: ChangeTx, account_id: string, id: string, now: number): Promise<View> {
  const view = await publishView(db, account_id, id, now)
  await settleShadows(db, view)
  return view
}

function shadowWarning({ endpoint_name }: OutdatedShadow): DefinitionWarning {
  const message = `the shadow at ${JSON.stringify(endpoint_name)} keeps the definition that it started with: end it and start another one to count this one`
  return { path: 'definition', code: 'shadow_not_changed', message }
}

/** Says that lists change: the version before has packed ones, mostly because it is older than the choice. */
function listWarnings({ definition }: View, before: View | undefined): readonly DefinitionWarning[] {
  const wasPacked = before !== undefined && before.definition.lists !== 'aligned' && isListFormed(before.definition)
  if (definition.lists !== 'aligned' || !wasPacked) return []
  const message = `is aligned: lists hold NULL for each element of [*] without a value, which version ${before.version} leaves out. To leave them out, set lists to packed`
  return [{ path: 'definition.lists', code: 'aligned_lists', message }]
}
