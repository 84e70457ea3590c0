import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { client, ok, type Schemas } from './client.ts'
import { movingMs, slowMs, whileThere } from './intervals.ts'

export type Job = Schemas['Job']
export type JobKind = Job['kind']
export type JobStatus = Job['status']
export type JobFilter = { readonly status?: JobStatus; readonly view_id?: string }

export const jobsKey = (account: string) => [account, 'jobs'] as const

const pageSize = 50

export const isUnfinished = ({ status }: Pick<Job, 'status'>) => status === 'running' || status === 'paused'

/** Backfills and re-drives, newest first. */
export const jobsQuery = (account: string, filter: JobFilter) =>
  infiniteQueryOptions({
    queryKey: [...jobsKey(account), 'list', filter],
    queryFn: ({ pageParam }) =>
      ok(client.GET('/v1/jobs', { params: { query: { ...filter, limit: pageSize, offset: pageParam } } })),
    initialPageParam: 0,
    getNextPageParam: ({ next_offset }) => next_offset,
    refetchInterval: ({ state: { data } }) =>
      data?.pages.some(({ items }) => items.some(isUnfinished)) === true ? movingMs : slowMs,
  })

export const jobQuery = (account: string, id: string) =>
  queryOptions({
    queryKey: [...jobsKey(account), id],
    queryFn: () => ok(client.GET('/v1/jobs/{id}', { params: { path: { id } } })),
    // A segment that is committed late goes to jobs that are finished, too.
    refetchInterval: (query) => {
      const { data } = query.state
      return whileThere(data === undefined || isUnfinished(data) ? movingMs : slowMs)(query)
    },
  })

/** Segments sealed in `[from, to)`; null for no bound. */
export type JobRange = { readonly from: string | null; readonly to: string | null }

export type NewBackfill = JobRange & { readonly endpoint_id: string }
export type NewRedrive = NewBackfill & { readonly from_version: number }

export function startBackfill(view: string, { endpoint_id, ...range }: NewBackfill): Promise<Job> {
  const body = { endpoint_id, ...given(range) }
  return ok(client.POST('/v1/views/{id}/backfill', { params: { path: { id: view } }, body }))
}

export function startRedrive(view: string, { endpoint_id, from_version, ...range }: NewRedrive): Promise<Job> {
  const body = { endpoint_id, from_version, ...given(range) }
  return ok(client.POST('/v1/views/{id}/redrive', { params: { path: { id: view } }, body }))
}

function given({ from, to }: JobRange): { readonly from?: string; readonly to?: string } {
  return { ...(from === null ? {} : { from }), ...(to === null ? {} : { to }) }
}

export function pauseJob(id: string): Promise<Job> {
  return ok(client.POST('/v1/jobs/{id}/pause', { params: { path: { id } } }))
}

export function resumeJob(id: string): Promise<Job> {
  return ok(client.POST('/v1/jobs/{id}/resume', { params: { path: { id } } }))
}

export function cancelJob(id: string): Promise<Job> {
  return ok(client.POST('/v1/jobs/{id}/cancel', { params: { path: { id } } }))
}
