import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import { newId } from '#model/id.ts'
import type { Backfill, Job, JobDetail, JobsQuery, Redrive } from '#model/job.ts'
import type { Page } from '#model/page.ts'
import type { Principal } from '#model/principal.ts'
import type { View } from '#model/view.ts'
import { findLatestRejectingVersion } from '#store/commits/dlq-files.ts'
import { findEndpoint, type StoredEndpoint } from '#store/endpoints/endpoints.ts'
import { getView, getViewDetail } from '#store/endpoints/views.ts'
import { getJob, insertJob, listJobReasons, listJobs, setJobStatus } from '#store/jobs/jobs.ts'
import { readConsistently, type Store, type Tx, transact } from '#store/store.ts'
import { actorOf } from './actor.ts'

export type JobsOptions = { readonly store: Store; readonly clock: Clock }

export type Jobs = ReturnType<typeof jobService>

/**
 * Creates backfills and re-drives and changes their status. Nodes run them (`job-leases.ts`).
 *
 * Law: a job covers the segments that were sealed before it was created. Bindings cover later ones.
 */
export function jobService({ clock, store }: JobsOptions) {
  function insert(
    db: Tx,
    principal: Principal,
    { from = null, to = null }: { readonly from?: string | null | undefined; readonly to?: string | null | undefined },
    {
      endpoint,
      ...job
    }: Pick<Parameters<typeof insertJob>[2], 'kind' | 'view_id' | 'from_view_id'> & { endpoint: StoredEndpoint },
  ): Promise<Job> {
    if (from !== null && to !== null && from >= to) throw invalid('to', 'must be after from')
    const target = { endpoint_id: endpoint.id, region: endpoint.region }
    const made = { ...job, ...target, id: newId(), from, to, created_by: actorOf(principal) }
    return insertJob(db, principal.account_id, made, clock.now())
  }

  return {
    backfill(principal: Principal, view_id: string, request: Backfill): Promise<Job> {
      return transact(store, async (db) => {
        await getPublishedView(db, principal, view_id)
        const endpoint = await requireEndpoint(db, principal, request.endpoint_id)
        return insert(db, principal, request, { kind: 'backfill', view_id, from_view_id: null, endpoint })
      })
    },

    redrive(principal: Principal, view_id: string, request: Redrive): Promise<Job> {
      return transact(store, async (db) => {
        const view = await getPublishedView(db, principal, view_id)
        const endpoint = await requireEndpoint(db, principal, request.endpoint_id)
        const from_view_id = await findRejectingVersion(db, principal, view, request)
        return insert(db, principal, request, { kind: 'redrive', view_id, from_view_id, endpoint })
      })
    },

    list({ account_id }: Principal, query: JobsQuery): Promise<Page<Job>> {
      return listJobs(store.db, account_id, query)
    },

    get({ account_id }: Principal, id: string): Promise<JobDetail> {
      return readConsistently(store, async (db) => {
        const job = await getJob(db, account_id, id)
        return { ...job, reasons: await listJobReasons(db, id) }
      })
    },

    setStatus({ account_id }: Principal, id: string, status: 'running' | 'paused' | 'canceled'): Promise<Job> {
      return transact(store, (db) => setJobStatus(db, account_id, id, status, clock.now()))
    },
  }
}

async function getPublishedView(db: Tx, { account_id }: Principal, id: string): Promise<View> {
  const view = await getView(db, account_id, id)
  if (view.status !== 'published')
    throw invalid('', `the view is ${view.status}: only a published version can run over old segments`)
  return view
}

async function requireEndpoint(db: Tx, { account_id }: Principal, id: string): Promise<StoredEndpoint> {
  const endpoint = await findEndpoint(db, account_id, id)
  if (endpoint === undefined) throw invalid('endpoint_id', 'is not an endpoint of the account')
  return endpoint
}

/** Returns the id of the version whose rejected rows the job reads. */
async function findRejectingVersion(
  db: Tx,
  { account_id }: Principal,
  view: View,
  { endpoint_id, from, to, from_version }: Redrive,
): Promise<string> {
  if (from_version === undefined) {
    const lineage = { name: view.name, except: view.id }
    const latest = await findLatestRejectingVersion(db, account_id, lineage, { endpoint_id, from: from ?? null, to: to ?? null })
    if (latest === undefined)
      throw invalid('from_version', 'is required: no other version of the view has rejected rows in this range')
    return latest.id
  }
  if (from_version === view.version)
    throw invalid('from_version', 'is the version itself, which would reject the rows again: name another version')
  const { versions } = await getViewDetail(db, account_id, view.id)
  const source = versions.find(({ version, status }) => version === from_version && status !== 'draft')
  if (source === undefined) throw invalid('from_version', 'must be a published or archived version of the view')
  return source.id
}

function invalid(path: string, message: string): AppError {
  return new AppError('validation_error', path === '' ? message : `${path} ${message}`, { errors: [{ path, message }] })
}
